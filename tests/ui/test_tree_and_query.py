"""The metadata tree, level by level, and the box for queries: what they say is what metadata tables and scans say, and no more is read."""

from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser

import icefloe
from icefloe.partitioning import PartitionField
from icefloe.ui.pages import query as querying
from icefloe.ui.trees import entries_of, files_in, manifest_rows, manifests_of
from icefloe.versions import ALL_VERSIONS
from tests.ui.conftest import Served
from tests.ui.lake import orders
from tests.ui.test_pages import ORDERS, settled, visiting

FIELDS: dict[str, PartitionField] = {}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_levels_of_the_tree_are_those_of_the_metadata_tables(version: int, tmp_path: Path) -> None:
    with icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("n")
        properties = {"format-version": str(version), "commit.manifest-merge.enabled": "false"}
        table = catalog.create_table(
            "n.t", schema=orders(0, 1).schema, partition_spec=["region"], properties=properties
        )
        table.append(orders(0, 30))
        table.append(orders(30, 60))
        table.delete("id = 7")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        manifests = manifests_of(table, {})
        rows = manifest_rows(manifests, 0, 50)
        files = table.inspect.files()
        assert files_in(manifests) == files.num_rows
        seen = []
        for row in rows:
            part = entries_of(table, snapshot, row["path"], 0, 50, FIELDS)
            assert part.total == len(part.rows) == row["added"] + row["existing"] + row["deleted"]
            seen += [entry for entry in part.rows if entry["status"] != "deleted"]
            assert entries_of(table, snapshot, row["path"], 1, 1, FIELDS).rows == part.rows[1:2]
        theirs = files.select(["file_path", "record_count", "file_size_in_bytes"]).to_pylist()
        ours = [(entry["file_path"], entry["record_count"], entry["size"]) for entry in seen]
        assert sorted(ours) == sorted(
            (each["file_path"], each["record_count"], each["file_size_in_bytes"]) for each in theirs
        )
        assert {entry["partition"] for entry in seen} == {f"region={name}" for name in ("eu", "us", "apac")}


def test_a_manifest_is_opened_and_closed_in_the_tree(browser: Browser, served: Served) -> None:
    with visiting(browser, served, java_script_enabled=False) as page:
        page.goto(f"{served.url}{ORDERS}/tree")
        assert page.locator(".tree table").count() == 0
        page.locator('.tree a[aria-expanded="false"]').first.click()
        assert page.locator(".tree table tbody tr").count() > 0
        page.locator('.tree a[aria-expanded="true"]').click()
        assert page.locator(".tree table").count() == 0
        page.get_by_role("link", name="parent").click()
        assert "at=" in page.url


def test_manifests_of_other_snapshots_and_files_are_not_opened(served: Served) -> None:
    for path in ("/etc/passwd", "file:///etc/passwd", str(served.catalog.load_table("shop.orders").metadata_location)):
        answer = served.ask(f"{ORDERS}/tree?manifest={quote(path)}")
        assert answer.status_code == 404, path
        assert "has no manifest" in answer.text


def asked(served: Served, sql: str) -> str:
    """The page of a query; it is waited for."""
    while "data-reload" in (text := served.ask(f"{ORDERS}/query?sql={quote(sql)}").text):
        pass
    return text


def test_a_query_is_answered_over_tables_and_says_what_it_read(browser: Browser, served: Served) -> None:
    with visiting(browser, served) as page:
        settled(page, served, f"{ORDERS}/query")
        page.get_by_label("Query").fill(
            "SELECT count(*) AS n, max(o.id) AS top FROM shop.orders o JOIN lake.shop.orders@opening p ON o.id = p.id WHERE o.id < 150"
        )
        page.get_by_role("button", name="Run").click()
        page.wait_for_selector("table.grid")
        current = served.catalog.load_table("shop.orders")
        before = {row["id"] for row in current.scan(ref="opening").to_arrow().to_pylist()}
        both = [row["id"] for row in current.scan("id < 150").to_arrow().to_pylist() if row["id"] in before]
        assert page.locator("table.grid td").all_inner_texts() == [str(len(both)), str(max(both))]
        assert "where id < 150" in page.content().replace("&lt;", "<")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        'SELECT * FROM "/etc".passwd',
        'SELECT * FROM "file:///etc/passwd"',
        "SELECT * FROM sqlite_scan('/etc/passwd', 'x')",
        "SELECT * FROM duckdb_secrets()",
        "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')",
        "SELECT * FROM scans",
        "SELECT * FROM other.shop.orders",
        "COPY (SELECT 1) TO '/tmp/stolen'",
        "ATTACH '/tmp/stolen.db'",
        "INSTALL httpfs",
        "SET memory_limit = '64GB'",
        "SELECT 1; SELECT 2",
        "DELETE FROM shop.orders",
    ],
)
def test_queries_reach_nothing_but_tables(served: Served, sql: str) -> None:
    text = asked(served, sql)
    assert 'id="problem"' in text
    assert "root:" not in text
    assert not Path("/tmp/stolen").exists()


def test_queries_end_in_time_with_few_rows_and_little_memory(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "500 rows; there are more" in asked(served, "SELECT range FROM range(10000000)")
    monkeypatch.setattr(querying, "_MEMORY", "32MB")
    assert "Out of Memory" in asked(served, "SELECT list(range) FROM range(1000000000)")
    monkeypatch.setattr(querying, "SECONDS", 0.3)
    endless = "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
    assert "took longer than" in asked(served, endless)
    assert served.ask(f"{ORDERS}/query?sql={'x' * 25_000}").status_code == 400
