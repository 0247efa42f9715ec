"""The matrix, first side: every kind of table that a peer should read, each made by us once for a format version."""

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.commit import StatisticsChange
from icefloe.formats.puffin.files import Blob
from icefloe.metadata import StatisticsFile
from icefloe.metadata.table import BlobMetadata
from icefloe.schema import parse_ddl
from icefloe.schema.types import DecimalType, DoubleType, IntegerType, LongType, StringType
from icefloe.spark.engine import why_not_written
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.rows import arrow_table
from tests.formats.variant_json import parse_json
from tests.peers.lake import MODES, Lake, row_level
from tests.puffin_files import encode_puffin
from tests.spark.reading import delete_equal

LINEAGE = ("id", "_row_id", "_last_updated_sequence_number")
SNAPSHOTS = 60


@dataclass(frozen=True)
class Read:
    """One way to read a table, and the ids of the rows that it must give."""

    ids: tuple[int, ...]
    columns: tuple[str, ...] = ("*",)
    where: str | None = None
    snapshot_id: int | None = None
    ref: str | None = None


@dataclass(frozen=True)
class Made:
    """A table of a scenario, and how to read it."""

    table: Table
    reads: tuple[Read, ...]


@dataclass(frozen=True)
class Workshop:
    """Where a scenario makes its table."""

    lake: Lake
    version: int
    ice: Callable[[], Session]
    """Our session on Spark, started when a scenario asks for it."""

    def create(self, schema: Any, **options: Any) -> Table:
        """A new table of this version."""
        return self.lake.create(self.version, schema, **options)


@dataclass(frozen=True)
class Scenario:
    """A kind of table: its name on the page, how it is made, and which versions have it."""

    name: str
    title: str
    make: Callable[[Workshop], Made]
    feature: Feature | None
    on_spark: bool

    def versions(self) -> tuple[int, ...]:
        """The format versions that can have such a table."""
        return tuple(each for each in ALL_VERSIONS if self.feature is None or allows(each, self.feature))


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    title: str, feature: Feature | None = None, *, on_spark: bool = False
) -> Callable[[Callable[[Workshop], Made]], Scenario]:
    """Register a function that makes a table as a scenario, under the name of the function."""

    def register(make: Callable[[Workshop], Made]) -> Scenario:
        found = Scenario(make.__name__, title, make, feature, on_spark)
        SCENARIOS[found.name] = found
        return found

    return register


FEW = "id long not null, name string, n int"


def few(*ids: int, name: str = "x") -> Any:
    """Rows of the small schema."""
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [name] * len(ids), "n": pa.array(ids, pa.int32())})


