"""ClickHouse as a black box: chdb, which takes half a gigabyte, in a virtual environment and a process of its own.

`make test-peers` puts it where `find_clickhouse_peer` looks; the environment can name another Python.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.peers.java import PROJECT
from tests.peers.worker import PeerError, Worker

PYTHON_VARIABLE = "ICEFLOE_CLICKHOUSE_PYTHON"


def find_clickhouse_peer(environment: Mapping[str, str] = os.environ) -> Path | str:
    """The Python that has chdb, or the reason why it cannot be run."""
    python = Path(environment.get(PYTHON_VARIABLE, str(PROJECT / ".venv-clickhouse" / "bin" / "python")))
    return python if python.exists() else f"there is no ClickHouse peer at {python}: `make test-peers` sets it up"


class ClickHousePeer(Worker):
    """A running chdb; it reads below the folder that it runs in only."""

    def __init__(self, python: Path, folder: Path) -> None:
        super().__init__(python, "clickhouse_worker.py", folder, {})
        self.python = python

    def run(self, text: str) -> None:
        """A statement that gives no rows, in a session with tables; what reads has none, as sessions remember files."""
        found = self._ask({"run": text})
        if "error" in found:
            raise PeerError(found["error"])
