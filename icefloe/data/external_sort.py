"""How more rows than fit into memory are sorted: in runs that are sorted in memory, spilled to disk, and merged.

The merge works on blocks of rows. In each round it takes from every run the rows that come before the first block that ends,
and sorts those together: nothing is done row by row, and rows that are equal stay in the order in which they came.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter

import pyarrow as pa

from icefloe.data.arranging import KeyMaker, SortKey, sort_by_keys
from icefloe.errors import StorageError

RUN_BYTES = 256 << 20
"""How many bytes of rows are sorted at once; about three times as much is in memory."""
_BLOCK_BYTES = 2 << 20
_MOST_RUNS = 64
"""How many runs are merged at a time, so that their blocks take no more than half of a run."""
_MOST_ROWS = 1 << 16


def sorted_batches(
    batches: Iterable[pa.RecordBatch], keys: KeyMaker, *, run_bytes: int = RUN_BYTES, folder: str | None = None
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a stream in the order of their keys; rows that are equal in it stay as they came.

    What does not fit into `run_bytes` goes to temporary files in the folder, by default that of the system; they are gone when
    the iterator ends or is closed.
    """
    with _spilling(folder) as disk:
        runs: list[_Run] = []
        for rows in _gathered(batches, run_bytes):
            if runs or rows.nbytes >= run_bytes:
                runs.append(disk.spill(_blocks(sort_by_keys(rows, keys(rows)), run_bytes)))
            else:
                # The last of the gathered tables is smaller than a run; if it is the first one, too, nothing is spilled.
                yield from sort_by_keys(rows, keys(rows)).combine_chunks().to_batches(_MOST_ROWS)
        while len(runs) > _MOST_RUNS:
            parts = [runs[first : first + _MOST_RUNS] for first in range(0, len(runs), _MOST_RUNS)]
            runs = [disk.spill(_merged(part, keys)) for part in parts]
        if runs:
            yield from _merged(runs, keys)


