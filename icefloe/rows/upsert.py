"""What an upsert changes: which rows have the keys of incoming rows, which of these differ, and what is written for them.

Rows that already equal the incoming ones stay as they are: nothing is written for them (PyIceberg does the same).
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, expressions as ex, metadata as md, planning
from icefloe.data import ReadContext, read_task
from icefloe.formats.array_metrics import internal_value
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.equality_keys import EqualityKeys, key_columns
from icefloe.progress import counted
from icefloe.rows.change import RowChange, rewrite
from icefloe.rows.matching import MatchedRows, search_files
from icefloe.rows.same_values import same_values
from icefloe.schema import Schema, reserved, select_ids, types

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NO_ID = np.iinfo(np.int64).max
_LISTED_KEYS = 1000
"""Up to this many keys of one column are listed in the filter of an upsert; beyond, their range is enough."""


def key_columns_of(schema: Schema, names: Sequence[str] | None, case_sensitive: bool) -> tuple[int, ...]:
    """The ids of the columns that rows are joined by: those named, or the table's identifier fields."""
    if names is None:
        if not schema.identifier_field_ids:
            raise errors.InvalidInputError("the table has no identifier fields; give the key columns as join_cols")
        return schema.identifier_field_ids
    ids = tuple(schema.find_field(name, case_sensitive).field_id for name in names)
    if not ids or any(field_id in schema.parents for field_id in ids):
        raise errors.InvalidInputError(
            f"join_cols must be one or more top-level columns; given: {', '.join(names) or 'none'}"
        )
    return ids


@dataclass(frozen=True)
class IncomingRows:
    """The rows of an upsert, in the table's columns, each with a key of its own. Not slotted, for the keys made once."""

    rows: pa.Table
    schema: Schema
    key_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        names = [str(self.schema.find_column_name(field_id)) for field_id in self.key_ids]
        keys = key_columns(self.rows, self.key_ids).rename_columns(names)
        for name in names:
            if keys.column(name).null_count:
                raise errors.InvalidValueError(f"the data has null in the key column {name!r}; keys must not be null")
        if self.keys.count < self.rows.num_rows:
            order = np.argsort(self.keys.own_numbers, kind="stable")
            again = order[1:][np.diff(self.keys.own_numbers[order]) == 0]
            raise errors.InvalidValueError(
                f"the data has {len(np.unique(self.keys.own_numbers[again]))} duplicate keys, such as "
                f"{keys.slice(int(again[0]), 1).to_pylist()[0]}; keys must be unique"
            )

    @property
    def key_schema(self) -> Schema:
        """The columns of the keys."""
        return select_ids(self.schema, self.key_ids)

    @cached_property
    def keys(self) -> EqualityKeys:
        """The keys, numbered."""
        return EqualityKeys(self.rows, self.key_ids)

    @cached_property
    def indices(self) -> Numbers:
        """The index of the row that has each number's key."""
        indices = np.empty(self.rows.num_rows, np.int64)
        indices[self.keys.own_numbers] = np.arange(self.rows.num_rows)
        return indices

    def key_filter(self) -> ex.Expression:
        """What all rows with one of the keys match: the keys of one column if they are few, else the range of each column."""
        fields = self.key_schema.fields
        ranges: ex.Expression = ex.AlwaysTrue()
        for field in fields:
            column, field_type = ex.Column(ex.IdReference(field.field_id)), field.field_type
            values = self.rows.column(field.name)
            if isinstance(values.type, pa.BaseExtensionType):
                values = values.cast(values.type.storage_type)
            if len(fields) == 1 and len(values) <= _LISTED_KEYS:
                return column.is_in(ex.Literal(internal_value(value, field_type), field_type) for value in values)
            ends = pc.min_max(values)
            ranges &= column.between(
                *(ex.Literal(internal_value(ends[end], field_type), field_type) for end in ("min", "max"))
            )
        return ranges


def upsert(change: RowChange, incoming: IncomingRows, *, updates: bool, inserts: bool) -> md.Snapshot | None:
    """Replace the rows that have the keys of incoming rows, where allowed, and add the other incoming rows, where allowed."""
    read = ex.bind(incoming.key_filter(), change.metadata.schema())
    context, lineage = change.branch.context, change.has_lineage
    tasks = counted("search", change.branch.scan(read).plan_files(), change.branch.progress)
    matches = list(find_key_matches(tasks, context, incoming, lineage=lineage, compare=updates))
    plan = plan_upsert(incoming, matches, context, updates=updates, inserts=inserts, lineage=lineage)
    if not plan.rows.num_rows:
        return None
    with ThreadPoolExecutor(1, thread_name_prefix="icefloe-upsert") as pool:
        # New files and files without the replaced rows are written side by side.
        writing = pool.submit(change.write, plan.rows)
        rest = rewrite(change, plan.replaced)
        added = [*writing.result(), *rest]
    return change.commit(plan.replaced, added, read, relies_on_read=plan.leaves_rows)


@dataclass(frozen=True, slots=True)
class KeyMatches:
    """The live rows of one data file that have keys of incoming rows: at `positions`, in the file's order.

    `indices` are those of the incoming rows with their keys, `is_same` says where these are equal, `row_ids` are their ids.
    """

    task: planning.FileScanTask
    positions: Numbers
    indices: Numbers
    is_same: Mask
    row_ids: Numbers


