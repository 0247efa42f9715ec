"""Tables as streams of Spark, and streams into tables: every row once, whatever happens between micro-batches."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from icefloe.catalog import load_catalog
from icefloe.errors import IcefloeError, InvalidInputError, InvalidPropertyError
from icefloe.spark import native_write
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table

FILES = "streaming-max-files-per-micro-batch"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("streams")
    catalog = load_catalog("flow", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    return connect(catalog, spark=spark)


@pytest.fixture
def table(ice: Session, request: pytest.FixtureRequest) -> Iterator[Table]:
    """A table of three partitions, for each test its own."""
    name = ("db", "t")
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    yield ice.catalog.create_table(name, "id bigint, part bigint", partition_spec=["part"], properties=properties)
    ice.catalog.drop_table(name)


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "part": pa.array([value % 3 for value in values], pa.int64())})


def drain(frame: Any, checkpoint: Path | str, read: Callable[[Any], Any]) -> list[Any]:
    """What there is now, batch by batch."""
    seen: list[Any] = []
    query = (
        frame.writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(checkpoint))
        .foreachBatch(lambda batch, _: seen.append(read(batch)))
        .start()
    )
    query.awaitTermination()
    return seen


def ids(batch: Any) -> list[int]:
    return sorted(row["id"] for row in batch.collect())


def changes(batch: Any) -> list[tuple[str, int, int]]:
    return sorted((row["_change_type"], row["_change_ordinal"], row["id"]) for row in batch.collect())


def forget_last_batch(checkpoint: Path) -> None:
    """As if the process had died after the commit to the table, before Spark noted it."""
    commits = checkpoint / "commits"
    last = max(int(name) for name in os.listdir(commits) if name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)


# -- sources


def test_a_stream_reads_what_is_there_and_then_what_comes(ice: Session, table: Table, tmp_path: Path) -> None:
    table.append(numbers(*range(9)))
    table.append(numbers(*range(10, 16)))
    stream = ice.read_stream("db.t", {FILES: 2})
    assert stream.isStreaming
    batches = drain(stream.where("id != 5").select("id"), tmp_path, ids)
    assert len(batches) == 3, "six files, two in a batch"
    assert sorted(value for batch in batches for value in batch) == [
        value for value in (*range(9), *range(10, 16)) if value != 5
    ]
    assert drain(ice.read_stream("db.t"), tmp_path, ids) == [], "nothing is new"
    table.append(numbers(20, 21))
    table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in table.snapshots()[:2]]).commit()
    assert drain(ice.read_stream("db.t"), tmp_path, ids) == [[20, 21]], "what was read may expire"


def test_filters_choose_the_files_of_a_batch(ice: Session, table: Table, tmp_path: Path) -> None:
    table.append(numbers(*range(30)))
    stream = ice.read_stream("db.t").where("part = 1")
    query = (
        stream.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path)).format("noop").start()
    )
    query.awaitTermination()
    assert query.lastProgress["numInputRows"] == 10, "one of three files"
    assert query.lastProgress["sources"][0]["metrics"]["filesBehind"] == "0"


def test_a_full_load_applies_deletes_and_keeps_state(ice: Session, table: Table, tmp_path: Path) -> None:
    table.append(numbers(*range(9)))
    table.append(numbers(*range(10, 16)))
    table.delete("id in (1, 12)")
    stream = ice.read_stream("db.t", {"stream-from-snapshot": "full", FILES: 4})
    counted = stream.groupBy("part").count()
    seen: list[Any] = []
    query = (
        counted.writeStream.outputMode("complete")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path))
        .foreachBatch(lambda batch, _: seen.append(sorted(map(tuple, batch.collect()))))
        .start()
    )
    query.awaitTermination()
    assert seen[-1] == [(0, 4), (1, 4), (2, 5)]


@pytest.mark.parametrize(("version", "mode"), [(1, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")])
def test_changes_are_those_between_snapshots(ice: Session, tmp_path: Path, version: int, mode: str) -> None:
    properties = {"format-version": str(version)} | {f"write.{verb}.mode": mode for verb in ("delete", "update")}
    table = ice.catalog.create_table("db.changed", "id bigint, part bigint", properties=properties)
    try:
        table.append(numbers(1, 2, 3))
        table.delete("id = 2")
        table.overwrite(numbers(7), "id = 1")
        table.maintenance.rewrite_data_files(rewrite_all=True)
        found = drain(ice.read_stream("db.changed", changes=True), tmp_path, changes)
        scan = table.refresh().scan_changes().with_updates().to_arrow().to_pylist()
        expected = sorted((row["_change_type"], row["_change_ordinal"], row["id"]) for row in scan)
        assert [change for batch in found for change in batch] == expected
        table.append(numbers(8))
        assert drain(ice.read_stream("db.changed", changes=True), tmp_path, changes) == [[("INSERT", 0, 8)]]
    finally:
        ice.catalog.drop_table("db.changed")


def test_what_a_stream_cannot_show_ends_the_query_with_the_way_out(ice: Session, table: Table, tmp_path: Path) -> None:
    table.append(numbers(1, 2, 4))
    table.delete("id = 4")
    seen: list[Any] = []
    with pytest.raises(StreamingQueryException, match="streaming-read-mode to changes"):
        seen += drain(ice.read_stream("db.t"), tmp_path / "a", ids)
    options = {f"streaming-skip-{kind}-snapshots": "true" for kind in ("delete", "overwrite")}
    assert drain(ice.read_stream("db.t", options), tmp_path / "b", ids) == [[1, 2, 4]]
    with pytest.raises(InvalidPropertyError, match="did you mean"):
        ice.read_stream("db.t", {"streaming-max-file-per-micro-batch": 1})


def test_expired_snapshots_end_the_query_with_the_way_out(ice: Session, table: Table, tmp_path: Path) -> None:
    table.append(numbers(1))
    drain(ice.read_stream("db.t"), tmp_path, ids)
    for value in (2, 3, 4):
        table.append(numbers(value))
    table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in table.snapshots()[:3]]).commit()
    with pytest.raises(StreamingQueryException, match=r"has expired.*new checkpoint"):
        drain(ice.read_stream("db.t"), tmp_path, ids)


def test_columns_are_those_of_the_start(ice: Session, table: Table, tmp_path: Path) -> None:
    table.append(numbers(1))
    stream = ice.read_stream("db.t")
    with table.update_schema() as update:
        update.add_column("more", "string").rename_column("part", "piece")
    table.append(pa.table({"id": [2], "piece": [2], "more": ["x"]}))
    rows = drain(stream, tmp_path / "a", lambda batch: sorted(map(tuple, batch.collect())))
    assert rows == [[(1, 1), (2, 2)]]
    assert stream.schema.names == ["id", "part"]
    assert ice.read_stream("db.t").schema.names == ["id", "piece", "more"]


def test_files_that_spark_cannot_read_are_read_by_arrow(ice: Session, tmp_path: Path) -> None:
    table = ice.catalog.create_table("db.avro", "id bigint, part bigint", properties={"write.format.default": "avro"})
    table.append(numbers(1, 2))
    table.append(numbers(3))
    assert drain(ice.read_stream("db.avro", {FILES: 1}), tmp_path, ids) == [[1, 2], [3]]
    ice.catalog.drop_table("db.avro")


# -- between two snapshots


def test_rows_and_changes_between_two_snapshots(spark: Any, tmp_path: Path) -> None:
    session = spark.newSession()
    catalog = load_catalog("range", type="sql", uri=f"sqlite:///{tmp_path}/own.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, part bigint", properties={"format-version": "3"})
    for value in (1, 2, 3):
        table.append(numbers(value))
    first, second, _ = (each.snapshot_id for each in table.snapshots())
    table.delete("id = 2")
    ice = connect(catalog, spark=session, drop_in=True)
    try:
        assert ids(session.read.option("start-snapshot-id", first).table("range.db.t")) == [2, 3]
        between = session.read.option("start-snapshot-id", first).option("end-snapshot-id", second)
        assert ids(between.format("iceberg").load("db.t").where("id > 0")) == [2]
        between = session.read.option("start-snapshot-id", first)
        expected = [("DELETE", 2, 2), ("INSERT", 0, 2), ("INSERT", 1, 3)]
        assert changes(between.table("range.db.t.changes")) == expected
        assert changes(ice.changes("db.t", first)) == expected
        # The same in SQL, by options behind the name.
        after, between = (
            f"'start-snapshot-id' = '{first}'",
            f"'start-snapshot-id' = '{first}', 'end-snapshot-id' = '{second}'",
        )
        assert changes(session.sql(f"SELECT * FROM range.db.t.changes WITH ({after})")) == expected
        assert changes(ice.sql("SELECT c.* FROM db.t.changes c WHERE c.id = 1")) == [("INSERT", 0, 1)]
        assert ids(session.sql(f"SELECT * FROM range.db.t WITH ({between})")) == [2]
        assert ids(session.sql(f"SELECT * FROM range.db.t WITH ('snapshot-id' = '{second}')")) == [1, 2]
        with pytest.raises(InvalidInputError, match="'end-snapshot-id' needs 'start-snapshot-id'"):
            session.sql("SELECT * FROM range.db.t WITH ('end-snapshot-id' = '1')")
        assert changes(ice.changes("db.t", first, net=True)) == [("INSERT", 1, 3)]
        assert changes(ice.changes("db.t", None, second)) == [("INSERT", 0, 1), ("INSERT", 1, 2)]
    finally:
        ice.stop()


# -- sinks


def copy(ice: Session, checkpoint: Path, to: str = "db.copy", where: str = "true") -> Any:
    write = ice.write_stream(ice.read_stream("db.t", {FILES: 2}).where(where)).to(to).trigger(availableNow=True)
    query = write.start(str(checkpoint))
    query.awaitTermination()
    return query


@pytest.fixture
def target(ice: Session) -> Iterator[Table]:
    yield ice.catalog.create_table("db.copy", "id bigint, part bigint", partition_spec=["part"])
    ice.catalog.drop_table("db.copy")


def test_a_batch_is_written_once(ice: Session, table: Table, target: Table, tmp_path: Path) -> None:
    table.append(numbers(*range(9)))
    copy(ice, tmp_path)
    assert len(target.refresh().snapshots()) == 2
    for _ in range(2):
        forget_last_batch(tmp_path)
        copy(ice, tmp_path)
    assert ids(ice.table("db.copy")) == list(range(9))
    assert len(target.refresh().snapshots()) == 2
    # Whoever else commits, and whatever expires.
    target.append(numbers(99))
    target.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in target.snapshots()[:2]]).commit()
    forget_last_batch(tmp_path)
    query = copy(ice, tmp_path)
    assert ids(ice.table("db.copy")) == [*range(9), 99]
    assert query.lastProgress["sink"]["description"] == "icefloe[db.copy]"
    assert target.refresh().verify(level="data").ok


def test_rows_of_partitioned_targets_are_planned_with_the_query(
    ice: Session, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a batch reads and filters is part of the plan that writes it, and progress counts its rows."""
    table.append(numbers(*range(100)))
    target = ice.catalog.create_table("db.spread", "part bigint, id bigint", partition_spec=["bucket(3, id)"])
    plans = []
    spread = native_write.distribute

    def noted(*given: Any, **more: Any) -> Any:
        frame = spread(*given, **more)
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return frame

    monkeypatch.setattr(native_write, "distribute", noted)
    query = copy(ice, tmp_path, to="db.spread", where="id % 4 <> 1")
    assert ids(ice.table("db.spread")) == [number for number in range(100) if number % 4 != 1]
    assert "MicroBatch FileScan" in plans[0]
    assert "ExistingRDD" not in plans[0]
    assert sum(each["numInputRows"] for each in query.recentProgress) == 100
    assert {file.partition[0] for file in (task.file for task in target.refresh().scan().plan_files())} == {0, 1, 2}
    assert target.verify(level="data").ok
    ice.catalog.drop_table("db.spread")


