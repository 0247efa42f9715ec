"""Streams from table to table that end by signal 9 at a boundary of a micro-batch; run by test_streams_killed."""

import itertools
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import StreamingQueryException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession, functions as F  # noqa: N812  # its usual name
from pyspark.sql.streaming import StreamingQuery

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import CommitStateUnknown
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.spark.streaming.sink import TableSink
from icefloe.spark.streaming.source import TableStreamSource
from icefloe.table import Table
from tests.catalog.faults import SWAPPING, wired
from tests.maintenance.worn import FUTURE

Result = TypeVar("Result")
PAIR = ("append", "append more")
"""Queries that write to one table, `append`."""
MODES = (*PAIR, "complete", "update", "apply_changes")
PLACES = ("logged", "begun", "written", "sent", "swapped", "added", "noted")
"""The offset is in the log; the sink begins; data files are there; just before the commit; just after it; the sink has done its
work, and Spark has not noted it; Spark has."""
ANYTIME = "anytime"
READY, RUNNING = "ready", "running"
DRIVER, ALL = "driver", "all"
"""What is killed: the Python process that commits, or that and its JVM."""
_SOURCES = {"append more": "more", "apply_changes": "changed"}
_TARGETS = {"append more": "append"}
_PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "commit.retry.min-wait-ms": "1",
    "commit.retry.num-retries": "20",
}
FOREIGN = 1_000_000
"""Ids of rows that others write to the table of the pair; below it are ids that queries bring."""
_OF_MORE = 500_000
"""Ids of the second source of the pair."""


class Failure(Exception):
    """The end of a query where it was to fail."""


