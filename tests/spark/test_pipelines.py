"""Tables in Spark Declarative Pipelines, which run over Spark Connect: what they read, and what is refused."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.catalog import load_catalog
from tests.spark.conftest import SPARK, missing_java
from tests.spark.processes import bare_environment

PROJECT = """
name: lake
libraries:
  - glob:
      include: transformations/**
storage: file://{folder}/storage
database: default
"""
READS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
place = {{"catalog": "lake", "catalog.type": "sql", "catalog.uri": "sqlite:///{folder}/catalog.db"}}


@dp.materialized_view
def totals():
    return spark.read.format("icefloe").options(**place).load("db.t").groupBy("part").count()


@dp.table
def even():
    return spark.readStream.format("icefloe").options(**place).load("db.t").where("id % 2 = 0")
"""
WRITES = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
place = {{"catalog": "lake", "catalog.type": "sql", "catalog.uri": "sqlite:///{folder}/catalog.db"}}
dp.create_sink(name="out", format="icefloe", options={{**place, "path": "db.t"}})


@dp.append_flow(target="out")
def copied():
    return spark.readStream.format("rate").load()
"""
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(missing_java() is not None, reason=str(missing_java())),
    pytest.mark.skipif(SPARK < (4, 1), reason="declarative pipelines begin with Spark 4.1"),
    pytest.mark.skipif(importlib.util.find_spec("yaml") is None, reason="spark-pipelines reads YAML"),
]


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": list(values), "part": [value % 3 for value in values]})


def run(folder: Path, flows: str) -> "subprocess.CompletedProcess[str]":
    """Run a pipeline of these flows, on a Spark of its own."""
    (folder / "transformations").mkdir(exist_ok=True)
    (folder / "spark-pipeline.yml").write_text(PROJECT.format(folder=folder))
    (folder / "transformations" / "flows.py").write_text(flows.format(folder=folder))
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/tables",
        "spark.sql.catalogImplementation": "in-memory",
    }
    given = [each for key, value in settings.items() for each in ("--conf", f"{key}={value}")]
    program = Path(sys.executable).with_name("spark-pipelines")
    environment: dict[str, Any] = {**bare_environment(), "PYSPARK_PYTHON": sys.executable}
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    return subprocess.run(
        [str(program), "run", *given],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )


def test_tables_are_read_as_batches_and_as_streams(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = load_catalog("lake", type="sql", uri=uri, warehouse=f"{tmp_path}/warehouse")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id bigint, part bigint")
    for values in ((1, 2, 3), (4, 5, 6, 8)):
        table.append(numbers(*values))
    # Once: Spark's catalog in memory forgets the pipeline's tables, and refuses their folders in a second run.
    done = run(tmp_path, READS)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    # In which folder depends on whether the Connect server that the pipeline starts takes the setting of its warehouse.
    (even,), (totals_folder,) = tmp_path.glob("*/even"), tmp_path.glob("*/totals")
    assert sorted(pq.read_table(even).column("id").to_pylist()) == [2, 4, 6, 8]
    totals = pq.read_table(totals_folder).to_pylist()
    assert sorted((row["part"], row["count"]) for row in totals) == [(0, 2), (1, 2), (2, 3)]


def test_tables_are_no_sinks(tmp_path: Path) -> None:
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse"
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "timestamp timestamp, value bigint")
    done = run(tmp_path, WRITES)
    assert done.returncode != 0
    assert "reads tables, and writes none" in done.stdout + done.stderr
    assert not table.refresh().snapshots()
