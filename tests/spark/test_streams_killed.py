"""Streams that fail, and that are killed with their JVM, at every boundary of a micro-batch: each row is there exactly once."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from icefloe.spark.connect import connect
from tests.spark.conftest import missing_java
from tests.spark.use_streams import MODES, PLACES, Lake, run

PROJECT = Path(__file__).parents[2]
KILLS, FAILURES = 24, 4
"""Processes that are killed, and failures in each before: 120 restarts."""
pytestmark = pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))


def run_until_killed(folder: Path, seed: int, failures: int, last: str, *modes: str) -> list[str]:
    """Run the program, which kills itself and its Spark; where its queries failed."""
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"}
    program = subprocess.run(
        [sys.executable, "-m", "tests.spark.use_streams", str(folder), str(seed), str(failures), last, *modes],
        capture_output=True,
        cwd=folder,
        env=environment | {"PYSPARK_PYTHON": sys.executable},
        start_new_session=True,
        text=True,
        check=False,
    )
    assert program.returncode == -9, program.stderr[-5000:]
    return program.stdout.splitlines()


def check_exact(lake: Lake, spark: Any, *modes: str) -> None:
    """Every query goes on to its end, from its checkpoint: then the targets have their rows, and are whole."""
    ice = connect(lake.catalog, spark=spark.newSession())
    for mode in modes:
        assert run(ice, lake, mode) is None
        assert lake.rows(mode) == lake.expected(mode), mode
        assert lake.table(mode).verify(level="data").ok


def test_a_killed_stream_goes_on_exactly(spark: Any, tmp_path: Path) -> None:
    lake = Lake.open(tmp_path, 7)
    run_until_killed(tmp_path, 7, 1, "swapped", "append")
    lake.work()
    check_exact(lake, spark, "append")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_killed_streams_go_on_exactly(spark: Any, tmp_path: Path) -> None:
    lake, rng, failed = Lake.open(tmp_path, 1), random.Random(1), list[str]()
    lasts = [PLACES[number % len(PLACES)] for number in range(KILLS)]
    rng.shuffle(lasts)
    for seed, last in enumerate(lasts):
        failed += run_until_killed(tmp_path, seed, FAILURES, last, *MODES)
        for mode in MODES:
            assert lake.table(mode).verify(level="data").ok
        if seed % 5 == 4:
            check_exact(lake, spark, *MODES)
            for name in ("appended", "changed"):
                # What was read may expire.
                lake.table(name).maintenance.expire_snapshots(older_than=4_000_000_000_000, retain_last=1)
    check_exact(lake, spark, *MODES)
    assert len(failed) == KILLS * (FAILURES + 1)
    assert {line.split()[1] for line in failed} == set(PLACES)
