"""Every benchmark runs at its small size, and its checks of results hold; how long it takes is no matter here."""

import importlib
import math
import subprocess
import sys

import pytest

from bench.__main__ import AGAINST_JAVA, names
from bench.report import Row, shown

HEAVY = {
    "commits",
    "inspection",
    "manifests",
    "metadata_json",
    "planning",
    "rows",
    "scaling",
    "spark_merge",
    "spark_scan",
    "spark_write",
    "transforms",
    "ui",
    "variants",
    *AGAINST_JAVA,
}
"""These start several processes, or take ten seconds or more each: `make test-slow` runs them."""
PLAIN = sorted(set(names()) - HEAVY)

_IN_A_PROCESS = """
import importlib, sys
from bench.report import shown
name = sys.argv[1]
for row in importlib.import_module(f"bench.{name}").run("small"):
    print(shown(name, row))
"""


def cases(name: str) -> int:
    """How many cases a benchmark has, run in a process of its own."""
    found = subprocess.run([sys.executable, "-c", _IN_A_PROCESS, name], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-4000:]
    return sum(line.startswith(f"{name}/") for line in found.stdout.splitlines())


@pytest.mark.parametrize("name", PLAIN)
def test_a_benchmark_runs(name: str) -> None:
    rows = list(importlib.import_module(f"bench.{name}").run("small"))
    assert len({row.case for row in rows}) == len(rows) > 0
    assert all(0 < row.ratio < math.inf for row in rows), rows


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", sorted(HEAVY))
def test_a_heavy_benchmark_runs(name: str) -> None:
    assert cases(name) > 0


def test_a_row_says_what_was_measured() -> None:
    row = Row("case", 1.0, 2.0, 0.4, "so many rows")
    assert shown("bench", row) == ("bench/case: ratio 0.5 goal 0.4 short  [ours 1 s, theirs 2 s, 2x]  (so many rows)")
