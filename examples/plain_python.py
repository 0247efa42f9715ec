"""Tables from plain Python, with no JVM: a SQLite catalog and a warehouse under ./icefloe-warehouse."""

import datetime as dt
from pathlib import Path

import pyarrow as pa

import icefloe
from icefloe.schema.types import StringType


def orders(first: int, count: int, region: str) -> pa.Table:
    """Some orders, one an hour from the start of 2026 on."""
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": [region] * count,
            "amount": [round(i * 1.1, 2) for i in ids],
            "ts": pa.array([start + dt.timedelta(hours=i) for i in ids], pa.timestamp("us", "UTC")),
        }
    )


def main() -> None:
    """Create a table, write, query, change, evolve and look back."""
    home = Path("icefloe-warehouse").absolute()
    home.mkdir(exist_ok=True)
    catalog = icefloe.load_catalog("demo", type="sql", uri=f"sqlite:///{home}/catalog.db", warehouse=str(home))
    catalog.create_namespace_if_not_exists("shop")
    if catalog.table_exists("shop.orders"):
        catalog.purge_table("shop.orders")
    table = catalog.create_table(
        "shop.orders",
        schema="id long not null, region string, amount double, ts timestamptz",
        partition_spec=["days(ts)"],
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    print(f"created   {table.location()}")

    table.append(orders(0, 240, "eu"))
    first = table.append(orders(240, 240, "us"))
    print(f"appended  {table.scan().count()} rows in {len(list(table.scan().plan_files()))} files")

    scan = table.scan("ts >= '2026-01-05' and ts < '2026-01-07' and amount > 110", ("id", "amount"))
    found = scan.to_arrow()
    print(f"queried   {found.num_rows} rows from {len(list(scan.plan_files()))} of the files")

    table.delete("id < 12")
    table.upsert(orders(470, 20, "apac"), join_cols=["id"])
    recent = table.scan("region = 'apac'")
    print(f"changed   {table.scan().count()} rows; {recent.count()} of them in apac")

    with table.update_schema() as update:
        update.add_column("note", StringType(), default_value="none")
        update.rename_column("amount", "total")
    print(f"evolved   {', '.join(field.name for field in table.schema().fields)}")
    print(f"old rows  {table.scan('id = 20').to_arrow().to_pylist()}")

    assert first is not None
    then = table.scan(snapshot_id=first.snapshot_id)
    print(f"as before {then.count()} rows, {', '.join(then.to_arrow().schema.names)}")
    for snapshot in table.snapshots():
        summary = snapshot.summary
        assert summary is not None
        print(
            f"          snapshot {snapshot.snapshot_id:>19}: {summary.operation}, {summary['total-records']} rows in files"
        )


if __name__ == "__main__":
    main()
