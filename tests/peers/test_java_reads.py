"""Tables that we write are read by Java Iceberg with the same rows, whatever is in them and however they changed."""

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from icefloe.formats.equality_deletes import EqualityDeleteWriter
from icefloe.manifests import FileContent
from icefloe.schema import DoubleType, LongType, StringType
from icefloe.schema.ddl import parse_ddl
from icefloe.schema.types import DecimalType, IntegerType
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.rows import arrow_table
from tests.peers.java import JAVA_VERSIONS, JavaError
from tests.peers.lake import MODES, Lake, row_level
from tests.peers.tables import data_file

versions = pytest.mark.parametrize("version", JAVA_VERSIONS)
with_deletes = [version for version in JAVA_VERSIONS if allows(version, Feature.DELETE_FILES)]
with_lineage = [version for version in JAVA_VERSIONS if allows(version, Feature.ROW_LINEAGE)]

GEOSPATIAL = {"spark.sql.geospatial.enabled": "true"}
NOT_IN_SPARK = ("time", "timestamp_ns", "timestamptz_ns")
"""Types of the format that Java's Spark runtime has no counterpart for; it refuses tables that have them."""

SCHEMA = parse_ddl(
    "id long not null, flag boolean, n int, big long, ratio float, score double, small decimal(4,2), price decimal(18,3),"
    " huge decimal(38,10), day date, ts timestamp, tz timestamptz, name string, raw binary, code fixed[3], key uuid,"
    " tags list<string>, props map<string, long>, place struct<zip: string, at: struct<x: double, y: double>>,"
    " deep list<struct<a: int, m: map<string, list<long>>>>"
)
EXTREMES: dict[str, list[Any]] = {
    "flag": [True, False],
    "n": [-(2**31), 2**31 - 1, 0],
    "big": [-(2**63), 2**63 - 1, 0],
    "ratio": [math.nan, -0.0, math.inf, -math.inf, 3.4028234663852886e38, 1.401298464324817e-45],
    "score": [math.nan, 0.0, -math.inf, 1.7976931348623157e308, 5e-324, -0.0],
    "small": [decimal.Decimal("-99.99"), decimal.Decimal("99.99"), decimal.Decimal("0.00")],
    "price": [decimal.Decimal("-999999999999999.999"), decimal.Decimal("0.001")],
    "huge": [decimal.Decimal("-9999999999999999999999999999.9999999999"), decimal.Decimal("1E-10")],
    "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(1500, 2, 28)],
    "ts": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59, 59)],
    "name": ["", "é😀\U0010ffff", "x" * 40, "\x00", "ÿ" * 20, "plain"],
    "raw": [b"", b"\x00", b"\xff" * 20, b"abc"],
    "code": [b"\x00\x00\x00", b"\xff\xff\xff", b"abc"],
    "key": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID(int=2**127)],
    "tags": [[], ["a", None, ""], None],
    "props": [[], [("k", 1), ("v", None)], None],
    "place": [{"zip": None, "at": None}, {"zip": "", "at": {"x": math.nan, "y": None}}, None],
    "deep": [[], [None, {"a": None, "m": [("k", [1, None]), ("e", [])]}, {"a": 1, "m": None}]],
}
FIRST_NULL_ROW = 7


def row(i: int) -> dict[str, Any]:
    """A row of extremes; some have nothing but their id."""
    found = {name: None if i == FIRST_NULL_ROW else values[i % len(values)] for name, values in EXTREMES.items()}
    moment = found["ts"]
    tz = None if moment is None else moment.replace(tzinfo=dt.UTC)
    return {"id": i, "tz": tz} | {
        key: value.bytes if isinstance(value, uuid.UUID) else value for key, value in found.items()
    }


