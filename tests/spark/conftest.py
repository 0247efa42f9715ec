"""One Spark for all tests of a process; without a Java of 17 or newer the tests say so and are skipped."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyspark
import pytest

SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
"""The version of Spark that the tests run on."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """PySpark 4.0 leaves the socket of a `collect` to the garbage collector, so that is no failure there."""
    for item in items:
        if "tests/spark/" in item.path.as_posix() and SPARK < (4, 1):
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


def missing_java() -> str | None:
    """Why Spark cannot run here; None if it can."""
    program = shutil.which("java")
    if program is None:
        return "no Java is on the path; Spark needs 17 or newer"
    text = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', text)
    if found is None or int(found[1]) < 17:
        return f"Java is {found[1] if found else 'unknown'}; Spark needs 17 or newer"
    return None


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A quiet session of two cores, in UTC: local, or where `ICEFLOE_TEST_MASTER` says, such as `local-cluster[2,1,1024]`."""
    if (reason := missing_java()) is not None:
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    # Workers run the Python that the tests run in, whatever `python3` is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master(os.environ.get("ICEFLOE_TEST_MASTER", "local[2]"))
        .appName("icefloe-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
