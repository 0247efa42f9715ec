"""A warehouse to look at, and a way to run command lines in this process."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.cli.main import main

Run = Callable[..., "Ended"]


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str

    def result(self) -> Any:
        """The result in the JSON object that was printed."""
        import json

        document = json.loads(self.out)
        assert document.keys() == {"version", "command", "result"}
        assert document["version"] == 1
        return document["result"]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the one who runs the tests counts."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "ICEFLOE_CONFIG", "PYICEBERG_HOME", "NO_COLOR", "ICEFLOE_DEFAULT_CATALOG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line, and says what it printed."""

    def run_command(*arguments: str, code: int = 0) -> Ended:
        capsys.readouterr()
        ended = main(list(arguments))
        captured = capsys.readouterr()
        assert ended == code, f"{arguments} ended with {ended}: {captured.err}\n{captured.out}"
        return Ended(ended, captured.out, captured.err)

    return run_command


def orders(first: int, last: int) -> pa.Table:
    """Rows of a small shop."""
    ids = range(first, last)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": ["eu" if each % 2 else "us" for each in ids],
            "total": [float(each) for each in ids],
            "ts": [dt.datetime(2026, 1, 1) + dt.timedelta(days=each) for each in ids],
        }
    )


def fill(folder: Path) -> None:
    """A table with deletes, a branch and a tag, and a view, in the catalog of a folder."""
    main(["init", str(folder)])
    uri = f"sqlite:///{folder}/icefloe-warehouse/catalog.db"
    with icefloe.load_catalog("icefloe", type="sql", uri=uri, warehouse=folder / "icefloe-warehouse") as catalog:
        catalog.create_namespace("shop", {"owner": "ann"})
        catalog.create_namespace("shop.eu")
        table = catalog.create_table(
            "shop.orders",
            "id bigint not null comment 'the key', region string, total double, ts timestamp",
            partition_spec=["region"],
            sort_order=["id"],
            properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
        )
        table.append(orders(0, 10))
        table.manage_snapshots().create_branch("audit").create_tag("v1").commit()
        table.append(orders(10, 15), branch="audit")
        table.delete("id = 3")
        table.append(orders(20, 30))
        catalog.create_view("shop.big", "id bigint", "SELECT id FROM shop.orders WHERE total > 5")


@pytest.fixture(scope="module")
def filled_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a catalog that no test changes."""
    folder = tmp_path_factory.mktemp("lake")
    fill(folder)
    return folder


@pytest.fixture
def lake(filled_lake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same as the working directory."""
    monkeypatch.chdir(filled_lake)
    return filled_lake


@pytest.fixture
def own_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalog of this test alone, as the working directory."""
    folder = tmp_path / "own"
    fill(folder)
    monkeypatch.chdir(folder)
    return folder
