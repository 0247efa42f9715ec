"""What changed between snapshots, as rows: each with what happened to it, in which snapshot of the range.

A delete and an insert of equal rows in one snapshot are no change, one for one: the row only moved to another file. What is
equal is decided by the columns that are shown. Updates are a delete and an insert of one row, told by identifier columns or
by row ids (spec: Row Lineage); with row ids, rows are equal only if their ids are.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, planning
from icefloe.data.row_numbers import ranks, row_numbers
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.formats.projection import constant_array
from icefloe.progress import Listener, Stage, listener_or_bar
from icefloe.schema import Schema, reserved, schema_to_arrow

CHANGE_COLUMNS = (reserved.CHANGE_TYPE, reserved.CHANGE_ORDINAL, reserved.COMMIT_SNAPSHOT_ID)
"""What is said of each change, after its columns."""
_NAMES = tuple(field.name for field in CHANGE_COLUMNS)
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def changes_to_arrow(scan: planning.ChangelogScan, progress: Listener | None = None) -> pa.Table:
    """All changes as a table, snapshot by snapshot: rows that were deleted, inserted, then updated ones in pairs."""
    reader = _ChangeReader(scan)
    stage = Stage("rows", None, listener_or_bar(progress))
    batches = []
    for batch in reader.batches():
        batches.append(batch)
        stage.step(batch.num_rows)
    stage.finish()
    return pa.Table.from_batches(batches, reader.target)


def changes_to_reader(scan: planning.ChangelogScan) -> pa.RecordBatchReader:
    """The changes as a stream of Arrow batches.

    Those of a snapshot that only inserts or only deletes are not held, those of others are while it is read; net changes are
    held for the whole range.
    """
    reader = _ChangeReader(scan)
    return pa.RecordBatchReader.from_batches(reader.target, reader.batches())


def shown_columns(scan: planning.ChangelogScan) -> Schema:
    """The columns of a scan without those that say what the change is."""
    of_change = {field.field_id for field in CHANGE_COLUMNS}
    return Schema(*(field for field in scan.projection().fields if field.field_id not in of_change))


def compared_columns(scan: planning.ChangelogScan) -> Schema:
    """The columns by which rows are equal: those that are shown, and the row id where updates are told by it."""
    shown, row_id = shown_columns(scan), reserved.ROW_ID
    needs_id = scan.pairs_updates and row_id.name in scan.identifier() and row_id.field_id not in shown.fields_by_id
    return Schema(*shown.fields, row_id) if needs_id else shown


def read_change(change: planning.ChangelogScanTask, columns: Schema, context: ReadContext) -> Iterator[pa.RecordBatch]:
    """The rows of one task with what happened to them, before anything is compared."""
    target = schema_to_arrow(Schema(*columns.fields, *CHANGE_COLUMNS))
    values = (str(change.change_type), change.ordinal, change.snapshot_id)
    for batch in _rows(change, columns, context):
        constants = [
            constant_array(value, field.field_type, target.field(field.name).type, batch.num_rows)
            for field, value in zip(CHANGE_COLUMNS, values, strict=True)
        ]
        yield pa.RecordBatch.from_arrays([*batch.columns, *constants], schema=target)


def by_ordinal(tasks: Iterator[planning.ChangelogScanTask]) -> Iterator[tuple[list[planning.ChangelogScanTask], bool]]:
    """The tasks of one snapshot after the other, and whether it both inserts and deletes."""
    for _, of_snapshot in groupby(tasks, key=lambda task: task.ordinal):
        group = list(of_snapshot)
        yield group, len({task.change_type for task in group}) > 1


class _ChangeReader:
    """Reads the changes of one snapshot after the other."""

    def __init__(self, scan: planning.ChangelogScan) -> None:
        self._scan = scan
        self._context = ReadContext(scan.metadata, scan.storage)
        self._compared = compared_columns(scan)
        self.target = schema_to_arrow(Schema(*shown_columns(scan).fields, *CHANGE_COLUMNS))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All changes."""
        if self._scan.is_net:
            yield from self._shown(_net(self._table(self._scan.plan_files())))
            return
        for tasks, is_mixed in by_ordinal(self._scan.plan_files()):
            if is_mixed:
                yield from self._shown(self._compare(self._table(tasks)))
            else:
                for task in tasks:
                    yield from self._shown(self._table([task]))

    def _compare(self, changes: pa.Table) -> pa.Table:
        left = _without_carryovers(changes)
        names = self._scan.identifier() if self._scan.pairs_updates else ()
        return _with_pairs(left, names) if names else left

    def _table(self, tasks: "Iterator[planning.ChangelogScanTask] | Sequence[planning.ChangelogScanTask]") -> pa.Table:
        batches = (batch for task in tasks for batch in read_change(task, self._compared, self._context))
        return pa.Table.from_batches(batches, schema_to_arrow(Schema(*self._compared.fields, *CHANGE_COLUMNS)))

    def _shown(self, changes: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from changes.select(self.target.names).cast(self.target).to_batches()


def _rows(change: planning.ChangelogScanTask, wanted: Schema, context: ReadContext) -> Iterator[pa.RecordBatch]:
    task = change.task
    if change.deleted_by is None:
        yield from read_task(task, wanted, context)
        return
    # Rows that were live under the earlier deletes and are not under those of now.
    live = [
        batch.column(0).to_numpy()
        for batch in read_task(task.replace(deletes=change.deleted_by), Schema(reserved.POS), context)
    ]
    stays = pa.array(np.concatenate([np.zeros(0, np.int64), *live]))
    has_position = reserved.POS.field_id in wanted.fields_by_id
    with_position = wanted if has_position else Schema(*wanted.fields, reserved.POS)
    for batch in read_task(task, with_position, context):
        deleted = batch.filter(pc.invert(pc.is_in(batch.column(reserved.POS.name), stays)))
        if deleted.num_rows:
            yield deleted.select([field.name for field in wanted.fields])


def _without_carryovers(changes: pa.Table) -> pa.Table:
    """Deletes and inserts of one snapshot without those that cancel each other."""
    numbers, is_insert = row_numbers(changes.drop_columns(_NAMES)), _is_insert(changes)
    inserted, deleted = (np.bincount(numbers[mask], minlength=len(numbers)) for mask in (is_insert, ~is_insert))
    cancelled = np.minimum(inserted, deleted)
    return changes.filter(pa.array(ranks(2 * numbers + is_insert) >= cancelled[numbers]))


def _with_pairs(changes: pa.Table, names: Sequence[str]) -> pa.Table:
    """Deletes and inserts of one snapshot that remain, then updates in pairs."""
    numbers, is_insert = row_numbers(changes.select(names)), _is_insert(changes)
    if names == (reserved.ROW_ID.name,):
        # Rows from before the table had ids are none of each other's.
        unknown = np.asarray(pc.is_null(changes.column(reserved.ROW_ID.name)))
        numbers = np.where(unknown, len(numbers) + np.arange(len(numbers)), numbers)
    inserted, deleted = (np.bincount(numbers[mask], minlength=2 * len(numbers)) for mask in (is_insert, ~is_insert))
    is_paired = ((inserted > 0) & (deleted > 0))[numbers]
    if (is_paired & ((inserted + deleted)[numbers] > 2)).any():
        raise several_rows(names)
    order = np.flatnonzero(is_paired)
    order = order[np.lexsort((is_insert[order], numbers[order]))]
    kinds = np.where(is_insert[order], planning.ChangeType.UPDATE_AFTER, planning.ChangeType.UPDATE_BEFORE)
    index = changes.schema.get_field_index(reserved.CHANGE_TYPE.name)
    field = changes.schema.field(index)
    pairs = changes.take(pa.array(order)).set_column(index, field, pa.array(kinds.tolist(), field.type))
    return pa.concat_tables([changes.filter(pa.array(~is_paired)), pairs])


def several_rows(names: Sequence[str]) -> errors.ValidationError:
    """What is wrong if updates cannot be told."""
    return errors.ValidationError(
        f"updates cannot be told by ({', '.join(names)}): one snapshot changes several rows of the same values there;"
        " name columns that identify a row"
    )


def _net(changes: pa.Table) -> pa.Table:
    """What is left when equal rows of opposite changes cancel each other, later ones against the last before them."""
    numbers, is_insert = row_numbers(changes.drop_columns(_NAMES)), _is_insert(changes)
    ordinals = changes.column(reserved.CHANGE_ORDINAL.name).to_numpy()
    order = np.lexsort((is_insert, ordinals, numbers))
    stays = np.zeros(len(order), bool)
    stays[order] = _unmatched(numbers[order], np.where(is_insert, 1, -1)[order])
    return changes.filter(pa.array(stays))


def _unmatched(groups: Numbers, steps: Numbers) -> Mask:
    """The steps up or down of each group, one group after the other, that no later step undoes."""
    counts = np.bincount(groups)
    ends = np.cumsum(counts)
    heights = np.cumsum(steps)
    totals = np.diff(np.r_[0, heights[ends - 1]]) if len(ends) else heights
    direction = np.sign(totals)[groups]
    heights = direction * (heights - np.r_[0, heights[ends - 1]][groups]) if len(ends) else heights
    # The lowest height from here to the end of the group: each group is far below the next one.
    lifted = heights + groups * (2 * len(groups) + 1)
    lowest = np.minimum.accumulate(lifted[::-1])[::-1]
    is_unmatched: Mask = (steps == direction) & (heights > 0) & (lowest >= lifted)
    return is_unmatched


def _is_insert(changes: pa.Table) -> Mask:
    return np.asarray(pc.equal(changes.column(reserved.CHANGE_TYPE.name), str(planning.ChangeType.INSERT)))