def test_state_has_seen_a_batch_that_is_not_written_again(ice: Session, table: Table, tmp_path: Path) -> None:
    counts = ice.catalog.create_table("db.counts", "part bigint, n bigint", properties={"format-version": "3"})

    def count(mode: str) -> None:
        grouped = ice.read_stream("db.t", {FILES: 2}).groupBy("part").agg(F.count("*").alias("n"))
        write = ice.write_stream(grouped).to("db.counts").trigger(availableNow=True)
        write = write.complete() if mode == "complete" else write.update(["part"])
        write.start(str(tmp_path / mode)).awaitTermination()

    try:
        table.append(numbers(*range(6)))
        for mode in ("update", "complete"):
            count(mode)
            assert sorted(map(tuple, ice.table("db.counts").collect())) == [(0, 2), (1, 2), (2, 2)]
        forget_last_batch(tmp_path / "complete")
        before = len(counts.refresh().snapshots())
        count("complete")
        assert len(counts.refresh().snapshots()) == before
        table.append(numbers(6, 7))
        count("complete")
        assert sorted(map(tuple, ice.table("db.counts").collect())) == [(0, 3), (1, 3), (2, 2)]
    finally:
        ice.catalog.drop_table("db.counts")


def test_changes_of_another_database_are_applied(ice: Session, tmp_path: Path) -> None:
    catalog = ice.catalog
    feed = catalog.create_table("db.feed", "id bigint, name string, version bigint, op string")
    state = catalog.create_table(
        "db.state", "id bigint, name string, version bigint", properties={"format-version": "2"}
    )

    def rows(*values: tuple[int, str, int, str]) -> pa.Table:
        names = ("id", "name", "version", "op")
        return pa.table({name: [value[index] for value in values] for index, name in enumerate(names)})

    def run() -> list[tuple[Any, ...]]:
        stream = ice.read_stream("db.feed")
        write = ice.write_stream(stream).to("db.state").trigger(availableNow=True)
        write = write.apply_changes(["id"], sequence_by="version", deletes="s.op = 'd'")
        write.start(str(tmp_path)).awaitTermination()
        return sorted(map(tuple, ice.table("db.state").collect()))

    feed.append(rows((1, "a", 1, "i"), (1, "b", 2, "u"), (2, "c", 1, "i"), (3, "x", 1, "d")))
    assert run() == [(1, "b", 2), (2, "c", 1)]
    feed.append(rows((1, "late", 1, "u"), (2, "c", 2, "d"), (4, "new", 1, "i")))
    assert run() == [(1, "b", 2), (4, "new", 1)]
    assert state.refresh().verify(level="data").ok
    for name in ("db.feed", "db.state"):
        catalog.drop_table(name)


