"""Steps of maintenance as jobs of Spark."""

import datetime as dt
import time
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession, functions

from icefloe import load_catalog
from icefloe.maintenance import engine_of
from icefloe.spark.maintenance.spreading import frame_of_items
from icefloe.sql.procedures import call


def test_each_item_has_a_task_of_its_own(spark: SparkSession) -> None:
    placed = frame_of_items(spark, range(7)).select(functions.spark_partition_id()).collect()
    assert sorted(row[0] for row in placed) == list(range(7))


def test_items_are_mapped_by_tasks(spark: SparkSession) -> None:
    items = [f"{number:03}" for number in range(200)]
    for engine in (spark, "spark"):
        assert sorted(engine_of(engine).map(int, items)) == list(range(200))
    assert list(engine_of(spark).map(int, [])) == []


def test_files_are_looked_for_and_deleted_by_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Few files would be read and deleted here.
    monkeypatch.setattr("icefloe.maintenance.engines.WORTH_A_JOB", 0)
    monkeypatch.setattr("icefloe.maintenance.files.deleting._FEW", 0)
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "files")
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT, p BIGINT", partition_spec=["p"])
    for number in range(3):
        table.overwrite(pa.table({"id": [number, 9], "p": [number, 7]}))
    future = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
    done = table.maintenance.expire_snapshots(older_than=future, engine=spark)
    assert (done.deleted_data_files_count, done.deleted_manifest_lists_count, done.failed) == (
        4,
        len(done.snapshot_ids),
        (),
    )
    orphans = [f"{table.location()}/data/p={number}/x.parquet" for number in range(3)]
    for orphan in orphans:
        table.storage.write(orphan, b"xyz")
    shown = table.maintenance.remove_orphan_files(future, force=True, engine=spark, dry_run=True)
    assert sorted(shown.orphan_file_location.to_pylist()) == orphans
    rows = [(orphans[0], dt.datetime(2020, 1, 1))]
    spark.createDataFrame(rows, "file_path STRING, last_modified TIMESTAMP").createOrReplaceTempView("listed_files")
    arguments = {"table": "db.t", "file_list_view": "listed_files"}
    assert call(catalog, "remove_orphan_files", [], arguments, engine=spark).to_pylist() == [
        {"orphan_file_location": orphans[0]}
    ]
    assert table.maintenance.remove_orphan_files(future, force=True, engine=spark).count == 2
    assert not any(map(table.storage.exists, orphans))
    assert table.verify(level="data").ok


def _while_it_runs(_: int) -> tuple[float, float]:
    begun = time.time()
    time.sleep(0.5)
    return begun, time.time()


def test_tasks_run_at_the_same_time(spark: SparkSession) -> None:
    times = list(engine_of(spark).map(_while_it_runs, range(6)))
    assert any(one[0] < other[1] and other[0] < one[1] for one, other in combinations(times, 2))
