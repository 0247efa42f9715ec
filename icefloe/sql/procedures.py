"""The procedures that `CALL system.<name>(...)` finds, with the parameters and result columns that Java Iceberg has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError, NoSuchSnapshotError, ValidationError
from icefloe.manifests import ManifestContent
from icefloe.metadata import Snapshot, summary as totals_
from icefloe.sql.adding import add_files
from icefloe.sql.calling import Call, FindForeign, Kind, Parameter, Procedure, unknown_procedure
from icefloe.table import Table

NAMESPACE = "system"
"""The namespace of a catalog that procedures are in."""

_TABLE = Parameter("table", Kind.STRING, required=True)
_SNAPSHOT_ID = Parameter("snapshot_id", Kind.LONG, required=True)

Rows = Iterable[tuple[Any, ...]]


def call(
    catalog: Catalog,
    name: str,
    positional: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
    namespace: tuple[str, ...] = (),
    find_foreign: FindForeign | None = None,
) -> pa.Table:
    """Run a procedure in a catalog; a table's name without a namespace is looked for in the current one."""
    found = PROCEDURES.get(name.lower())
    if found is None:
        raise unknown_procedure(name, PROCEDURES)
    return found.call(catalog, positional, named, namespace, find_foreign)


def _rollback_to_snapshot(given: Call) -> Rows:
    return _moved(given.table(), lambda table: table.manage_snapshots().rollback_to_snapshot(given.get("snapshot_id")))


def _rollback_to_timestamp(given: Call) -> Rows:
    return _moved(given.table(), lambda table: table.manage_snapshots().rollback_to_timestamp(given.get("timestamp")))


def _set_current_snapshot(given: Call) -> Rows:
    wanted, ref = given.get("snapshot_id"), given.get("ref")
    if (wanted is None) == (ref is None):
        raise InvalidInputError("set_current_snapshot takes either snapshot_id or ref, and one of them")
    table = given.table()
    if ref is not None:
        wanted = _head(table, ref)
    return _moved(table, lambda table: table.manage_snapshots().set_current_snapshot(wanted))


def _cherrypick_snapshot(given: Call) -> Rows:
    return _picked(given.table(), given.get("snapshot_id"))


def _publish_changes(given: Call) -> Rows:
    table, wap_id = given.table(), given.get("wap_id")
    found = [each.snapshot_id for each in table.snapshots() if _summary(each).get(totals_.WAP_ID) == wap_id]
    if not found:
        raise NoSuchSnapshotError(f"no snapshot has the WAP id {wap_id!r}")
    if len(found) > 1:
        raise ValidationError(f"{len(found)} snapshots have the WAP id {wap_id!r}; only one of them can be published")
    return _picked(table, found[0])


def _fast_forward(given: Call) -> Rows:
    table, branch = given.table(), given.get("branch")
    before = table.metadata.refs.get(branch)
    table.manage_snapshots().fast_forward(branch, given.get("to")).commit()
    return [(branch, None if before is None else before.snapshot_id, _head(table, branch))]


def _ancestors_of(given: Call) -> Iterator[tuple[Any, ...]]:
    table = given.table()
    start = given.get("snapshot_id")
    if start is None:
        current = table.current_snapshot()
        if current is None:
            raise NoSuchSnapshotError(f"table {given.get('table')} has no current snapshot")
        start = current.snapshot_id
    table.metadata.snapshot(start)
    for each in table.metadata.ancestors(start):
        yield each.snapshot_id, each.timestamp_ms


def _register_table(given: Call) -> Rows:
    if not given.get("metadata_file").strip():
        raise InvalidInputError(
            "metadata_file of register_table is empty; give the location of a table's metadata file"
        )
    table = given.catalog.register_table(given.identifier(), given.get("metadata_file"))
    current = table.current_snapshot()
    if current is None:
        return [(None, None, None)]
    totals = (_summary(current).get(key) for key in (totals_.TOTAL_RECORDS, totals_.TOTAL_DATA_FILES))
    return [(current.snapshot_id, *(None if total is None else int(total) for total in totals))]


def _expire_snapshots(given: Call) -> Rows:
    # How deletes are run is ours to choose: in bulk, several at a time, and nothing is collected on a driver.
    done = given.table().maintenance.expire_snapshots(
        given.get("older_than"),
        given.get("retain_last"),
        given.get("snapshot_ids") or (),
        by_retention=True,
        clean_expired_metadata=bool(given.get("clean_expired_metadata")),
    )
    return [done.counts]