def test_foreach_batch_is_exactly_once(ice: Session, table: Table, target: Table, tmp_path: Path) -> None:
    table.append(numbers(*range(6)))

    def write(batch: Any, number: int) -> None:
        ice.write(batch).to("db.copy").once("my query", number).append()
        ice.write(batch).to("db.copy").once("my query", number).append()

    stream = ice.read_stream("db.t")
    started = stream.writeStream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path))
    started.foreachBatch(write).start().awaitTermination()
    assert ids(ice.table("db.copy")) == list(range(6))
    merged = ice.merge("db.copy").using(ice.table("db.t"), ["id"]).when_matched_delete()
    assert merged.once("my query", 0).execute() is None
    assert merged.once("my query", 1).execute() is not None
    assert ids(ice.table("db.copy")) == []


def test_branches_and_options(ice: Session, table: Table, target: Table, tmp_path: Path) -> None:
    table.append(numbers(1, 2))
    target.append(numbers(7))
    write = ice.write_stream(ice.read_stream("db.t")).to("db.copy").trigger(availableNow=True)
    write = write.options({"branch": "audit", "snapshot-property.owner": "me", "checkpointLocation": str(tmp_path)})
    write.named("audited").start().awaitTermination()
    assert ids(ice.table("db.copy")) == [7]
    assert ids(ice.table("db.copy", ref="audit")) == [1, 2, 7]
    head = target.refresh().snapshot_by_name("audit")
    assert head is not None
    assert head.summary is not None
    assert head.summary.get("owner") == "me"


