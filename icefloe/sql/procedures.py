"""The procedures that `CALL system.<name>(...)` finds, with the parameters and result columns that Java Iceberg has."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError, NoSuchObjectError, NoSuchSnapshotError, ValidationError
from icefloe.metadata import Snapshot, summary as totals
from icefloe.sql import changelog, migrating, rewrite_procedures, upkeep  # noqa: F401 - they register their procedures
from icefloe.sql.adding import add_files
from icefloe.sql.calling import (
    NO_FOREIGN,
    PROCEDURES,
    Call,
    ForeignCatalog,
    Parameter,
    ParameterType as Type,
    Rows,
    bind,
    longs,
    procedure,
)
from icefloe.table import ManageSnapshots, Table

NAMESPACE = "system"
"""The namespace of a catalog that procedures are in."""


def call(
    catalog: Catalog,
    name: str,
    positional: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
    namespace: tuple[str, ...] = (),
    foreign: ForeignCatalog = NO_FOREIGN,
    engine: object | None = None,
) -> pa.Table:
    """Run a procedure in a catalog; a table's name without a namespace is looked up in the current one."""
    chosen = PROCEDURES.get(name.lower())
    if chosen is None:
        near, known = difflib.get_close_matches(name, PROCEDURES, 1), ", ".join(sorted(PROCEDURES))
        hint = f"did you mean {near[0]!r}?" if near else f"there are {known}"
        raise NoSuchObjectError(f"no procedure {name!r}; {hint}")
    return chosen.run(Call(catalog, bind(chosen, positional, named or {}), namespace, foreign, engine))


_MOVED = longs("previous_snapshot_id", "current_snapshot_id")
_PICKED = longs("source_snapshot_id", "current_snapshot_id")
_SNAPSHOT_ID = Parameter("snapshot_id", Type.LONG, required=True)


@procedure(_MOVED, _SNAPSHOT_ID)
def _rollback_to_snapshot(call: Call) -> Rows:
    return _moved(call.table(), lambda snapshots: snapshots.rollback_to_snapshot(call.get("snapshot_id")))


@procedure(_MOVED, Parameter("timestamp", Type.TIMESTAMP, required=True))
def _rollback_to_timestamp(call: Call) -> Rows:
    return _moved(call.table(), lambda snapshots: snapshots.rollback_to_timestamp(call.get("timestamp")))


@procedure(_MOVED, Parameter("snapshot_id", Type.LONG), Parameter("ref", Type.STRING))
def _set_current_snapshot(call: Call) -> Rows:
    snapshot_id, ref = call.get("snapshot_id"), call.get("ref")
    if (snapshot_id is None) == (ref is None):
        raise InvalidInputError("set_current_snapshot takes either snapshot_id or ref, and one of them")
    table = call.table()
    chosen = snapshot_id if ref is None else _head(table, ref)
    return _moved(table, lambda snapshots: snapshots.set_current_snapshot(chosen))


@procedure(_PICKED, _SNAPSHOT_ID)
def _cherrypick_snapshot(call: Call) -> Rows:
    return _picked(call.table(), call.get("snapshot_id"))


@procedure(_PICKED, Parameter("wap_id", Type.STRING, required=True))
def _publish_changes(call: Call) -> Rows:
    table, wap_id = call.table(), call.get("wap_id")
    ids = [snapshot.snapshot_id for snapshot in table.snapshots() if _summary(snapshot).get(totals.WAP_ID) == wap_id]
    if not ids:
        raise NoSuchSnapshotError(f"no snapshot has the WAP id {wap_id!r}")
    if len(ids) > 1:
        raise ValidationError(f"{len(ids)} snapshots have the WAP id {wap_id!r}; only one of them can be published")
    return _picked(table, ids[0])


@procedure(
    pa.schema([pa.field("branch_updated", pa.string()), *longs("previous_ref", "updated_ref")]),
    Parameter("branch", Type.STRING, required=True),
    Parameter("to", Type.STRING, required=True),
)
def _fast_forward(call: Call) -> Rows:
    table, branch = call.table(), call.get("branch")
    before = table.metadata.refs.get(branch)
    table.manage_snapshots().fast_forward(branch, call.get("to")).commit()
    return [(branch, None if before is None else before.snapshot_id, _head(table, branch))]


@procedure(longs("snapshot_id", "timestamp"), Parameter("snapshot_id", Type.LONG))
def _ancestors_of(call: Call) -> Iterator[tuple[int, int]]:
    metadata = call.table().metadata
    start = metadata.current_snapshot_id if call.get("snapshot_id") is None else call.get("snapshot_id")
    if start is None:
        raise NoSuchSnapshotError(f"table {call.get('table')} has no current snapshot")
    metadata.snapshot(start)
    for snapshot in metadata.ancestors(start):
        yield snapshot.snapshot_id, snapshot.timestamp_ms


@procedure(
    longs("current_snapshot_id", "total_records_count", "total_data_files_count"),
    Parameter("metadata_file", Type.STRING, required=True),
)
def _register_table(call: Call) -> Rows:
    if not call.get("metadata_file").strip():
        raise InvalidInputError(
            "metadata_file of register_table is empty; give the location of a table's metadata file"
        )
    table = call.catalog.register_table(call.identifier(), call.get("metadata_file"))
    current = table.current_snapshot()
    if current is None:
        return [(None, None, None)]
    counts = (_summary(current).get(key) for key in (totals.TOTAL_RECORDS, totals.TOTAL_DATA_FILES))
    return [(current.snapshot_id, *(None if count is None else int(count) for count in counts))]


procedure(
    longs("added_files_count", "changed_partition_count"),
    Parameter("source_table", Type.STRING, required=True),
    Parameter("partition_filter", Type.MAP),
    Parameter("check_duplicate_files", Type.BOOLEAN),
    Parameter("parallelism", Type.INTEGER),
)(add_files)


def _moved(table: Table, move: Callable[[ManageSnapshots], ManageSnapshots]) -> Rows:
    before = table.metadata.current_snapshot_id
    move(table.manage_snapshots()).commit()
    return [(before, table.metadata.current_snapshot_id)]


def _picked(table: Table, snapshot_id: int) -> Rows:
    table.manage_snapshots().cherrypick(snapshot_id).commit()
    return [(snapshot_id, table.metadata.current_snapshot_id)]


def _head(table: Table, name: str) -> int:
    ref = table.metadata.refs.get(name)
    if ref is None:
        raise NoSuchSnapshotError(f"no branch or tag {name!r}; there are {', '.join(sorted(table.refs())) or 'none'}")
    return ref.snapshot_id


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.properties
