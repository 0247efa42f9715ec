"""DataFrames written to tables by both writers, in every version, and read back without Spark."""

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from threading import Timer
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from icefloe.catalog import Catalog, load_catalog
from icefloe.data import group_rows
from icefloe.errors import InvalidValueError, NotInstalledError
from icefloe.manifests import DataFile
from icefloe.rows.engines import ARROW, engine_for, engine_named
from icefloe.schema import NestedField, Schema, schema_to_arrow
from icefloe.schema.types import StringType
from icefloe.spark.engine import SparkEngine, why_not_written
from icefloe.table import Table
from icefloe.variant.reading import decode
from icefloe.variant.values import Variant
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.spark.conftest import SPARK

UTC = dt.UTC
PLAIN = (
    "id bigint not null, i int, f float, d double, dec decimal(20, 4), b boolean, day date, ts timestamp, tz timestamptz,"
    " s string, bin binary, st struct<a: int not null, in: struct<b: string>>"
)
PLAIN_SPARK = (
    "id bigint, i int, f float, d double, dec decimal(20,4), b boolean, day date, ts timestamp_ntz, tz timestamp,"
    " s string, bin binary, st struct<a: int, in: struct<b: string>>"
)
MORE = ", u uuid, fx fixed[3], t time, l list<string>, m map<string, int>"
MORE_SPARK = ", u string, fx binary, t bigint, l array<string>, m map<string, int>"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = load_catalog("test", type="memory", warehouse=str(tmp_path / "warehouse"))
    found.create_namespace("db")
    return found


def rows(count: int) -> list[tuple[Any, ...]]:
    """Values of every type, null in one row of five, and what is hard about floats."""
    found: list[tuple[Any, ...]] = []
    for n in range(count):
        when = dt.datetime(1969, 12, 30) + dt.timedelta(hours=5 * n, microseconds=n)
        full = (
            n - 3,
            (-0.0, math.inf, 1.5, math.nan)[n % 4],
            n / 7,
            Decimal(n * 1000 + 1).scaleb(-4),
            n % 2 == 0,
            when.date(),
            when,
            when.replace(tzinfo=UTC),
            ("", "é日", "a" * 130, f"s{n % 3}")[n % 4],
            bytes([n % 256, 0, 255]),
            (n, (f"b{n}",)),
        )
        found.append((n, *(full if n % 5 else (None,) * len(full))))
    return found


def more(n: int) -> tuple[Any, ...]:
    if n % 5 == 0:
        return (None,) * 5
    return (str(UUID(int=n)), b"abc", n * 1_000_000, ["x", None, str(n)], {"k": n, "l": None})


def files_of(table: Table) -> list[DataFile]:
    return [task.file for task in table.scan().plan_files()]


def stored(table: Table) -> set[str]:
    """Every file beneath the table's data."""
    folder = Path((table.location() or "").removeprefix("file://")) / "data"
    return {str(each) for each in folder.rglob("*") if each.is_file()}


def variant_of(metadata: bytes, value: bytes) -> Any:
    return decode(Variant(metadata, value))


def by_id(data: Any) -> list[dict[str, Any]]:
    return [{key: _told(value) for key, value in row.items()} for row in data.sort_by("id").to_pylist()]


