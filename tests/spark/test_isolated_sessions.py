"""Sessions whose tasks know only the classes that are sent to the very session, as Spark has it where PySpark did not make it.

What we do for one statement or stream runs in several clones of such a session, each of which must know the classes.
"""

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalog import load_catalog
from icefloe.spark.connect import connect
from icefloe.spark.jvm.door import in_session
from icefloe.spark.session import Session
from icefloe.spark.spark_sessions import static_session
from icefloe.table import Table
from tests.maintenance.worn import FUTURE

MERGE_ON_READ = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
ROWS = 30


@pytest.fixture(scope="module", autouse=True)
def no_session_stays(spark: Any) -> Iterator[None]:
    """Sessions of these tests go while no job runs: one of a session that shares artifacts fetches those of all others, too."""
    yield
    gc.collect()
    spark._jvm.java.lang.System.gc()
    time.sleep(1)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("isolated")
    catalog = load_catalog("alone", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    return catalog


@pytest.fixture
def ice(spark: Any, catalog: Any) -> Session:
    """Connected by a session that no class was sent to."""
    session = spark.newSession()
    session._jsparkSession.conf().set("spark.sql.artifact.isolation.enabled", "true")
    return connect(catalog, spark=session)


@pytest.fixture
def table(catalog: Any) -> Iterator[Table]:
    """Spread by writes, and with vectors in its files."""
    properties = {"format-version": "3", "write.distribution-mode": "hash", **MERGE_ON_READ}
    columns = "id bigint, n bigint"
    table = catalog.create_table("db.t", columns, partition_spec=["bucket(2, id)"], properties=properties)
    for first in range(0, ROWS, 10):
        table.append(numbers(*range(first, first + 10)))
    table.delete("id in (3, 13)")
    yield table.refresh()
    catalog.drop_table("db.t")


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "n": pa.array(values, pa.int64())})


def rows(table: Table) -> dict[int, int]:
    return {row["id"]: row["n"] for row in table.refresh().scan().to_arrow().to_pylist()}


LEFT = {number: number for number in range(ROWS) if number not in (3, 13)}


def test_rows_that_are_held_move_to_another_session(ice: Session, table: Table) -> None:
    held = connect(ice.catalog, spark=static_session(ice.spark)).table("db.t").persist()
    try:
        assert held.count() == len(LEFT)
        assert {row["id"] for row in in_session(held, ice.spark).repartition(3).collect()} == set(LEFT)
    finally:
        held.unpersist()


@pytest.mark.parametrize("most", ["10485760", "-1"], ids=["sent to all tasks", "shuffled"])
def test_a_merge(ice: Session, table: Table, most: str) -> None:
    ice.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", most)
    source = ice.spark.range(25, 35).selectExpr("id", "-id as n")
    ice.merge("db.t").using(source, ["id"]).when_matched_update().when_not_matched_insert().execute()
    assert rows(table) == LEFT | {number: -number for number in range(25, 35)}


def test_updates_and_deletes(ice: Session, table: Table) -> None:
    ice.sql("UPDATE db.t SET n = n + 100 WHERE id IN (SELECT max(id) FROM db.t)")
    ice.sql("UPDATE db.t SET n = n + 100 WHERE id = 28")
    ice.sql("DELETE FROM db.t WHERE id = 27")
    assert rows(table) == {k: v for k, v in LEFT.items() if k != 27} | {28: 128, 29: 129}


def test_a_stream_of_changes_is_applied(ice: Session, table: Table, catalog: Any, tmp_path: Path) -> None:
    target = catalog.create_table("db.copy", "id bigint, n bigint", properties={"format-version": "3", **MERGE_ON_READ})
    try:
        for _ in range(2):
            changes = ice.read_stream("db.t", changes=True)
            write = ice.write_stream(changes).to("db.copy")
            gone = "s._change_type in ('DELETE', 'UPDATE_BEFORE')"
            write = write.apply_changes(["id"], sequence_by="_change_ordinal", deletes=gone)
            write.trigger(availableNow=True).start(str(tmp_path / "checkpoint")).awaitTermination()
            assert rows(target) == rows(table)
            table.delete("id in (8, 18)")
    finally:
        catalog.drop_table("db.copy")


def test_a_stream_begins_with_rows_of_files_with_vectors(ice: Session, table: Table, tmp_path: Path) -> None:
    """The first files that are read in the session, by a clone of it that the query has made before."""
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
    seen: list[set[int]] = []
    query = (
        ice.read_stream("db.t")
        .writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .foreachBatch(lambda batch, _: seen.append({row["id"] for row in batch.repartition(3).collect()}))
        .start()
    )
    query.awaitTermination()
    assert seen == [set(LEFT)]


def test_a_stream_with_state_updates_rows(ice: Session, table: Table, catalog: Any, tmp_path: Path) -> None:
    """What finds the rows to update runs in a clone, while the thread is one of the query."""
    properties = {"format-version": "3", **MERGE_ON_READ}
    target = catalog.create_table("db.sums", "id bigint, n bigint", properties=properties)
    try:
        for number in range(2):
            table.append(numbers(100 + number))
            stream = ice.read_stream("db.t", {"streaming-skip-delete-snapshots": "true"})
            sums = stream.groupBy((stream.id % 2).alias("id")).count().withColumnRenamed("count", "n")
            write = ice.write_stream(sums).to("db.sums").update(["id"]).trigger(availableNow=True)
            write.start(str(tmp_path / "checkpoint")).awaitTermination()
        assert rows(target) == {0: ROWS // 2 + 1, 1: ROWS // 2 + 1}
    finally:
        catalog.drop_table("db.sums")


def test_a_micro_batch_joins_a_table_that_nobody_has_read_yet(ice: Session, table: Table, tmp_path: Path) -> None:
    """The query runs in a clone that was made before, and the frame is one of the session itself."""
    seen: list[set[int]] = []
    rate = ice.spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 40).load()

    def join(batch: Any, _: int) -> None:
        known = ice.table("db.t").repartition(3)
        seen.append({row["id"] for row in batch.join(known, batch.value == known.id).select("id").collect()})

    query = rate.writeStream.trigger(once=True).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.foreachBatch(join).start().awaitTermination()
    assert seen == [set(LEFT)]
