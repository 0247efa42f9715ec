"""Java Iceberg as a black box: a Spark of its own, in another process and another virtual environment.

`make test-peers` puts the Python and the jars where `find_java_peer` looks; the environment can name others.
"""

import base64
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

PROJECT = Path(__file__).parents[2]
PYTHON_VARIABLE = "ICEFLOE_JAVA_PYTHON"
JARS_VARIABLE = "ICEFLOE_JAVA_JARS"
RUNTIME = "iceberg-spark-runtime"
JDBC_DRIVER = "sqlite-jdbc"
JAVA_VERSIONS = (1, 2, 3)
"""The format versions that the newest release of Java Iceberg reads and writes as a whole."""
JAVA_WRITES = (*JAVA_VERSIONS, 4)
"""It writes v4 too, with absolute paths only; it does not resolve relative ones, so it cannot read what others write."""
PATIENCE = 240.0
"""Seconds that one statement may take, on a machine that does other things too."""


class JavaError(Exception):
    """What Java says of a statement that failed."""


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the peer is: a Python with PySpark, and the jars."""

    python: Path
    jars: tuple[Path, ...]

    @property
    def iceberg_version(self) -> str:
        """The release of Java Iceberg, by the name of its jar."""
        [runtime] = [jar for jar in self.jars if jar.name.startswith(RUNTIME)]
        return runtime.stem.rpartition("-")[2]


def find_java_peer(environment: Mapping[str, str] = os.environ) -> Installation | str:
    """The peer, or the reason why it cannot be run."""
    if shutil.which("java") is None:
        return "no Java is on the path"
    home = PROJECT / ".venv-java"
    python = Path(environment.get(PYTHON_VARIABLE, str(home / "bin" / "python")))
    if not python.exists():
        return f"there is no Java peer at {python}: `make test-peers` sets it up"
    given = environment.get(JARS_VARIABLE)
    jars = tuple(map(Path, given.split(os.pathsep))) if given else tuple(sorted((home / "jars").glob("*.jar")))
    for wanted in (RUNTIME, JDBC_DRIVER):
        if sum(jar.exists() and jar.name.startswith(wanted) for jar in jars) != 1:
            return f"not one jar {wanted} among {[jar.name for jar in jars]}: `make test-peers` fetches it"
    return Installation(python, jars)


class JavaPeer:
    """A running Java Iceberg: `sql` gives the rows of a statement."""

    def __init__(self, installation: Installation, folder: Path, settings: Mapping[str, str]) -> None:
        self.installation = installation
        self.log = folder / "java.log"
        environment = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "PYTHONPATH")}
        environment |= {"PYSPARK_PYTHON": str(installation.python), "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(installation.python), str(Path(__file__).with_name("java_worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=environment,
                text=True,
            )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.spark_version = str(self._ask(_spark_settings(installation, folder) | dict(settings))["version"])

    def sql(self, text: str, **conf: str) -> Any:
        """The rows of a statement as an Arrow table; `conf` is set for this one only."""
        found = self._ask({"sql": text, "conf": conf})
        if "error" in found:
            raise JavaError(found["error"])
        with pa.ipc.open_stream(base64.b64decode(found["arrow"])) as reader:
            return reader.read_all()

    def rows(self, text: str) -> list[dict[str, Any]]:
        """The rows of a statement as dicts."""
        return list(self.sql(text).to_pylist())

    def stop(self) -> None:
        """End it: politely, then by force."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=PATIENCE)
        except (queue.Empty, OSError) as error:
            self._process.kill()
            line = ""
            reason = f"{type(error).__name__} after at most {PATIENCE} s"
        else:
            reason = "it ended"
        if not line:
            raise JavaError(f"no answer to {request} ({reason}); its last words:\n{self.log.read_text()[-3000:]}")
        return dict(json.loads(line))

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._process.stdout.close()
        self._lines.put("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def _spark_settings(installation: Installation, folder: Path) -> dict[str, str]:
    return {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.jars": ",".join(map(str, installation.jars)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