def _told(value: Any) -> Any:
    """The value so that it compares: NaN is equal to itself, and pairs of a map have no order."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return str(value) if isinstance(value, float) else value


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("writer", ["native", "arrow"])
def test_rows_of_every_type_come_back(spark: Any, catalog: Catalog, version: int, writer: str) -> None:
    native = writer == "native"
    table = catalog.create_table(
        "db.t",
        PLAIN if native else PLAIN + MORE,
        partition_spec=["days(ts)", "bucket(2, id)"] if version % 2 else None,
        properties={"format-version": str(version), "write.distribution-mode": "none"},
    )
    assert (why_not_written(spark, table.metadata) is None) is native
    given = rows(40) if native else [(*row, *more(n)) for n, row in enumerate(rows(40))]
    frame = spark.createDataFrame(given, PLAIN_SPARK if native else PLAIN_SPARK + MORE_SPARK)
    snapshot = table.append(frame)
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["added-records"] == "40"
    found = table.scan().to_arrow()
    assert found.schema.equals(schema_to_arrow(table.schema()), check_metadata=False)
    expected = pa.Table.from_batches(_expected(given, table, native))
    assert by_id(found) == by_id(expected)
    files = files_of(table)
    assert stored(table) == {file.file_path.removeprefix("file://") for file in files}
    assert pq.read_schema(files[0].file_path.removeprefix("file://")).field("st").metadata[b"PARQUET:field_id"] == b"12"
    _check_partitions(table, files)
    if allows(version, Feature.ROW_LINEAGE):
        ids = table.scan(selected_fields=("_row_id",)).to_arrow().column("_row_id")
        assert sorted(ids.to_pylist()) == list(range(40))


def _expected(given: list[tuple[Any, ...]], table: Table, native: bool) -> Iterator[Any]:
    target = schema_to_arrow(table.schema())
    names = target.names
    records = []
    for row in given:
        record = dict(zip(names, row, strict=True))
        if record["st"] is not None:
            record["st"] = {"a": record["st"][0], "in": {"b": record["st"][1][0]}}
        if not native and record["u"] is not None:
            record["u"] = UUID(record["u"]).bytes
            record["t"] = dt.time(0, 0, record["t"] // 1_000_000)
            record["m"] = list(record["m"].items())
        records.append(record)
    plain = pa.schema([pa.field(f.name, pa.binary(16)) if f.name == "u" else f for f in target])
    batch = pa.RecordBatch.from_pylist(records, plain)
    arrays = [
        a if f.name != "u" else pa.ExtensionArray.from_storage(f.type, a)
        for f, a in zip(target, batch.columns, strict=True)
    ]
    yield pa.RecordBatch.from_arrays(arrays, schema=target)


def _check_partitions(table: Table, files: list[DataFile]) -> None:
    """Every file has rows of one partition, and it is the one that its entry names."""
    for file in files:
        data = pq.read_table(file.file_path.removeprefix("file://"), partitioning=None)
        groups = [partition for partition, _ in group_rows(data, table.spec(), table.schema())]
        assert [tuple(map(_told, group)) for group in groups] == [tuple(map(_told, file.partition))]


@pytest.mark.parametrize("mode", ["none", "hash"])
def test_partition_values_of_every_kind_survive_folder_names(spark: Any, catalog: Catalog, mode: str) -> None:
    spec = [
        "s",
        "truncate(1, bin)",
        "f",
        "d",
        "dec",
        "b",
        "day",
        "ts",
        "hours(tz)",
        "truncate(10, dec)",
        "months(day)",
        "st.a",
    ]
    table = catalog.create_table(
        "db.t", PLAIN, partition_spec=spec, properties={"write.distribution-mode": mode, "format-version": "2"}
    )
    table.append(spark.createDataFrame(rows(17), PLAIN_SPARK))
    files = files_of(table)
    assert sum(file.record_count for file in files) == 17
    _check_partitions(table, files)
    assert by_id(table.scan("s = ''").to_arrow()) == [row for row in by_id(table.scan().to_arrow()) if row["s"] == ""]
    assert (
        table.scan(f"s = '{'a' * 130}'").to_arrow().num_rows
        == table.scan("s is not null and s > 'a' and s < 'b'").to_arrow().num_rows
    )


def test_footers_say_what_our_own_writer_says(spark: Any, catalog: Catalog) -> None:
    properties = {"write.distribution-mode": "none"}
    native = catalog.create_table("db.n", PLAIN, properties=properties)
    ours = catalog.create_table("db.o", PLAIN, properties={**properties, "write.parquet.compression-codec": "brotli"})
    frame = spark.createDataFrame(rows(30), PLAIN_SPARK).coalesce(1)
    native.append(frame)
    ours.append(frame)
    assert why_not_written(spark, ours.metadata) is not None
    (one,), (other,) = native.inspect.files().to_pylist(), ours.inspect.files().to_pylist()
    floats = native.schema().find_field("f").field_id
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        mine, theirs = dict(one[name]), dict(other[name])
        # A footer of Spark has no bounds for a column with NaN, and -0.0 is no matter here.
        mine.pop(floats, None), theirs.pop(floats, None)
        assert mine == theirs
        assert len(mine) > 8
    assert one["nan_value_counts"] is None
    assert dict(one["column_sizes"]).keys() == dict(other["column_sizes"]).keys()
    assert one["split_offsets"] == [4]


def test_what_goes_wrong_in_a_task_leaves_nothing(spark: Any, catalog: Catalog) -> None:
    def fail_at_seven(number: int) -> int:
        if number == 7:
            raise ValueError("seven")
        return number

    fails = F.udf(fail_at_seven, "bigint", useArrow=False)
    for name, codec in (("native", "zstd"), ("arrow", "brotli")):
        table = catalog.create_table(f"db.{name}", "id bigint", properties={"write.parquet.compression-codec": codec})
        table.append(spark.range(3))
        before = stored(table)
        with pytest.raises(PySparkException, match="seven"):
            table.append(spark.range(10, numPartitions=4).select(fails("id").alias("id")))
        assert stored(table) == before
        assert table.refresh().scan().count() == 3
        folder = Path((table.location() or "").removeprefix("file://")) / "data"
        assert len(list(folder.iterdir())) == 1


def test_a_cancelled_job_leaves_nothing(spark: Any, catalog: Catalog) -> None:
    table = catalog.create_table("db.t", "id bigint")
    slow = F.udf(lambda number: (__import__("time").sleep(0.5), number)[1], "bigint")
    timer = Timer(4, spark.sparkContext.cancelAllJobs)
    timer.start()
    with pytest.raises(Exception, match=r"(?i)cancel"):
        table.append(spark.range(200, numPartitions=4).select(slow("id").alias("id")))
    timer.cancel()
    assert stored(table) == set()
    assert table.refresh().current_snapshot() is None


def test_null_in_a_required_column_is_told_and_leaves_nothing(spark: Any, catalog: Catalog) -> None:
    for name, codec in (("native", "zstd"), ("arrow", "brotli")):
        table = catalog.create_table(
            f"db.{name}", "id bigint not null", properties={"write.parquet.compression-codec": codec}
        )
        with pytest.raises(InvalidValueError, match="required column 'id' of type long has null"):
            table.append(spark.createDataFrame([(1,), (None,)], "id bigint"))
        assert stored(table) == set()
        assert table.refresh().current_snapshot() is None


def test_settings_and_views_of_the_session_stay(spark: Any, catalog: Catalog) -> None:
    table = catalog.create_table("db.t", "id bigint, ts timestamptz", partition_spec=["days(ts)"])
    before = {key: spark.conf.get(key) for key, _ in sorted(spark.conf.getAll.items())}
    spark.range(5).createOrReplaceTempView("five")
    table.append(spark.sql("select id, timestamp_micros(id) ts from five"))
    assert {key: spark.conf.get(key) for key, _ in sorted(spark.conf.getAll.items())} == before
    active = type(spark).getActiveSession()
    assert active is not None
    assert {key: active.conf.get(key) for key in before} == before
    assert not list(spark.sparkContext.getJobTags())
    assert spark.table("five").count() == 5
    assert table.scan().count() == 5


def test_overwrites_and_empty_frames(spark: Any, catalog: Catalog) -> None:
    table = catalog.create_table("db.t", "id bigint, p int", partition_spec=["p"])
    assert table.append(spark.range(0).selectExpr("id", "0 p")) is None
    assert stored(table) == set()
    table.append(spark.range(10).selectExpr("id", "cast(id % 3 as int) p"))
    table.overwrite(spark.range(100, 102).selectExpr("id", "1 p"), "p = 1")
    assert sorted(table.scan("p = 1").to_arrow().column("id").to_pylist()) == [100, 101]
    table.dynamic_partition_overwrite(spark.range(200, 201).selectExpr("id", "2 p"))
    assert table.scan("p = 2").to_arrow().column("id").to_pylist() == [200]
    assert table.scan("p = 0").count() == 4


def test_avro_and_orc_tables_are_written_by_our_writer(spark: Any, catalog: Catalog) -> None:
    for name in ("avro", "orc"):
        table = catalog.create_table(f"db.{name}", "id bigint, s string", properties={"write.format.default": name})
        table.append(spark.range(5).selectExpr("id", "cast(id as string) s"))
        assert {file.file_format for file in files_of(table)} == {name}
        assert sorted(table.scan().to_arrow().column("s").to_pylist()) == ["0", "1", "2", "3", "4"]


def test_names_may_be_anything_for_both_writers(spark: Any, catalog: Catalog) -> None:
    names = ("a.b", "tick`", "`q`", "a b", "é")
    for form in ("parquet", "avro"):
        schema = Schema(
            *(NestedField(place, name, StringType(), required=False) for place, name in enumerate(names, 1))
        )
        table = catalog.create_table(f"db.{form}", schema, properties={"write.format.default": form})
        table.append(spark.createDataFrame([names], ", ".join(f"`{name.replace('`', '``')}` string" for name in names)))
        assert table.scan().to_arrow().to_pylist() == [dict(zip(names, names, strict=True))]


def test_tables_in_memory_are_written_here(spark: Any) -> None:
    catalog = load_catalog("m", type="memory", warehouse="memory://warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, u uuid")
    table.append(spark.createDataFrame([(1, str(UUID(int=5))), (2, None)], "id bigint, u string"))
    assert by_id(table.scan().to_arrow()) == [{"id": 1, "u": UUID(int=5)}, {"id": 2, "u": None}]


def test_types_that_spark_has_no_writer_for(spark: Any, catalog: Catalog) -> None:
    table = catalog.create_table(
        "db.t",
        "id bigint, v variant, n timestamptz_ns, g geometry, l list<struct<u: uuid, n: timestamp_ns>>, m map<uuid, time>",
        properties={"format-version": "3"},
    )
    point = "0101000000000000000000F03F0000000000000040"
    some = "00000000-0000-0000-0000-00000000000a"
    table.append(
        spark.range(2).selectExpr(
            "id",
            """case when id = 1 then parse_json('{"a": [1, null]}') end v""",
            "timestamp_micros(id) n",
            f"case when id = 1 then X'{point}' end g",
            f"case when id = 1 then array(named_struct('n', 5L, 'u', '{some}'), null) end l",
            f"case when id = 1 then map('{some}', 7L) end m",
        )
    )
    zero, one = table.scan().to_arrow().sort_by("id").to_pylist()
    assert (zero["v"], zero["g"], zero["l"], zero["m"]) == (None, None, None, None)
    assert (one["n"].value, one["g"]) == (1000, bytes.fromhex(point))
    assert (one["l"][0]["u"], one["l"][0]["n"].value, one["l"][1]) == (UUID(some), 5, None)
    assert one["m"] == [(UUID(some), dt.time(0, 0, 0, 7))]
    assert (variant_of(one["v"]["metadata"], one["v"]["value"])) == {"a": [1, None]}


def test_variants_are_written_by_spark(spark: Any, catalog: Catalog) -> None:
    frame = spark.range(4).selectExpr("id", """parse_json(concat('{"a": ', id, '}')) v""")
    for shred in ("false", "true"):
        properties = {"format-version": "3", "write.parquet.shred-variants": shred}
        table = catalog.create_table(f"db.{shred}", "id bigint, v variant", properties=properties)
        assert why_not_written(spark, table.metadata) is None
        table.append(frame.coalesce(1))
        found = table.scan().to_arrow().sort_by("id").column("v").to_pylist()
        assert [variant_of(each["metadata"], each["value"]) for each in found] == [{"a": n} for n in range(4)]
        (file,) = files_of(table)
        names = {field.name for field in pq.read_schema(file.file_path.removeprefix("file://")).field("v").type}
        # Spark 4.0 shreds only by a schema that is given.
        assert ("typed_value" in names) is (shred == "true" and SPARK >= (4, 1))


def test_required_variants_inside_of_other_types(spark: Any, catalog: Catalog) -> None:
    frame = spark.sql("SELECT named_struct('v', parse_json('1')) s, array(named_struct('v', parse_json('2'))) l")
    for columns in (
        "s struct<v: variant not null>",
        "s struct<v: variant not null>, l list<struct<v: variant not null>>",
    ):
        properties = {"format-version": "3"}
        table = catalog.create_table(f"db.of_{len(columns)}", columns, properties=properties)
        table.append(frame.select(*(field.name for field in table.schema().fields)))
        (row,) = table.scan().to_arrow().to_pylist()
        found = [row["s"], *row.get("l", ())]
        assert [variant_of(each["v"]["metadata"], each["v"]["value"]) for each in found] == [1, 2][: len(found)]


def test_engines_are_found_by_the_data(spark: Any) -> None:
    assert isinstance(engine_for(spark.range(1)), SparkEngine)
    assert engine_for(pa.table({"a": [1]})) is ARROW
    assert engine_for([pa.record_batch({"a": [1]})]) is ARROW
    assert engine_for(object()) is ARROW
    with pytest.raises(NotInstalledError, match="'flink'"):
        engine_named("flink")


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.VARIANT)])
def test_variants_that_are_null_are_gathered_too(spark: Any, version: int) -> None:
    """Tables in the memory of this process get their rows here. Spark's own `toArrow` fails at a variant that is null."""
    catalog = load_catalog("held", type="memory", warehouse="memory://held")
    catalog.create_namespace("db")
    schema = "id int, v variant, s struct<v: variant>, l list<variant>"
    table = catalog.create_table("db.t", schema, properties={"format-version": str(version)})
    some = "parse_json(nullif(j, ''))"
    frame = spark.createDataFrame([(1, "[1]"), (2, ""), (3, "null")], "id int, j string").selectExpr(
        "id", f"{some} v", f"if(id = 2, null, named_struct('v', {some})) s", f"array({some}, null) l"
    )
    table.append(frame.filter("id > 3"))
    table.append(frame)
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    values = [
        [None if each is None else decode(Variant(**each)) for each in (row["v"], (row["s"] or {}).get("v"), *row["l"])]
        for row in found
    ]
    assert values == [[[1], [1], [1], None], [None] * 4, [None] * 4]
    assert [row["v"] is None for row in found] == [row["s"] is None for row in found] == [False, True, False]
