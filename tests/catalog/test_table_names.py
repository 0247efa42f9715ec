"""Which table, and which snapshot of it, a text means."""

import datetime as dt
import uuid

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import icefloe
from icefloe.catalog import TableName, choose_version, load_static_table, parse_table_name, read_time, show_table
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, UnsupportedOperationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop.orders", TableName(("shop", "orders"))),
        ("a.b.orders", TableName(("a", "b", "orders"))),
        ("lake.shop.orders", TableName(("shop", "orders"), "lake")),
        ("LAKE.shop.orders@main", TableName(("shop", "orders"), "lake", version="main")),
        ("lake.orders", TableName(("lake", "orders"))),
        ("shop.orders@2026-11-01T00:00Z", TableName(("shop", "orders"), version="2026-11-01T00:00Z")),
        ('shop."a@b"@tag', TableName(("shop", "a@b"), version="tag")),
        ('shop."a@b"', TableName(("shop", "a@b"))),
        ("s3://b/t", TableName(location="s3://b/t")),
        ("s3://b/t@12", TableName(location="s3://b/t", version="12")),
        ("abfss://box@account/t", TableName(location="abfss://box@account/t")),
        ("/data/t/metadata/v3.metadata.json", TableName(location="/data/t/metadata/v3.metadata.json")),
        ("t@x/metadata/v3.metadata.json", TableName(location="t@x/metadata/v3.metadata.json")),
        ("./t", TableName(location="./t")),
    ],
)
def test_texts(text: str, expected: TableName) -> None:
    assert parse_table_name(text, ["lake", "other"]) == expected


@pytest.mark.parametrize("text", ["orders", "", "shop.orders@", "shop..orders", "/data/t@"])
def test_bad_texts(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_table_name(text)


PARTS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1).filter(
    lambda part: part == part.strip()
)


@given(st.lists(PARTS, min_size=2, max_size=3))
def test_names_that_are_shown_are_read_back(parts: list[str]) -> None:
    shown = show_table(tuple(parts))
    if "/" not in shown and "\n" not in shown and not shown.endswith((".metadata.json", ".metadata.json.gz")):
        assert parse_table_name(shown).identifier == tuple(parts)


def test_versions() -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://names/{uuid.uuid4()}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", "id long")
    table.append(pa.table({"id": [1]}))
    first = table.current_snapshot()
    assert first is not None
    table.manage_snapshots().create_tag("2026").commit()
    table.append(pa.table({"id": [2]}))
    metadata = table.metadata
    assert choose_version(metadata, None) == {}
    assert choose_version(metadata, "2026") == {"ref": "2026"}
    assert choose_version(metadata, str(first.snapshot_id)) == {"snapshot_id": first.snapshot_id}
    moment = dt.datetime.fromtimestamp(first.timestamp_ms / 1000, dt.UTC)
    assert choose_version(metadata, moment.isoformat()) == {"as_of": first.timestamp_ms}
    assert choose_version(metadata, moment.replace(tzinfo=None).isoformat()) == {"as_of": first.timestamp_ms}
    for wrong in ("none", "12", "2020-01-01T00:00Z"):
        with pytest.raises(NoSuchSnapshotError):
            choose_version(metadata, wrong)
    assert read_time("2026-11-01") == read_time("2026-11-01T00:00+00:00") == 1793491200000
    assert read_time("tomorrow") is None

    static = load_static_table(str(table.metadata_location))
    assert static.scan().count() == 2
    with pytest.raises(UnsupportedOperationError, match="which is read-only"):
        static.append(pa.table({"id": [3]}))
    assert table.refresh().scan().count() == 2
