"""A program that writes and reads a table over Spark Connect, run by test_connect."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import icefloe
from icefloe.catalog import load_catalog
from icefloe.errors import IcefloeError
from icefloe.spark.session import Session

SECRET = "the quick brown fox"
"""What no file of an encrypted table shows."""


def refusal(call: Callable[[], Any]) -> str:
    """Why a call is not taken."""
    try:
        call()
    except IcefloeError as problem:
        return str(problem)
    return "it was taken"


def write(ice: Session) -> None:
    """Append, overwrite, and fail in ways that leave nothing."""
    spark = ice.spark
    frame = spark.range(10).selectExpr("id", "cast(id % 3 as int) p", "cast(null as string) u", "array('x') l")
    assert ice.write(frame).to("db.t").append() is not None
    one = spark.sql("select 100L id, 1 p, 'F79C3E09-677C-4BBD-A479-3F349CB785E7' u, array('y', null) l")
    ice.load_table("db.t").overwrite(one, "p = 1")
    for query, sentence in (
        ("select 'a' id", "column 'id' is string in the data; the table has long"),
        ("select cast(null as bigint) id, 1 p", "required column 'id' has 1 nulls"),
        ("select 1L id, 'x' u", "is no uuid"),
    ):
        assert sentence in refusal(partial(ice.load_table("db.t").append, spark.sql(query)))


def read(ice: Session) -> None:
    """Read the newest rows, chosen ones, those of a snapshot, and a join of two frames."""
    table = ice.load_table("db.t")
    before = table.metadata.current_snapshot_id
    table.delete("id = 5")
    assert ids(ice.table("db.t")) == [0, 2, 3, 6, 8, 9, 100]
    all_files = ice.reports[-1].counts.result_data_files
    assert ids(ice.table("db.t", snapshot_id=before)) == [0, 2, 3, 5, 6, 8, 9, 100]
    assert ids(ice.table("db.t", row_filter="p = 0").filter("id > 0")) == [3, 6, 9]
    assert ice.reports[-1].counts.result_data_files < all_files
    shown = ice.table("db.t", selected_fields=("u", "l", "_pos"), row_filter="id = 100").collect()
    assert [tuple(each) for each in shown] == [("f79c3e09-677c-4bbd-a479-3f349cb785e7", ["y", None], 0)]
    small = table.refresh().scan("id < 4").to_spark(ice.spark)
    assert ids(ice.table("db.t").join(small.select("id"), "id")) == [0, 2, 3]
    earlier = ice.spark.read.format("icefloe").option("snapshot-id", str(before)).load("db.t")
    assert ids(earlier.filter("p = 2")) == [2, 5, 8]
    assert "read.engine" in refusal(lambda: ice.table("db.t", options={"read.engine": "native"}))
    for call in (
        partial(ice.sql, "select * from db.t"),
        partial(ice.delete, "db.t", "id = 1"),
        partial(ice.merge, "db.t"),
    ):
        assert "no JVM" in refusal(call)


def stream(ice: Session, folder: str) -> None:
    """Stream what was appended into files; what needs a JVM is refused with the way out."""
    skipping = {f"streaming-skip-{kind}-snapshots": "true" for kind in ("delete", "overwrite")}
    rows = ice.spark.readStream.format("icefloe").options(**skipping).load("db.t")
    write = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    for _ in range(3):
        try:
            write.trigger(availableNow=True).start(f"{folder}/streamed").awaitTermination()
            break
        except StreamingQueryException as error:
            # Spark gives the process of a source ten seconds to start, which a busy machine may need.
            if "failed to connect back" not in str(error):
                raise
    assert ids(ice.spark.read.parquet(f"{folder}/streamed")) == list(range(10))
    for call in (partial(ice.read_stream, "db.t", changes=True), partial(ice.write_stream, rows)):
        assert "spark.readStream.format('icefloe') for rows that are appended" in refusal(call)
    changed = ice.changes("db.t").groupBy("_change_type").count().collect()
    assert {row["_change_type"] for row in changed} == {"INSERT", "DELETE"}


def encrypted(ice: Session) -> None:
    """Write and read an encrypted table; the keys of its files go with the tasks."""
    frame = ice.spark.range(5).selectExpr("id", f"concat('{SECRET} ', id) name")
    assert ice.write(frame).to("db.secret").append() is not None
    table = ice.table("db.secret")
    assert ids(table) == list(range(5))
    assert table.filter("id = 3").collect()[0]["name"] == f"{SECRET} 3"
    texts = table._explain_string(extended=True) if hasattr(table, "_explain_string") else ""
    assert SECRET not in texts


def ids(frame: DataFrame) -> list[int]:
    """The ids of a frame, in order."""
    return sorted(row["id"] for row in frame.select("id").collect())


def main(folder: str, server: str) -> None:
    """Write, read, then stream; what the table holds then is for the caller to look at."""
    spark = SparkSession.builder.remote(server).getOrCreate()
    keys = {"encryption.kms-type": "file", "encryption.kms-file": f"{folder}/keys.json"}
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse", **keys
    )
    ice = icefloe.connect(catalog, spark=spark)
    write(ice)
    read(ice)
    stream(ice, folder)
    encrypted(ice)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
