"""The examples run, and show what they say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=280)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_plain_python_runs_twice_in_one_place(tmp_path: Path) -> None:
    for _ in range(2):
        told = run("plain_python.py", tmp_path)
        assert "appended  480 rows in 20 files" in told
        assert "queried   43 rows from 2 of the files" in told
        assert "changed   478 rows; 20 of them in apac" in told


@pytest.mark.skipif(shutil.which("java") is None, reason="the demo runs on Spark, which needs Java")
def test_the_demo_runs(tmp_path: Path) -> None:
    told = run("demo.py", tmp_path, "--rows", "60000")
    assert re.search(r"append +60,000 rows in 30 files", told)
    assert re.search(r"a query of two days .* 2 of \d+ files read", told)
    assert "40,000 late events" in told
    assert re.search(r"time travel +60,000 rows then", told)
    assert re.search(r"verify +clean", told)
