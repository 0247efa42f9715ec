"""How tasks that share nothing sort a group as a whole: each sorts a range of keys, which a sample of the rows gives.

Ranges follow one another in the order of the rows, so that files of sorted ranges are those of a sorted group. A file may have
several of them (`shuffle-partitions-per-file`), which are sorted one after the other.
"""

import os
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.data import KeyMaker, SortKey, sort_by_keys, sorted_batches
from icefloe.maintenance.rewrite.groups import GroupRewrite, RewrittenGroup, order_keys, read_rows, write_rows
from icefloe.maintenance.rewrite.sampling import Tasks

_Numbers = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_GATHERED = 24 << 20
"""Bytes of rows that are cut into ranges at a time."""
_SORTED = 128 << 20
"""Bytes of rows that a task sorts at once: several tasks may share a machine."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyRanges:
    """Ranges of keys, each of which begins with a bound, but for the first."""

    keys: KeyMaker
    bounds: tuple[SortKey, ...]
    count: int

    @staticmethod
    def of_sample(keys: KeyMaker, sample: pa.Table, count: int) -> "KeyRanges":
        """Up to so many ranges, with about as many rows of the sample in each."""
        known = keys(sample)
        columns = pa.table({str(index): key.values for index, key in enumerate(known)})
        ordered = sort_by_keys(columns, known)
        at = np.unique(np.arange(1, count) * sample.num_rows // count) if sample.num_rows else np.empty(0, np.int64)
        bounds = ordered.take(pa.array(at, pa.int64())).combine_chunks()
        return KeyRanges(
            keys,
            tuple(
                SortKey(_plain(bounds.column(index)), key.is_ascending, key.nulls_first)
                for index, key in enumerate(known)
            ),
            len(at) + 1,
        )

    def split(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The rows by the number of their range, from 0; in each as they came."""
        numbers = self.numbers(rows)
        # Numbers of 16 bits are sorted in one pass.
        order = np.argsort(numbers.astype(np.uint16) if self.count < 1 << 16 else numbers, kind="stable")
        spread = rows.take(pa.array(order))
        start = 0
        for number, size in enumerate(np.bincount(numbers, minlength=self.count).tolist()):
            if size:
                yield number, spread.slice(start, size)
            start += size

    def numbers(self, rows: pa.Table) -> _Numbers:
        """The range of each row: how many bounds are not after it."""
        low, high = np.zeros(rows.num_rows, np.int64), np.full(rows.num_rows, self.count - 1)
        keys = self.keys(rows)
        for _ in range((self.count - 1).bit_length()):
            middle = (low + high) // 2
            is_open = low < high
            reached = _reached(keys, self.bounds, np.minimum(middle, self.count - 2))
            low = np.where(is_open & reached, middle + 1, low)
            high = np.where(is_open & ~reached, middle, high)
        return low


def _reached(keys: Sequence[SortKey], bounds: Sequence[SortKey], at: _Numbers) -> _Flags:
    """Whether rows are equal to certain bounds, or come after them."""
    places = pa.array(at)
    result: _Flags = np.ones(len(at), np.bool_)
    for key, bound in zip(reversed(keys), reversed(bounds), strict=True):
        own, other = _plain(key.values), bound.values.take(places)
        is_after = pc.greater(own, other) if key.is_ascending else pc.less(own, other)
        after, equal = (_flags(flags) for flags in (is_after, pc.equal(own, other)))
        if own.null_count or other.null_count:
            own_null, other_null = _flags(own.is_null()), _flags(other.is_null())
            after |= (other_null & ~own_null) if key.nulls_first else (own_null & ~other_null)
            equal |= own_null & other_null
        result = after | (equal & result)
    return result


def _flags(values: pa.Array) -> _Flags:
    flags: _Flags = pc.fill_null(values, False).to_numpy(zero_copy_only=False).copy()
    return flags


def _plain(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


@dataclass(frozen=True, slots=True)
class RangedRewrite:
    """A group whose rows are spread over new files by ranges of their keys."""

    work: GroupRewrite
    """The group, maybe without its tasks: each of those who work on it has some."""
    ranges: KeyRanges

    @staticmethod
    def of_sample(work: GroupRewrite, sample: pa.Table) -> "RangedRewrite":
        """As many ranges as files are expected, or some for each of them."""
        keys = order_keys(work, sample)
        assert keys is not None, "the group has an order, or moves to other partitions"
        return RangedRewrite(work, KeyRanges.of_sample(keys, sample, work.expected_files * work.ranges_per_file))

    @property
    def files(self) -> int:
        """How many tasks write."""
        return -(-self.ranges.count // self.work.ranges_per_file)

    def file_of(self, number: int) -> int:
        """Which of them writes a range."""
        return number // self.work.ranges_per_file

    def cut(self, tasks: Tasks) -> Iterator[tuple[int, pa.Table]]:
        """The rows of some files in pieces of one range each."""
        with closing(read_rows(self.work, tasks)) as batches:
            for rows in _gathered(batches):
                yield from self.ranges.split(rows)

    def write(self, pieces: Iterable[tuple[int, pa.Table]], unique: str) -> RewrittenGroup:
        """Sort the pieces of one file, and write them."""
        with closing(self._sorted(pieces)) as arranged:
            return write_rows(arranged, self.work, unique, workers=1)

    def _sorted(self, pieces: Iterable[tuple[int, pa.Table]]) -> Generator[pa.RecordBatch, None, None]:
        if self.work.ranges_per_file == 1:
            batches = (batch for _, rows in pieces for batch in rows.to_batches())
            yield from sorted_batches(batches, self.ranges.keys, run_bytes=_SORTED)
            return
        with tempfile.TemporaryDirectory(prefix="icefloe-ranges-") as folder:
            for path in _spooled(pieces, folder):
                with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
                    yield from sorted_batches(reader, self.ranges.keys, run_bytes=_SORTED)
                os.remove(path)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= _GATHERED:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _spooled(pieces: Iterable[tuple[int, pa.Table]], folder: str) -> list[str]:
    """A temporary file for each range, in their order."""
    writers: dict[int, pa.RecordBatchStreamWriter] = {}
    with ExitStack() as stack:
        for number, rows in pieces:
            if number not in writers:
                sink = stack.enter_context(pa.OSFile(os.path.join(folder, f"{number}.arrow"), "wb"))
                writers[number] = stack.enter_context(pa.ipc.new_stream(sink, rows.schema))
            writers[number].write_table(rows)
    return [os.path.join(folder, f"{number}.arrow") for number in sorted(writers)]
