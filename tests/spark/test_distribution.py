"""How rows are spread over files: modes, sort orders, target sizes."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import InvalidPropertyError
from icefloe.manifests import DataFile
from icefloe.spark.distribution import distribution_of
from icefloe.table import Table
from tests.spark.sessions import settings

MODE = "write.distribution-mode"
FEWEST = "spark.sql.adaptive.coalescePartitions.minPartitionNum"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = load_catalog("test", type="memory", warehouse=str(tmp_path / "warehouse"))
    found.create_namespace("db")
    return found


def files_of(table: Table) -> list[DataFile]:
    return [task.file for task in table.scan().plan_files()]


def values(file: DataFile, name: str) -> list[Any]:
    data = pq.read_table(file.file_path.removeprefix("file://"), partitioning=None)
    return data.column(name).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types


def test_the_mode_follows_from_the_table_unless_it_is_said(catalog: Catalog) -> None:
    schema = "id bigint, p int"
    cases: list[tuple[Any, Any, str | None, str]] = [
        (None, None, None, "none"),
        (["p"], None, None, "hash"),
        (None, ["id"], None, "range"),
        (["p"], ["id"], None, "range"),
        (["p"], ["id"], "hash", "hash"),
        (["p"], None, "none", "none"),
        (["p"], None, "range", "range"),
        (None, None, "hash", "none"),
        (None, None, "range", "none"),
    ]
    for place, (spec, order, mode, expected) in enumerate(cases):
        properties = {} if mode is None else {MODE: mode}
        table = catalog.create_table(
            f"db.t{place}", schema, partition_spec=spec, sort_order=order, properties=properties
        )
        if mode == "range" and spec:
            expected = "range"
        assert distribution_of(table.metadata).mode == expected
    with pytest.raises(InvalidPropertyError, match=r"write\.distribution-mode"):
        distribution_of(catalog.create_table("db.bad", schema, properties={MODE: "zigzag"}).metadata)


@pytest.mark.parametrize("codec", ["zstd", "brotli"])
def test_hash_makes_one_file_of_a_partition_and_none_one_of_each_task(spark: Any, catalog: Catalog, codec: str) -> None:
    frame = spark.range(40, numPartitions=4).selectExpr("id", "cast(id % 3 as int) p")
    counts = {}
    for mode in ("none", "hash"):
        properties = {MODE: mode, "write.parquet.compression-codec": codec}
        table = catalog.create_table(f"db.{mode}", "id bigint, p int", partition_spec=["p"], properties=properties)
        table.append(frame)
        assert table.scan().count() == 40
        counts[mode] = len(files_of(table))
    assert counts == {"none": 12, "hash": 3}


@pytest.mark.parametrize("fewest", ["", "1"])
def test_hashed_rows_are_written_by_tasks_enough_unless_the_session_says_how_many(
    spark: Any, catalog: Catalog, fewest: str
) -> None:
    table = catalog.create_table("db.t", "id bigint, p int", partition_spec=["p"])
    # So few rows are one part otherwise.
    said = {"spark.sql.adaptive.coalescePartitions.minPartitionSize": "1b"} | ({FEWEST: fewest} if fewest else {})
    for key, value in said.items():
        spark.conf.set(key, value)
    try:
        table.append(spark.range(4_000).selectExpr("id", "cast(id % 8 as int) as p"))
        assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
        assert (spark.conf.get(FEWEST, None) or "") == fewest
    finally:
        for key in said:
            spark.conf.unset(key)
    names = [file.file_path.rpartition("/")[2] for file in files_of(table)]
    assert len(names) == 8
    tasks = {name.split("-")[1] for name in names}
    assert len(tasks) == 1 if fewest else len(tasks) > 2, names


def test_fanout_needs_no_sort(spark: Any, catalog: Catalog) -> None:
    properties = {MODE: "none", "write.spark.fanout.enabled": "true"}
    table = catalog.create_table("db.t", "id bigint, p int", partition_spec=["p"], properties=properties)
    table.append(spark.range(1000, numPartitions=1).selectExpr("id", "cast(id % 7 as int) p"))
    files = files_of(table)
    assert len(files) == 7
    for file in files:
        found = values(file, "id")
        assert found == sorted(found)
        assert {number % 7 for number in found} == {file.partition[0]}


FEW: dict[str, tuple[list[str], dict[str, str], int]] = {
    "buckets": (["bucket(5, p)"], {}, 0),
    "buckets and booleans": (["bucket(5, p)", "flag"], {MODE: "hash"}, 0),
    "several files each": (["bucket(2, p)"], {"write.target-file-size-bytes": "5000"}, 0),
    # One word of bits says which of 64 columns are null, so with those of the partition there are two.
    "many columns": (["bucket(5, p)"], {}, 61),
    "too many": (["bucket(200, p)"], {}, 0),
}
"""A spec, properties, and how many columns more there are."""


@pytest.mark.parametrize("case", FEW)
def test_fanout_holds_a_file_open_for_each_of_few_partitions(spark: Any, catalog: Catalog, case: str) -> None:
    """As Spark's own writer does without classes of ours: the same rows, in files of the same partitions."""
    spec, given, more = FEW[case]
    properties = {MODE: "none", "write.spark.fanout.enabled": "true"} | given
    rows = ["id", "if(id % 11 = 0, null, cast(id % 40 as int)) p", "nullif(id % 3, 2) = 1 flag"]
    rows += [f"if(id % {n + 2} = 0, null, id + {n}) c{n}" for n in range(more)]
    frame = spark.range(12_000, numPartitions=2).selectExpr(*rows)
    schema = ", ".join(f"{name} {kind}" for name, kind in frame.dtypes)
    found = {}
    for enabled in ("true", "false"):
        table = catalog.create_table(f"db.t{enabled}", schema, partition_spec=spec, properties=properties)
        with settings(spark, {"spark.icefloe.jvm.enabled": enabled}):
            table.append(frame)
            # Now the table tells how many rows make a file.
            table.append(frame)
        assert table.verify(level="data").ok
        files = sorted((repr(file.partition), file.record_count) for file in files_of(table))
        found[enabled] = files, sorted(map(repr, table.scan().to_arrow().to_pylist()))
    assert found["true"] == found["false"]
    partitions = {partition for partition, _ in found["true"][0]}
    assert (len(found["true"][0]) > 4 * len(partitions)) == (case == "several files each")


