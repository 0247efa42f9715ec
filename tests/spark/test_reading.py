"""DataFrames of tables: the rows that plain Python reads, whichever engine, delete, version and schema there is."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from icefloe.errors import InvalidPropertyError, NoSuchSnapshotError, StateError
from icefloe.schema import VARIANT_STORAGE
from icefloe.schema.types import parse_type
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.spark.conftest import SPARK
from tests.spark.reading import ALL_METADATA, ENGINES, delete_equal, new_catalog, plain_rows, planned, spark_rows

WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
FIRST_DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        yield session


def rows(start: int, stop: int) -> Any:
    """Rows of ids, one an hour, of two regions."""
    ids = range(start, stop)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([FIRST_DAY + dt.timedelta(hours=each) for each in ids], pa.timestamp("us", "UTC")),
            "region": pa.array([None if each % 5 == 0 else ("eu", "us")[each % 2] for each in ids]),
            "amount": pa.array([each / 2 for each in ids], pa.float64()),
        }
    )


SCHEMA = "id long not null, ts timestamptz, region string, amount double"


def new_table(ice: Session, name: str, schema: str = SCHEMA, spec: Any = (), version: int = 2) -> Table:
    settings = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    return ice.catalog.create_table(("db", name), schema=schema, partition_spec=list(spec), properties=settings)


def assert_same(ice: Session, table: Table, names: Any = ("*",), **which: Any) -> None:
    expected = plain_rows(table, names, **which)
    for engine in ENGINES:
        assert spark_rows(ice, table, engine, names, **which) == expected, engine


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_all_columns_and_metadata_columns(ice: Session, version: int) -> None:
    table = new_table(ice, f"columns_{version}", spec=["days(ts)", "region"], version=version)
    table.append(rows(0, 40))
    table.append(rows(40, 60))
    if version in WITH_DELETES:
        table.delete("id in (3, 30, 45)")
    assert_same(ice, table, ("*", *ALL_METADATA))


@pytest.mark.parametrize("version", WITH_DELETES)
def test_all_kinds_of_deletes(ice: Session, version: int) -> None:
    table = new_table(ice, f"deletes_{version}", spec=["region"], version=version)
    table.append(rows(0, 40))
    table.delete("id >= 10 and id < 15")
    [first, *_] = [task.file for task in table.scan("region = 'eu'").plan_files()]
    delete_equal(table, {"id": [16, 17, 18]}, first)
    table.append(rows(16, 20))
    table.delete("id = 38")
    with table.update_spec() as update:
        update.remove_field("region")
    delete_equal(table, {"region": [None], "id": [20]})
    delete_equal(table, {"id": [1]})
    table.append(rows(0, 2))
    assert_same(ice, table, ("*", "_pos", "_row_id"))
    live = ice.table(table.name())
    assert live.filter("id = 17").count() == table.scan("id = 17").count()
    assert live.count() == table.scan().count()


def test_deleted_rows_are_marked(ice: Session) -> None:
    table = new_table(ice, "marked", version=3)
    table.append(rows(0, 20))
    table.append(rows(20, 30))
    table.delete("id < 7")
    assert_same(ice, table, ("id", "_deleted"))
    assert spark_rows(ice, table, "native", ("id", "_deleted"))[0] == "{'id': 0, '_deleted': True}"
    delete_equal(table, {"id": [8]})
    with pytest.raises(StateError, match="_deleted"):
        spark_rows(ice, table, "native", ("id", "_deleted"))
    assert len(ice.table(table.name(), selected_fields=("id", "_deleted")).collect()) == 30


def test_names_that_changed_hands(ice: Session) -> None:
    """Spark pushes filters into files by name, and the file's `a` is now called `b`."""
    table = new_table(ice, "swapped", "a long, b long, s struct<x: long, y: long>")
    swapped = pa.array([{"x": each, "y": each + 500} for each in range(100)])
    table.append(pa.table({"a": range(100), "b": range(500, 600), "s": swapped}))
    with table.update_schema() as update:
        update.rename_column("a", "old")
        update.rename_column("s.x", "z")
    with table.update_schema() as update:
        update.rename_column("b", "a")
        update.rename_column("s.y", "x")
    with table.update_schema() as update:
        update.rename_column("old", "b")
    table.append(pa.table({"b": [7], "a": [507], "s": [{"z": 7, "x": 507}]}))
    assert_same(ice, table)
    frame = ice.table(table.name())
    assert frame.filter("b = 7 and a = 507").count() == 2
    assert frame.filter("a >= 590").count() == 10
    assert frame.filter("s.x >= 590 and s.z < 1000").count() == 10
    assert planned(ice, frame.filter("a > 507")).result_data_files == 1