class Places:
    """Where a query fails. Steps of the catalog go over it, as over a wire."""

    def __init__(self) -> None:
        self._place: str | None = None
        self._visits = 0
        self._kills: str | None = None
        self._lock = threading.Lock()

    def arm(self, place: str, *, visits: int = 1, kills: str | None = None) -> None:
        """Fail when a place is reached for so many times, or kill the driver there, or all of its group."""
        self._place, self._visits, self._kills = place, visits, kills

    def reach(self, place: str, error: type[Exception] = Failure) -> None:
        """A query is at a place."""
        with self._lock:
            if place != self._place:
                return
            self._visits -= 1
            if self._visits > 0:
                return
            self._place = None
        if self._kills is not None:
            os.write(1, f"{place}\n".encode())
            os.kill(0 if self._kills == ALL else os.getpid(), signal.SIGKILL)
        raise error(f"the query fails where it is {place}")

    def around(self, action: str, _: str, do: Callable[[], Result]) -> Result:
        """One step of the catalog."""
        if action in SWAPPING:
            self.reach("sent")
            result = do()
            self.reach("lost", CommitStateUnknown)
            self.reach("swapped")
            return result
        if action == "write":
            self.reach("written")
        return do()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Sources and sinks come to their places while this runs."""
        latest, batch, add = TableStreamSource._latest, TableStreamSource._batch, TableSink._add
        added: set[str | None] = set()

        def watched_latest(source: TableStreamSource, start: Any, limit: Any) -> Any:
            if source._query() in added:
                self.reach("noted")
            return latest(source, start, limit)

        def watched_batch(source: TableStreamSource, start: Any, end: Any) -> Any:
            self.reach("logged")
            return batch(source, start, end)

        def watched_add(sink: TableSink, number: int, data: Any) -> None:
            self.reach("begun")
            add(sink, number, data)
            added.add(sink._gateway.spark.sparkContext.getLocalProperty("sql.streaming.queryId"))
            self.reach("added")

        with (
            mock.patch.object(TableStreamSource, "_latest", watched_latest),
            mock.patch.object(TableStreamSource, "_batch", watched_batch),
            mock.patch.object(TableSink, "_add", watched_add),
        ):
            yield


@dataclass(frozen=True)
class Lake:
    """The tables of the streams, as somebody beside the queries knows them."""

    folder: Path
    catalog: Catalog
    rng: random.Random
    numbers: "itertools.count[int]"
    """Ids that no row has yet."""

    @classmethod
    def open(cls, folder: Path, seed: int) -> "Lake":
        """The lake of a folder, with its tables."""
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"{folder}/files"
        catalog = load_catalog("lake", type="sql", uri=uri, warehouse=warehouse)
        catalog.create_namespace_if_not_exists("db")
        for name in ("appended", "more", "changed", "append", "apply_changes"):
            # Rows of a partitioned target move before they are written.
            spec = ["bucket(2, id)"] if name == "append" else None
            columns = "id bigint, part bigint"
            catalog.create_table_if_not_exists(f"db.{name}", columns, partition_spec=spec, properties=_PROPERTIES)
        for name in ("complete", "update"):
            catalog.create_table_if_not_exists(f"db.{name}", "part bigint, n bigint", properties=_PROPERTIES)
        lake = cls(folder, catalog, random.Random(seed), itertools.count())
        highest = max(
            (row[0] % _OF_MORE for name in ("appended", "changed", "append") for row in lake.rows(name)), default=0
        )
        return cls(folder, catalog, lake.rng, itertools.count(highest + 1))

    def table(self, name: str) -> Table:
        """A table as it is now."""
        return self.catalog.load_table(f"db.{name}")

    def rows(self, name: str) -> list[tuple[int, int]]:
        """The rows of a table."""
        return sorted(tuple(row.values()) for row in self.table(name).scan().to_arrow().to_pylist())

    def expected(self, mode: str) -> list[tuple[int, int]]:
        """The rows that the target of a mode has once all is read."""
        match mode:
            case "append" | "append more":
                foreign = [row for row in self.rows("append") if row[0] >= FOREIGN]
                return sorted([*self.rows("appended"), *self.rows("more"), *foreign])
            case "apply_changes":
                return self.rows("changed")
            case _:
                parts = [part for _, part in self.rows("appended")]
                return sorted((part, parts.count(part)) for part in set(parts))

    def work(self) -> None:
        """What others do meanwhile: new rows and changes for the streams, and rows, compaction and expiry in the targets."""
        rng = self.rng
        for name, base in (("appended", 0), ("more", _OF_MORE), ("changed", 0)):
            for _ in range(2):
                self.table(name).append(_numbers(base + next(self.numbers) for _ in range(rng.randint(2, 4))))
        held = [row[0] for row in self.rows("changed")]
        first, second, third = rng.sample(held, 3)
        self.table("changed").delete(f"id = {first}")
        changed = pa.table({"id": pa.array([second], pa.int64()), "part": pa.array([rng.randint(3, 9)], pa.int64())})
        self.table("changed").overwrite(changed, f"id in ({second}, {third})")
        match rng.randint(0, 3):
            case 0:
                self.table("append").append(_numbers([FOREIGN + next(self.numbers)]))
            case 1:
                for name in ("append", "appended"):
                    self.table(name).maintenance.rewrite_data_files(options={"rewrite-all": "true"})
            case 2:
                for mode in set(MODES) - {"append more"}:
                    self.table(mode).maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
            case _:
                for mode in set(MODES) - {"append more"}:
                    self.table(mode).maintenance.rewrite_manifests()

    def checkpoint(self, mode: str) -> str:
        """Where the query of a mode has its checkpoint."""
        return str(self.folder / "checkpoints" / mode.replace(" ", "-"))


def _numbers(values: Any) -> pa.Table:
    ids = list(values)
    return pa.table({"id": pa.array(ids, pa.int64()), "part": pa.array([value % 3 for value in ids], pa.int64())})


def start(ice: Session, lake: Lake, mode: str, size: int = 2, **trigger: object) -> StreamingQuery:
    """The query of a mode, with so many files or commits in a micro-batch."""
    changes = mode == "apply_changes"
    limit = "snapshots" if changes else "files"
    options = {f"streaming-max-{limit}-per-micro-batch": size}
    rows = ice.read_stream(f"db.{_SOURCES.get(mode, 'appended')}", options, changes=changes)
    if mode in ("complete", "update"):
        rows = rows.groupBy("part").agg(F.count("*").alias("n"))
    write = ice.write_stream(rows).to(f"db.{_TARGETS.get(mode, mode)}")
    if mode == "complete":
        write = write.complete()
    elif mode == "update":
        write = write.update(["part"])
    elif changes:
        gone = "s._change_type in ('DELETE', 'UPDATE_BEFORE')"
        write = write.apply_changes(["id"], sequence_by="_change_ordinal", deletes=gone)
    return write.trigger(**trigger).start(lake.checkpoint(mode))


def run(ice: Session, lake: Lake, *modes: str) -> str | None:
    """Run the queries of some modes at once, to the end of all that is there. What one failed with, if it did."""
    queries = [start(ice, lake, mode, 50, availableNow=True) for mode in modes]
    failures = []
    for query in queries:
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            failures.append(str(error))
    return failures[0] if failures else None


def settings() -> SparkConf:
    """Of a Spark that lives too short for more than a quick compilation."""
    return SparkConf().setAll(
        [
            ("spark.master", "local[2]"),
            ("spark.app.name", "streams"),
            ("spark.ui.enabled", "false"),
            ("spark.ui.showConsoleProgress", "false"),
            ("spark.driver.host", "127.0.0.1"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.log.level", "OFF"),
        ]
    )


def session() -> SparkSession:
    """A Spark of its own, which ends with the program."""
    return SparkSession.builder.config(conf=settings()).getOrCreate()


def inherited_session() -> SparkSession:
    """The Spark of a JVM whose driver before may have been killed, and that runs no query any more."""
    gateway = launch_gateway()
    SparkContext._ensure_initialized(gateway=gateway)
    jvm, conf = gateway.jvm, settings()
    context = jvm.JavaSparkContext.fromSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate(conf._jconf))
    spark = SparkSession(SparkContext(gateway=gateway, jsc=context, conf=conf))
    for query in spark.streams.active:
        with suppress(StreamingQueryException, Py4JError):
            query.stop()
    return spark


def run_until_killed(lake: Lake, place: str, visits: int, who: str, *modes: str) -> None:
    """Run queries without an end, in a process that is killed at the place, alone or with all others."""
    places = Places()
    ice = connect(wired(lake.catalog, places), spark=inherited_session())  # type: ignore[arg-type]  # all that is asked of a wire
    places.arm(place, visits=visits, kills=who)
    with places.watching():
        # Said before, as the first query may be at the place while the last one starts.
        os.write(1, f"{RUNNING}\n".encode())
        queries = [start(ice, lake, mode, processingTime="0 seconds") for mode in modes]
        while all(query.isActive for query in queries):
            time.sleep(0.1)
        for query in queries:
            if (problem := query.exception()) is not None:
                writer = ice.spark._jvm.java.io.StringWriter()
                query._jsq.exception().get().printStackTrace(ice.spark._jvm.java.io.PrintWriter(writer))
                raise AssertionError(str(writer.toString())[-3000:]) from problem


def main(folder: str) -> None:
    """Start a JVM, and for each line of input a driver on it that is killed: by itself, or by whoever reads that it runs.

    A line has a place, how many times it is reached before the end, who is killed there, and modes.
    """
    gateway = launch_gateway(settings())
    token = gateway.java_parameters.auth_token
    os.environ |= {"PYSPARK_GATEWAY_PORT": str(gateway.java_parameters.port), "PYSPARK_GATEWAY_SECRET": token}
    os.write(1, f"{READY}\n".encode())
    for line in sys.stdin:
        place, visits, who, *modes = line.strip().split(",")
        if (driver := os.fork()) == 0:
            try:
                run_until_killed(Lake.open(Path(folder), 0), place, int(visits), who, *modes)
            finally:
                traceback.print_exc()
                os._exit(1)
        os.write(1, f"{driver}\n".encode())
        _, status = os.waitpid(driver, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