def _rewrite_manifests(given: Call) -> Rows:
    """Only those of one spec, the current one unless it is said, as the Java library does; delete manifests in turn."""
    table, spec_id = given.table(), given.get("spec_id")
    if spec_id is None:
        spec_id = table.metadata.default_spec_id
    elif spec_id not in table.specs():
        raise InvalidInputError(f"spec_id is {spec_id}; the table has {', '.join(map(str, sorted(table.specs())))}")
    replaced = added = 0
    for content in ManifestContent:
        made = table.update_snapshot().rewrite_manifests(content, lambda each: each.partition_spec_id == spec_id)
        if made is not None:
            replaced += int(_summary(made).get(totals_.MANIFESTS_REPLACED, 0))
            added += int(_summary(made).get(totals_.MANIFESTS_CREATED, 0))
    return [(replaced, added)]


def _moved(table: Table, change: Any) -> Rows:
    before = table.current_snapshot()
    change(table).commit()
    after = table.current_snapshot()
    return [(None if before is None else before.snapshot_id, None if after is None else after.snapshot_id)]


def _picked(table: Table, snapshot_id: int) -> Rows:
    table.manage_snapshots().cherrypick(snapshot_id).commit()
    current = table.current_snapshot()
    return [(snapshot_id, None if current is None else current.snapshot_id)]


def _head(table: Table, ref: str) -> int:
    found = table.metadata.refs.get(ref)
    if found is None:
        raise NoSuchSnapshotError(f"no branch or tag {ref!r}; there are {', '.join(sorted(table.refs())) or 'none'}")
    return found.snapshot_id


def _summary(snapshot: Snapshot) -> Mapping[str, str]:
    return {} if snapshot.summary is None else snapshot.summary.properties


def _longs(*names: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.int64()) for name in names])


_MOVED = _longs("previous_snapshot_id", "current_snapshot_id")
_PICKED = _longs("source_snapshot_id", "current_snapshot_id")

PROCEDURES: Mapping[str, Procedure] = {
    each.name: each
    for each in (
        Procedure("rollback_to_snapshot", (_TABLE, _SNAPSHOT_ID), _MOVED, _rollback_to_snapshot),
        Procedure(
            "rollback_to_timestamp",
            (_TABLE, Parameter("timestamp", Kind.TIMESTAMP, required=True)),
            _MOVED,
            _rollback_to_timestamp,
        ),
        Procedure(
            "set_current_snapshot",
            (_TABLE, Parameter("snapshot_id", Kind.LONG), Parameter("ref", Kind.STRING)),
            _MOVED,
            _set_current_snapshot,
        ),
        Procedure("cherrypick_snapshot", (_TABLE, _SNAPSHOT_ID), _PICKED, _cherrypick_snapshot),
        Procedure(
            "publish_changes", (_TABLE, Parameter("wap_id", Kind.STRING, required=True)), _PICKED, _publish_changes
        ),
        Procedure(
            "fast_forward",
            (_TABLE, Parameter("branch", Kind.STRING, required=True), Parameter("to", Kind.STRING, required=True)),
            pa.schema([pa.field("branch_updated", pa.string()), *_longs("previous_ref", "updated_ref")]),
            _fast_forward,
        ),
        Procedure(
            "ancestors_of",
            (_TABLE, Parameter("snapshot_id", Kind.LONG)),
            _longs("snapshot_id", "timestamp"),
            _ancestors_of,
        ),
        Procedure(
            "register_table",
            (_TABLE, Parameter("metadata_file", Kind.STRING, required=True)),
            _longs("current_snapshot_id", "total_records_count", "total_data_files_count"),
            _register_table,
        ),
        Procedure(
            "add_files",
            (
                _TABLE,
                Parameter("source_table", Kind.STRING, required=True),
                Parameter("partition_filter", Kind.STRINGS),
                Parameter("check_duplicate_files", Kind.BOOLEAN),
                Parameter("parallelism", Kind.INTEGER),
            ),
            _longs("added_files_count", "changed_partition_count"),
            add_files,
        ),
        Procedure(
            "expire_snapshots",
            (
                _TABLE,
                Parameter("older_than", Kind.TIMESTAMP),
                Parameter("retain_last", Kind.INTEGER),
                Parameter("max_concurrent_deletes", Kind.INTEGER),
                Parameter("stream_results", Kind.BOOLEAN),
                Parameter("snapshot_ids", Kind.LONGS),
                Parameter("clean_expired_metadata", Kind.BOOLEAN),
            ),
            _longs(
                "deleted_data_files_count",
                "deleted_position_delete_files_count",
                "deleted_equality_delete_files_count",
                "deleted_manifest_files_count",
                "deleted_manifest_lists_count",
                "deleted_statistics_files_count",
            ),
            _expire_snapshots,
        ),
        Procedure(
            "rewrite_manifests",
            (_TABLE, Parameter("use_caching", Kind.BOOLEAN), Parameter("spec_id", Kind.INTEGER)),
            pa.schema(
                [
                    pa.field("rewritten_manifests_count", pa.int32()),
                    pa.field("added_manifests_count", pa.int32()),
                ]
            ),
            _rewrite_manifests,
        ),
    )
}
