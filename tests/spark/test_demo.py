"""The demo runs, and shows what it says: on the Spark that is running, and, among the slow tests, on the one that it starts."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.test_examples import EXAMPLES, run

ROWS = ("--rows", "60000")


def check(told: str) -> None:
    assert re.search(r"append +60,000 rows in 30 files", told)
    assert re.search(r"a query of two days .* 2 of \d+ files read", told)
    assert "40,000 late events" in told
    assert re.search(r"time travel +60,000 rows then", told)
    assert re.search(r"verify +clean", told)


def test_the_demo_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["demo.py", *ROWS])
    try:
        runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
    finally:
        spark.catalog.dropTempView("changes")
    check(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_demo_starts_a_spark_of_its_own(tmp_path: Path) -> None:
    check(run("demo.py", tmp_path, *ROWS))
