"""A user's program, as a type checker sees it: `make check` checks it, nothing runs it."""

from typing import assert_type

import icefloe
from icefloe.catalog import View
from icefloe.metadata import Snapshot


def program() -> None:
    catalog = icefloe.load_catalog("lake")
    made = catalog.create_table(
        identifier="shop.orders", schema="id long", partition_spec=["id"], properties={"a": "b"}
    )
    assert_type(made, icefloe.Table)
    assert_type(catalog.create_table_transaction("shop.orders", "id long", None), icefloe.Transaction)
    assert_type(catalog.views.create("shop.v", "id long", "SELECT 1", default_catalog="lake"), View)
    table = catalog.load_table("shop.orders")
    assert_type(table, icefloe.Table)
    scan = table.scan("total > 5").select("id").filter("id < 9").use_ref("main").with_limit(3)
    assert_type(scan, icefloe.DataScan)
    assert_type(scan.count(), int)
    with table.transaction() as transaction:
        assert_type(transaction, icefloe.Transaction)
    assert_type(table.append([]), Snapshot | None)
    ice = icefloe.connect(catalog)
    assert_type(ice, icefloe.Session)
