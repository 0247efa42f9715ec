"""A job as people have it for Iceberg's jar, settings and all, with one line more: `icefloe.connect`. Not a test by itself."""

import sys

from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812 - its usual name
)

import icefloe


def main(warehouse: str) -> None:
    """Run it."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        .config("spark.sql.catalog.local", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.local.type", "hadoop")
        .config("spark.sql.catalog.local.warehouse", warehouse)
        .config("spark.sql.defaultCatalog", "local")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    icefloe.connect(spark=spark, drop_in=True)

    spark.sql("CREATE NAMESPACE IF NOT EXISTS shop")
    spark.sql("CREATE TABLE shop.orders (id bigint, day date) USING iceberg PARTITIONED BY (months(day))")
    frame = spark.range(10).withColumn("day", F.to_date(F.lit("2024-02-03")))
    frame.writeTo("shop.orders").append()
    frame.write.mode("append").saveAsTable("local.shop.orders")
    frame.createOrReplaceTempView("fresh")
    spark.sql(
        "MERGE INTO shop.orders t USING (SELECT DISTINCT * FROM fresh WHERE id < 2) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    spark.sql("USE shop")
    assert spark.table("orders").count() == 16
    assert spark.sql("SELECT * FROM fresh JOIN orders USING (id)").count() == 16
    assert spark.catalog.currentCatalog() == "local"
    assert [each.name for each in spark.catalog.listTables() if not each.isTemporary] == ["orders"]
    assert spark.read.format("iceberg").load("shop.orders.snapshots").count() == 3
    assert spark.sql("CALL local.system.ancestors_of('shop.orders')").count() == 3


if __name__ == "__main__":
    main(sys.argv[1])
