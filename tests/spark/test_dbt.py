"""The project in examples/dbt runs: dbt-spark by its session method, with a table, an incremental merge and tests."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-dbt" / "bin" / "python"


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="`make dbt` sets dbt up, in an environment of its own")
def test_the_project_runs(tmp_path: Path) -> None:
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    script = ROOT / "examples" / "dbt" / "run.py"
    done = subprocess.run(
        [PYTHON, script, tmp_path], capture_output=True, text=True, check=False, cwd=tmp_path, env=settings, timeout=280
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert done.stdout.count("Completed successfully") == 3
    assert "totals [{'region': 'eu', 'total': 25.0}, {'region': 'us', 'total': 20.0}]" in done.stdout
