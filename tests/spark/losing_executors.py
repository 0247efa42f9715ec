"""Changes of tables on a cluster, each of which loses an executor while it runs.

Each statement loses one executor. Spark may then try again, and all rows must be there once; or the statement fails, and the
table must be as it was. Either way no file may be missing, and none may be left that nobody knows of.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value

from icefloe.data import WriteRequest
from icefloe.spark.engine import SparkEngine
from icefloe.spark.session import Session
from icefloe.storage import Storage
from icefloe.table import Table
from tests.spark.leftovers import missing_files, stray_files

BACKEND = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
NEW = range(1000, 1800)
TASKS = 8
STRUCK = (55, 1650)
"""A row of the tables, and one in the midst of the seventh task of an append: others have written files by then."""
LISTS = ("array(cast(id as string)) l", "cast(null as string) u")
PLAIN = ("'new' v", "cast(id % 4 as int) p")
Rows = list[tuple[Any, ...]]

# Executors have the installed package, and no tests.
register_pickle_by_value(sys.modules[__name__])


def executor_id() -> int | None:
    """The process of the executor that this worker of Python was started by; None on the driver."""
    found = os.getppid()
    while found > 1:
        if BACKEND in Path(f"/proc/{found}/cmdline").read_bytes():
            return found
        lines = Path(f"/proc/{found}/status").read_text().splitlines()
        found = next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))
    return None


@dataclass(frozen=True)
class Strike:
    """Kills the executor that it is called on, the first time; the mark is how all executors know of it."""

    mark: str

    def __call__(self, number: int) -> int:
        """The number, unless it is the one that kills."""
        if number in STRUCK:
            self.now()
        return number

    def now(self) -> None:
        """Kill, and wait for the end: workers of Python go with their executor."""
        executor = executor_id()
        if executor is None:
            return
        try:
            Path(self.mark).touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(executor, signal.SIGKILL)
        time.sleep(60)


class DyingStorage(Storage):
    """A storage that kills the executor when the first file is whole, before anybody is told of it."""

    def __init__(self, strike: Strike) -> None:
        super().__init__()
        self._strike = strike

    def open_output(self, location: str) -> Any:
        """A file whose end is that of the executor."""
        return _Dying(super().open_output(location), self._strike)

    def __reduce__(self) -> Any:
        return DyingStorage, (self._strike,)


class _Dying:
    def __init__(self, stream: Any, strike: Strike) -> None:
        self.write = stream.write
        self.abort = stream.abort
        self._close = stream.close
        self._strike = strike

    def close(self) -> None:
        self._close()
        self._strike.now()


def rows_of(table: Table) -> Rows:
    """All rows of the table as it is now."""
    return sorted(tuple(row.values()) for row in table.refresh().scan().to_arrow().to_pylist())


@dataclass(frozen=True)
class LosingExecutors:
    """Statements on one session, each of which loses an executor, with so many tries for each task."""

    ice: Session
    folder: Path
    tries: int = 4
    failed: list[str] = field(default_factory=list)

    def run(self, what: str, name: str, change: Callable[[Strike], object], then: Callable[[Rows], Rows]) -> None:
        """Run a change; `then` says what the rows should be, from those before."""
        table = self.ice.load_table(name)
        before, metadata = rows_of(table), table.metadata
        strike = Strike(f"{self.folder}/{what} to {name} of {self.tries}")
        self.ice.spark.udf.register("strike", strike, "bigint")
        problem = None
        try:
            change(strike)
        except Exception as error:  # noqa: BLE001  # whatever Spark says of an executor that is lost
            problem = str(error)
            self.failed.append(f"{what} to {name}: {problem}")
        after = rows_of(table)
        assert Path(strike.mark).exists(), f"{what}: no executor was killed"
        assert problem is not None or self.tries > 1, f"{what}: Spark may not try again, but did"
        if problem is not None:
            assert (after, table.metadata) == (before, metadata), what
        else:
            assert after == sorted(then(before)), what
        assert stray_files(table) == set(), what
        assert missing_files(table) == set(), what
        table.verify().raise_if_broken()

    def append(self, name: str, columns: tuple[str, ...]) -> None:
        """Append with a row that kills."""

        def change(_: Strike) -> None:
            frame = self.ice.spark.range(NEW.start, NEW.stop, 1, TASKS).selectExpr("strike(id) id", *columns)
            self.ice.write(frame).to(name).option("distribution-mode", "none").append()

        self.run("append", name, change, lambda old: old + appended(columns))

    def append_whole_file(self, name: str) -> None:
        """Append through a storage that kills when a file is whole."""

        def change(strike: Strike) -> None:
            table = self.ice.load_table(name)
            frame = self.ice.spark.range(NEW.start, NEW.stop, 1, TASKS).selectExpr("id", *LISTS)
            files = SparkEngine().write(frame, WriteRequest(table.metadata, DyingStorage(strike), []))
            table.update_snapshot().fast_append(files)

        self.run("append of a whole file", name, change, lambda old: old + appended(LISTS))

    def statements(self, name: str, *kinds: str) -> None:
        """Change rows that were there; statements run their functions where rows are found, and where they are written."""
        texts = {
            "delete": f"DELETE FROM {name} WHERE strike(id) % 7 = 0",
            "update": f"UPDATE {name} SET v = concat('u', strike(id)) WHERE id % 2 = 1",
            "merge": f"""MERGE INTO {name} t USING (SELECT id FROM range(50, 60)) s ON t.id = s.id
                WHEN MATCHED AND t.id = 52 THEN DELETE WHEN MATCHED THEN UPDATE SET v = concat('m', strike(s.id))
                WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (strike(s.id), 'made', 0)""",
        }
        for kind in kinds:
            self.run(kind, name, lambda _, text=texts[kind]: self.ice.sql(text), CHANGED[kind])  # type: ignore[misc]


def appended(columns: tuple[str, ...]) -> Rows:
    """The rows of an append."""
    return [(each, [str(each)], None) if columns == LISTS else (each, "new", each % 4) for each in NEW]


def merged(old: Rows) -> Rows:
    """What the merge makes of rows."""
    known = {row[0] for row in old}
    kept = [(key, f"m{key}" if 50 <= key < 60 else v, p) for key, v, p in old if key != 52]
    return kept + [(key, "made", 0) for key in range(50, 60) if key not in known]


CHANGED: dict[str, Callable[[Rows], Rows]] = {
    "delete": lambda old: [row for row in old if row[0] % 7],
    "update": lambda old: [(key, f"u{key}" if key % 2 else v, p) for key, v, p in old],
    "merge": merged,
}
