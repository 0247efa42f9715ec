"""Changes between snapshots as rows: what was put in and taken out, whatever the files were, updates in pairs, and net changes."""

import random
from collections import Counter
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import icefloe
from icefloe.data import CHANGE_COLUMNS, ReadContext, compared_columns, read_change
from icefloe.data.row_numbers import ranks, row_numbers
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.table import ChangesScan, Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.shared_rows import row_modes, rows_of
from tests.spark.reading import delete_equal

MODES = ("copy-on-write", "merge-on-read")
WITH_IDS = [each for each in ALL_VERSIONS if allows(each, Feature.ROW_LINEAGE)]
modes = pytest.mark.parametrize("mode", MODES)


def create(version: int, mode: str) -> Table:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://changes/{random.getrandbits(64)}")
    catalog.create_namespace("db")
    modes = row_modes(mode)
    return catalog.create_table(
        "db.t",
        "id long not null, name string",
        partition_spec=["bucket(2, id)"],
        properties={"format-version": str(version), **modes},
    )


def rows(*ids: int, name: str = "x") -> Any:
    return rows_of(*ids, name=name)


def told(found: Any) -> list[tuple[Any, ...]]:
    return sorted((row["_change_ordinal"], row["_change_type"], row["id"], row["name"]) for row in found.to_pylist())


@modes
@pytest.mark.parametrize("version", WITH_IDS)
def test_rows_with_ids_change_as_they_were_changed(version: int, mode: str) -> None:
    table = create(version, mode)
    table.append(rows(1, 2, 3, 4))
    table.delete("id = 2")
    table.upsert(rows(3, 5, name="y"), join_cols=["id"])
    changes = table.scan_changes()
    assert told(changes.to_arrow()) == [
        *((0, "INSERT", each, "x") for each in (1, 2, 3, 4)),
        (1, "DELETE", 2, "x"),
        (2, "DELETE", 3, "x"),
        (2, "INSERT", 3, "y"),
        (2, "INSERT", 5, "y"),
    ]
    found = changes.with_updates().to_arrow()
    assert told(found)[5:] == [(2, "INSERT", 5, "y"), (2, "UPDATE_AFTER", 3, "y"), (2, "UPDATE_BEFORE", 3, "x")]
    kinds = found.column("_change_type").to_pylist()
    assert kinds[kinds.index("UPDATE_BEFORE") + 1] == "UPDATE_AFTER"
    snapshots = [each.snapshot_id for each in table.snapshots()]
    assert found.column("_commit_snapshot_id").to_pylist() == [
        snapshots[each] for each in found.column("_change_ordinal").to_pylist()
    ]


@modes
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_range_a_filter_and_columns(version: int, mode: str) -> None:
    table = create(version, mode if allows(version, Feature.DELETE_FILES) else MODES[0])
    first = table.append(rows(1, 2))
    second = table.append(rows(3, 4))
    table.append(rows(5))
    assert first is not None
    assert second is not None
    found = table.scan_changes(first.snapshot_id, second.snapshot_id, "id > 3", ("name", "_row_id")).to_arrow()
    assert found.schema.names == ["name", "_row_id", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    assert len(found) == 1
    reader = table.scan_changes(first.snapshot_id).to_arrow_batch_reader()
    assert told(reader.read_all()) == [(0, "INSERT", 3, "x"), (0, "INSERT", 4, "x"), (1, "INSERT", 5, "x")]
    assert len(table.scan_changes(second.snapshot_id, second.snapshot_id).to_arrow()) == 0


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if each not in WITH_IDS])
def test_rows_without_ids_of_files_that_were_rewritten_come_and_go(version: int) -> None:
    table = create(version, MODES[0])
    table.append(rows(1, 3))
    table.delete("id = 1")
    net: dict[tuple[int, str], int] = {}
    for _, kind, key, name in told(table.scan_changes().with_updates().to_arrow()):
        net[key, name] = net.get((key, name), 0) + (1 if kind == "INSERT" else -1)
    assert {each: count for each, count in net.items() if count} == {(3, "x"): 1}


