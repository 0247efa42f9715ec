"""Changes of random histories: those from one snapshot to another, applied to the rows of the one, give the rows of the other."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as s

from icefloe.catalog import load_catalog
from icefloe.planning import ChangeType
from icefloe.schema.reserved import ROW_ID as ROW_ID_FIELD
from icefloe.streaming import Limits, Offset, StreamSteps, TableFiles, offset_from_text, stream_settings
from icefloe.table import ChangesScan, Table
from icefloe.versions import ALL_VERSIONS, Feature, allows

Row: TypeAlias = tuple[int, int]
Rows: TypeAlias = "Counter[Row]"
ROW_ID = ROW_ID_FIELD.name
GONE = (ChangeType.DELETE, ChangeType.UPDATE_BEFORE)

keys = s.integers(0, 7)
rows = s.lists(s.tuples(keys, s.integers(0, 2)), min_size=1, max_size=4)
operations = s.one_of(
    s.tuples(s.just("append"), rows),
    s.tuples(s.just("delete"), keys),
    s.tuples(s.just("delete part"), s.integers(0, 2)),
    s.tuples(s.just("overwrite"), rows, keys),
    s.tuples(s.just("overwrite partitions"), rows),
    s.tuples(s.just("upsert"), rows),
    s.tuples(s.just("compact")),
    s.tuples(s.just("rewrite manifests")),
)


def arrow(values: list[Row]) -> pa.Table:
    return pa.table({"id": pa.array([row[0] for row in values], pa.int64()), "part": [row[1] for row in values]})


def distinct(values: list[Row]) -> list[Row]:
    """One row of each key."""
    return list({row[0]: row for row in values}.values())


def change(table: Table, name: str, *arguments: object) -> None:
    match name, *arguments:
        case "append", list(values):
            table.append(arrow(values))
        case "delete", int(key):
            table.delete(f"id = {key}")
        case "delete part", int(part):
            table.delete(f"part = {part}")
        case "overwrite", list(values), int(key):
            table.overwrite(arrow(values), f"id = {key}")
        case "overwrite partitions", list(values):
            table.dynamic_partition_overwrite(arrow(values))
        case "upsert", list(values):
            held = table.scan().to_arrow().column("id").to_pylist()
            once = [row for row in distinct(values) if held.count(row[0]) < 2]
            table.upsert(arrow(once), join_cols=["id"])
        case "compact", *_:
            table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
        case _:
            table.maintenance.rewrite_manifests()


def rows_at(table: Table, snapshot_id: int | None) -> Rows:
    found = [] if snapshot_id is None else table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
    return Counter((row["id"], row["part"]) for row in found)


def applied(before: Rows, scan: ChangesScan) -> Rows:
    """The rows after all changes, commit by commit; a row that is deleted must be there."""
    after = Counter(before)
    found = sorted(
        scan.to_arrow().to_pylist(), key=lambda each: (each["_change_ordinal"], each["_change_type"] not in GONE)
    )
    for each in found:
        row = (each["id"], each["part"])
        if each["_change_type"] in GONE:
            assert after[row] > 0, f"{row} is deleted and was not there"
            after[row] -= 1
        else:
            after[row] += 1
    return +after


def rows_by_id(table: Table, snapshot_id: int | None) -> dict[int, Row]:
    """The rows of a snapshot by their row ids, of which each has its own."""
    if snapshot_id is None:
        return {}
    shown = table.scan(selected_fields=("*", ROW_ID), snapshot_id=snapshot_id).to_arrow().to_pylist()
    by_id = {row[ROW_ID]: (row["id"], row["part"]) for row in shown}
    assert len(by_id) == len(shown)
    return by_id


def applied_by_id(before: dict[int, Row], changes: Iterable[dict[str, Any]]) -> dict[int, Row]:
    """The rows by their ids after all changes; what is deleted must be what was there, and nothing is inserted over another."""
    after = dict(before)
    for each in sorted(changes, key=lambda each: (each["_change_ordinal"], each["_change_type"] not in GONE)):
        row_id, row = each[ROW_ID], (each["id"], each["part"])
        if each["_change_type"] in GONE:
            assert after.pop(row_id) == row
        else:
            assert after.setdefault(row_id, row) == row
    return after


def batches(table: Table, limits: Limits) -> Iterator[tuple[int | None, int]]:
    """The first and last snapshots of the micro-batches of a stream of changes."""
    settings, offset = stream_settings({"streaming-read-mode": "changes"}), None
    while True:
        steps = StreamSteps(table.metadata, settings, TableFiles(table.metadata, table.storage))
        end: Offset | None = steps.next(offset, limits)
        if end is None or end == offset:
            return
        parts = steps.parts(offset, end)
        if parts:
            yield None if offset is None else offset.snapshot_id, parts[-1].snapshot.snapshot_id
        offset = offset_from_text(end.to_text())


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=settings().max_examples // 5)
@given(s.data())
def test_changes_lead_from_rows_to_rows(version: int, data: s.DataObject) -> None:
    modes = ["copy-on-write", "merge-on-read"] if allows(version, Feature.DELETE_FILES) else ["copy-on-write"]
    verbs = ("delete", "update", "merge")
    properties = {"format-version": str(version)} | {
        f"write.{verb}.mode": data.draw(s.sampled_from(modes), label=verb) for verb in verbs
    }
    with load_catalog("changes", type="memory", warehouse="memory://changes") as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", "id bigint, part bigint", partition_spec=["part"], properties=properties)
        for operation in data.draw(s.lists(operations, min_size=1, max_size=7), label="history"):
            change(table, *operation)
            table.refresh()
        ids: list[int | None] = [None, *(snapshot.snapshot_id for snapshot in table.snapshots())]
        first = data.draw(s.integers(0, len(ids) - 1), label="from")
        last = data.draw(s.integers(first, len(ids) - 1), label="to")
        if ids[last] is not None and first != last:
            scan = table.scan_changes(ids[first], ids[last])
            for each in (scan, scan.with_updates(), scan.with_net_changes()):
                assert applied(rows_at(table, ids[first]), each) == rows_at(table, ids[last])
                if allows(version, Feature.ROW_LINEAGE):
                    changes = replace(each, selected_fields=("*", ROW_ID)).to_arrow().to_pylist()
                    before = rows_by_id(table, ids[first])
                    assert applied_by_id(before, changes) == rows_by_id(table, ids[last])
        found: Rows = Counter()
        for begin, end in batches(table, Limits(snapshots=data.draw(s.integers(1, 3), label="commits a batch"))):
            found = applied(found, table.scan_changes(begin, end).with_updates())
        assert found == rows_at(table, ids[-1])
