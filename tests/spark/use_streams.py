"""Streams from table to table that fail at every boundary of a micro-batch, softly or by signal 9; run by test_streams_killed."""

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession, functions as F  # noqa: N812  # its usual name

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
MODES = ("append", "complete", "update", "apply_changes")
PLACES = ("logged", "begun", "written", "sent", "lost", "swapped", "added", "stopped")
"""The offset is in the log; the sink begins; data files are there; just before the commit; its answer is lost; just after it;
the sink has done its work, and Spark has not noted it; the query is stopped at any moment."""
_PROPERTIES = {
    "format-version": "3",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "commit.status-check.num-retries": "0",
    "commit.retry.min-wait-ms": "1",
}
FOREIGN = 1_000_000
"""Ids of rows that others write."""


class Failure(Exception):
    """The end of a query where it was to fail."""


class Places:
    """Where a query fails. Steps of the catalog go over it, as over a wire."""

    def __init__(self) -> None:
        self.place: str | None = None
        self.is_hard = False

    def arm(self, place: str, *, is_hard: bool) -> None:
        """Fail at a place the next time, or end the process there."""
        self.place, self.is_hard = place, is_hard

    def reach(self, place: str, error: type[Exception] = Failure) -> None:
        """The query is at a place."""
        if place != self.place:
            return
        self.place = None
        if self.is_hard:
            os.killpg(0, signal.SIGKILL)
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
        batch, add = TableStreamSource._batch, TableSink._add

        def watched_batch(source: TableStreamSource, start: Any, end: Any) -> Any:
            self.reach("logged")
            return batch(source, start, end)

        def watched_add(sink: TableSink, number: int, data: Any) -> None:
            self.reach("begun")
            add(sink, number, data)
            self.reach("added")

        of_sources = mock.patch.object(TableStreamSource, "_batch", watched_batch)
        of_sinks = mock.patch.object(TableSink, "_add", watched_add)
        with of_sources, of_sinks:
            yield


@dataclass(frozen=True)
class Lake:
    """The tables of the streams, as somebody beside the queries knows them."""

    folder: Path
    catalog: Catalog
    rng: random.Random

    @classmethod
    def open(cls, folder: Path, seed: int) -> "Lake":
        """The lake of a folder, with its tables."""
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"{folder}/files"
        lake = cls(folder, load_catalog("lake", type="sql", uri=uri, warehouse=warehouse), random.Random(seed))
        lake.catalog.create_namespace_if_not_exists("db")
        for name in ("appended", "changed", "append", "apply_changes"):
            lake.catalog.create_table_if_not_exists(f"db.{name}", "id bigint, part bigint", properties=_PROPERTIES)
        for name in ("complete", "update"):
            lake.catalog.create_table_if_not_exists(f"db.{name}", "part bigint, n bigint", properties=_PROPERTIES)
        return lake

    def table(self, name: str) -> Table:
        """A table as it is now."""
        return self.catalog.load_table(f"db.{name}")

    def rows(self, name: str) -> list[tuple[int, int]]:
        """The rows of a table."""
        return sorted(tuple(row.values()) for row in self.table(name).scan().to_arrow().to_pylist())

    def expected(self, mode: str) -> list[tuple[int, int]]:
        """The rows that the target of a mode has once all is read."""
        appended = self.rows("appended")
        match mode:
            case "append":
                return sorted([*appended, *(row for row in self.rows("append") if row[0] >= FOREIGN)])
            case "apply_changes":
                return self.rows("changed")
            case _:
                parts = [part for _, part in appended]
                return sorted((part, parts.count(part)) for part in set(parts))

    def work(self) -> None:
        """What others do meanwhile: new rows and changes for the streams, and rows, compaction and expiry in the targets."""
        rng = self.rng
        for name in ("appended", "changed"):
            for _ in range(2):
                start = len(self.rows("appended")) + len(self.table(name).snapshots()) * 1000
                self.table(name).append(_numbers(range(start, start + rng.randint(1, 5))))
        held = [row[0] for row in self.rows("changed")]
        self.table("changed").delete(f"id = {rng.choice(held)}")
        self.table("changed").overwrite(_numbers([rng.choice(held)]), f"id in ({rng.choice(held)}, {rng.choice(held)})")
        _without_twins(self.table("changed"))
        match rng.randint(0, 3):
            case 0:
                start = FOREIGN + len(self.rows("append"))
                self.table("append").append(_numbers([start]))
            case 1:
                self.table("append").maintenance.rewrite_data_files(options={"rewrite-all": "true"})
                self.table("appended").maintenance.rewrite_data_files(options={"rewrite-all": "true"})
            case 2:
                for mode in MODES:
                    self.table(mode).maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
            case _:
                for mode in MODES:
                    self.table(mode).maintenance.rewrite_manifests()

    def checkpoint(self, mode: str) -> str:
        """Where the query of a mode has its checkpoint."""
        return str(self.folder / "checkpoints" / mode)