@modes
@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32))
def test_changes_replayed_are_the_table(version: int, mode: str, seed: int) -> None:
    rng = random.Random(seed)
    table = create(version, mode if allows(version, Feature.DELETE_FILES) else MODES[0])
    states: dict[int, dict[int, str]] = {}
    for step in range(5):
        ids = rng.sample(range(12), rng.randint(1, 5))
        match rng.choice(("upsert", "upsert", "delete", "overwrite")):
            case "upsert":
                table.upsert(rows(*ids, name=f"n{step}"), join_cols=["id"])
            case "delete":
                table.delete(f"id in ({', '.join(map(str, ids))})")
            case _:
                table.overwrite(rows(*ids, name=f"n{step}"), f"id in ({', '.join(map(str, ids))})")
        current = table.metadata.current_snapshot_id
        if current is not None:
            states[current] = {row["id"]: row["name"] for row in table.scan().to_arrow().to_pylist()}
    for pairs in (False, True):
        scan = table.scan_changes().with_updates() if pairs else table.scan_changes()
        held: dict[int, str] = {}
        found = scan.to_arrow().to_pylist()
        for snapshot in table.snapshots():
            of_snapshot = [row for row in found if row["_commit_snapshot_id"] == snapshot.snapshot_id]
            for row in of_snapshot:
                if row["_change_type"] in ("DELETE", "UPDATE_BEFORE"):
                    assert held.pop(row["id"]) == row["name"]
            for row in of_snapshot:
                if row["_change_type"] in ("INSERT", "UPDATE_AFTER"):
                    assert held.setdefault(row["id"], row["name"]) == row["name"]
            if allows(version, Feature.ROW_LINEAGE):
                changed = {(row["id"], row["name"]) for row in of_snapshot}
                assert len(changed) == len(of_snapshot), "what only moved is no change"
            assert held == states[snapshot.snapshot_id]


# -- what cancels: the naive definitions, row by row

Change = tuple[str, int, int]
"""What happened, the number of the snapshot, and its id."""


def raw_changes(scan: ChangesScan) -> list[tuple[tuple[Any, ...], Change]]:
    """The rows of all tasks as files have them: their values, and what happened to them."""
    context = ReadContext(scan.metadata, scan.storage)
    rows = [
        tuple(row.values())
        for task in scan.plan_files()
        for batch in read_change(task, compared_columns(scan), context)
        for row in batch.to_pylist()
    ]
    width = len(CHANGE_COLUMNS)
    return [(row[:-width], row[-width:]) for row in rows]


def in_groups(changes: list[tuple[tuple[Any, ...], Change]], by_ordinal: bool) -> list[list[tuple[Any, ...]]]:
    """Equal rows of one snapshot, or of the range, in the order in which Java looks at them."""

    def key(change: tuple[tuple[Any, ...], Change]) -> tuple[Any, ...]:
        values, (_, ordinal, _) = change
        return (repr(values), ordinal if by_ordinal else 0)

    ordered = sorted(changes, key=lambda change: (*key(change), change[1][1], change[1][0]))
    return [[(*values, *what) for values, what in group] for _, group in groupby(ordered, key=key)]