PRIMITIVES = parse_ddl(
    "id long not null, flag boolean, n int, big long, ratio float, score double, small decimal(4,2), price decimal(18,3),"
    " huge decimal(38,10), day date, ts timestamp, tz timestamptz, name string, raw binary, code fixed[3], key uuid"
)
NESTED = parse_ddl(
    "id long not null, tags list<string>, props map<string, long>, place struct<zip: string, at: struct<x: double, y: double>>,"
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
NULL_ROW = 7
"""The row that has nothing but its id."""


def extreme(i: int) -> dict[str, Any]:
    """A row of extremes of every type."""
    found = {name: None if i == NULL_ROW else values[i % len(values)] for name, values in EXTREMES.items()}
    moment = found["ts"]
    tz = None if moment is None else moment.replace(tzinfo=dt.UTC)
    return {"id": i, "tz": tz} | {
        key: value.bytes if isinstance(value, uuid.UUID) else value for key, value in found.items()
    }


ROWS = [extreme(i) for i in range(12)]
ALL = tuple(range(12))
TAME = [
    each
    | {"n": each["id"] - 6, "big": each["id"] * 1000 - 5555, "small": decimal.Decimal(each["id"] * 9 - 50)}
    | {"day": dt.date(1969, 12, 1) + dt.timedelta(days=9 * each["id"])}
    | {"ts": dt.datetime(1969, 12, 31, 20) + dt.timedelta(hours=11 * each["id"], microseconds=1)}
    | {"tz": dt.datetime(1969, 12, 31, 20, tzinfo=dt.UTC) + dt.timedelta(days=100 * each["id"], microseconds=1)}
    | {"name": None if each["id"] == NULL_ROW else f"n/{each['id'] % 5}é"}
    for each in ROWS
]
"""Moments that every engine has, and numbers that truncate to numbers of their type."""


def _in_parts(table: Table, rows: list[dict[str, Any]]) -> None:
    for part in (rows[:3], rows[3:NULL_ROW], rows[NULL_ROW:]):
        table.append(arrow_table(table.schema(), part))


@scenario("every primitive type, nulls and extremes")
def primitives(workshop: Workshop) -> Made:
    table = workshop.create(PRIMITIVES)
    _in_parts(table, ROWS)
    wheres = {
        "n = -2147483648": (0, 3, 6, 9),
        "big = 9223372036854775807": (1, 4, 10),
        "name = 'plain'": (5, 11),
        "n IS NULL": (7,),
    }
    return Made(table, (Read(ALL), *(Read(ids, where=where) for where, ids in wheres.items())))


@scenario("every nested type, nulls at each level")
def nested(workshop: Workshop) -> Made:
    table = workshop.create(NESTED)
    _in_parts(table, ROWS)
    return Made(table, (Read(ALL),))


@scenario("time")
def times(workshop: Workshop) -> Made:
    table = workshop.create("id long, v time")
    values = [0, 86_399_999_999, None]
    table.append(pa.table({"id": [0, 1, 2], "v": pa.array(values, pa.int64()).cast(pa.time64("us"))}))
    return Made(table, (Read((0, 1, 2)),))


@scenario("nanosecond timestamps", Feature.NANOSECOND_TIMESTAMPS)
def nanoseconds(workshop: Workshop) -> Made:
    table = workshop.create("id long, v timestamp_ns, z timestamptz_ns")
    values = pa.array([0, 1_700_000_000_123_456_789, -1, None], pa.int64())
    kinds = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
    table.append(pa.table({"id": [0, 1, 2, 3], "v": values.cast(kinds[0]), "z": values.cast(kinds[1])}))
    return Made(table, (Read((0, 1, 2, 3)),))


POINT = bytes.fromhex("0101000000000000000000F03F0000000000000040")


@scenario("geometry", Feature.GEO_TYPES)
def geometries(workshop: Workshop) -> Made:
    table = workshop.create("id long, v geometry")
    table.append(arrow_table(table.schema(), [{"id": 1, "v": POINT}, {"id": 2, "v": None}]))
    return Made(table, (Read((1, 2)),))


@scenario("geography", Feature.GEO_TYPES)
def geographies(workshop: Workshop) -> Made:
    table = workshop.create("id long, v geography")
    table.append(arrow_table(table.schema(), [{"id": 1, "v": POINT}, {"id": 2, "v": None}]))
    return Made(table, (Read((1, 2)),))


@scenario("unknown", Feature.UNKNOWN_TYPE)
def unknown(workshop: Workshop) -> Made:
    table = workshop.create("id long, v unknown")
    table.append(arrow_table(table.schema(), [{"id": 1, "v": None}, {"id": 2, "v": None}]))
    return Made(table, (Read((1, 2)),))


TEXTS = ("1", '"ice"', '{"a": [1, 2.5, {"b": "é"}], "c": true}', "[]", '{"a": "x", "d": 1e100, "e": null}')


def _with_variants(workshop: Workshop, *texts: str | None) -> Made:
    table = workshop.create("id long, v variant")
    found = [None if text is None else parse_json(text) for text in texts]
    values = [None if each is None else {"metadata": each.metadata, "value": each.value} for each in found]
    table.append(arrow_table(table.schema(), [{"id": i, "v": value} for i, value in enumerate(values)]))
    return Made(table, (Read(tuple(range(len(texts)))),))


@scenario("variant", Feature.VARIANT)
def variants(workshop: Workshop) -> Made:
    return _with_variants(workshop, *TEXTS, None)


@scenario("variant null beside no variant", Feature.VARIANT)
def variant_nulls(workshop: Workshop) -> Made:
    return _with_variants(workshop, "null", None)


SPECS = (
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
MORE_SPECS = ("hour(ts)", "month(day)", "year(tz)", "bucket(7, tz)", "bucket(9, n)", "void(id)", "day", "score")
"""More transforms: a column has one of year, month, day and hour in a spec."""
BY_PARTITION = (
    Read(ALL),
    Read((5,), where="id = 5"),
    Read((1, 6, 11), where="name = 'n/1é'"),
    Read((8, 9, 10, 11), where="n > 1"),
    Read((0, 1, 2, 3), where="day < DATE '1970-01-01'"),
)


@scenario("every transform, with filters on the columns")
def transforms(workshop: Workshop) -> Made:
    table = workshop.create(PRIMITIVES, partition_spec=list(SPECS))
    table.append(arrow_table(table.schema(), TAME))
    return Made(table, BY_PARTITION)


@scenario("more transforms: hour, void, identity of days and doubles")
def more_transforms(workshop: Workshop) -> Made:
    table = workshop.create(PRIMITIVES, partition_spec=list(MORE_SPECS))
    table.append(arrow_table(table.schema(), TAME))
    return Made(table, BY_PARTITION)


@scenario("identity of UUIDs")
def uuid_partitions(workshop: Workshop) -> Made:
    table = workshop.create(PRIMITIVES, partition_spec=["key"])
    table.append(arrow_table(table.schema(), TAME))
    return Made(table, (Read(ALL), Read((5,), where="id = 5")))


@scenario("schema evolution: rename, reorder, drop, add, promote, nested; a name used again")
def evolved_schema(workshop: Workshop) -> Made:
    table = workshop.create("id long, name string, n int, r float, d decimal(9,2), gone int, place struct<zip: int>")
    before: dict[str, Any] = {
        "name": "x",
        "n": 1,
        "r": 0.5,
        "d": decimal.Decimal("1.25"),
        "gone": 1,
        "place": {"zip": 1},
    }
    rows: list[dict[str, Any]] = [{**before, "id": 1}, {**dict.fromkeys(before), "place": {"zip": None}, "id": 2}]
    table.append(arrow_table(table.schema(), rows))
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
        update.add_column("other", StringType())
    with table.update_schema() as update:
        # A new column with the name of one that is gone is another column.
        update.add_column("gone", StringType())
    after: dict[str, Any] = {field.name: None for field in table.schema().fields}
    place = {"code": 2**40, "town": "t"}
    new = after | {"id": 3, "label": "y", "n": 2**40, "gone": "back", "place": place}
    table.append(arrow_table(table.schema(), [new]))
    return Made(table, (Read((1, 2, 3)), Read((3,), where="n > 1"), Read((1, 2), where="gone IS NULL")))


@scenario("columns added with defaults", Feature.COLUMN_DEFAULTS)
def defaults(workshop: Workshop) -> Made:
    table = workshop.create("id long")
    table.append(pa.table({"id": [1, 2]}))
    with table.update_schema() as update:
        update.add_column("filled", IntegerType(), default_value=34)
        update.add_column("text", StringType(), default_value="é")
    rows: list[dict[str, Any]] = [{"id": 3, "filled": None, "text": "own"}, {"id": 4, "filled": 1, "text": ""}]
    table.append(arrow_table(table.schema(), rows))
    return Made(table, (Read((1, 2, 3, 4)), Read((1, 2), where="filled = 34"), Read((3,), where="filled IS NULL")))


@scenario("columns added in structs with defaults", Feature.COLUMN_DEFAULTS)
def nested_defaults(workshop: Workshop) -> Made:
    table = workshop.create("id long, place struct<zip: int>")
    table.append(arrow_table(table.schema(), [{"id": 1, "place": {"zip": 1}}, {"id": 2, "place": {"zip": None}}]))
    with table.update_schema() as update:
        update.add_column("place.filled", StringType(), default_value="é")
    return Made(table, (Read((1, 2)),))


@scenario("partition evolution, several specs in one table")
def evolved_partitions(workshop: Workshop) -> Made:
    table = workshop.create(FEW, partition_spec=["bucket(2, id)"])
    table.append(few(1, 2, 3))
    with table.update_spec() as update:
        update.remove_field("id_bucket")
        update.add_field("name")
    table.append(few(4, 5, name="y"))
    with table.update_spec() as update:
        update.remove_field("name")
    table.append(few(6))
    return Made(table, (Read((1, 2, 3, 4, 5, 6)), Read((3, 4, 5), where="name = 'y' OR id = 3")))


def _changed(workshop: Workshop, mode: str) -> Made:
    table = workshop.create(FEW, partition_spec=["bucket(2, id)"], sort_order=["name"], properties=row_level(mode))
    table.append(few(*range(20)))
    table.delete("id in (3, 4) or id > 17")
    table.upsert(few(1, 2, 30, name="new"), join_cols=["id"])
    table.delete("id = 5")
    table.overwrite(few(40), "id >= 10 and id < 15")
    left = (0, 1, 2, *range(6, 10), 15, 16, 17, 30, 40)
    return Made(table, (Read(left), Read((1, 2, 30), where="name = 'new'")))


@scenario("deleted, updated, merged and overwritten rows: copy-on-write")
def copy_on_write(workshop: Workshop) -> Made:
    return _changed(workshop, MODES[0])


@scenario("the same, merge-on-read: position deletes", Feature.NEW_POSITION_DELETE_FILES)
def position_deletes(workshop: Workshop) -> Made:
    return _changed(workshop, MODES[1])


@scenario("the same, merge-on-read: deletion vectors", Feature.DELETION_VECTORS)
def deletion_vectors(workshop: Workshop) -> Made:
    return _changed(workshop, MODES[1])


@scenario("equality deletes", Feature.DELETE_FILES)
def equality_deletes(workshop: Workshop) -> Made:
    table = workshop.create(FEW, properties=row_level(MODES[1]))
    table.append(few(1, 2, 3, 4))
    delete_equal(table, {"id": [2, 9]})
    table.append(few(2, name="later"))
    table.delete("id = 4")
    return Made(table, (Read((1, 2, 3)),))


def _upgraded(workshop: Workshop) -> Table:
    """Files and deletes of the version before, and of this one."""
    table = workshop.lake.create(2, FEW, properties=row_level(MODES[1]))
    table.append(few(1, 2, 3))
    table.delete("id = 2")
    table.upgrade_format_version(workshop.version)
    table.append(few(4, 5))
    table.upsert(few(1, 4, 6, name="new"), join_cols=["id"])
    table.delete("id = 5")
    return table


@scenario("a table of v2 with position deletes, upgraded", Feature.DELETION_VECTORS)
def upgraded(workshop: Workshop) -> Made:
    return Made(_upgraded(workshop), (Read((1, 3, 4, 6)),))


@scenario("row lineage: `_row_id`, `_last_updated_sequence_number`; of an upgraded table too", Feature.ROW_LINEAGE)
def row_lineage(workshop: Workshop) -> Made:
    return Made(_upgraded(workshop), (Read((1, 3, 4, 6), columns=LINEAGE),))


@scenario("sort orders, changed")
def sort_orders(workshop: Workshop) -> Made:
    table = workshop.create(FEW, sort_order=["name desc nulls last", "bucket(4, id)"])
    table.append(few(3, 1, 2))
    with table.update_sort_order() as order:
        order.asc("id")
    table.append(few(6, 5, 4, name="y"))
    return Made(table, (Read((1, 2, 3, 4, 5, 6)), Read((4, 5, 6), where="name = 'y'")))


def _branched(workshop: Workshop) -> tuple[Table, int]:
    table = workshop.create(FEW)
    table.append(few(1))
    first = table.current_snapshot()
    assert first is not None
    with table.manage_snapshots() as manage:
        manage.create_tag("start", first.snapshot_id)
        manage.create_branch("audit", first.snapshot_id)
    table.append(few(2), branch="audit")
    table.append(few(3))
    return table, first.snapshot_id


@scenario("time travel by snapshot")
def time_travel(workshop: Workshop) -> Made:
    table, first = _branched(workshop)
    return Made(table, (Read((1, 3)), Read((1,), snapshot_id=first)))


@scenario("branches and tags")
def branches_and_tags(workshop: Workshop) -> Made:
    table, _ = _branched(workshop)
    return Made(table, (Read((1, 2), ref="audit"), Read((1,), ref="start")))


@scenario("statistics files")
def statistics_files(workshop: Workshop) -> Made:
    table = workshop.create(FEW)
    table.append(few(1, 2, 3))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    kind, place = "apache-datasketches-theta-v1", f"{table.location()}/metadata/{uuid.uuid4()}.stats"
    number = snapshot.sequence_number
    blob = Blob(kind, (1,), snapshot.snapshot_id, number, b"\x00" * 8, properties={"ndv": "3"})
    content, footer = encode_puffin([blob])
    table.storage.write(place, content)
    named = BlobMetadata(kind, snapshot.snapshot_id, number, (1,), {"ndv": "3"})
    file = StatisticsFile(snapshot.snapshot_id, place, len(content), footer.size, (named,))
    with table.transaction() as transaction:
        transaction.update_statistics(StatisticsChange(set_files=(file,)))
    table.append(few(4))
    return Made(table, (Read((1, 2, 3, 4)),))


@scenario("imported Parquet files without field ids, by a name mapping")
def imported_files(workshop: Workshop) -> Made:
    table = workshop.create("id long, place struct<zip: string>, tags list<string>")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [1, 2], "place": [{"zip": "z"}, {"zip": None}], "tags": [["a", None], []]}), sink)
    place = f"{table.location()}/data/{uuid.uuid4()}.parquet"
    table.storage.write(place, sink.getvalue().to_pybytes())
    table.add_files([place])
    assert "schema.name-mapping.default" in table.properties
    with table.update_schema() as update:
        update.rename_column("place", "address")
    table.append(arrow_table(table.schema(), [{"id": 3, "address": {"zip": ""}, "tags": ["b"]}]))
    return Made(table, (Read((1, 2, 3)), Read((2,), where="id = 2")))


