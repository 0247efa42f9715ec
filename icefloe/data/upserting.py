"""What an upsert changes: which rows have the keys of incoming rows, which of these differ, and what is written for them.

Rows that hold what comes already stay as they are: nothing is written for them (PyIceberg does the same).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.data.matching import MatchedRows, matched_rows, search_files
from icefloe.data.same_values import same_values
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.errors import InvalidValueError
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.equality_keys import EqualityKeys, key_columns
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, reserved, select_ids, types

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_NO_ID = np.iinfo(np.int64).max


@dataclass(frozen=True)
class IncomingRows:
    """The rows of an upsert, in the table's columns, each with a key of its own. Not slotted, for the keys made once."""

    rows: Any
    schema: Schema
    key_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        names = [str(self.schema.find_column_name(field_id)) for field_id in self.key_ids]
        keys = key_columns(self.rows, self.key_ids).rename_columns(names)
        for name in names:
            if keys.column(name).null_count:
                raise InvalidValueError(
                    f"the data has null in {name!r}, by which rows are joined; keys must have values"
                )
        if self.keys.count < self.rows.num_rows:
            order = np.argsort(self.keys.own_numbers, kind="stable")
            again = order[1:][np.diff(self.keys.own_numbers[order]) == 0]
            raise InvalidValueError(
                f"the data has {len(np.unique(self.keys.own_numbers[again]))} keys more than once, such as "
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
    def places(self) -> Numbers:
        """The row that has each number's key."""
        found = np.empty(self.rows.num_rows, np.int64)
        found[self.keys.own_numbers] = np.arange(self.rows.num_rows)
        return found


@dataclass(frozen=True, slots=True)
class KeyMatches:
    """The live rows of one data file that have keys of incoming rows: at `positions`, in the file's order.

    `places` are the incoming rows with their keys, `is_same` says where these hold the same, `row_ids` are their ids.
    """

    task: FileScanTask
    positions: Numbers
    places: Numbers
    is_same: Mask
    row_ids: Numbers

    @property
    def nbytes(self) -> int:
        """How much memory it takes, for those who read ahead."""
        return int(self.positions.nbytes + self.places.nbytes + self.is_same.nbytes + self.row_ids.nbytes)


def find_key_matches(
    tasks: Iterable[FileScanTask],
    context: ReadContext,
    incoming: IncomingRows,
    *,
    lineage: bool = False,
    compare: bool = True,
    workers: int | None = None,
) -> Iterator[KeyMatches]:
    """The rows with the keys of incoming rows, file by file; files without any are left out. The residuals of tasks hold too.

    Only key columns are read of a file that has none. Where nothing is compared, no row counts as the same.
    """
    wanted = Schema(*incoming.key_schema.fields, *((reserved.ROW_ID,) if lineage else ()), reserved.POS)

    def search(task: FileScanTask) -> Iterator[KeyMatches]:
        found: list[tuple[Numbers, Numbers, Numbers]] = []
        for batch in read_task(task, wanted, context):
            numbers = incoming.keys.numbers(batch)
            rows = np.flatnonzero(numbers >= 0)
            if len(rows):
                positions = batch.column(reserved.POS.name).to_numpy()[rows]
                ids = _row_ids(batch)[rows] if lineage else np.empty(0, np.int64)
                found.append((positions, incoming.places[numbers[rows]], ids))
        if found:
            positions, places, ids = (np.concatenate(each) for each in zip(*found, strict=True))
            is_same = _compared(task, positions, places, incoming, context) if compare else np.zeros(len(places), bool)
            yield KeyMatches(task, positions, places, is_same, ids)

    def joined(task: FileScanTask, parts: list[KeyMatches]) -> KeyMatches:
        positions, places, ids = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("positions", "places", "row_ids")
        )
        return KeyMatches(task, positions, places, np.concatenate([part.is_same for part in parts]), ids)

    # What all files need is made before several threads ask for it.
    _ = incoming.places
    yield from search_files(tasks, search, joined, workers)


def _row_ids(batch: Any) -> Numbers:
    found: Numbers = batch.column(reserved.ROW_ID.name).fill_null(_NO_ID).to_numpy()
    return found


def _compared(
    task: FileScanTask, positions: Numbers, places: Numbers, incoming: IncomingRows, context: ReadContext
) -> Mask:
    """Where the rows at these positions hold what the incoming rows hold beside the keys.

    Columns of fixed width first: if they tell all rows apart, as the time of a change does, the others are not even read.
    """
    others = [field for field in incoming.schema.fields if field.field_id not in incoming.key_ids]
    found = np.ones(len(positions), bool)
    for is_cheap in (True, False):
        fields = [field for field in others if _is_fixed(field.field_type) == is_cheap]
        left = np.flatnonzero(found)
        if fields and len(left):
            found[left] = _same_rows(task, positions[left], places[left], incoming.rows, fields, context)
    return found


def _is_fixed(kind: types.IcebergType) -> bool:
    return isinstance(kind, types.PrimitiveType) and not isinstance(kind, types.StringType | types.BinaryType)


def _same_rows(
    task: FileScanTask,
    positions: Numbers,
    places: Numbers,
    incoming: Any,
    fields: list[types.NestedField],
    context: ReadContext,
) -> Mask:
    found = np.zeros(len(positions), bool)
    done = 0
    for batch in read_task(task, Schema(*fields, reserved.POS), context):
        there = batch.column(reserved.POS.name).to_numpy()
        # Both ascend, and every position is one of a live row.
        end = int(np.searchsorted(positions, there[-1], "right"))
        rows = np.searchsorted(there, positions[done:end])
        ours = places[done:end]
        left = np.arange(len(rows))
        for field in fields:
            # Each column is asked only of the rows that were the same so far.
            here, incomes = pa.array(rows[left]), pa.array(ours[left])
            left = left[same_values(batch.column(field.name).take(here), incoming.column(field.name).take(incomes))]
        found[done + left] = True
        done += len(rows)
    return found


@dataclass(frozen=True, slots=True)
class Upsert:
    """What is written, with the ids of the rows that it replaces where there are ids, and the rows that go for it.

    `leaves_rows` says whether rows with keys of incoming ones stay as they are: what is written counts on them.
    """

    rows: Any
    replaced: tuple[MatchedRows, ...]
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
    places, is_same, row_ids = (
        np.concatenate([np.empty(0, kind), *(getattr(match, name) for match in matches)])
        for name, kind in (("places", np.int64), ("is_same", bool), ("row_ids", np.int64))
    )
    counts = np.bincount(places, minlength=incoming.rows.num_rows)
    is_unchanged = np.zeros(len(counts), bool)
    is_unchanged[places[is_same]] = True
    is_unchanged &= counts == 1
    is_matched = counts > 0
    is_written = (is_matched & ~is_unchanged & updates) | (~is_matched & inserts)
    rows = incoming.rows
    if lineage:
        ids = np.full(len(counts), _NO_ID)
        np.minimum.at(ids, places, row_ids)
        rows = rows.append_column(reserved.ROW_ID.name, pa.array(ids, mask=ids == _NO_ID))
    replaced = _replaced(matches, is_unchanged, context) if updates else ()
    written = rows if is_written.all() else rows.filter(pa.array(is_written))
    return Upsert(written, tuple(replaced), bool((is_matched & ~is_written).any()))


def _replaced(matches: Iterable[KeyMatches], is_unchanged: Mask, context: ReadContext) -> Iterator[MatchedRows]:
    for match in matches:
        positions = match.positions[~is_unchanged[match.places]]
        if len(positions):
            yield matched_rows(match.task, DeletionVector.from_positions(positions), context)
