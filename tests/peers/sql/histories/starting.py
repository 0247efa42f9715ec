"""Starts both engines outside of pytest, with settings under which small statements are quick."""

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.peers.java import JavaPeer, find_java_peer
from tests.peers.sql.engines import Engines, Folders

QUICK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.log.level": "ERROR",
    # Statements are many and small: a second compiler of the JVM would only take time from them.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def start_spark() -> Any:
    """A session of two cores."""
    from pyspark.sql import SparkSession

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    os.environ["TZ"] = "UTC"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("icefloe-histories")
    for key, value in QUICK.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@contextmanager
def started() -> Iterator[Engines]:
    """Both engines, in a folder that goes with them."""
    found = find_java_peer()
    if isinstance(found, str):
        raise SystemExit(found)
    with tempfile.TemporaryDirectory(prefix="histories-", ignore_cleanup_errors=True) as folder:
        folders, spark = Folders(Path(folder)), start_spark()
        with JavaPeer(found, folders.java, folders.java_settings) as java:
            engines = Engines(folders, java, spark)
            try:
                yield engines
            finally:
                engines.close()
                spark.stop()
