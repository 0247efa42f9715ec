"""The examples run, and show what they say; what the demo shows is in tests/spark/test_demo.py."""

import subprocess
import sys
from pathlib import Path

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
