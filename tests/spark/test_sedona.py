"""Predicates of Apache Sedona, by its own jar: they rule out files of tables with geometries, and find the rows that they find
without us. Sedona is made for one version of Spark each, so that a process of that version asks."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import missing_java
from tests.spark.use_sedona import PREDICATES, TILES

PROJECT = Path(__file__).parents[2]
SEDONA = Path(os.environ.get("ICEFLOE_SEDONA", PROJECT / ".venv-sedona"))
PYTHON = PROJECT / ".venv-spark-4.0.1" / "bin" / "python"
"""With the Spark that the jar is made for."""


def missing() -> str | None:
    if (reason := missing_java()) is not None:
        return reason
    if not list(SEDONA.glob("sedona-*.jar")) or not PYTHON.exists():
        return f"there is no Sedona at {SEDONA}, or no {PYTHON}: `make sedona` fetches both"
    return None


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    jars = ",".join(map(str, sorted(SEDONA.glob("*.jar"))))
    folder = tmp_path_factory.mktemp("sedona")
    done = subprocess.run(
        [PYTHON, "-m", "tests.spark.use_sedona", folder, jars],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("answers:")]
    assert lines, done.stdout[-2000:] + done.stderr[-6000:]
    found: dict[str, Any] = json.loads(lines[0].removeprefix("answers:"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", PREDICATES)
def test_the_same_rows_from_fewer_files(answers: dict[str, Any], name: str) -> None:
    answer = answers[name]
    assert answer["found"] == answer["expected"]
    if name.startswith("not pruned"):
        assert answer["files"] == TILES
    else:
        assert answer["files"] <= 2 < TILES
    if "ST_Crosses" not in name and "ST_Touches" not in name and "ST_Overlaps" not in name:
        assert answer["found"], "a predicate without rows shows little"
