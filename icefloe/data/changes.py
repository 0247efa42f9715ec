"""What changed between snapshots, as rows: each with what happened to it, in which snapshot of the range.

Rows that a commit only moved to another file are no change where they have ids: they come with the same id and the same
last updated sequence number. A row that comes with the same id and another number was updated (spec: Row Lineage).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.data.task_reader import ReadContext, read_task
from icefloe.formats.projection import constant_array
from icefloe.planning import ChangelogScan, ChangelogScanTask, ChangeType
from icefloe.schema import Schema, reserved, schema_to_arrow

_CHANGE_COLUMNS = (reserved.CHANGE_TYPE, reserved.CHANGE_ORDINAL, reserved.COMMIT_SNAPSHOT_ID)
"""What is said of each change, after its columns."""
Numbers = npt.NDArray[np.int64]


def changes_to_arrow(scan: ChangelogScan) -> pa.Table:
    """All changes as a table, snapshot by snapshot: rows that were deleted, inserted, then updated ones in pairs."""
    reader = _ChangeReader(scan)
    return pa.Table.from_batches(reader.batches(), reader.target)


def changes_to_reader(scan: ChangelogScan) -> pa.RecordBatchReader:
    """The changes as a stream of Arrow batches; those of one snapshot at a time are in memory, if any at all."""
    reader = _ChangeReader(scan)
    return pa.RecordBatchReader.from_batches(reader.target, reader.batches())


class _ChangeReader:
    """Reads the changes of one snapshot after the other."""

    def __init__(self, scan: ChangelogScan) -> None:
        self._scan = scan
        self._context = ReadContext(scan.metadata, scan.storage)
        of_change = {field.field_id for field in _CHANGE_COLUMNS}
        fields = [field for field in scan.projection().fields if field.field_id not in of_change]
        self.target = schema_to_arrow(Schema(*fields, *_CHANGE_COLUMNS))
        self._plain = Schema(*fields)
        lineage = [field for field in reserved.ROW_LINEAGE_COLUMNS if field.field_id not in self._plain.fields_by_id]
        self._with_lineage = Schema(*fields, *lineage)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All changes."""
        for _, tasks in groupby(self._scan.plan_files(), key=lambda task: task.ordinal):
            yield from self._snapshot(list(tasks))

    def _snapshot(self, tasks: Sequence[ChangelogScanTask]) -> Iterator[pa.RecordBatch]:
        removed = [task for task in tasks if task.change_type is ChangeType.DELETE]
        added = [task for task in tasks if task.change_type is ChangeType.INSERT]
        if _has_ids(removed) and _has_ids(added):
            yield from self._joined(tasks[0], self._table(removed), self._table(added))
            return
        for task in tasks:
            for batch in self._rows(task, self._plain):
                yield from self._described(pa.Table.from_batches([batch]), task, task.change_type)

    def _joined(self, task: ChangelogScanTask, removed: pa.Table, added: pa.Table) -> Iterator[pa.RecordBatch]:
        old_ids, new_ids = _numbers(removed, reserved.ROW_ID.name), _numbers(added, reserved.ROW_ID.name)
        both, at_old, at_new = np.intersect1d(old_ids, new_ids, return_indices=True)
        is_known = both >= 0
        at_old, at_new = at_old[is_known], at_new[is_known]
        updated = reserved.LAST_UPDATED_SEQUENCE_NUMBER.name
        is_same = _numbers(removed, updated)[at_old] == _numbers(added, updated)[at_new]
        paired = slice(None) if self._scan.pairs_updates else is_same
        yield from self._described(_without(removed, at_old[paired]), task, ChangeType.DELETE)
        yield from self._described(_without(added, at_new[paired]), task, ChangeType.INSERT)
        if self._scan.pairs_updates and not is_same.all():
            before, after = removed.take(pa.array(at_old[~is_same])), added.take(pa.array(at_new[~is_same]))
            yield from self._pairs(task, before, after)

    def _pairs(self, task: ChangelogScanTask, before: pa.Table, after: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows as they were and as they are, by turns."""
        described = [
            pa.Table.from_batches(self._described(rows, task, change_type))
            for rows, change_type in ((before, ChangeType.UPDATE_BEFORE), (after, ChangeType.UPDATE_AFTER))
        ]
        order = np.arange(2 * len(before)).reshape(2, -1).T.ravel()
        yield from pa.concat_tables(described).take(pa.array(order)).to_batches()

    def _table(self, tasks: Sequence[ChangelogScanTask]) -> pa.Table:
        batches = [batch for task in tasks for batch in self._rows(task, self._with_lineage)]
        return pa.Table.from_batches(batches, schema_to_arrow(self._with_lineage))

    def _rows(self, change: ChangelogScanTask, wanted: Schema) -> Iterator[pa.RecordBatch]:
        task = change.task
        if change.deleted_by is None:
            yield from read_task(task, wanted, self._context)
            return
        # Rows that were live under the earlier deletes and are not under those of now.
        live = [
            batch.column(0).to_numpy()
            for batch in read_task(task.replace(deletes=change.deleted_by), Schema(reserved.POS), self._context)
        ]
        stays = pa.array(np.concatenate([np.zeros(0, np.int64), *live]))
        has_position = reserved.POS.field_id in wanted.fields_by_id
        with_position = wanted if has_position else Schema(*wanted.fields, reserved.POS)
        for batch in read_task(task, with_position, self._context):
            deleted = batch.filter(pc.invert(pc.is_in(batch.column(reserved.POS.name), stays)))
            if deleted.num_rows:
                yield deleted.select([field.name for field in wanted.fields])

    def _described(self, rows: pa.Table, task: ChangelogScanTask, change_type: str) -> Iterator[pa.RecordBatch]:
        """The rows with what happened to them."""
        values = (str(change_type), task.ordinal, task.snapshot_id)
        for batch in rows.select([field.name for field in self._plain.fields]).to_batches():
            constants = [
                constant_array(value, field.field_type, self.target.field(field.name).type, batch.num_rows)
                for field, value in zip(_CHANGE_COLUMNS, values, strict=True)
            ]
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays([*batch.columns, *constants], schema=self.target)


def _has_ids(tasks: Sequence[ChangelogScanTask]) -> bool:
    return any(change.task.first_row_id is not None for change in tasks)


def _numbers(rows: pa.Table, name: str) -> Numbers:
    numbers: Numbers = pc.fill_null(rows.column(name), -1).to_numpy()
    return numbers


def _without(rows: pa.Table, indices: Numbers) -> pa.Table:
    keep = np.ones(len(rows), bool)
    keep[indices] = False
    return rows.filter(pa.array(keep))