ROWS = [row(i) for i in range(12)]
FILTERS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "n = -2147483648": lambda r: r["n"] == -(2**31),
    "big = 9223372036854775807": lambda r: r["big"] == 2**63 - 1,
    "isnan(ratio)": lambda r: math.isnan(r["ratio"]),
    # Spark has NaN as the greatest of all, but files are skipped by bounds, which know nothing of NaN.
    "score > 1e308 AND NOT isnan(score)": lambda r: r["score"] > 1e308,
    "small < -99": lambda r: r["small"] < -99,
    "huge = -9999999999999999999999999999.9999999999": lambda r: r["huge"] < 0,
    "day = date'0001-01-01'": lambda r: r["day"] == dt.date(1, 1, 1),
    "ts >= timestamp_ntz'9999-12-31 23:59:59.999999'": lambda r: r["ts"].year == 9999,
    "tz < timestamp'0001-01-02 00:00:00'": lambda r: r["ts"].year == 1,
    f"name = '{'x' * 40}'": lambda r: r["name"] == "x" * 40,
    f"name > '{'ÿ' * 19}'": lambda r: r["name"] > "ÿ" * 19,
    "name = ''": lambda r: r["name"] == "",
    "raw = X'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF'": lambda r: r["raw"] == b"\xff" * 20,
    "place.zip = ''": lambda r: r["place"] is not None and r["place"]["zip"] == "",
    "n IS NULL": lambda r: False,
}
"""Predicates that Java answers with the help of our bounds and counts, and which rows with values they are true for."""

SIGNED_UUIDS = "key = 'ffffffff-ffff-ffff-ffff-ffffffffffff'"
"""Java orders UUIDs by signed halves, and so skips files that have the row: apache/iceberg issue 14216, in its own too."""

FEW = "id long not null, name string, n int"


def few(*ids: int, name: str = "x") -> Any:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [name] * len(ids), "n": pa.array(ids, pa.int32())})


@versions
def test_every_type_with_nulls_and_extremes(lake: Lake, version: int) -> None:
    table = lake.create(version, SCHEMA)
    for part in (ROWS[:3], ROWS[3:FIRST_NULL_ROW], ROWS[FIRST_NULL_ROW:]):
        table.append(arrow_table(table.schema(), part))
    assert len(lake.same(table)) == len(ROWS)
    name = lake.their_name(table)
    parts = [f"SELECT {i} AS which, id FROM {name} WHERE {text}" for i, text in enumerate(FILTERS)]
    found = {(each["which"], each["id"]) for each in lake.java.rows(" UNION ALL ".join(parts))}
    filled = [each for each in ROWS if each["id"] != FIRST_NULL_ROW]
    expected = {(i, each["id"]) for i, holds in enumerate(FILTERS.values()) for each in filled if holds(each)}
    assert found == expected | {(len(FILTERS) - 1, FIRST_NULL_ROW)}
    # The day that Java finds the rows, this fails, and the predicate belongs to the filters.
    assert lake.java.rows(f"SELECT id FROM {name} WHERE {SIGNED_UUIDS}") == []


SPEC = (
    "flag",
    "bucket(3, id)",
    "bucket(4, name)",
    "bucket(5, price)",
    "bucket(3, huge)",
    "bucket(4, day)",
    "bucket(4, ts)",
    "bucket(4, key)",
    "bucket(4, raw)",
    "bucket(4, code)",
    "truncate(2, name)",
    "truncate(10, n)",
    "truncate(100, big)",
    "truncate(50, small)",
    "truncate(2, raw)",
    "year(day)",
    "month(ts)",
    "day(tz)",
)
TIMES = ("hour(ts)", "month(day)", "year(tz)", "bucket(7, tz)", "bucket(9, n)", "void(id)", "day", "key", "score")
"""More transforms: a column has one of year, month, day and hour in a spec."""


IN_PARTITIONS = [
    each | {"n": each["id"] - 6, "big": each["id"] * 1000 - 5555, "small": decimal.Decimal(each["id"] * 9 - 50)}
    for each in ROWS
]
"""Numbers that truncate to numbers of their type: Java's wrap around below the least one, and we refuse that."""


@versions
@pytest.mark.parametrize("spec", [SPEC, TIMES], ids=["first", "more"])
def test_every_transform_gives_the_partitions_of_java(lake: Lake, version: int, spec: tuple[str, ...]) -> None:
    ours, theirs = (lake.create(version, SCHEMA, partition_spec=list(spec)) for _ in range(2))
    ours.append(arrow_table(ours.schema(), IN_PARTITIONS))
    lake.same(ours)
    names = [lake.their_name(table) for table in (theirs, ours)]
    lake.java.sql(f"INSERT INTO {names[0]} SELECT * FROM {names[1]}")
    lake.same(theirs.refresh())
    assert partitions(theirs) == partitions(ours)
    report = theirs.verify(level="data")
    assert report.clean, str(report)