@scenario("empty tables")
def empty_tables(workshop: Workshop) -> Made:
    return Made(workshop.create(FEW), (Read(()),))


@scenario("a table whose rows are all deleted")
def emptied_tables(workshop: Workshop) -> Made:
    table = workshop.create(FEW)
    table.append(few(1, 2))
    table.delete("id > 0")
    return Made(table, (Read(()),))


@scenario("files without statistics")
def without_statistics(workshop: Workshop) -> Made:
    table = workshop.create(FEW, properties={"write.metadata.metrics.default": "none"})
    table.append(few(1, 2, 3))
    table.append(few(4, name="y"))
    return Made(table, (Read((1, 2, 3, 4)), Read((4,), where="name = 'y'")))


@scenario("metadata in gzip")
def gzip_metadata(workshop: Workshop) -> Made:
    table = workshop.create(FEW, properties={"write.metadata.compression-codec": "gzip"})
    table.append(few(1, 2))
    return Made(table, (Read((1, 2)),))


@scenario(f"{SNAPSHOTS} snapshots")
def many_snapshots(workshop: Workshop) -> Made:
    table = workshop.create(FEW)
    for i in range(SNAPSHOTS):
        table.append(few(i))
    return Made(table, (Read(tuple(range(SNAPSHOTS))), Read((7,), where="id = 7")))


