"""The format `icefloe` of Spark: tables by name and options, and streams of what is appended to them."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import icefloe
from icefloe.catalog import load_catalog
from icefloe.spark.connect import connect
from icefloe.spark.session import Session

U = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("source")
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    return connect(catalog, spark=spark)


def ids(frame: Any) -> list[int]:
    return sorted(row["id"] for row in frame.collect())


def append(ice: Session, name: str, *values: int) -> int:
    snapshot = ice.load_table(name).append(pa.table({"id": pa.array(values, pa.int64())}))
    assert snapshot is not None
    return snapshot.snapshot_id


def test_tables_are_read_by_name_and_options(ice: Session) -> None:
    table = ice.catalog.create_table(
        "db.t",
        "id bigint not null, u uuid, l list<struct<a: int>>, n unknown",
        partition_spec=["bucket(2, id)"],
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    table.append(
        pa.table(
            {
                "id": pa.array([1, 2, 3], pa.int64()),
                "u": pa.array([UUID(U).bytes, None, None], pa.binary(16)),
                "l": [[{"a": 1}], None, []],
            }
        )
    )
    first = table.current_snapshot()
    assert first is not None
    with table.manage_snapshots() as manage:
        manage.create_tag("v1", first.snapshot_id)
    table.delete("id = 2")
    reader = ice.spark.read.format("icefloe")
    found = reader.load("db.t")
    assert [tuple(row) for row in found.orderBy("id").collect()] == [(1, U, [(1,)]), (3, None, [])]
    assert found.schema.names == ["id", "u", "l"]
    assert ids(ice.spark.read.format("icefloe").load("lake.db.t").filter("id > 1")) == [3]
    for key, value in (("snapshot-id", first.snapshot_id), ("tag", "v1"), ("as-of-timestamp", first.timestamp_ms)):
        assert ids(ice.spark.read.format("icefloe").option(key, str(value)).load("db.t")) == [1, 2, 3]


def test_an_empty_table_has_no_rows(ice: Session) -> None:
    ice.catalog.create_table("db.empty", "id bigint")
    assert ids(ice.spark.read.format("icefloe").load("db.empty")) == []


def test_catalogs_may_come_as_options(ice: Session, tmp_path: Path) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/other.db", "warehouse": str(tmp_path)}
    other = load_catalog("other", **properties)
    other.create_namespace("a")
    other.create_table("a.t", "id bigint").append(pa.table({"id": [7]}))
    session = ice.spark.newSession()
    icefloe.register_format(session)
    reader = session.read.format("icefloe").option("catalog", "other")
    found = reader.options(**{f"catalog.{key}": value for key, value in properties.items()}).load("a.t")
    assert ids(found) == [7]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"snapshot-id": "x"}, "option 'snapshot-id' is 'x'; it must be a whole number"),
        ({"splitsize": "1"}, "unknown option 'splitsize' of format icefloe"),
        ({"branch": "a", "tag": "b"}, "all name the ref to read"),
        ({"path": "a/b"}, "is not the name of a table"),
    ],
)
def test_bad_options_are_told(ice: Session, options: dict[str, str], sentence: str) -> None:
    if not ice.catalog.table_exists("db.bad"):
        ice.catalog.create_table("db.bad", "id bigint")
    with pytest.raises(Exception, match=sentence):
        ice.spark.read.format("icefloe").options(**{"path": "db.bad", **options}).load().collect()


def test_the_format_writes_nothing_and_says_what_does(ice: Session, tmp_path: Path) -> None:
    if not ice.catalog.table_exists("db.bad"):
        ice.catalog.create_table("db.bad", "id bigint")
    rows, sentence = ice.spark.range(1), r"reads tables, and writes none; write with ice\.write\(df\)\.to\(name\)"
    with pytest.raises(Exception, match=sentence):
        rows.write.format("icefloe").mode("append").save("db.bad")
    rates = ice.spark.readStream.format("rate").load().selectExpr("value AS id")
    with pytest.raises(Exception, match=sentence):
        rates.writeStream.format("icefloe").option("checkpointLocation", str(tmp_path)).start(
            "db.bad"
        ).awaitTermination()


# -- streams


def run(ice: Session, name: str, folder: Path, **options: str) -> list[int]:
    """All rows that came so far, after one more run of a stream that goes on where it stopped.

    Spark gives the process of a source ten seconds to start, which a busy machine may need; then the stream is run again.
    """
    for _ in range(3):
        try:
            run_once(ice, name, folder, **options)
            break
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
    return ids(ice.spark.read.schema("id bigint").parquet(f"{folder}/rows"))


def run_once(ice: Session, name: str, folder: Path, **options: str) -> None:
    source = ice.spark.readStream.format("icefloe").options(**options).load(name)
    query = (
        source.writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/rows")
    )
    try:
        query.processAllAvailable()
        query.awaitTermination()
    finally:
        query.stop()


@pytest.mark.timeout(600)
def test_streams_go_on_with_what_is_appended(ice: Session, tmp_path: Path) -> None:
    table = ice.catalog.create_table("db.s", "id bigint")
    append(ice, "db.s", 1, 2)
    append(ice, "db.s", 3)
    assert run(ice, "db.s", tmp_path) == [1, 2, 3]
    append(ice, "db.s", 4)
    table.refresh().delete("id = 1")
    skipping = {"streaming-skip-delete-snapshots": "true", "streaming-skip-overwrite-snapshots": "true"}
    with pytest.raises(Exception, match=r"which a stream of appends cannot show; set option streaming-skip-"):
        run(ice, "db.s", tmp_path)
    assert run(ice, "db.s", tmp_path, **skipping) == [1, 2, 3, 4]


@pytest.mark.timeout(600)
def test_streams_start_at_a_time(ice: Session, tmp_path: Path) -> None:
    table = ice.catalog.create_table("db.late", "id bigint")
    append(ice, "db.late", 1)
    second = append(ice, "db.late", 2)
    since = str(table.refresh().metadata.snapshot(second).timestamp_ms)
    assert run(ice, "db.late", tmp_path, **{"stream-from-timestamp": since}) == [2]