def partitions(table: Table) -> list[str]:
    """The partitions of a table and how many rows they have."""
    found = table.inspect.data_files().select(["partition", "record_count"]).to_pylist()
    counts: dict[str, int] = {}
    for each in found:
        text = str(each["partition"])
        counts[text] = counts.get(text, 0) + each["record_count"]
    return sorted(f"{text}: {number}" for text, number in counts.items())


@versions
def test_evolved_schemas(lake: Lake, version: int) -> None:
    table = lake.create(
        version, "id long, name string, n int, r float, d decimal(9,2), gone int, place struct<zip: int>"
    )
    before = {"name": "x", "n": 1, "r": 0.5, "d": decimal.Decimal("1.25"), "gone": 1, "place": {"zip": 1}}
    table.append(arrow_table(table.schema(), [{"id": 1, **before}, {"id": 2, **dict.fromkeys(before)}]))
    with table.update_schema() as update:
        update.rename_column("name", "label")
        update.delete_column("gone")
        update.update_column("n", LongType())
        update.update_column("r", DoubleType())
        update.update_column("d", DecimalType(20, 2))
        update.update_column("place.zip", LongType())
        update.add_column("place.town", StringType())
        update.rename_column("place.zip", "code")
        update.move_first("name")
        # A new column with the name of one that is gone is another column.
        update.add_column("other", StringType())
    with table.update_schema() as update:
        update.add_column("gone", StringType())
        if allows(version, Feature.COLUMN_DEFAULTS):
            update.add_column("filled", IntegerType(), default_value=34)
            update.add_column("place.filled", StringType(), default_value="é")
    assert [each["id"] for each in lake.same(table)] == [1, 2]
    after = {field.name: None for field in table.schema().fields}
    table.append(arrow_table(table.schema(), [after | {"id": 3, "label": "y", "n": 2**40, "place": None}]))
    found = lake.same(table)
    assert [each["gone"] for each in found] == [None] * 3
    if allows(version, Feature.COLUMN_DEFAULTS):
        assert [each["filled"] for each in found] == [34, 34, None]


@versions
def test_evolved_partitions(lake: Lake, version: int) -> None:
    table = lake.create(version, FEW, partition_spec=["bucket(2, id)"])
    table.append(few(1, 2, 3))
    with table.update_spec() as update:
        update.remove_field("id_bucket")
        update.add_field("name")
    table.append(few(4, 5, name="y"))
    with table.update_spec() as update:
        update.remove_field("name")
    table.append(few(6))
    lake.same(table)
    name = lake.their_name(table)
    assert sorted(each["id"] for each in lake.java.rows(f"SELECT id FROM {name} WHERE name = 'y' OR id = 3")) == [
        3,
        4,
        5,
    ]
    lake.java.sql(f"DELETE FROM {name} WHERE id IN (2, 4)")
    assert [each["id"] for each in lake.same(table.refresh())] == [1, 3, 5, 6]
    assert table.verify().clean


@versions
@pytest.mark.parametrize("mode", MODES)
def test_changed_rows(lake: Lake, version: int, mode: str) -> None:
    table = lake.create(version, FEW, partition_spec=["bucket(2, id)"], sort_order=["name"], properties=row_level(mode))
    table.append(few(*range(20)))
    table.delete("id in (3, 4) or id > 17")
    table.upsert(few(1, 2, 30, name="new"), join_cols=["id"])
    table.delete("id = 5")
    table.overwrite(few(40), "id >= 10 and id < 15")
    assert [each["id"] for each in lake.same(table)] == [0, 1, 2, *range(6, 10), 15, 16, 17, 30, 40]
    if allows(version, Feature.ROW_LINEAGE):
        lake.same(table, columns=("id", "_row_id", "_last_updated_sequence_number"))


