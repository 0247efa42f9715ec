"""What changed between snapshots, as rows: each with what happened to it, in which snapshot of the range.

Rows that a commit only moved to another file are no change where they have ids: they come with the same id and the same
last updated sequence number. A row that comes with the same id and another number was updated (spec: Row Lineage).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.data.task_reader import ReadContext, read_task
from icefloe.formats.projection import constant_array
from icefloe.planning import ChangelogScan, ChangelogScanTask, ChangeType
from icefloe.schema import Schema, reserved, schema_to_arrow

CHANGE_COLUMNS = (reserved.CHANGE_TYPE, reserved.CHANGE_ORDINAL, reserved.COMMIT_SNAPSHOT_ID)
"""What is said of each change, after its columns."""


def change_schema(scan: ChangelogScan) -> Schema:
    """The columns of changes: those of the scan, and those of the change itself."""
    return Schema(*_own_columns(scan), *CHANGE_COLUMNS)


def changes_to_arrow(scan: ChangelogScan) -> Any:
    """All changes as a `pyarrow.Table`."""
    return pa.Table.from_batches(read_changes(scan), schema_to_arrow(change_schema(scan)))


def changes_to_reader(scan: ChangelogScan) -> Any:
    """The changes as a stream of Arrow batches; those of one snapshot at a time are in memory, if any at all."""
    return pa.RecordBatchReader.from_batches(schema_to_arrow(change_schema(scan)), read_changes(scan))


def read_changes(scan: ChangelogScan) -> Iterator[Any]:
    """Record batches of changes, snapshot by snapshot: rows that were deleted, inserted, then updated ones in pairs."""
    reader = _ChangeReader(scan)
    for _, tasks in groupby(scan.plan_files(), key=lambda each: each.ordinal):
        yield from reader.snapshot(list(tasks))


def _own_columns(scan: ChangelogScan) -> list[Any]:
    given = {each.field_id for each in CHANGE_COLUMNS}
    return [each for each in scan.projection().fields if each.field_id not in given]


class _ChangeReader:
    """Reads the changes of one snapshot after the other."""

    def __init__(self, scan: ChangelogScan) -> None:
        self._pairs_updates = scan.pairs_updates
        self._context = ReadContext(scan.metadata, scan.storage)
        self._target = schema_to_arrow(change_schema(scan))
        fields = _own_columns(scan)
        present = {each.field_id for each in fields}
        lineage = [each for each in reserved.ROW_LINEAGE_COLUMNS if each.field_id not in present]
        self._plain = Schema(*fields)
        self._with_lineage = Schema(*fields, *lineage)

    def snapshot(self, tasks: Sequence[ChangelogScanTask]) -> Iterator[Any]:
        """All changes of one snapshot."""
        removed = [each for each in tasks if each.change_type is ChangeType.DELETE]
        added = [each for each in tasks if each.change_type is ChangeType.INSERT]
        if not (_has_ids(removed) and _has_ids(added)):
            for task in tasks:
                for batch in self._rows(task, self._plain):
                    yield from self._told(pa.Table.from_batches([batch]), task, str(task.change_type))
            return
        yield from self._joined(tasks[0], self._table(removed), self._table(added))

    def _joined(self, task: ChangelogScanTask, removed: Any, added: Any) -> Iterator[Any]:
        old_ids, new_ids = _numbers(removed, "_row_id"), _numbers(added, "_row_id")
        both, at_old, at_new = np.intersect1d(old_ids, new_ids, return_indices=True)
        is_known = both >= 0
        at_old, at_new = at_old[is_known], at_new[is_known]
        old_numbers, new_numbers = (_numbers(rows, "_last_updated_sequence_number") for rows in (removed, added))
        is_same = old_numbers[at_old] == new_numbers[at_new]
        if self._pairs_updates:
            gone_old, gone_new = at_old, at_new
        else:
            gone_old, gone_new = at_old[is_same], at_new[is_same]
        yield from self._told(_without(removed, gone_old), task, ChangeType.DELETE)
        yield from self._told(_without(added, gone_new), task, ChangeType.INSERT)
        if self._pairs_updates:
            before, after = removed.take(pa.array(at_old[~is_same])), added.take(pa.array(at_new[~is_same]))
            yield from self._pairs(task, before, after)

    def _pairs(self, task: ChangelogScanTask, before: Any, after: Any) -> Iterator[Any]:
        """Rows as they were and as they are, by turns."""
        if not len(before):
            return
        told = [
            pa.Table.from_batches(self._told(rows, task, kind))
            for rows, kind in ((before, ChangeType.UPDATE_BEFORE), (after, ChangeType.UPDATE_AFTER))
        ]
        order = np.arange(2 * len(before)).reshape(2, -1).T.ravel()
        yield from pa.concat_tables(told).take(pa.array(order)).to_batches()

    def _table(self, tasks: Sequence[ChangelogScanTask]) -> Any:
        batches = [batch for task in tasks for batch in self._rows(task, self._with_lineage)]
        return pa.Table.from_batches(batches, schema_to_arrow(self._with_lineage))

    def _rows(self, change: ChangelogScanTask, wanted: Schema) -> Iterator[Any]:
        task = change.task
        if change.deleted_by is None:
            yield from read_task(task, wanted, self._context)
            return
        # Those that were there under the deletes of before and are not under those of now.
        left = [
            batch.column(0).to_numpy()
            for batch in read_task(task.replace(deletes=change.deleted_by), Schema(reserved.POS), self._context)
        ]
        stays = pa.array(np.concatenate(left) if left else np.zeros(0, np.int64))
        has_position = any(each.field_id == reserved.POS.field_id for each in wanted.fields)
        with_position = wanted if has_position else Schema(*wanted.fields, reserved.POS)
        for batch in read_task(task, with_position, self._context):
            found = batch.filter(pc.invert(pc.is_in(batch.column(reserved.POS.name), stays)))
            if found.num_rows:
                yield found.select([each.name for each in wanted.fields])

    def _told(self, rows: Any, task: ChangelogScanTask, kind: str) -> Iterator[Any]:
        """The rows with what happened to them."""
        for batch in rows.select([each.name for each in self._plain.fields]).to_batches():
            said = [
                constant_array(value, each.field_type, self._target.field(each.name).type, batch.num_rows)
                for each, value in zip(CHANGE_COLUMNS, (str(kind), task.ordinal, task.snapshot_id), strict=True)
            ]
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays([*batch.columns, *said], schema=self._target)


def _has_ids(tasks: Sequence[ChangelogScanTask]) -> bool:
    return any(each.task.first_row_id is not None for each in tasks)


def _numbers(rows: Any, name: str) -> Any:
    return pc.fill_null(rows.column(name), -1).to_numpy()


def _without(rows: Any, places: Any) -> Any:
    keep = np.ones(len(rows), bool)
    keep[places] = False
    return rows.filter(pa.array(keep))