def test_bad_input_is_told_before_a_query_runs(ice: Session, table: Table, target: Table, tmp_path: Path) -> None:
    write = ice.write_stream(ice.read_stream("db.t")).to("db.copy")
    errors: list[tuple[Callable[[], object], str]] = [
        (lambda: write.start(), "needs a checkpoint"),
        (lambda: write.trigger(continuous="1 second"), "a trigger is"),
        (lambda: write.trigger(processingTime="").start(str(tmp_path)), "a trigger is"),
        (lambda: write.option("brnach", "a"), "did you mean 'branch'"),
        (lambda: write.update().start(str(tmp_path)), "no identifier fields"),
        (lambda: write.update(["nothing"]).start(str(tmp_path)), "'nothing' is no column"),
        (lambda: write.update("id"), "keys are a list"),
        (lambda: ice.write_stream(ice.table("db.t")).to("db.copy").start(str(tmp_path)), "not a stream"),
        (lambda: ice.write_stream(ice.read_stream("db.t")).to("db.none").start(str(tmp_path)), "no table db.none"),
        (lambda: ice.write(ice.table("db.t")).to("db.new").once("q", 0).create(), "create the table before"),
    ]
    for call, match in errors:
        with pytest.raises((IcefloeError, InvalidInputError), match=match):
            call()