def test_evolution(ice: Session) -> None:
    table = new_table(
        ice, "evolved", "i int, f float, d decimal(5, 2), day date, gone string, s struct<a: int>", version=3
    )
    data = {
        "i": [1, 2],
        "f": [1.5, None],
        "d": ["1.25", "2.00"],
        "day": [0, 1],
        "gone": ["x", "y"],
        "s": [{"a": 1}, None],
    }
    table.append(
        pa.table(
            {
                **data,
                "d": pa.array(data["d"]).cast(pa.decimal128(5, 2)),
                "day": pa.array([0, 1], pa.int32()).cast(pa.date32()),
            }
        )
    )
    with table.update_schema() as update:
        update.update_column("i", parse_type("long"))
        update.update_column("f", parse_type("double"))
        update.update_column("d", parse_type("decimal(9, 2)"))
        update.update_column("day", parse_type("timestamp"))
        update.delete_column("gone")
        update.add_column("added", parse_type("long"), default_value=42)
        update.add_column("s.b", parse_type("string"))
    with table.update_schema() as update:
        update.add_column("gone", parse_type("double"))
        update.rename_column("i", "renamed")
        update.move_first("added")
    table.append(pa.table({"added": [7], "renamed": [5], "gone": [2.5], "s": [{"a": 3, "b": "b"}]}))
    assert_same(ice, table)
    assert ice.table(table.name()).filter("added = 42").count() == 2
    first = table.history()[0].snapshot_id
    assert_same(ice, table, snapshot_id=first)
    assert ice.table(table.name(), snapshot_id=first).columns == ["i", "f", "d", "day", "gone", "s"]


def test_types(ice: Session) -> None:
    schema = (
        "u uuid, f fixed[3], b binary, t time, n timestamp, z timestamptz, ns timestamp_ns, v variant, g geometry, "
        "w geography, l list<uuid>, m map<string, struct<u: uuid, t: time>>, x unknown"
    )
    table = new_table(ice, "types", schema, version=3)
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    variant = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x07"}
    uuid_bytes, times = pa.binary(16), pa.time64("us")
    entry = pa.struct([("u", uuid_bytes), ("t", times)])
    made = {
        "u": pa.array([UUID(int=5).bytes, None], uuid_bytes),
        "f": pa.array([b"abc", None], pa.binary(3)),
        "b": [b"\x00\xff", None],
        "t": pa.array([dt.time(1, 2, 3, 4), None], times),
        "n": pa.array([dt.datetime(2026, 1, 1), None], pa.timestamp("us")),
        "z": pa.array([FIRST_DAY, None], pa.timestamp("us", "UTC")),
        "ns": pa.array([1_700_000_000_000_000_001, None], pa.int64()).cast(pa.timestamp("ns")),
        "v": pa.array([variant, variant], VARIANT_STORAGE),
        "g": [point, None],
        "w": [point, None],
        "l": pa.array([[UUID(int=1).bytes, None], None], pa.list_(uuid_bytes)),
        "m": pa.array([[("k", {"u": UUID(int=2).bytes, "t": dt.time(1)})], None], pa.map_(pa.string(), entry)),
    }
    table.append(pa.table(made))
    engines = ENGINES
    if SPARK < (4, 1):
        # Its Parquet library fails at marks of variants and geometries in a file, so Arrow reads them without being asked.
        engines = ("", "arrow")
        with pytest.raises(StateError, match="files may have columns of type variant"):
            ice.table(table.name(), options={"read.engine": "native"})
    found = [ice.table(table.name(), options={"read.engine": each} if each else {}) for each in engines]
    assert found[0].dtypes == found[1].dtypes
    native, arrow_rows = (sorted(map(repr, each.drop("v").collect())) for each in found)
    assert native == arrow_rows
    [row] = (
        found[0]
        .filter("u is not null")
        .selectExpr("u", "t", "ns", "v::string v", "l[0] l", "m['k'].u m", "f")
        .collect()
    )
    assert row.asDict() == {
        "u": str(UUID(int=5)),
        "t": 3_723_000_004,
        "ns": 1_700_000_000_000_000_001,
        "v": "7",
        "l": str(UUID(int=1)),
        "m": str(UUID(int=2)),
        "f": bytearray(b"abc"),
    }
    assert [each.v for each in found[1].selectExpr("v::string v").collect()] == ["7", "7"]


def test_other_formats_are_read_with_arrow(ice: Session) -> None:
    table = new_table(ice, "avro")
    table.set_properties({"write.format.default": "avro"})
    table.append(rows(0, 10))
    table.set_properties({"write.format.default": "parquet"})
    table.append(rows(10, 20))
    frame = ice.table(table.name())
    assert frame.count() == 20
    assert "native" not in frame._jdf.queryExecution().toString()
    with pytest.raises(StateError, match="avro"):
        spark_rows(ice, table, "native")


