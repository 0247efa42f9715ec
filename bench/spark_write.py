"""Appends of a DataFrame to a table against plain `df.write.parquet` of the same rows, with the same codec and partitioning."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from bench.report import Row, interleave
from icefloe.catalog import Catalog, load_catalog

ROWS = {"small": 500_000, "medium": 4_000_000, "full": 16_000_000}
DAYS = 30
TASKS = 8
GOAL = 1.10
SCHEMA = "id bigint, user bigint, ts timestamptz, kind string, amount decimal(9, 2), score double"


def run(size: str) -> list[Row]:
    """Unpartitioned, and by day without and with rows brought together; the source is a Parquet data set."""
    spark = spark_session()
    rows = ROWS[size]
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        source = f"{folder}/source"
        _events(spark, rows).write.option("compression", "snappy").parquet(source)
        frame = spark.read.parquet(source)
        catalog = load_catalog("bench", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/w")
        catalog.create_namespace("db")
        try:
            return [
                _measure("unpartitioned", catalog, frame, folder, None, "none", rows),
                _measure("by-day", catalog, frame, folder, ["days(ts)"], "none", rows),
                _measure("by-day-hash", catalog, frame, folder, ["days(ts)"], "hash", rows),
            ]
        finally:
            spark.stop()


def spark_session() -> SparkSession:
    return (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", str(TASKS))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .getOrCreate()
    )


def _events(spark: SparkSession, rows: int) -> DataFrame:
    step = DAYS * 86_400_000_000 // rows
    start = 1_700_006_400_000_000
    kinds = F.array(*map(F.lit, ("view", "click", "buy", "return")))
    # The bits of a hash spread days over all tasks, as late and shuffled events do.
    place = F.pmod(F.xxhash64("id"), F.lit(rows))
    return spark.range(rows, numPartitions=TASKS).select(
        "id",
        F.pmod(F.xxhash64(F.lit(1), "id"), F.lit(1_000_000)).alias("user"),
        F.timestamp_micros(F.lit(start) + place * F.lit(step)).alias("ts"),
        F.element_at(kinds, (F.pmod(F.xxhash64(F.lit(2), "id"), F.lit(4)) + 1).cast("int")).alias("kind"),
        (F.pmod(F.xxhash64(F.lit(3), "id"), F.lit(100_000)) / 100).cast("decimal(9,2)").alias("amount"),
        F.rand(7).alias("score"),
    )


def _measure(case: str, catalog: Catalog, frame: DataFrame, folder: str, spec: Any, mode: str, rows: int) -> Row:
    name = case.replace("-", "_")
    table = catalog.create_table(
        f"db.{name}", SCHEMA, partition_spec=spec, properties={"write.distribution-mode": mode, "format-version": "3"}
    )
    place = Path(folder) / f"plain-{name}"

    def ours() -> None:
        table.append(frame)

    def theirs() -> None:
        shutil.rmtree(place, ignore_errors=True)
        given = frame.withColumn("day", F.to_date("ts")) if spec else frame
        given = given.hint("rebalance", "day") if mode == "hash" else given
        writer = given.write.option("compression", "zstd")
        (writer.partitionBy("day") if spec else writer).parquet(str(place))

    ours()
    theirs()
    seconds = interleave(ours, theirs)
    shutil.rmtree(place, ignore_errors=True)
    assert table.scan().count() % rows == 0
    return Row(case, *seconds, GOAL, f"{rows:,} rows; theirs is df.write.parquet with the same codec and partitions")