@pytest.mark.parametrize("codec", ["zstd", "brotli"])
def test_range_spreads_by_the_sort_order_and_files_are_sorted(spark: Any, catalog: Catalog, codec: str) -> None:
    table = catalog.create_table(
        "db.t",
        "id bigint, d double",
        sort_order=["d desc nulls last", "bucket(4, id)"],
        properties={"write.parquet.compression-codec": codec, "write.target-file-size-bytes": "2000"},
    )
    numbers = [math.nan, math.inf, -math.inf, 0.0, -0.0, None, *(float(n * 7919 % 1000) for n in range(1000))]
    frame = spark.createDataFrame(list(enumerate(numbers)), "id bigint, d double").repartition(3)
    table.append(frame)
    files = files_of(table)
    assert {file.sort_order_id for file in files} == {1}
    ranges = []
    for file in files:
        keys = [_key(value) for value in values(file, "d")]
        assert keys == sorted(keys, reverse=True)
        ranges.append((keys[-1], keys[0]))
    ranges.sort()
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))


def test_partitioned_files_are_sorted_too(spark: Any, catalog: Catalog) -> None:
    table = catalog.create_table(
        "db.t", "id bigint, p int, s string", partition_spec=["p"], sort_order=["s", "id desc"]
    )
    table.append(
        spark.range(500, numPartitions=3).selectExpr("id", "cast(id % 3 as int) p", "cast(id % 10 as string) s")
    )
    for file in files_of(table):
        pairs = list(zip(values(file, "s"), (-number for number in values(file, "id")), strict=True))
        assert pairs == sorted(pairs)
        assert len(set(values(file, "p"))) == 1


def _key(value: float | None) -> tuple[int, float, float]:
    """In the spec's order: NaN above all, -0.0 below 0.0, null last."""
    if value is None:
        return (-1, 0.0, 0.0)
    return (1, 0.0, 0.0) if math.isnan(value) else (0, value, math.copysign(1.0, value))


@pytest.mark.parametrize("mode", ["none", "range"])
def test_files_have_the_target_size_within_a_quarter(spark: Any, catalog: Catalog, mode: str) -> None:
    target = 1_000_000
    order = ["ts"] if mode == "range" else None
    properties = {"write.target-file-size-bytes": str(target)}
    table = catalog.create_table("db.t", EVENTS, sort_order=order, properties=properties)
    frame = events(spark, 400_000)
    for _ in range(2):
        # The first write learns the size of a row from its first rows, the second one from the table.
        before = {file.file_path for file in files_of(table)}
        table.append(frame)
        sizes = [file.file_size_in_bytes for file in files_of(table) if file.file_path not in before]
        full = sorted(sizes, reverse=True)[: max(1, len(sizes) - 2)]
        assert len(sizes) > 4
        assert all(0.75 * target <= size <= 1.25 * target for size in full), sizes
        assert max(sizes) <= 1.25 * target


EVENTS = "id bigint, user bigint, ts timestamptz, kind string, amount decimal(9, 2), score double"


def events(spark: Any, count: int) -> Any:
    """Rows as event streams have them: growing ids and times, few kinds, many users, random numbers."""
    frame = spark.range(count, numPartitions=2)
    return frame.select(
        "id",
        F.pmod(F.xxhash64("id"), F.lit(50_000)).alias("user"),
        F.timestamp_micros(
            F.lit(1_700_000_000_000_000) + F.col("id") * 20_000 + F.pmod(F.xxhash64("id"), F.lit(9999))
        ).alias("ts"),
        F.element_at(
            F.array(*map(F.lit, ("view", "click", "buy", "return"))),
            (F.pmod(F.xxhash64("id"), F.lit(4)) + 1).cast("int"),
        ).alias("kind"),
        (F.pmod(F.xxhash64(F.lit(1), "id"), F.lit(100_000)) / 100).cast("decimal(9,2)").alias("amount"),
        F.rand(7).alias("score"),
    )