# -- Spark's own calls


def test_sparks_own_calls(spark: Any, tmp_path: Path) -> None:
    session = spark.newSession()
    catalog = load_catalog("own", type="sql", uri=f"sqlite:///{tmp_path}/own.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, part bigint")
    table.append(numbers(1, 2, 3))
    ice = connect(catalog, spark=session, drop_in=True)
    try:
        stream = session.readStream.option(FILES, 1).table("own.db.t").where("id > 1")
        query = stream.writeStream.option("checkpointLocation", f"{tmp_path}/a").trigger(availableNow=True)
        query.toTable("own.db.made", partitionBy="part").awaitTermination()
        assert ids(session.table("own.db.made")) == [2, 3]
        assert [field.name for field in catalog.load_table("db.made").spec().fields] == ["part"]
        stream = session.readStream.format("icefloe").load("db.t")
        options = {"checkpointLocation": f"{tmp_path}/b", "upsert-keys": "id"}
        query = stream.writeStream.format("iceberg").outputMode("update").options(**options).trigger(availableNow=True)
        query.start("db.made", queryName="own").awaitTermination()
        assert ids(session.table("own.db.made")) == [1, 2, 3]
        rate = session.readStream.format("rate").load()
        assert rate.isStreaming
        for write, match in (
            (
                stream.writeStream.outputMode("update").option("checkpointLocation", f"{tmp_path}/c"),
                "option 'upsert-keys'",
            ),
            (stream.writeStream, "needs a checkpoint"),
        ):
            with pytest.raises(InvalidInputError, match=match):
                write.toTable("own.db.never")
        assert not catalog.table_exists("db.never"), "nothing is created for a query that cannot start"
    finally:
        ice.stop()