def test_time_travel_and_refs(ice: Session) -> None:
    table = new_table(ice, "travel")
    table.append(rows(0, 5))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag("then", first.snapshot_id).commit()
    table.append(rows(5, 9))
    assert ice.table("db.travel").count() == 9
    assert ice.table("lake.db.travel", ref="then").count() == 5
    assert ice.table("db.travel", snapshot_id=first.snapshot_id).count() == 5
    assert ice.table("db.travel", as_of=first.timestamp_ms).count() == 5
    with pytest.raises(NoSuchSnapshotError):
        ice.table("db.travel", ref="nowhere")


def test_filter_and_columns_of_the_scan_itself(ice: Session) -> None:
    table = new_table(ice, "filtered", spec=["bucket(4, id)"])
    table.append(rows(0, 40))
    for text in (
        "id > 7 and region = 'eu'",
        "bucket(4, id) = 2",
        "amount >= 3.5 or region is null",
        "region like 'e%'",
    ):
        expected = plain_rows(table, ("id", "region"), row_filter=text)
        for engine in ENGINES:
            assert spark_rows(ice, table, engine, ("id", "region"), row_filter=text) == expected, (engine, text)
    assert table.scan("id < 5", ("id",)).to_spark(ice.spark).count() == 5
    assert table.scan(limit=3).to_spark(ice.spark).count() == 3


def test_filters_on_metadata_columns_are_exact(ice: Session) -> None:
    table = new_table(ice, "by_file", spec=["region"])
    table.append(rows(0, 20))
    file, *_ = [task.file for task in table.scan("region = 'eu'").plan_files()]
    frame = ice.table(table.name(), selected_fields=("*", "_file", "_partition", "_spec_id"))
    assert frame.filter(frame["_file"] == file.file_path).count() == file.record_count
    assert frame.filter("_partition.region = 'eu'").count() == file.record_count
    assert frame.filter("_partition.region is null").count() == 4
    assert frame.filter("_spec_id = 3").count() == 0
    assert frame.filter("_spec_id in (0, 3) and length(_file) > 0").count() == 20


def test_empty_tables(ice: Session) -> None:
    table = new_table(ice, "empty")
    assert_same(ice, table, ("*", "_file"))
    assert ice.table("db.empty").schema.names == ["id", "ts", "region", "amount"]


def test_settings_stay_and_options_are_checked(ice: Session) -> None:
    before = dict(ice.spark.conf.getAll)
    table = new_table(ice, "settings")
    table.append(rows(0, 5))
    assert ice.table("db.settings").filter("id > 3").count() == 1
    assert dict(ice.spark.conf.getAll) == before
    with pytest.raises(InvalidPropertyError, match="native or arrow"):
        ice.table("db.settings", options={"read.engine": "duck"})


def test_explain_tells_table_snapshot_engine_and_figures(ice: Session) -> None:
    table = new_table(ice, "explained", spec=["id"])
    table.append(rows(0, 8))
    frame = ice.table("db.explained").filter("id = 3")
    planned(ice, frame)
    plan = ice.table("db.explained").filter("id = 3")._jdf.queryExecution().simpleString()
    assert f"db.explained@{table.current_snapshot().snapshot_id} native" in plan  # type: ignore[union-attr]
    assert "1/8 files" in frame._jdf.queryExecution().executedPlan().toString()


def test_equal_scans_share_exchanges_and_caches(ice: Session) -> None:
    table = new_table(ice, "shared")
    table.append(rows(0, 50))
    one, other = ice.table("db.shared"), ice.table("db.shared")
    grouped = [each.groupBy("region").count() for each in (one, other)]
    joined = grouped[0].join(grouped[1].withColumnRenamed("count", "n"), "region")
    joined.collect()
    assert "ReusedExchange" in joined._jdf.queryExecution().executedPlan().toString()
    one.cache().count()
    try:
        assert "InMemoryTableScan" in other._jdf.queryExecution().executedPlan().toString()
    finally:
        one.unpersist()


def test_small_tables_are_broadcast(ice: Session) -> None:
    table = new_table(ice, "small")
    table.append(rows(0, 5))
    joined = ice.spark.range(10).join(ice.table("db.small"), "id")
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()
    assert joined.count() == 5


def test_the_embedded_default(spark: Any, tmp_path: Path) -> None:
    with connect(warehouse=tmp_path / "here") as session:
        assert session.spark is not None
        session.catalog.create_namespace("a")
        session.catalog.create_table("a.b", schema="id long").append(pa.table({"id": [1, 2]}))
        assert session.table("a.b").count() == 2
    assert (tmp_path / "here" / "catalog.db").exists()
    assert spark.range(3).count() == 3
