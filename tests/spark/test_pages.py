"""The Python of pages about Spark runs, on the session of the suite."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import icefloe
from tests.docs.pages import needs_spark, pages_with, run_python
from tests.docs.test_pages import surroundings

LONG = ("spark.md", "sql.md", "streaming.md")
"""Pages with many statements: `make test-slow` runs them."""
PAGES = [page for page in pages_with("python") if needs_spark(page)]


@pytest.fixture
def names(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What every page has, and a session that knows the catalog."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    uri, house = f"sqlite:///{tmp_path}/docs.db", tmp_path / "lake"
    with icefloe.load_catalog("lake", type="sql", uri=uri, warehouse=house) as catalog:
        made = surroundings(catalog)
        yield {**made, "spark": spark, "ice": icefloe.connect(catalog, spark=spark)}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow if page.name in LONG else ()) for page in PAGES],
    ids=lambda page: page.name,
)
def test_python_runs(names: dict[str, Any], page: Path) -> None:
    assert run_python(page, names) > 0