def _gathered(batches: Iterable[pa.RecordBatch], run_bytes: int) -> Iterator[pa.Table]:
    """The rows in tables of so many bytes; only the last one may have fewer."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        size += batch.nbytes
        if size >= run_bytes:
            rows, waiting, size = pa.Table.from_batches(waiting), [], 0
            yield rows
    if waiting:
        yield pa.Table.from_batches(waiting)


def _blocks(rows: pa.Table, run_bytes: int) -> Iterator[pa.RecordBatch]:
    """Sorted rows in batches so small that those of many runs fit into memory together."""
    size = min(_BLOCK_BYTES, max(1, run_bytes // (2 * _MOST_RUNS)))
    count = max(1, int(rows.num_rows * size / max(1, rows.nbytes)))
    yield from rows.combine_chunks().to_batches(min(count, _MOST_ROWS))


# -- the temporary files


@dataclass(slots=True)
class _Run:
    """Sorted rows in a temporary file, which goes once they were read."""

    path: str

    def batches(self) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(self.path) as source, pa.ipc.open_stream(source) as reader:
            yield from reader
        os.remove(self.path)


@dataclass(slots=True)
class _Disk:
    """A temporary folder, made when the first run is spilled."""

    folder: str | None
    made: str | None = None
    runs: int = 0

    def spill(self, batches: Iterable[pa.RecordBatch]) -> _Run:
        """Write sorted rows to a new file."""
        try:
            if self.made is None:
                self.made = tempfile.mkdtemp(prefix="icefloe-sort-", dir=self.folder)
            self.runs += 1
            path = os.path.join(self.made, f"{self.runs:05d}.arrow")
            _write(path, iter(batches))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise StorageError(
                self.made or self.folder or tempfile.gettempdir(),
                f"no disk space left to sort rows: {error}; free some, or set TMPDIR to another folder",
            ) from error
        return _Run(path)


def _write(path: str, batches: Iterator[pa.RecordBatch]) -> None:
    first = next(batches)
    options = pa.ipc.IpcWriteOptions(compression="lz4" if pa.Codec.is_available("lz4") else None)
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, first.schema, options=options) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)


@contextmanager
def _spilling(folder: str | None) -> Iterator[_Disk]:
    disk = _Disk(folder)
    try:
        yield disk
    finally:
        if disk.made is not None:
            shutil.rmtree(disk.made, ignore_errors=True)


# -- the merge


def _merged(runs: Sequence[_Run], keys: KeyMaker) -> Iterator[pa.RecordBatch]:
    """The rows of sorted runs in order."""
    cursors = [_Cursor(run.batches(), keys) for run in runs]
    try:
        while cursors := [cursor for cursor in cursors if cursor.advance()]:
            # The first of equal ones, so that rows of earlier runs come first.
            first = min(cursors, key=attrgetter("last"))
            at = cursors.index(first)
            parts = [
                first.take_all() if index == at else cursor.take_before(first, inclusive=index < at)
                for index, cursor in enumerate(cursors)
            ]
            rows = pa.Table.from_batches([part for part in parts if part.num_rows])
            yield from sort_by_keys(rows, keys(rows)).combine_chunks().to_batches(_MOST_ROWS)
    finally:
        for cursor in cursors:
            cursor.close()


@dataclass(slots=True, eq=False)
class _Cursor:
    """Where the merge is in a run: the rows of the current block that are yet to be taken."""

    batches: Iterator[pa.RecordBatch]
    make_keys: KeyMaker
    block: pa.RecordBatch | None = None
    keys: Sequence[SortKey] = ()
    start: int = 0
    last: "_RowKey" = field(init=False)
    """The key of the last row of the block."""

    def advance(self) -> bool:
        """Go to the next block if this one is used up; whether there are rows left."""
        if self.block is None or self.start == self.block.num_rows:
            self.block = next(self.batches, None)
            self.start = 0
            if self.block is not None:
                self.keys = [_plain(key) for key in self.make_keys(pa.Table.from_batches([self.block]))]
                self.last = self._key(self.block.num_rows - 1)
        return self.block is not None

    def take_all(self) -> pa.RecordBatch:
        """The rest of the block."""
        assert self.block is not None
        return self._take(self.block.num_rows)

    def take_before(self, other: "_Cursor", *, inclusive: bool) -> pa.RecordBatch:
        """The rows that come before the last row of another block, or, if inclusive, are equal to it."""
        assert self.block is not None
        limit = other.last
        low, high = self.start, self.block.num_rows
        while low < high:
            middle = (low + high) // 2
            key = self._key(middle)
            if key < limit or (inclusive and not limit < key):
                low = middle + 1
            else:
                high = middle
        return self._take(low)

    def close(self) -> None:
        """Close the file."""
        if isinstance(self.batches, Generator):
            self.batches.close()

    def _take(self, stop: int) -> pa.RecordBatch:
        assert self.block is not None
        rows = self.block.slice(self.start, stop - self.start)
        self.start = stop
        return rows

    def _key(self, row: int) -> "_RowKey":
        return _RowKey(self.keys, row)


def _plain(key: SortKey) -> SortKey:
    """The key with numbers in place of dates and times, which Python cannot represent at any precision."""
    if not pa.types.is_temporal(key.values.type):
        return key
    return replace(key, values=key.values.cast(pa.int32() if key.values.type.bit_width == 32 else pa.int64()))


class _RowKey:
    """The key of one row; few are made, for where blocks end and are cut."""

    __slots__ = ("_keys", "_values")

    def __init__(self, keys: Sequence[SortKey], row: int) -> None:
        self._keys = keys
        self._values = [key.values[row].as_py() for key in keys]

    def __lt__(self, other: "_RowKey") -> bool:
        for key, mine, theirs in zip(self._keys, self._values, other._values, strict=True):
            if mine is None or theirs is None:
                if mine is not theirs:
                    return (mine is None) is key.nulls_first
            elif mine != theirs:
                return bool((mine < theirs) is key.is_ascending)
        return False
