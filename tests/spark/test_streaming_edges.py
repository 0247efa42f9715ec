"""Streams where little is there yet, where runs of one query follow each other, and where state and changes must stay exact."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from icefloe.catalog import load_catalog
from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.spark import native_write
from icefloe.spark.connect import connect
from icefloe.spark.gateway import Gateway
from icefloe.spark.session import Session
from icefloe.spark.streaming.runtime import StreamRuntime, with_short_errors
from icefloe.spark.streaming.source import StreamedTable, _Batch
from icefloe.streaming import Offset, ReadMode, stream_settings
from icefloe.table import Table
from tests.spark.conftest import SPARK
from tests.spark.test_streaming import FILES, drain, forget_last_batch, ids, numbers


@pytest.fixture
def ice(spark: Any, tmp_path: Path) -> Session:
    catalog = load_catalog("edge", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/files")
    catalog.create_namespace("db")
    return connect(catalog, spark=spark.newSession())


def create(ice: Session, name: str = "db.t", columns: str = "id bigint, part bigint", **properties: str) -> Table:
    texts = {key.replace("_", "."): value for key, value in properties.items()}
    return ice.catalog.create_table(name, columns, properties={"format-version": "3", **texts})


def test_files_of_a_batch_are_read_by_their_own_format(ice: Session, tmp_path: Path) -> None:
    """The head has other formats than what the stream still has to read."""
    table = create(ice, write_format_default="avro")
    table.append(numbers(1, 2))
    first = table.snapshots()[0].snapshot_id
    table.append(numbers(3))
    with table.transaction() as tx:
        tx.set_properties({"write.format.default": "parquet"})
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.append(numbers(4))
    assert drain(ice.read_stream("db.t", {FILES: 2}), tmp_path / "a", ids) == [[1, 2, 3], [4]]
    session = ice.spark
    dropped_in = connect(ice.catalog, spark=session, drop_in=True)
    try:
        assert ids(session.read.option("start-snapshot-id", first).table("edge.db.t")) == [3, 4]
        stream = session.readStream.option("async-micro-batch-planning-enabled", True).option("split-size", 1)
        assert stream.table("edge.db.t").isStreaming
    finally:
        dropped_in.stop()


def test_runs_of_one_query_end_where_their_own_trigger_says(ice: Session, tmp_path: Path) -> None:
    table = create(ice)
    table.append(numbers(1))
    stream, seen = ice.read_stream("db.t"), list[list[int]]()

    def run(**trigger: Any) -> Any:
        write = stream.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(**trigger)
        return write.foreachBatch(lambda batch, _: seen.append(ids(batch))).start()

    run(availableNow=True).awaitTermination()
    table.append(numbers(2))
    query = run(processingTime="0 seconds")
    query.processAllAvailable()
    query.stop()
    table.append(numbers(3))
    run(availableNow=True).awaitTermination()
    assert seen == [[1], [2], [3]]


def test_a_stream_of_what_comes_begins_in_an_empty_table(ice: Session, tmp_path: Path) -> None:
    table = create(ice)

    def run() -> list[Any]:
        return drain(ice.read_stream("db.t", {"stream-from-snapshot": "latest"}), tmp_path / "c", ids)

    assert run() in ([], [[]])
    table.append(numbers(1))
    assert run() == [[1]], "it came after the query had been started"


STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}


@pytest.mark.parametrize("state", [{}, STATE], ids=["files", "rocks"])
def test_rows_once_seen_stay_seen_after_a_batch_that_is_not_written_again(
    ice: Session, tmp_path: Path, state: dict[str, str]
) -> None:
    table, target = create(ice), create(ice, "db.copy")
    for key, value in state.items():
        ice.spark.conf.set(key, value)

    def run() -> list[int]:
        distinct = ice.read_stream("db.t").dropDuplicates(["id"])
        write = ice.write_stream(distinct).to("db.copy").trigger(availableNow=True)
        write.start(str(tmp_path / "c")).awaitTermination()
        return ids(ice.table("db.copy"))

    table.append(numbers(1, 2))
    assert run() == [1, 2]
    table.append(numbers(2, 3))
    assert run() == [1, 2, 3]
    forget_last_batch(tmp_path / "c")
    assert run() == [1, 2, 3]
    table.append(numbers(3, 4))
    assert run() == [1, 2, 3, 4]
    assert len(target.refresh().snapshots()) == 3


def test_changes_of_many_commits_in_one_batch_are_applied_in_their_order(ice: Session, tmp_path: Path) -> None:
    """The recipe of the documentation: the last change of each key counts, also where a key itself is updated."""
    table, silver = create(ice), create(ice, "db.silver")

    def run() -> list[tuple[int, int]]:
        gone = "s._change_type in ('DELETE', 'UPDATE_BEFORE')"
        write = ice.write_stream(ice.read_stream("db.t", changes=True)).to("db.silver").trigger(availableNow=True)
        write = write.apply_changes(["id"], sequence_by="_change_ordinal", deletes=gone)
        write.start(str(tmp_path / "c")).awaitTermination()
        return sorted((row["id"], row["part"]) for row in ice.table("db.silver").collect())

    def rows() -> list[tuple[int, int]]:
        return sorted((row["id"], row["part"]) for row in ice.table("db.t").collect())

    table.append(numbers(1, 2, 3))
    table.delete("id = 2")
    table.overwrite(pa.table({"id": [3, 9], "part": [7, 9]}), "id = 3")
    table.append(numbers(2))
    assert run() == rows()
    ice.update("db.t", {"id": "id + 10"}, "id = 2")
    ice.update("db.t", {"part": "-1"}, "id = 1")
    table.delete("id = 9")
    assert run() == rows()
    assert silver.refresh().verify(level="data").ok


def test_a_session_that_stages_commits_is_refused_and_one_with_a_branch_is_exact(ice: Session, tmp_path: Path) -> None:
    create(ice).append(numbers(1))
    target = create(ice, "db.copy", write_wap_enabled="true")
    target.append(numbers(7))
    write = ice.write_stream(ice.read_stream("db.t")).to("db.copy").trigger(availableNow=True)
    ice.spark.conf.set("spark.wap.id", "one")
    with pytest.raises(InvalidInputError, match=r"spark\.wap\.id is 'one', which stages one commit"):
        write.start(str(tmp_path / "c"))
    ice.spark.conf.unset("spark.wap.id")
    ice.spark.conf.set("spark.wap.branch", "audit")
    for _ in range(2):
        write.start(str(tmp_path / "c")).awaitTermination()
        forget_last_batch(tmp_path / "c")
    assert sorted(target.refresh().scan(ref="audit").to_arrow().column("id").to_pylist()) == [1, 7]
    assert target.scan().to_arrow().column("id").to_pylist() == [7]


# -- SQL and formats


@pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.0 has no STREAM in its grammar")
def test_streams_by_sql(ice: Session, tmp_path: Path) -> None:
    table = create(ice)
    table.append(numbers(1, 2))
    table.append(numbers(3))
    stream = ice.sql(f"SELECT s.id FROM STREAM db.t WITH ('{FILES}' = '1') AS s WHERE s.id > 1")
    assert stream.isStreaming
    assert drain(stream, tmp_path / "a", ids) == [[2], [3]]
    with table.manage_snapshots() as manage:
        manage.create_branch("old", table.snapshots()[0].snapshot_id)
    joined = ice.sql("SELECT a.id FROM STREAM(edge.db.t.branch_old) a JOIN edge.db.t b ON a.id = b.id")
    assert drain(joined, tmp_path / "b", ids) == [[1, 2]]
    for text, match in (
        ("SELECT * FROM STREAM edge.db.t.snapshots", "not one of its metadata tables"),
        ("SELECT * FROM STREAM db.t WITH ('streaming-read-mod' = 'changes')", "did you mean"),
        ("SELECT * FROM STREAM edge.db.none", "no table or view"),
    ):
        with pytest.raises(IcefloeError, match=match):
            ice.sql(text)


@pytest.mark.skipif(SPARK < (4, 2), reason="CHANGES is in the grammar of Spark 4.2 and newer")
def test_the_clause_for_changes_says_what_to_use_instead(ice: Session) -> None:
    create(ice)
    for text in (
        "SELECT * FROM edge.db.t CHANGES FROM VERSION 1",
        "SELECT * FROM STREAM edge.db.t CHANGES FROM VERSION 1",
    ):
        with pytest.raises(InvalidInputError, match=r"edge\.system\.create_changelog_view\(table => 'db\.t'\)"):
            ice.sql(text)
    dropped_in = connect(ice.catalog, spark=ice.spark, drop_in=True)
    try:
        for reader in (ice.spark.read, ice.spark.readStream):
            with pytest.raises(
                InvalidInputError, match=r"CHANGES of edge\.db\.t cannot be read by this clause or call"
            ):
                reader.changes("edge.db.t")
    finally:
        dropped_in.stop()


def test_the_format_needs_no_registration(ice: Session, tmp_path: Path) -> None:
    create(ice).append(numbers(1, 2))
    place = {f"catalog.{key}": str(value) for key, value in ice.catalog.properties.items()}
    place["catalog"] = "edge"
    session = ice.spark.newSession()
    assert ids(session.read.format("icefloe").options(**place).load("db.t")) == [1, 2]
    stream = session.readStream.format("icefloe").options(**place).load("db.t")
    assert drain(stream, tmp_path / "c", ids) == [[1, 2]]


# -- parts


def test_an_error_is_short_only_if_the_query_was_stopped() -> None:
    def fail(text: str) -> Callable[[], None]:
        def work() -> None:
            raise PySparkException(text)

        return work

    for text in ("org.x: java.lang.InterruptedException\n\tat a.b", "[SPARK_JOB_CANCELLED] Job 7 cancelled part of x"):
        with pytest.raises(RuntimeError, match=r"while calling a batch: java\.lang\.InterruptedException$"):
            with_short_errors(fail(text))
    with pytest.raises(PySparkException, match="the value 'cancelled'"):
        with_short_errors(fail("the value 'cancelled' of type STRING cannot be cast"))


def test_the_sentence_of_an_error_is_not_below_pages_of_a_trace() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        try:
            raise KeyError("inner")
        except KeyError:
            raise InvalidInputError("the sentence") from None

    with pytest.raises(InvalidInputError, match=r"^the sentence$") as raised:
        with_short_errors(lambda: deep(30))
    assert len(traceback.format_exception(raised.value)) <= 4
    assert raised.value.__suppress_context__


def test_batches_of_other_rows_have_other_names(ice: Session) -> None:
    """Spark takes relations of one name and the same columns for the same rows."""
    table = create(ice)
    streamed = StreamedTable(ice.spark, table, "db.t", stream_settings(), 0)
    end = Offset(5, 3, started_after=-1)
    batches = [
        _Batch(streamed, StreamRuntime(Gateway(ice.spark)), first, last)
        for first, last in (
            (None, end),
            (None, replace(end, started_after=4)),
            (None, replace(end, is_full_load=True)),
            (Offset(5, 0), end),
            (Offset(5, 0, is_complete=True), end),
            (Offset(5, 0, is_full_load=True), end),
        )
    ]
    added = replace(streamed, settings=replace(streamed.settings, mode=ReadMode.ADDED_FILES))
    batches.append(replace(batches[0], streamed=added))
    assert len({batch._range for batch in batches}) == len(batches)


@pytest.mark.parametrize("java", [True, False])
def test_batches_are_written_as_they_come_where_nothing_has_to_change(ice: Session, tmp_path: Path, java: bool) -> None:
    """Files have the table's ids and settings, whichever way their rows took, and only rows that fit take the short one."""
    session = ice.spark.newSession()
    session.conf.set("spark.icefloe.jvm.enabled", str(java).lower())
    streams = connect(ice.catalog, spark=session)
    create(ice).append(numbers(1, 2, 3))
    columns = "id bigint, part bigint"
    create(ice, "db.same", columns, **{"write_parquet_compression-codec": "gzip"})
    create(ice, "db.required", "id bigint not null, part bigint")
    create(ice, "db.turned", "part bigint, id bigint")
    create(ice, "db.wider", "id double, part bigint")
    short: list[str] = []

    def planned(*arguments: Any) -> Any:
        short.append(arguments[2].metadata.location.rstrip("/").rpartition("/")[2])
        return write(*arguments)

    write = native_write._write_planned
    with mock.patch.object(native_write, "_write_planned", planned):
        for name in ("same", "required", "turned", "wider"):
            query = streams.write_stream(streams.read_stream("db.t")).to(f"db.{name}").trigger(availableNow=True)
            query.start(str(tmp_path / name)).awaitTermination()
            rows = ice.catalog.load_table(f"db.{name}").scan().to_arrow()
            assert sorted(rows["id"].to_pylist()) == [1, 2, 3], name
            assert len(ice.catalog.load_table(f"db.{name}").snapshots()) == 1
    assert short == (["same"] if java else [])
    [task] = ice.catalog.load_table("db.same").scan().plan_files()
    footer = pq.read_metadata(task.file.file_path.removeprefix("file://"))
    assert footer.row_group(0).column(0).compression == "GZIP"
    assert [footer.schema.to_arrow_schema().field(name).metadata[b"PARQUET:field_id"] for name in ("id", "part")] == [
        b"1",
        b"2",
    ]
