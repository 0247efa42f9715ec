"""Starts the engines of a comparison, on one catalog, one warehouse and the same settings of Spark, and asks them in turn."""

import gc
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[2]
SPARK_VERSION = "4.1.4"
"""The newest Spark that Java Iceberg has a runtime for; ours runs on it too here."""
PYTHON = PROJECT / f".venv-spark-{SPARK_VERSION}" / "bin" / "python"
JARS = PROJECT / ".venv-java" / "jars"
CATALOG = "bench"
OURS, JAVA, PLAIN = "icefloe", "java", "plain"


class EngineError(Exception):
    """What an engine says of work that failed."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of several runs."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> str:
        """The fastest and the slowest run."""
        return f"{min(self.seconds):.3g} to {max(self.seconds):.3g} s"


def missing() -> str | None:
    """Why the engines cannot be run here; None if they can."""
    if not PYTHON.exists() or not list(JARS.glob("iceberg-spark-runtime-*.jar")):
        return "there is no Java Iceberg here: `make bench-java` sets it up"
    return None


class Engine:
    """One process with a Spark of its own."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.log = home / f"{name}.log"
        environment = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "PYTHONPATH")}
        environment |= {"PYSPARK_PYTHON": str(PYTHON), "TZ": "UTC", "SPARK_LOCAL_IP": "127.0.0.1"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(PYTHON), str(Path(__file__).with_name("worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=home,
                env=environment,
                text=True,
            )
        self._ask(settings=_settings(home, name), name=name)

    def run(self, do: str, **arguments: Any) -> tuple[float, Any]:
        """Seconds, and what the work gave."""
        found = self._ask(do=do, **arguments)
        return float(found["seconds"]), found["found"]

    def sql(self, text: str) -> Any:
        """The rows of a statement."""
        return self.run("sql", text=text)[1]

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(f"{self.name} ended; its last words:\n{self.log.read_text()[-3000:]}")
        found = dict(json.loads(line))
        if "error" in found:
            raise EngineError(f"{self.name}: {request}: {found['error']}")
        return found


@contextmanager
def engines(folder: str | None = None) -> Iterator[tuple[Engine, Engine, Path]]:
    """Ours and Java's, on tables in a folder that is kept, or in one that is gone afterwards."""
    if (reason := missing()) is not None:
        raise SystemExit(reason)
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryDirectory(prefix="icefloe-bench-")) if folder is None else folder
        home = Path(made).absolute()
        home.mkdir(parents=True, exist_ok=True)
        ours, java = (stack.enter_context(engine(name, home)) for name in (OURS, JAVA))
        ours.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.db")
        yield ours, java, home


@contextmanager
def engine(name: str, home: Path) -> Iterator[Engine]:
    """One of them, for as long as it is needed; `PLAIN` is Spark without Iceberg tables."""
    started = Engine(name, home)
    try:
        yield started
    finally:
        started.stop()


def in_turn(
    work: Sequence[tuple[Engine, str, Mapping[str, Any]]], repeat: int, *, rows: int | None = None
) -> list[Measured]:
    """The seconds of each, run in turn after one run for warmth, whose answers must be alike, and of so many rows."""
    answers = [engine.run(do, **arguments)[1] for engine, do, arguments in work]
    if any(answer != answers[0] for answer in answers):
        raise EngineError(f"the answers differ: {str(answers)[:2000]}")
    if rows is not None and len(answers[0]) != rows:
        raise EngineError(f"{len(answers[0])} rows where there must be {rows}: {work[0][2]}")
    seconds: list[list[float]] = [[] for _ in work]
    for _ in range(repeat):
        for place, (engine, do, arguments) in enumerate(work):
            gc.collect()
            seconds[place].append(engine.run(do, **arguments)[0])
    return [Measured(tuple(each)) for each in seconds]


def _settings(home: Path, name: str) -> dict[str, str]:
    """The same for all, but for what makes them know of Iceberg."""
    prefix = f"spark.sql.catalog.{CATALOG}"
    database, warehouse = home / "catalog.db", (home / "warehouse").as_uri()
    same = {
        "spark.master": "local[2]",
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(home / "spark-warehouse"),
    }
    if name == PLAIN:
        return same
    same[f"{prefix}.warehouse"] = warehouse
    if name == OURS:
        return same | {prefix: "icefloe.Iceberg", f"{prefix}.type": "sql", f"{prefix}.uri": f"sqlite:///{database}"}
    return same | {
        "spark.jars": ",".join(map(str, sorted(JARS.glob("*.jar")))),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{database}",
        f"{prefix}.cache-enabled": "false",
        f"{prefix}.jdbc.schema-version": "V1",
    }
