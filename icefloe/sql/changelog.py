"""`create_changelog_view`: which changes of a table a temporary view of Spark shows."""

from collections.abc import Mapping

import pyarrow as pa

from icefloe import errors, metadata as md
from icefloe.rows import engine_named
from icefloe.sql.calling import Call, Parameter, ParameterType as Type, Rows, procedure
from icefloe.table import ChangesScan, Table

_START, _END = "start-snapshot-id", "end-snapshot-id"
_START_TIME, _END_TIME = "start-timestamp", "end-timestamp"
_OWN = (_START, _END, _START_TIME, _END_TIME)


@procedure(
    pa.schema([pa.field("changelog_view", pa.string())]),
    Parameter("changelog_view", Type.STRING),
    Parameter("options", Type.MAP),
    Parameter("compute_updates", Type.BOOLEAN),
    Parameter("identifier_columns", Type.STRINGS),
    Parameter("net_changes", Type.BOOLEAN),
)
def _create_changelog_view(call: Call) -> Rows:
    if call.engine is None:
        raise errors.StateError(
            "create_changelog_view makes a view of Spark; without Spark, table.scan_changes gives the rows"
        )
    view = call.get("changelog_view") or f"`{call.identifier()[-1]}_changes`"
    scan = _chosen(call, changes_by_options(call.table(), call.get("options") or {}))
    engine_named("spark").changes(scan, call.engine).createOrReplaceTempView(view)
    return [(view,)]


def _chosen(call: Call, scan: ChangesScan) -> ChangesScan:
    """The changes in the form that the arguments ask for."""
    columns, computes = call.get("identifier_columns") or (), call.get("compute_updates")
    pairs = bool(columns) if computes is None else computes
    if pairs and call.get("net_changes"):
        raise errors.InvalidInputError(
            "net_changes and compute_updates are mutually exclusive: a row may change in several snapshots;"
            " leave one of them out"
        )
    if call.get("net_changes"):
        return scan.with_net_changes()
    if not pairs:
        return scan
    scan = scan.with_updates(columns)
    if not scan.identifier():
        raise errors.InvalidInputError(
            "updates need something to tell rows by: name identifier_columns, or set the table's identifier fields"
        )
    return scan


def changes_by_options(table: Table, options: Mapping[str, str | None]) -> ChangesScan:
    """The changes after a snapshot or time and up to another, under the names of Spark's read options."""
    given = {key.lower(): value for key, value in options.items() if value is not None}
    start, end = (_number(given, key) for key in (_START, _END))
    start_time, end_time = (_number(given, key) for key in (_START_TIME, _END_TIME))
    for by_id, by_time, names in ((start, start_time, (_START, _START_TIME)), (end, end_time, (_END, _END_TIME))):
        if by_id is not None and by_time is not None:
            raise errors.InvalidInputError(
                f"options {names[0]!r} and {names[1]!r} are mutually exclusive; leave one of them out"
            )
    if start_time is not None and end_time is not None and start_time >= end_time:
        raise errors.InvalidInputError(f"{_START_TIME} is {start_time}, which is not before {_END_TIME}, {end_time}")
    if start_time is not None:
        start = _last_until(table.metadata, start_time)
    if end_time is not None:
        end = _last_until(table.metadata, end_time)
        if end is None:
            # Nothing was there yet: the range after any snapshot and up to it is empty.
            start = end = table.metadata.current_snapshot_id
    return table.scan_changes(start, end, options={key: value for key, value in given.items() if key not in _OWN})


def _number(options: Mapping[str, str], key: str) -> int | None:
    text = options.get(key)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise errors.InvalidInputError(f"option {key!r} is {text!r}; it must be a whole number") from None


def _last_until(metadata: md.TableMetadata, milliseconds: int) -> int | None:
    """The last snapshot that was current at a time, or None if the oldest that is left is younger."""
    if metadata.current_snapshot_id is None:
        return None
    ancestors = metadata.ancestors(metadata.current_snapshot_id)
    return next((snapshot.snapshot_id for snapshot in ancestors if snapshot.timestamp_ms <= milliseconds), None)
