"""Scripts that are written for PyIceberg run unchanged: the same script, by PyIceberg's documented calls, with both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("script.py")


def run(*line: str) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *line], capture_output=True, text=True, check=False, timeout=250, env=settings
    )


def test_a_script_runs(tmp_path: Path) -> None:
    done = run("-m", "icefloe.compat", str(SCRIPT), str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.slow
def test_pyiceberg_runs_the_same_script(tmp_path: Path) -> None:
    done = run("-W", "ignore", str(SCRIPT), str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_real_one_is_not_replaced_behind_its_back() -> None:
    done = run("-c", "import pyiceberg, icefloe.compat.pyiceberg")
    assert "PyIceberg itself is already imported" in done.stderr
    done = run("-c", "import icefloe.compat.pyiceberg as a; import pyiceberg.io.pyarrow")
    assert "pyiceberg.io" in done.stderr