def _numbers(values: Any) -> pa.Table:
    ids = list(values)
    return pa.table({"id": pa.array(ids, pa.int64()), "part": pa.array([value % 3 for value in ids], pa.int64())})


def _without_twins(table: Table) -> None:
    """Each key once, as a table that is merged by keys must have it."""
    ids = table.scan().to_arrow().column("id").to_pylist()
    for twin in {value for value in ids if ids.count(value) > 1}:
        table.overwrite(_numbers([twin]), f"id = {twin}")


def run(ice: Session, lake: Lake, mode: str, stop_after: float | None = None) -> str | None:
    """Run the query of a mode: to the end of all that is there, or for some seconds. What it failed with, if it did."""
    changes = mode == "apply_changes"
    limit = "snapshots" if changes else "files"
    options = {f"streaming-max-{limit}-per-micro-batch": 2}
    rows = ice.read_stream("db.changed" if changes else "db.appended", options, changes=changes)
    if mode in ("complete", "update"):
        rows = rows.groupBy("part").agg(F.count("*").alias("n"))
    write = ice.write_stream(rows).to(f"db.{mode}")
    if mode == "complete":
        write = write.complete()
    elif mode == "update":
        write = write.update(["part"])
    elif changes:
        gone = "s._change_type in ('DELETE', 'UPDATE_BEFORE')"
        write = write.apply_changes(["id"], sequence_by="_change_ordinal", deletes=gone)
    when = {"availableNow": True} if stop_after is None else {"processingTime": "0 seconds"}
    query = write.trigger(**when).start(lake.checkpoint(mode))
    try:
        if stop_after is not None:
            time.sleep(stop_after)
            query.stop()
        query.awaitTermination()
    except StreamingQueryException as error:
        return str(error)
    return None


def session() -> SparkSession:
    """A Spark of its own, which dies with the program."""
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )


def main(folder: str, seed: str, failures: str, last: str, *modes: str) -> None:
    """Queries of some modes that fail, so many times; then one that ends with the process, at the last place."""
    lake, places = Lake.open(Path(folder), int(seed)), Places()
    ice = connect(wired(lake.catalog, places), spark=session())  # type: ignore[arg-type]  # all that is asked of a wire
    rng = lake.rng
    with places.watching():
        for number in range(int(failures) + 1):
            lake.work()
            is_last = number == int(failures)
            mode, place = rng.choice(modes), last if is_last else rng.choice(PLACES)
            if place == "stopped":
                run(ice, lake, mode, rng.uniform(0, 2))
                os.write(1, f"{mode} {place}\n".encode())
                if is_last:
                    os.killpg(0, signal.SIGKILL)
                continue
            places.arm(place, is_hard=is_last)
            os.write(1, f"{mode} {place}\n".encode())
            failed = run(ice, lake, mode)
            # What comes after the commit is looked up in the table, and may turn out well.
            if failed is None and place not in ("lost", "swapped"):
                raise AssertionError(f"{mode} did not fail at {place}")
            if failed is not None and "the query fails" not in failed:
                raise AssertionError(f"{mode} at {place} ended with {failed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
