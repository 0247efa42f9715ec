"""A small lake that has something to see on every page: branches, tags, deletes, evolved columns, views, many files."""

import datetime as dt
from pathlib import Path

import pyarrow as pa

import icefloe
from icefloe.catalog import Catalog

HOSTILE = "<script>alert(1)</script>"
"""A name that would run if it were not escaped."""
SECRET = "hunter2-is-secret"


def make_lake(folder: Path) -> Catalog:
    """A catalog in SQLite with all of it."""
    catalog = icefloe.load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder / "warehouse")
    )
    catalog.create_namespace("shop", {"owner": "sales", "comment": "orders and who placed them"})
    catalog.create_namespace(("shop", "archive"))
    catalog.create_namespace("empty")
    _orders(catalog)
    _customers(catalog)
    catalog.create_table("shop.never_written", schema="id long, note string")
    catalog.views.create(
        "shop.big_orders",
        schema="id long, total double",
        sql="SELECT id, total FROM shop.orders WHERE total > 100",
    )
    _hostile(catalog)
    return catalog


def orders(first: int, last: int, day: int = 0) -> pa.Table:
    """Orders by number, of three regions, spread over days."""
    ids = range(first, last)
    start = dt.datetime(2026, 10, 1, tzinfo=dt.UTC)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": [("eu", "us", "apac")[number % 3] if number % 7 else "eu" for number in ids],
            "ts": pa.array(
                [start + dt.timedelta(days=day, seconds=number * 37) for number in ids], pa.timestamp("us", "UTC")
            ),
            "total": [round(number % 211 * 1.25 + 3, 2) for number in ids],
        }
    )


def _orders(catalog: Catalog) -> None:
    table = catalog.create_table(
        "shop.orders",
        schema="id long not null, region string, ts timestamptz, total double",
        partition_spec=["region", "days(ts)"],
        sort_order=["id"],
        properties={"format-version": "3", "write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"},
    )
    table.append(orders(0, 600))
    table.manage_snapshots().create_tag("opening", table.current_snapshot().snapshot_id).commit()  # type: ignore[union-attr]  # it was just written
    for number in range(1, 6):
        table.append(orders(number * 600, (number + 1) * 600, number))
    table.delete("id < 120")
    with table.update_schema() as update:
        update.add_column("coupon", "string", doc="what was taken off")
    table.manage_snapshots().create_branch("audit", table.current_snapshot().snapshot_id).commit()  # type: ignore[union-attr]  # likewise
    table.append(orders(4000, 4300, 6), branch="audit")
    table.append(orders(3600, 4000, 7).append_column("coupon", pa.array([None, "spring"] * 200, pa.string())))
    table.overwrite(orders(5000, 5100, 8), "region = 'apac' and id < 700")


def _customers(catalog: Catalog) -> None:
    table = catalog.create_table(
        "shop.customers",
        schema="id long, name string, home struct<city: string, zip: string>, tags list<string>",
        properties={"owner": "crm", "api.password": SECRET, "comment": "people"},
    )
    cities = ("Oslo", "Tromsø", "Nuuk", "Reykjavík")
    table.append(
        pa.table(
            {
                "id": pa.array(range(40), pa.int64()),
                "name": [f"customer {number}" for number in range(40)],
                "home": [{"city": cities[number % 4], "zip": f"{number:04}"} for number in range(40)],
                "tags": [["new"] if number % 2 else None for number in range(40)],
            },
            pa.schema(
                [
                    ("id", pa.int64()),
                    ("name", pa.string()),
                    ("home", pa.struct([("city", pa.string()), ("zip", pa.string())])),
                    ("tags", pa.list_(pa.string())),
                ]
            ),
        )
    )


def _hostile(catalog: Catalog) -> None:
    """Names that mean something to a browser, and one with a slash, dots and a question mark."""
    catalog.create_namespace((HOSTILE,))
    table = catalog.create_table(
        (HOSTILE, '"><img src=x onerror=alert(2)>'),
        schema=pa.schema([pa.field(HOSTILE, pa.string(), metadata={"doc": HOSTILE}), pa.field("a'b`c", pa.int64())]),
        properties={f"write.{HOSTILE}": HOSTILE, "comment": "<b>bold</b>"},
    )
    table.append(pa.table({HOSTILE: [HOSTILE, "javascript:alert(3)"], "a'b`c": pa.array([1, 2], pa.int64())}))
    catalog.create_table((HOSTILE, "a/b?c=d#e%2F.."), schema="id long")
