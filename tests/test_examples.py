"""The examples run, and show what they say."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_demo_runs_twice_in_one_place(tmp_path: Path) -> None:
    for _ in range(2):
        command = [sys.executable, str(EXAMPLES / "demo.py")]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
        assert "appended  480 rows in 20 files" in found.stdout
        assert "queried   43 rows from 2 of the files" in found.stdout
        assert "changed   478 rows; 20 of them in apac" in found.stdout
        assert found.stderr == ""
