"""Makes the pictures of docs/ui.md: `python -m docs.page_pictures` builds a lake, starts the page, and takes them with Chromium."""

import datetime as dt
import json
import shutil
import socket
import threading
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import uvicorn
from playwright.sync_api import Page, sync_playwright

import icefloe
from icefloe.catalog import Catalog
from icefloe.table import Table
from icefloe.ui.app import create_app
from icefloe.ui.gate import LOOPBACK_NAMES, TokenGate
from icefloe.ui.site import Site

PICTURES = Path(__file__).parent / "pictures"
LAKE = Path("/tmp/lake")
COMMITS = 40
ROWS = 9_000
_START = dt.datetime.now(dt.UTC).replace(hour=6, minute=12, second=0, microsecond=0) - dt.timedelta(days=70)
_QUERY = """SELECT region, count(*) AS orders, round(avg(total), 2) AS mean
FROM shop.orders
WHERE placed >= DATE '2026-11-01'
GROUP BY region ORDER BY orders DESC"""
_SHOTS = {
    "overview": ("/t/lake/shop/orders", "light", 1180, 980),
    "overview-dark": ("/t/lake/shop/orders", "dark", 1180, 980),
    "snapshots": ("/t/lake/shop/orders/snapshots", "light", 1180, 980),
    "files": ("/t/lake/shop/orders/files?order=smallest", "light", 1180, 860),
    "partitions": ("/t/lake/shop/orders/partitions", "dark", 1180, 860),
    "bounds": ("/t/lake/shop/orders/columns?column=customer", "light", 1180, 760),
    "health": ("/t/lake/shop/orders/health", "light", 1180, 860),
    "changes": ("/t/lake/shop/orders/changes", "light", 1180, 860),
    "tree": ("/t/lake/shop/orders/tree", "light", 1180, 760),
    "query": (f"/t/lake/shop/orders/query?sql={quote(_QUERY)}", "light", 1180, 720),
    "narrow": ("/t/lake/shop/orders", "light", 420, 900),
}


def main() -> None:
    """Build, serve, take."""
    shutil.rmtree(LAKE, ignore_errors=True)
    LAKE.mkdir(parents=True)
    catalog = build()
    token = "0" * 32
    listener = socket.create_server(("127.0.0.1", 0))
    site = Site({"lake": catalog})
    app = create_app(site, TokenGate(token), hosts=LOOPBACK_NAMES)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    take(f"http://127.0.0.1:{listener.getsockname()[1]}", token)
    server.should_exit = True
    thread.join()
    site.close()


def take(address: str, token: str) -> None:
    """All pictures."""
    PICTURES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for name, (path, theme, width, height) in _SHOTS.items():
            context = browser.new_context(
                color_scheme="dark" if theme == "dark" else "light", viewport={"width": width, "height": height}
            )
            page = context.new_page()
            page.goto(f"{address}/?token={token}")
            _visit(page, address + path)
            if name == "tree":
                page.locator('.tree a[aria-expanded="false"]').first.click()
                page.wait_for_selector(".tree table")
            page.screenshot(path=PICTURES / f"{name}.png")
            context.close()
        browser.close()


def _visit(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("[data-reload]", state="detached", timeout=60_000)


def build() -> Catalog:
    """A lake with one busy table and some others."""
    catalog = icefloe.load_catalog(
        "lake", type="sql", uri=f"sqlite:///{LAKE / 'catalog.db'}", warehouse=str(LAKE / "warehouse")
    )
    catalog.create_namespace("shop")
    table = catalog.create_table(
        "shop.orders",
        schema="id long not null, customer long, region string, placed timestamptz, items int, total double, coupon string",
        partition_spec=["region", "months(placed)"],
        sort_order=["customer"],
        properties={
            "format-version": "3",
            "write.target-file-size-bytes": str(1 << 20),
            "write.delete.mode": "merge-on-read",
            "owner": "sales",
        },
    )
    for number in range(COMMITS):
        table.append(_rows(number))
        if number == 12:
            table.manage_snapshots().create_tag("end-of-quarter", _head(table)).commit()
        if number == 20:
            table.delete(f"id < {ROWS // 4}")
        if number == 24:
            table.maintenance.rewrite_data_files(where="region = 'eu'")
        if number == 33:
            table.manage_snapshots().create_branch("audit", _head(table)).commit()
            table.append(_rows(COMMITS + 1), branch="audit")
            with table.update_schema() as update:
                update.add_column("gift", "boolean", doc="whether it is wrapped")
    _age(table)
    return catalog


def _head(table: Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def _rows(number: int) -> pa.Table:
    random = np.random.default_rng(number)
    count = int(ROWS * (0.4 + 1.2 * random.random()))
    day = _START + dt.timedelta(days=number * 70 / COMMITS)
    seconds = np.sort(random.integers(0, 86_400, count))
    return pa.table(
        {
            "id": pa.array(np.arange(number * 20_000, number * 20_000 + count)),
            "customer": pa.array(np.sort(random.integers(number * 500, 20_000 + number * 500, count))),
            "region": pa.array(random.choice(["eu", "us", "apac", "latam"], count, p=[0.5, 0.3, 0.15, 0.05])),
            "placed": pa.array(
                [day + dt.timedelta(seconds=int(second)) for second in seconds], pa.timestamp("us", "UTC")
            ),
            "items": pa.array(random.integers(1, 12, count), pa.int32()),
            "total": pa.array(np.round(random.gamma(3.0, 30.0, count), 2)),
            "coupon": pa.array(random.choice(["spring", "loyal", None], count, p=[0.1, 0.1, 0.8])),
        }
    )


def _age(table: Table) -> None:
    """Make the commits as old as their rows: a history of seconds shows little."""
    location = table.refresh().metadata_location
    assert location is not None
    path = Path(location.removeprefix("file://"))
    document = json.loads(path.read_text())
    by_id, count = {}, len(document["snapshots"])
    for place, snapshot in enumerate(document["snapshots"]):
        moment = _START + dt.timedelta(days=place * 70 / count, minutes=(place * 37) % 300)
        snapshot["timestamp-ms"] = by_id[snapshot["snapshot-id"]] = int(moment.timestamp() * 1000)
    for entry in document["snapshot-log"]:
        entry["timestamp-ms"] = by_id[entry["snapshot-id"]]
    document["last-updated-ms"] = max(by_id.values())
    document["metadata-log"] = []
    path.write_text(json.dumps(document))


if __name__ == "__main__":
    main()
