"""Appends of a DataFrame to a table against plain `df.write.parquet` of the same rows, with the same codec and partitioning."""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import (
    DataFrame,
    SparkSession,
    functions as F,  # noqa: N812  # its usual name
)

from bench.report import Row, interleave
from icefloe.catalog import Catalog, load_catalog

ROWS = {"small": 100_000, "medium": 16_000_000, "full": 32_000_000}
REPEAT = 3
DAYS = 30
TASKS = 8
GOAL = 1.10
SCHEMA = "id bigint, user bigint, ts timestamptz, kind string, amount decimal(9, 2), score double"


def run(size: str) -> Iterator[Row]:
    """Unpartitioned, and by day; for the full size also with the rows of each day brought together first."""
    spark = spark_session()
    rows = ROWS[size]
    folder = tempfile.mkdtemp(prefix="icefloe-bench-")
    try:
        source = f"{folder}/source"
        _events(spark, rows).write.option("compression", "snappy").parquet(source)
        frame = spark.read.parquet(source)
        catalog = load_catalog("bench", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/w")
        catalog.create_namespace("db")
        # Both writers once with few rows, so that none is measured while Java still compiles it.
        _Case("warm", catalog, frame.filter("id < 10000"), folder, ["days(ts)"]).measure()
        yield _Case("unpartitioned", catalog, frame, folder).measure()
        yield _Case("by-day", catalog, frame, folder, ["days(ts)"]).measure()
        if size == "full":
            yield _Case("by-day-hash", catalog, frame, folder, ["days(ts)"], "hash").measure()
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


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


@dataclass(frozen=True)
class _Case:
    name: str
    catalog: Catalog
    frame: DataFrame
    folder: str
    spec: list[str] | None = None
    mode: str = "none"

    @property
    def place(self) -> Path:
        """Where plain files go."""
        return Path(self.folder) / f"plain-{self.name}"

    def measure(self) -> Row:
        """Append and write in turn, and see that the last of both hold the same rows."""
        table = self.catalog.create_table(
            ("db", self.name),
            SCHEMA,
            partition_spec=self.spec,
            properties={"write.distribution-mode": self.mode, "format-version": "3"},
        )
        seconds = interleave(lambda: table.append(self.frame), self._plain, REPEAT)
        spark = self.frame.sparkSession
        rows = _sums(spark.read.parquet(str(self.place)))
        ours = _sums(table.scan().to_spark(spark))
        if ours != [each * REPEAT for each in rows]:
            raise AssertionError(f"the table has {ours} after {REPEAT} appends, the files have {rows}")
        shutil.rmtree(self.place, ignore_errors=True)
        self.catalog.purge_table(("db", self.name))
        return Row(self.name, *seconds, GOAL, f"{rows[0]:,} rows; theirs is df.write.parquet, codec and folders alike")

    def _plain(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        given = self.frame.withColumn("day", F.to_date("ts")) if self.spec else self.frame
        given = given.hint("rebalance", "day") if self.mode == "hash" else given
        writer = given.write.option("compression", "zstd")
        (writer.partitionBy("day") if self.spec else writer).parquet(str(self.place))


def _sums(frame: DataFrame) -> list[Any]:
    """What tells rows apart, all of it exact."""
    [row] = frame.selectExpr("count(*)", "sum(id)", "sum(user)", "sum(amount)", "count(kind)").collect()
    return list(row)
