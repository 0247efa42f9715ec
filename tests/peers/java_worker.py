"""Runs in the Python of the Java peer: one Spark session that answers SQL texts, one JSON object a line.

It knows nothing of icefloe, and leaves when its input ends, so it never outlives the tests that started it.
"""

import base64
import json
import os
import sys
import time
from typing import Any


def answer(spark: Any, request: dict[str, Any]) -> dict[str, Any]:
    """What a request asks for: the rows of one statement, or of several, a stream, or a session as it was at the start."""
    if "each" in request:
        return {"each": [attempt(spark, {"sql": text, "conf": {}}) for text in request["each"]]}
    if "reset" in request:
        _reset(spark, request["reset"])
        return {}
    if "stream" in request:
        return {"batches": _stream(spark, **request["stream"])}
    return _rows(spark, request)


def attempt(spark: Any, request: dict[str, Any]) -> dict[str, Any]:
    """An answer, or the error instead of it, and the seconds that it took."""
    start = time.monotonic()
    try:
        found = answer(spark, request)
    except Exception as error:  # noqa: BLE001 - any failure of a statement is an answer
        found = {"error": f"{type(error).__name__}: {error}"}
    return found | {"seconds": time.monotonic() - start}


def _rows(spark: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The rows of a statement, as an Arrow stream in base64: exact values of all types."""
    import pyarrow as pa

    settings = request["conf"]
    before = {key: spark.conf.get(key, None) for key in settings}
    _configure(spark, settings)
    try:
        table = collected(spark.sql(request["sql"]))
    finally:
        _configure(spark, before)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {"arrow": base64.b64encode(sink.getvalue().to_pybytes()).decode()}


def _stream(
    spark: Any, table: str, checkpoint: str, options: dict[str, str], to: str | None, fail_at: int | None
) -> list[list[Any]]:
    """What a stream of a table shows of the column `id`, batch by batch, until all is read or a batch fails; or into a table."""
    seen: list[list[Any]] = []

    def show(batch: Any, number: int) -> None:
        if number == fail_at:
            raise RuntimeError("as asked for")
        seen.append(sorted(row["id"] for row in batch.select("id").collect()))

    write = spark.readStream.options(**options).table(table).writeStream.trigger(availableNow=True)
    write = write.option("checkpointLocation", checkpoint)
    query = write.foreachBatch(show).start() if to is None else write.format("iceberg").toTable(to)
    try:
        query.awaitTermination()
    except Exception as error:
        if fail_at is None or "as asked for" not in str(error):
            raise
    return seen


def collected(frame: Any) -> Any:
    """The rows of a frame as an Arrow table. Its own `toArrow` fails at a variant that is null: it casts what Spark gives to
    the type that it has already, and PyArrow takes the parts below a null for nulls where none may be."""
    import pyarrow as pa

    return pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))


def _configure(spark: Any, settings: dict[str, str | None]) -> None:
    for key, value in settings.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def _reset(spark: Any, baseline: dict[str, str]) -> None:
    """Settings as they were, no cached tables, and Spark's own catalog as the current one."""
    spark.catalog.clearCache()
    spark.catalog.setCurrentCatalog("spark_catalog")
    now = dict(spark.conf.getAll)
    for key in now.keys() - baseline.keys():
        spark.conf.unset(key)
    for key, value in baseline.items():
        if now.get(key) != value:
            spark.conf.set(key, value)


def start(settings: dict[str, str]) -> Any:
    """A session with the settings that the tests want."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("icefloe-peers")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def main() -> None:
    """Answer until the input ends."""
    # The JVM writes to the standard output too: the answers get a descriptor of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(what: dict[str, Any]) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    spark = start(json.loads(sys.stdin.readline()))
    say({"version": spark.version, "settings": dict(spark.conf.getAll)})
    for line in sys.stdin:
        say(attempt(spark, json.loads(line)))
    spark.stop()


if __name__ == "__main__":
    main()
