"""A program that writes a table over Spark Connect, with a server of its own; run by test_write_connect."""

import sys

from pyspark.sql import DataFrame, SparkSession

from icefloe.catalog import load_catalog
from icefloe.errors import InvalidValueError
from icefloe.table import Table


def refusal(table: Table, frame: DataFrame) -> str:
    """Why the frame is not taken."""
    try:
        table.append(frame)
    except InvalidValueError as problem:
        return str(problem)
    return "it was taken"


def main(folder: str) -> None:
    """Write, overwrite and fail; what the table holds then is for the caller to look at."""
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    table = catalog.load_table("db.t")
    frame = spark.range(10).selectExpr("id", "cast(id % 3 as int) p", "cast(null as string) u", "array('x') l")
    assert table.append(frame) is not None
    one = spark.sql("select 100L id, 1 p, 'F79C3E09-677C-4BBD-A479-3F349CB785E7' u, array('y', null) l")
    table.overwrite(one, "p = 1")
    for query, sentence in (
        ("select 'a' id", "column 'id' is string in the data; the table has long"),
        ("select cast(null as bigint) id, 1 p", "required column 'id' has 1 nulls"),
        ("select 1L id, 'x' u", "is no uuid"),
    ):
        assert sentence in refusal(table, spark.sql(query))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
