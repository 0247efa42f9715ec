"""A stream of many micro-batches does not grow in memory: neither in Python nor in the JVM."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import missing_java

PROJECT = Path(__file__).parents[2]
BATCHES = 1000
MOST_GROWTH = 64 * 1024
"""KiB, from a fifth of the batches on; what a batch held on to would add up to more."""


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))
def test_a_stream_of_many_batches_does_not_grow(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.use_long_stream", str(tmp_path), str(BATCHES)],
        capture_output=True,
        cwd=tmp_path,
        env=environment | {"PYSPARK_PYTHON": sys.executable},
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    measured = [json.loads(line) for line in done.stdout.splitlines()]
    print(done.stdout)  # noqa: T201  # the numbers of docs/streaming.md
    assert [each["batches"] for each in measured] == list(range(BATCHES // 10, BATCHES + 1, BATCHES // 10))
    for kind in ("python", "heap"):
        early, late = measured[1][kind], measured[-1][kind]
        assert late - early < MOST_GROWTH, f"{kind} grew from {early} to {late} KiB"