def find_key_matches(
    tasks: Iterable[planning.FileScanTask],
    context: ReadContext,
    incoming: IncomingRows,
    *,
    lineage: bool = False,
    compare: bool = True,
) -> Iterator[KeyMatches]:
    """The rows with the keys of incoming rows, file by file; files without any are left out. The residuals of tasks hold too.

    Only key columns are read of a file that has none. Where nothing is compared, no row counts as equal.
    """
    columns = Schema(*incoming.key_schema.fields, *((reserved.ROW_ID,) if lineage else ()), reserved.POS)

    def search(task: planning.FileScanTask) -> tuple[Numbers, Numbers, Mask, Numbers] | None:
        parts: list[tuple[Numbers, Numbers, Numbers]] = []
        for batch in read_task(task, columns, context):
            numbers = incoming.keys.numbers(batch)
            rows = np.flatnonzero(numbers >= 0)
            if len(rows):
                positions = batch.column(reserved.POS.name).to_numpy()[rows]
                ids = batch.column(reserved.ROW_ID.name).fill_null(_NO_ID).to_numpy()[rows] if lineage else rows[:0]
                parts.append((positions, incoming.indices[numbers[rows]], ids))
        if not parts:
            return None
        positions, indices, ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        is_same = _compared(task, positions, indices, incoming, context) if compare else np.zeros(len(indices), bool)
        return positions, indices, is_same, ids

    # What all files need is made before several threads ask for it.
    _ = incoming.indices
    for task, parts in search_files(tasks, search):
        yield KeyMatches(task, *(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _compared(
    task: planning.FileScanTask, positions: Numbers, indices: Numbers, incoming: IncomingRows, context: ReadContext
) -> Mask:
    """Where the rows at these positions equal the incoming rows in all columns beside the keys.

    Columns of fixed width first: if they differ in all rows, as the time of a change does, the others are not even read.
    """
    others = [field for field in incoming.schema.fields if field.field_id not in incoming.key_ids]
    is_same = np.ones(len(positions), bool)
    for is_cheap in (True, False):
        fields = [field for field in others if _is_fixed(field.field_type) == is_cheap]
        left = np.flatnonzero(is_same)
        if fields and len(left):
            is_same[left] = _same_rows(task, positions[left], indices[left], incoming.rows, fields, context)
    return is_same


def _is_fixed(field_type: types.IcebergType) -> bool:
    return isinstance(field_type, types.PrimitiveType) and not isinstance(
        field_type, types.StringType | types.BinaryType
    )


def _same_rows(
    task: planning.FileScanTask,
    positions: Numbers,
    indices: Numbers,
    incoming: pa.Table,
    fields: list[types.NestedField],
    context: ReadContext,
) -> Mask:
    is_same = np.zeros(len(positions), bool)
    done = 0
    for batch in read_task(task, Schema(*fields, reserved.POS), context):
        there = batch.column(reserved.POS.name).to_numpy()
        # Both ascend, and every position is one of a live row.
        end = int(np.searchsorted(positions, there[-1], "right"))
        rows = np.searchsorted(there, positions[done:end])
        left = np.arange(len(rows))
        for field in fields:
            # Each column is asked only of the rows that were equal so far.
            ours = batch.column(field.name).take(pa.array(rows[left]))
            theirs = incoming.column(field.name).take(pa.array(indices[done:end][left]))
            left = left[same_values(ours, theirs)]
        is_same[done + left] = True
        done += len(rows)
    return is_same


@dataclass(frozen=True, slots=True)
class Upsert:
    """What is written, with the ids of the rows that it replaces where there are ids, and the rows that are replaced.

    `leaves_rows` says whether rows with keys of incoming ones stay as they are: what is written counts on them.
    """

    rows: pa.Table
    replaced: list[MatchedRows]
    leaves_rows: bool


def plan_upsert(
    incoming: IncomingRows,
    matches: Sequence[KeyMatches],
    context: ReadContext,
    *,
    updates: bool = True,
    inserts: bool = True,
    lineage: bool = False,
) -> Upsert:
    """What an upsert writes and replaces. A key that several rows have is left to one, which takes the first of their ids."""
    indices, is_same, row_ids = (
        np.concatenate([np.empty(0, dtype), *(getattr(match, name) for match in matches)])
        for name, dtype in (("indices", np.int64), ("is_same", bool), ("row_ids", np.int64))
    )
    counts = np.bincount(indices, minlength=incoming.rows.num_rows)
    is_unchanged = np.zeros(len(counts), bool)
    is_unchanged[indices[is_same]] = True
    is_unchanged &= counts == 1
    is_matched = counts > 0
    is_written = (is_matched & ~is_unchanged & updates) | (~is_matched & inserts)
    rows = incoming.rows
    if lineage:
        ids = np.full(len(counts), _NO_ID)
        np.minimum.at(ids, indices, row_ids)
        rows = rows.append_column(reserved.ROW_ID.name, pa.array(ids, mask=ids == _NO_ID))
    replaced = [
        MatchedRows(match.task, DeletionVector.from_positions(positions), context)
        for match in (matches if updates else ())
        if len(positions := match.positions[~is_unchanged[match.indices]])
    ]
    written = rows if is_written.all() else rows.filter(pa.array(is_written))
    return Upsert(written, replaced, bool((is_matched & ~is_written).any()))