@scenario("expired snapshots")
def expired_snapshots(workshop: Workshop) -> Made:
    table = workshop.create(FEW)
    for i in range(4):
        table.append(few(i, 10 + i))
    table.delete("id = 1")
    table.maintenance.expire_snapshots(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC), retain_last=1)
    assert len(table.refresh().snapshots()) == 1
    return Made(table, (Read((0, 2, 3, 10, 11, 12, 13)),))


def _of_format(workshop: Workshop, file_format: str) -> Made:
    table = workshop.create(FEW, properties={"write.format.default": file_format})
    table.append(few(1, 2, 3))
    return Made(table, (Read((1, 2, 3)), Read((2,), where="id = 2")))


@scenario("data files in Avro")
def avro_files(workshop: Workshop) -> Made:
    return _of_format(workshop, "avro")


@scenario("data files in ORC")
def orc_files(workshop: Workshop) -> Made:
    return _of_format(workshop, "orc")


COUNT = 30


@scenario("written and merged by our Spark, with its own writer", on_spark=True)
def spark_native(workshop: Workshop) -> Made:
    ice = workshop.ice()
    table = workshop.create(
        "id bigint not null, s string, ts timestamptz, d decimal(9, 2), st struct<a: int>",
        partition_spec=["days(ts)"],
        properties=row_level(MODES[allows(workshop.version, Feature.DELETE_FILES)]),
    )
    assert why_not_written(ice.spark, table.metadata) is None
    frame = ice.spark.range(COUNT, numPartitions=1).selectExpr(
        "id",
        "case when id % 7 > 0 then concat('é', id) end s",
        "timestamp_micros(id * 7200000000) ts",
        "cast(id / 4 as decimal(9, 2)) d",
        "named_struct('a', cast(id as int)) st",
    )
    table.append(frame)
    ice.sql(
        f"MERGE INTO {'.'.join(table.name())} t USING (SELECT explode(array(3L, 4L, 99L)) AS id) s ON t.id = s.id"
        " WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET s = 'merged'"
        " WHEN NOT MATCHED THEN INSERT (id, s, st) VALUES (s.id, 'new', named_struct('a', 1))"
    )
    left = (*range(3), *range(4, COUNT), 99)
    return Made(table.refresh(), (Read(left), Read((4,), where="s = 'merged'")))


