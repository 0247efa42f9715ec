"""Shredded variants that Java Iceberg and we write to one table: both read all of them, and bounds mean the same."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icefloe.table import Table
from icefloe.variant import VariantKind, variant_bounds_of
from tests.formats.test_variant_splitting import plain
from tests.peers.engines import ours
from tests.peers.lake import Lake
from tests.peers.scenarios import Read, is_shredded
from tests.peers.test_java_writes import clean, with_lineage

SHRED = {"write.parquet.shred-variants": "true"}
ROWS: list[Any] = [
    *({"a": 1000 + i, "b": f"text {i}", "d": Decimal(i) / 4, "o": {"x": i * 1.5, "y": [i, "z"]}} for i in range(12)),
    {"a": "none", "more": {"deep": [None, True]}},
    {"b": None},
    {},
    [1, {"a": 2}],
    5,
    None,
    ...,
]


def bounds_of(table: Table, side: str) -> dict[str, Any]:
    """The bounds of the column `v` in the file with the most rows."""
    file = max(table.inspect.files().to_pylist(), key=lambda each: each["record_count"])
    found = dict(file[side] or ())
    return variant_bounds_of(found[2]) if 2 in found else {}


def same(lake: Lake, table: Table) -> list[Any]:
    """What both find in the column, numbers by their value."""
    shown = [
        None if text is None else json.loads(text) for text in ours(table, Read(())).sort_by("id")["v"].to_pylist()
    ]
    found = lake.java.rows(f"SELECT id, to_json(v) AS v FROM {lake.their_name(table)} ORDER BY id")
    assert shown == [None if each["v"] is None else json.loads(each["v"]) for each in found]
    return shown


@pytest.mark.parametrize("version", with_lineage)
def test_java_reads_ours_and_goes_on(lake: Lake, version: int) -> None:
    # Java's vectorized reader refuses files with shredded variants, its own among them, in scans of other columns, too.
    rows = {"read.parquet.vectorization.enabled": "false", "write.delete.mode": "merge-on-read"}
    table = lake.create(version, "id long, v variant", properties={**SHRED, **rows})
    table.append(pa.table({"id": pa.array(range(len(ROWS)), pa.int64()), "v": plain(ROWS)}))
    assert all(is_shredded(task.file.file_path) for task in table.scan().plan_files())
    assert len(same(lake, table)) == len(ROWS)
    there = lake.their_name(table)
    for path, kind, value in (("$.a", "bigint", 1003), ("$.b", "string", "text 3"), ("$.o.x", "double", 4.5)):
        wanted = f"'{value}'" if kind == "string" else value
        text = f"SELECT id FROM {there} WHERE try_variant_get(v, '{path}', '{kind}') = {wanted}"
        assert [each["id"] for each in lake.java.rows(text)] == [3]
    lake.java.sql(f"DELETE FROM {there} WHERE id IN (0, 14)")
    lake.java.sql(f"INSERT INTO {there} SELECT id + 100, v FROM {there}")
    table.refresh()
    assert len(same(lake, table)) == 2 * (len(ROWS) - 2)
    table.append(pa.table({"id": pa.array([500], pa.int64()), "v": plain([{"a": 5, "c": 1}])}))
    lake.java.sql(
        f"CALL peers.system.rewrite_data_files('{'.'.join(table.name())}', options => map('rewrite-all', 'true'))"
    )
    assert len(same(lake, table.refresh())) == 2 * (len(ROWS) - 2) + 1
    clean(table)


@pytest.mark.parametrize("version", with_lineage)
def test_bounds_are_those_of_java(lake: Lake, version: int) -> None:
    rows = [{"a": 100_000 + i, "b": "z" * 20, "d": Decimal(1000 + i) / 100, "o": {"x": "p"}} for i in range(20)]
    table = lake.create(version, "id long, v variant", properties=SHRED)
    table.append(pa.table({"id": pa.array(range(20), pa.int64()), "v": plain(rows)}))
    other = lake.create(version, "id long, v variant", properties=SHRED)
    lake.java.sql(f"INSERT INTO {lake.their_name(other)} SELECT /*+ COALESCE(1) */ * FROM {lake.their_name(table)}")
    other.refresh()
    for side in ("lower_bounds", "upper_bounds"):
        mine, theirs = bounds_of(table, side), bounds_of(other, side)
        assert sorted(mine) == ["$['a']", "$['b']", "$['d']", "$['o']['x']"]
        assert {path: bound.value for path, bound in mine.items()} == {
            path: bound.value for path, bound in theirs.items()
        }
        assert mine["$['a']"].kind is VariantKind.INT64
    assert bounds_of(table, "upper_bounds")["$['b']"].value == "z" * 15 + "{"
    clean(other)
