"""Runs in the Python of the Java peer: one Spark session that answers SQL texts, one JSON object a line.

It knows nothing of icefloe, and leaves when its input ends, so it never outlives the tests that started it.
"""

import base64
import json
import os
import sys
from typing import Any


def answer(spark: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The rows of a statement, as an Arrow stream in base64: exact values of all types."""
    import pyarrow as pa

    settings = request["conf"]
    before = {key: spark.conf.get(key, None) for key in settings}
    _configure(spark, settings)
    try:
        table = spark.sql(request["sql"]).toArrow()
    finally:
        _configure(spark, before)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {"arrow": base64.b64encode(sink.getvalue().to_pybytes()).decode()}


def _configure(spark: Any, settings: dict[str, str | None]) -> None:
    for key, value in settings.items():
        if value is None:
            spark.conf.unset(key)
        else:
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
    say({"version": spark.version})
    for line in sys.stdin:
        try:
            say(answer(spark, json.loads(line)))
        except Exception as error:  # noqa: BLE001 - any failure of a statement is an answer
            say({"error": f"{type(error).__name__}: {error}"})
    spark.stop()


if __name__ == "__main__":
    main()
