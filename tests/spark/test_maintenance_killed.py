"""Maintenance on Spark that is killed, driver and executors at once, at any moment: no row is lost, no file stays behind."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icefloe.catalog import load_catalog
from tests.maintenance.worn import FUTURE, check_whole, rows_in, unneeded_files, worn_table
from tests.spark.conftest import missing_java

KILLS = 6
PROJECT = Path(__file__).parents[2]


def run_and_kill(folder: Path, seconds: float) -> None:
    """Run the program, and kill it and all its processes so many seconds after it began to maintain."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"}
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.use_maintenance", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env=environment | {"PYSPARK_PYTHON": sys.executable},
        start_new_session=True,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    time.sleep(seconds)
    assert program.poll() is None, "it ended by itself"
    os.killpg(program.pid, signal.SIGKILL)
    program.wait(60)
    program.stdout.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))
@pytest.mark.parametrize("version", [2, 3])
def test_a_killed_driver_changes_no_row(version: int, tmp_path: Path) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"{tmp_path}/files"
    catalog = load_catalog("lake", type="sql", uri=uri, warehouse=warehouse)
    table = worn_table(catalog, version)
    before = {ref: rows_in(table, ref) for ref in ("main", "dev")}
    rng, start = random.Random(version), table.metadata.last_sequence_number
    for _ in range(KILLS):
        run_and_kill(tmp_path, rng.uniform(0.2, 8))
        assert {ref: rows_in(table.refresh(), ref) for ref in ("main", "dev")} == before
        check_whole(table)
    assert table.metadata.last_sequence_number > start, "nothing was done before it was killed"
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
    table.maintenance.remove_orphan_files(older_than=FUTURE, force=True)
    assert {ref: rows_in(table.refresh(), ref) for ref in ("main", "dev")} == before
    check_whole(table)
    assert unneeded_files(table) == set()