def uncancelled(group: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What is left of equal rows if each change undoes an opposite one before it."""
    left: list[tuple[Any, ...]] = []
    for change in group:
        if left and left[-1][-3] != change[-3]:
            left.pop()
        else:
            left.append(change)
    return left


def counted(found: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


def live(table: Table, rng: random.Random) -> None:
    """Commits that leave duplicates, and bring back what was there."""
    for _ in range(5):
        ids = [rng.randrange(4) for _ in range(rng.randint(1, 4))]
        match rng.choice(("append", "append", "delete", "overwrite")):
            case "append":
                table.append(rows(*ids, name=rng.choice("xy")))
            case "delete":
                table.delete(f"id = {ids[0]} and name = 'x'")
            case _:
                table.overwrite(rows(*ids, name=rng.choice("xy")), f"id in ({', '.join(map(str, ids))})")


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32), mode=st.sampled_from(MODES))
def test_what_cancels_is_what_the_definition_says(version: int, mode: str, seed: int) -> None:
    table = create(version, mode if allows(version, Feature.DELETE_FILES) else MODES[0])
    live(table, random.Random(seed))
    scan = table.scan_changes()
    for by_ordinal, chosen in ((True, scan), (False, table.scan_changes(net_changes=True))):
        expected = [row for group in in_groups(raw_changes(scan), by_ordinal) for row in uncancelled(group)]
        assert counted(chosen.to_arrow()) == Counter(expected)
    now = Counter((row["id"], row["name"]) for row in table.scan().to_arrow().to_pylist())
    assert Counter(row[:2] for row in counted(scan.with_net_changes().to_arrow()).elements()) == now


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_updates_by_identifier_columns(version: int) -> None:
    table = create(version, MODES[0])
    table.append(rows(1, 2, 3))
    table.overwrite(rows(2, 4, name="y"), "id = 2")
    expected = [(1, "INSERT", 4, "y"), (1, "UPDATE_AFTER", 2, "y"), (1, "UPDATE_BEFORE", 2, "x")]
    assert told(table.scan_changes(identifier_columns=["id"]).to_arrow())[3:] == expected
    with table.update_schema() as update:
        update.set_identifier_fields("id")
    assert told(table.scan_changes().with_updates().to_arrow())[3:] == expected
    names = table.scan_changes(selected_fields=("name",)).with_updates()
    assert names.identifier() == (("_row_id",) if allows(version, Feature.ROW_LINEAGE) else ())
    assert table.scan_changes(identifier_columns=["ID"], case_sensitive=False).identifier() == ("id",)
    table.append(rows(4))
    table.delete("id = 4")
    scan = table.scan_changes(identifier_columns=["id"])
    assert told(scan.to_arrow())[-2:] == [(3, "DELETE", 4, "x"), (3, "DELETE", 4, "y")]
    table.append(rows(4, 4))
    table.overwrite(rows(4, name="y"), "id = 4")
    with pytest.raises(ValidationError, match=r"updates cannot be told by \(id\)"):
        table.scan_changes(identifier_columns=["id"]).to_arrow()
    with pytest.raises(InvalidInputError, match="'nr' is not a column"):
        table.scan_changes(identifier_columns=["nr"]).to_arrow()
    with pytest.raises(InvalidInputError, match="net changes"):
        table.scan_changes(identifier_columns=["id"], net_changes=True)


def test_rows_are_equal_whatever_their_type() -> None:
    maps = pa.map_(pa.string(), pa.int64())
    table = pa.table(
        {
            "f": pa.array([0.0, -0.0, float("nan"), float("nan"), None, None, 0.0]),
            "m": pa.array([[("a", 1), ("b", 2)], [], None, None, [], [], [("b", 2), ("a", 1)]], maps),
            "s": pa.array([{"l": [1, None]}, {"l": []}, {"l": None}, {"l": None}, None, {"l": None}, {"l": [1, None]}]),
            "n": pa.nulls(7),
        }
    )
    numbers = row_numbers(pa.concat_tables([table, table.slice(1, 3)])).tolist()
    assert numbers[0] == numbers[6]
    assert numbers[2] == numbers[3]
    assert len(set(numbers[:7])) == 5
    assert numbers[7:] == numbers[1:4]
    assert ranks(np.array([3, 1, 3, 3, 1])).tolist() == [0, 0, 1, 2, 1]
    assert row_numbers(table.slice(0, 0)).tolist() == []


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_equality_deletes_are_changes(version: int) -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://changes/{random.getrandbits(64)}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id long, name string", properties={"format-version": str(version)})
    table.append(rows(1, 2, 3))
    delete_equal(table, {"id": [2, 9]})
    table.append(rows(2))
    expected = [(1, "DELETE", 2, "x"), (2, "INSERT", 2, "x")]
    assert told(table.scan_changes().to_arrow())[3:] == expected
    net = [(0, "INSERT", 1, "x"), (0, "INSERT", 3, "x"), (2, "INSERT", 2, "x")]
    assert told(table.scan_changes(net_changes=True).to_arrow()) == net