@scenario("written by our Spark, with Arrow", on_spark=True)
def spark_arrow(workshop: Workshop) -> Made:
    ice = workshop.ice()
    table = workshop.create("id bigint not null, u uuid, fx fixed[3], l list<string>, m map<string, int>")
    assert why_not_written(ice.spark, table.metadata) is not None
    frame = ice.spark.range(COUNT, numPartitions=1).selectExpr(
        "id",
        "concat('f79c3e09-677c-4bbd-a479-3f349cb785', lpad(hex(id), 2, '0')) u",
        "X'00FF01' fx",
        "array('x', null, string(id)) l",
        "map('k', cast(id as int)) m",
    )
    table.append(frame)
    return Made(table, (Read(tuple(range(COUNT))), Read((5,), where="id = 5")))


@scenario("shredded variants, written by our Spark", Feature.VARIANT, on_spark=True)
def shredded_variants(workshop: Workshop) -> Made:
    ice = workshop.ice()
    table = workshop.create("id bigint, v variant", properties={"write.parquet.shred-variants": "true"})
    # Rows that fit a shredded form, one that fits in part, and none.
    frame = ice.spark.range(COUNT, numPartitions=1).selectExpr(
        "id",
        """parse_json(CASE id WHEN 3 THEN '{"a": 3, "c": [1, "é"]}' WHEN 5 THEN null"""
        """ ELSE concat('{"a": ', id, ', "b": "é"}') END) v""",
    )
    table.append(frame)
    [task] = table.scan().plan_files()
    assert is_shredded(task.file.file_path)
    return Made(table, (Read(tuple(range(COUNT))),))


def is_shredded(place: str) -> bool:
    """Whether the variants `v` of a Parquet file have typed parts."""
    return "typed_value" in {field.name for field in pq.read_schema(place.removeprefix("file://")).field("v").type}
