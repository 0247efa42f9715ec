"""Maintenance on Spark that is killed: the driver before each of its steps, or all processes at once at any moment.

No row is lost, the next run finishes, and no file stays behind.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from icefloe import Table
from icefloe.catalog import Catalog, load_catalog
from icefloe.storage import Storage
from tests.catalog import faults
from tests.catalog.faults import Killed, Wire, WiredStorage, wired
from tests.maintenance.worn import (
    ALL_FILES,
    FUTURE,
    LEASE,
    NAME,
    SETTLED,
    check_whole,
    rows_in,
    unneeded_files,
    worn_table,
)
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


PROCEDURES: dict[str, Callable[[Table, Any], object]] = {
    "compact": lambda table, spark: table.maintenance.rewrite_data_files(options=ALL_FILES, engine=spark),
    "sort": lambda table, spark: table.maintenance.rewrite_data_files(
        sort_order="name, k", options={"rewrite-all": "true"}, engine=spark
    ),
    "convert equality deletes": lambda table, spark: table.maintenance.convert_equality_deletes(engine=spark),
    "rewrite position deletes": lambda table, spark: table.maintenance.rewrite_position_delete_files(
        ALL_FILES, engine=spark
    ),
    "expire snapshots": lambda table, spark: table.maintenance.expire_snapshots(
        older_than=FUTURE, retain_last=1, engine=spark
    ),
    "remove orphan files": lambda table, spark: table.maintenance.remove_orphan_files(engine=spark),
    "compute table stats": lambda table, spark: table.maintenance.compute_table_stats(engine=spark),
    "maintain": lambda table, spark: table.maintenance.maintain(SETTLED, engine=spark),
}


class DriverStorage(WiredStorage):
    """The wire of the driver; executors are other processes, with a storage of their own."""

    def __reduce__(self) -> tuple[type[Storage], tuple[()]]:
        return Storage, ()


def run_until(catalog: Catalog, procedure: str, spark: Any, number: int) -> int:
    """Run a procedure whose driver ends before a step that changes something; how many such steps there were."""
    wire = Wire(faults.KILL_BEFORE, number)
    killed = wired(catalog, wire)
    killed._storage = DriverStorage(wire)
    table = killed.load_table(NAME)
    wire.begin()
    with suppress(Killed):
        PROCEDURES[procedure](table, spark)
    return len(faults.KILL_BEFORE.places(wire.steps))


def new_catalog(folder: Path) -> Catalog:
    folder.mkdir()
    return load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/files")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_driver_killed_at_any_step_changes_no_row(procedure: str, version: int, spark: Any, tmp_path: Path) -> None:
    with closing(new_catalog(tmp_path / "whole")) as catalog:
        worn_table(catalog, version)
        count = run_until(catalog, procedure, spark, -1)
    assert count or procedure == "remove orphan files", "its files are too young to go"
    for number in range(count):
        with closing(new_catalog(tmp_path / str(number))) as catalog:
            table = worn_table(catalog, version)
            before = {ref: rows_in(table, ref) for ref in ("main", "dev")}
            run_until(catalog, procedure, spark, number)
            assert {ref: rows_in(table.refresh(), ref) for ref in ("main", "dev")} == before, number
            check_whole(table)
            # The process of the run lives on here, and only its table is dead.
            list(table.storage.delete([f"{table.location()}/metadata/{LEASE}"]))
            PROCEDURES[procedure](table, spark)
            assert {ref: rows_in(table.refresh(), ref) for ref in ("main", "dev")} == before, number
            check_whole(table)