@pytest.mark.parametrize("version", with_deletes)
def test_equality_deletes(lake: Lake, version: int) -> None:
    table = lake.create(version, FEW)
    table.append(few(1, 2, 3, 4))
    place = f"{table.location()}/data/deletes.parquet"
    with table.storage.open_output(place) as sink:
        writer = EqualityDeleteWriter(sink, table.schema(), [1], version)
        writer.write(pa.table({"id": pa.array([2, 9], pa.int64())}))
        done = writer.close()
    delete = data_file(place, "parquet", done, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    table.update_snapshot().row_delta(None, deletes=[delete])
    table.append(few(2, name="later"))
    table.delete("id = 4")
    assert [each["id"] for each in lake.same(table)] == [1, 2, 3]


@pytest.mark.parametrize("version", with_lineage)
@pytest.mark.parametrize("mode", MODES)
def test_row_lineage_of_an_upgraded_table(lake: Lake, version: int, mode: str) -> None:
    table = lake.create(with_deletes[0], FEW, properties=row_level(mode))
    table.append(few(1, 2, 3))
    table.delete("id = 2")
    table.upgrade_format_version(version)
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    lake.same(table, columns=columns)
    table.append(few(4, 5))
    table.upsert(few(1, 4, 6, name="new"), join_cols=["id"])
    table.delete("id = 5")
    found = lake.same(table, columns=columns)
    assert len({each["_row_id"] for each in found}) == len(found) == 4
    lake.same(table)


@versions
def test_refs_and_time_travel(lake: Lake, version: int) -> None:
    table = lake.create(version, FEW)
    table.append(few(1))
    first = table.current_snapshot()
    assert first is not None
    with table.manage_snapshots() as manage:
        manage.create_tag("start", first.snapshot_id)
        manage.create_branch("audit", first.snapshot_id)
    table.append(few(2), branch="audit")
    table.append(few(3))
    assert [each["id"] for each in lake.same(table)] == [1, 3]
    assert [each["id"] for each in lake.same(table, ref="audit")] == [1, 2]
    assert [each["id"] for each in lake.same(table, ref="start")] == [1]
    assert [each["id"] for each in lake.same(table, snapshot_id=first.snapshot_id)] == [1]
    refs = {
        each["name"]: each["snapshot_id"] for each in lake.java.rows(f"SELECT * FROM {lake.their_name(table)}.refs")
    }
    assert refs == {name: ref.snapshot_id for name, ref in table.refs().items()}


@versions
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("place", ["sql", "hadoop"])
def test_empty_tables_then_rows_in_both_catalogs(lake: Lake, version: int, codec: str, place: str) -> None:
    catalog = lake.sql_catalog if place == "sql" else lake.file_catalog
    table = lake.create(version, FEW, catalog=catalog, properties={"write.metadata.compression-codec": codec})
    assert lake.same(table) == []
    table.append(few(1, 2))
    assert [each["id"] for each in lake.same(table)] == [1, 2]
    lake.java.sql(f"INSERT INTO {lake.their_name(table)} VALUES (3, 'j', 3)")
    table.refresh().append(few(4))
    assert [each["id"] for each in lake.same(table)] == [1, 2, 3, 4]


@pytest.mark.parametrize("version", sorted(set(ALL_VERSIONS) - set(JAVA_VERSIONS)))
def test_java_does_not_resolve_relative_paths(lake: Lake, version: int) -> None:
    """The day it does, this fails, and the version belongs to those that Java reads."""
    table = lake.create(version, FEW)
    assert lake.same(table) == []
    table.append(few(1))
    with pytest.raises(JavaError, match="Failed to open input stream for file: metadata/snap"):
        lake.same(table)


@pytest.mark.parametrize("version", with_lineage)
@pytest.mark.parametrize("kind", ["geometry", "geography", "unknown"])
def test_new_types(lake: Lake, version: int, kind: str) -> None:
    table = lake.create(version, f"id long, v {kind}")
    value = None if kind == "unknown" else bytes.fromhex("0101000000000000000000F03F0000000000000040")
    table.append(arrow_table(table.schema(), [{"id": 1, "v": value}, {"id": 2, "v": None}]))
    name = lake.their_name(table)
    shown = "v" if kind == "unknown" else "st_asbinary(v)"
    found = lake.java.sql(
        f"SELECT id, {shown} AS v FROM {name} ORDER BY id", **{"spark.sql.geospatial.enabled": "true"}
    )
    assert found.to_pylist() == table.scan().to_arrow().sort_by("id").to_pylist()
    lake.java.sql(f"INSERT INTO {name} SELECT id + 10, v FROM {name}", **GEOSPATIAL)
    found = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert [each["v"] for each in found] == [value, None, value, None]
    assert table.verify(level="data").clean


@pytest.mark.parametrize("kind", NOT_IN_SPARK)
def test_java_says_that_spark_has_no_such_type(lake: Lake, kind: str) -> None:
    table = lake.create(JAVA_VERSIONS[-1], f"id long, v {kind}")
    with pytest.raises(JavaError, match=r"(?i)unsupported|not supported|cannot"):
        lake.same(table)
