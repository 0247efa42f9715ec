"""The code in the docs runs: Python among the same names, and command lines with what they print."""

import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from tests.cli.conftest import fill
from tests.docs.pages import ROOT, blocks, needs_spark, not_run, pages_with, run_console, run_python

PLAIN = [page for page in pages_with("python") if not needs_spark(page)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory and a home of its own."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "ICEFLOE_CONFIG", "PYICEBERG_HOME", "ICEFLOE_DEFAULT_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def orders() -> pa.Table:
    """A few rows of a shop."""
    import datetime as dt

    days = [dt.datetime(2026, 1, day, 12, tzinfo=dt.UTC) for day in range(1, 9)]
    return pa.table(
        {
            "id": pa.array(range(1, 9), pa.int64()),
            "region": ["eu", "us"] * 4,
            "total": [float(each * 10) for each in range(1, 9)],
            "ts": pa.array(days, pa.timestamp("us", tz="UTC")),
            "day": pa.array([each.date() for each in days], pa.date32()),
        }
    )


def surroundings(catalog: Any) -> dict[str, Any]:
    """The names that every page has: a catalog, a table of orders in it, and rows for it."""
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.orders", orders().schema, properties={"format-version": "3"})
    table.append(orders())
    return {"__name__": "page", "icefloe": icefloe, "pa": pa, "catalog": catalog, "table": table, "rows": orders()}


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: page.name)
def test_python_runs(page: Path, tmp_path: Path) -> None:
    uri, house = f"sqlite:///{tmp_path}/docs.db", tmp_path / "lake"
    with icefloe.load_catalog("lake", type="sql", uri=uri, warehouse=house) as catalog:
        assert run_python(page, surroundings(catalog)) > 0


@pytest.mark.parametrize("page", pages_with("console"), ids=lambda page: page.name)
def test_command_lines_print_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "<!-- filled lake -->" in page.read_text():
        fill(tmp_path)
    assert run_console(page) > 0


def test_what_is_not_run_has_a_reason() -> None:
    assert all(len(block.reason or "") > 10 for block in not_run())
    assert len(not_run()) <= 20, [str(block) for block in not_run()]


def test_every_page_that_has_spark_blocks_says_so() -> None:
    for page in pages_with("python"):
        text = "\n".join(each.text for each in blocks(page) if each.kind == "python" and each.reason is None)
        assert needs_spark(page) or not ("ice." in text.replace("office.", "") or "icefloe.connect(" in text), page


def test_pages_are_in_the_navigation() -> None:
    """Every page is in `mkdocs.yml`, and nothing else."""
    import yaml

    def listed(node: Any) -> set[str]:
        if isinstance(node, str):
            return {node}
        return {path for each in (node.values() if isinstance(node, dict) else node) for path in listed(each)}

    named = listed(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    pages = {page.name for page in ROOT.glob("docs/*.md")}
    assert named == pages | {"changelog.md", "contributing.md", "security.md", "decisions"}


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical, of the extra `docs`, is not installed")
    from docs.site import build

    site = build(tmp_path / "source", tmp_path / "site")
    assert (site / "start" / "index.html").exists()
    assert "icefloe" in (site / "llms.txt").read_text()
    assert (site / "start.md").exists()
