"""Streams of Java Iceberg and ours on one checkpoint: each goes on where the other stopped, with the same rows and batches."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.peers.java import JAVA_VERSIONS
from tests.peers.lake import Lake
from tests.spark.test_streaming import forget_last_batch

FILES = "streaming-max-files-per-micro-batch"
ROWS = "streaming-max-rows-per-micro-batch"


@pytest.fixture
def ice(lake: Lake, spark: Any) -> Session:
    return connect(lake.sql_catalog, spark=spark.newSession())


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "part": pa.array([value % 3 for value in values], pa.int64())})


def appended(lake: Lake, version: int) -> Table:
    """A table to which Java and we append in turn, three files each, with manifests that are merged on the way."""
    properties = {"commit.manifest.min-count-to-merge": "2", "write.distribution-mode": "hash"}
    table = lake.create(version, "id bigint, part bigint", partition_spec=["part"], properties=properties)
    for start in range(0, 60, 10):
        add(lake, table, start, by_java=start % 20 == 0)
    return table.refresh()


def add(lake: Lake, table: Table, start: int, *, by_java: bool) -> None:
    values = range(start, start + 6)
    if by_java:
        rows = ", ".join(f"({value}, {value % 3})" for value in values)
        lake.java.sql(f"INSERT INTO {lake.their_name(table)} VALUES {rows}")
    else:
        table.refresh().append(numbers(*values))


def shown(
    ice: Session, table: Table, checkpoint: Path, options: dict[str, str], *, fail_at: int | None = None
) -> list[list[int]]:
    """What our stream shows, batch by batch."""
    seen: list[list[int]] = []

    def show(batch: Any, number: int) -> None:
        if number == fail_at:
            raise RuntimeError("as asked for")
        seen.append(sorted(row["id"] for row in batch.select("id").collect()))

    write = ice.read_stream(table.name(), options).writeStream.trigger(availableNow=True)
    query = write.option("checkpointLocation", str(checkpoint)).foreachBatch(show).start()
    if fail_at is None:
        query.awaitTermination()
    else:
        with pytest.raises(StreamingQueryException, match="as asked for"):
            query.awaitTermination()
    return seen


def test_a_checkpoint_goes_from_hand_to_hand_in_the_middle_of_commits(lake: Lake, ice: Session, tmp_path: Path) -> None:
    table = appended(lake, 2)
    there, options, checkpoint = lake.their_name(table), {FILES: "2"}, tmp_path / "c"
    seen = lake.java.stream(there, checkpoint, options, fail_at=1)
    assert len(seen) == 1, "two of three files"
    seen += shown(ice, table, checkpoint, options, fail_at=4)
    seen += lake.java.stream(there, checkpoint, options, fail_at=6)
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    add(lake, table, 100, by_java=True)
    seen += shown(ice, table, checkpoint, options)
    add(lake, table, 110, by_java=False)
    seen += lake.java.stream(there, checkpoint, options)
    expected = [value for start in (*range(0, 60, 10), 100, 110) for value in range(start, start + 6)]
    assert sorted(value for batch in seen for value in batch) == expected


@pytest.mark.parametrize(
    "version", [*(pytest.param(each, marks=pytest.mark.slow) for each in JAVA_VERSIONS[:-1]), JAVA_VERSIONS[-1]]
)
def test_batches_are_the_same_by_the_same_options(lake: Lake, ice: Session, tmp_path: Path, version: int) -> None:
    table = appended(lake, version)
    third = table.snapshots()[2].timestamp_ms
    lake.java.sql(f"DELETE FROM {lake.their_name(table)} WHERE part = 1")
    add(lake, table, 100, by_java=True)
    skips = {f"streaming-skip-{kind}-snapshots": "true" for kind in ("delete", "overwrite")}
    for number, options in enumerate(({FILES: "2"}, {ROWS: "5"}, {"stream-from-timestamp": str(third), FILES: "4"})):
        ours = shown(ice, table, tmp_path / f"ours {number}", options | skips)
        theirs = lake.java.stream(lake.their_name(table), tmp_path / f"theirs {number}", options | skips)
        assert [batch for batch in ours if batch] == [batch for batch in theirs if batch], options


def test_batches_that_the_other_noted_are_not_written_again(lake: Lake, ice: Session, tmp_path: Path) -> None:
    source = appended(lake, 2)
    copy = lake.create(2, "id bigint, part bigint")
    there, to, checkpoint, options = lake.their_name(source), lake.their_name(copy), tmp_path / "c", {FILES: "7"}

    def by_java() -> None:
        lake.java.stream(there, checkpoint, options, to=to)

    def by_us() -> None:
        write = ice.write_stream(ice.read_stream(source.name(), options)).to(copy.name()).trigger(availableNow=True)
        write.start(str(checkpoint)).awaitTermination()

    expected = [value for start in range(0, 60, 10) for value in range(start, start + 6)]
    for number, (first, second) in enumerate(((by_java, by_us), (by_us, by_java)), start=10):
        first()
        count = len(copy.refresh().snapshots())
        forget_last_batch(checkpoint)
        second()
        assert len(copy.refresh().snapshots()) == count, "the batch was there"
        add(lake, source, number * 10, by_java=True)
        expected += range(number * 10, number * 10 + 6)
        second()
        assert sorted(row["id"] for row in lake.same(copy.refresh())) == expected
    assert copy.verify(level="data").ok
