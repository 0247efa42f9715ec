"""Aggregates over the manifests of a snapshot, in one pass and little memory: file sizes, top files, column bounds."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.catalog import At
from icefloe.progress import Listener, Progress
from icefloe.table import Table
from icefloe.ui.charts import Overlap

MOST = 1000
"""Number of files kept for each sort order; others can be found with a filter."""
ORDERS: Mapping[str, tuple[str, str] | None] = {
    "listed": None,
    "largest": ("file_size_in_bytes", "descending"),
    "smallest": ("file_size_in_bytes", "ascending"),
    "most rows": ("record_count", "descending"),
    "fewest rows": ("record_count", "ascending"),
}
_FILES = ("content", "file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes")
_BUFFERED = 100_000
_RANGES = 120
_PLACES = 240
_BARS = 11
"""Minimum number of bars in a histogram, so that a few bars are not too wide."""


@dataclass
class FilesDigest:
    """Counts of the matching files, their sizes by powers of two, and the first files of each order."""

    files: int = 0
    data_files: int = 0
    records: int = 0
    bytes: int = 0
    delete_files: int = 0
    delete_records: int = 0
    delete_bytes: int = 0
    by_power: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, np.int64))
    """Number of data files with a size from 2^n up to 2^(n+1)."""
    bytes_by_power: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, np.int64))
    first: dict[str, pa.Table] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Approximate size in memory."""
        return 2048 + sum(int(table.nbytes) for table in self.first.values())

    @property
    def median_power(self) -> int | None:
        """The power of two below the median data file size."""
        if not self.data_files:
            return None
        return int(np.searchsorted(np.cumsum(self.by_power), self.data_files / 2))

    def _add(self, files: pa.Table) -> None:
        sizes = files.column("file_size_in_bytes").to_numpy()
        records = files.column("record_count").to_numpy()
        is_data = files.column("content").to_numpy() == 0
        data, deletes = sizes[is_data], sizes[~is_data]
        self.files += len(sizes)
        self.data_files += len(data)
        self.records += int(records[is_data].sum())
        self.bytes += int(data.sum())
        self.delete_files += len(deletes)
        self.delete_records += int(records[~is_data].sum())
        self.delete_bytes += int(deletes.sum())
        powers = np.log2(np.maximum(data, 1)).astype(np.int64)
        self.by_power += np.bincount(powers, minlength=64)
        np.add.at(self.bytes_by_power, powers, data)
        for name, order in ORDERS.items():
            both = pa.concat_tables([self.first[name], files]) if name in self.first else files
            self.first[name] = _first(both, order)


def _first(files: pa.Table, order: tuple[str, str] | None) -> pa.Table:
    if order is None:
        return files.slice(0, MOST)
    indices = pc.select_k_unstable(files, MOST, [order])
    return files.take(indices)


def digest_files(table: Table, at: At, where: str | None, listener: Listener) -> FilesDigest:
    """Aggregate the files of a snapshot that match a filter on the metadata table `files`."""
    digest = FilesDigest()
    known = {field.name for field in table.inspect.scan("files").schema.fields}
    # Unpartitioned tables have no such column.
    fields = [name for name in _FILES if name in known]
    scan = table.inspect.scan("files", row_filter=where, selected_fields=fields, **at)
    total = _files_in(table, at)
    buffered: list[pa.RecordBatch] = []
    rows = seen = 0
    for batch in scan.to_arrow_batch_reader():
        buffered.append(batch)
        rows += batch.num_rows
        seen += batch.num_rows
        listener(Progress("files", seen, max(total, seen)))
        if rows >= _BUFFERED:
            digest._add(pa.Table.from_batches(buffered))
            buffered, rows = [], 0
    if buffered:
        digest._add(pa.Table.from_batches(buffered))
    return digest


def _files_in(table: Table, at: At) -> int:
    columns = [f"{state}_{kind}_files_count" for state in ("added", "existing") for kind in ("data", "delete")]
    counts = table.inspect.scan("manifests", selected_fields=columns, **at).to_arrow()
    return sum(int(pc.sum(counts.column(name)).as_py() or 0) for name in columns)


@dataclass
class ColumnDigest:
    """Aggregated metrics of a column over all data files."""

    files: int = 0
    without_bounds: int = 0
    values: int | None = 0
    nulls: int | None = 0
    nans: int | None = 0
    bytes: int | None = 0
    low: object = None
    high: object = None
    overlap: Overlap | None = None


def digest_column(table: Table, at: At, name: str, listener: Listener) -> ColumnDigest:
    """Aggregate the metrics of a column; these include deleted rows."""
    digest = ColumnDigest()
    lower, upper = list[pa.Array](), list[pa.Array]()
    total = _files_in(table, at)
    for metrics in _metrics(table, at, name):
        digest.files += len(metrics)
        listener(Progress("files", digest.files, max(total, digest.files)))
        for part, target in (
            ("value_count", "values"),
            ("null_value_count", "nulls"),
            ("nan_value_count", "nans"),
            ("column_size", "bytes"),
        ):
            setattr(digest, target, _added(getattr(digest, target), pc.struct_field(metrics, [part])))
        low, high = pc.struct_field(metrics, ["lower_bound"]), pc.struct_field(metrics, ["upper_bound"])
        known = pc.and_(pc.is_valid(low), pc.is_valid(high))
        lower.append(low.filter(known))
        upper.append(high.filter(known))
    lows, highs = pa.chunked_array(lower) if lower else None, pa.chunked_array(upper) if upper else None
    if lows is not None and highs is not None and len(lows):
        digest.without_bounds = digest.files - len(lows)
        _bounds(digest, lows, highs)
    else:
        digest.without_bounds = digest.files
    return digest


def _metrics(table: Table, at: At, name: str) -> Iterator[pa.StructArray]:
    scan = table.inspect.scan("data_files", selected_fields=(f"readable_metrics.{name}",), **at)
    for batch in scan.to_arrow_batch_reader():
        yield pc.struct_field(batch.column(0), [0])


def _added(total: int | None, counts: pa.Array) -> int | None:
    """Add counts to a total; one unknown count makes the total unknown."""
    if total is None or counts.null_count:
        return None
    return total + int(pc.sum(counts).as_py() or 0)


def _bounds(digest: ColumnDigest, lows: pa.ChunkedArray, highs: pa.ChunkedArray) -> None:
    try:
        digest.low, digest.high = pc.min(lows).as_py(), pc.max(highs).as_py()
    except pa.ArrowNotImplementedError:
        # Arrow has no ordering for this type.
        return
    numbers = _numbers(lows, highs)
    if numbers is None or digest.low is None:
        return
    starts, ends = numbers
    digest.overlap = _overlap(starts, ends, _edge(digest.low), _edge(digest.high))


def _edge(value: object) -> str:
    text = str(value)
    return text if len(text) <= 28 else f"{text[:27]}…"


def _numbers(
    lows: pa.ChunkedArray, highs: pa.ChunkedArray
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None:
    """Map bounds to numbers in the same order: their values, or their ranks among all bounds."""
    kind = lows.type
    if pa.types.is_date32(kind):
        lows, highs = lows.cast(pa.int32()), highs.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        lows, highs = lows.cast(pa.int64()), highs.cast(pa.int64())
    elif pa.types.is_decimal(kind):
        lows, highs = lows.cast(pa.float64()), highs.cast(pa.float64())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        both = pa.chunked_array([*lows.chunks, *highs.chunks]).combine_chunks()
        ranks = pc.rank(both, tiebreaker="dense").to_numpy().astype(np.float64)
        return ranks[: len(lows)], ranks[len(lows) :]
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    starts, ends = (part.to_numpy().astype(np.float64) for part in (lows, highs))
    return (starts, ends) if np.isfinite(starts).all() and np.isfinite(ends).all() else None


def _overlap(starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64], first: str, last: str) -> Overlap:
    low, high = float(starts.min()), float(ends.max())
    span = (high - low) or 1.0
    order = np.argsort(starts, kind="stable")
    sampled = order[np.linspace(0, len(order) - 1, min(_RANGES, len(order))).astype(np.int64)]
    ranges = [((float(starts[each]) - low) / span, (float(ends[each]) - low) / span) for each in sampled]
    sorted_starts, sorted_ends = starts[order], np.sort(ends)
    places = low + (np.arange(_PLACES) + 0.5) / _PLACES * span
    depths = _depth_at(sorted_starts, sorted_ends, places)
    mean = float(_depth_at(sorted_starts, sorted_ends, sorted_starts).mean())
    return Overlap(ranges, depths.tolist(), len(starts), mean, first, last)


def _depth_at(
    starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64], places: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return how many ranges contain each point: those that started minus those that ended before."""
    begun: npt.NDArray[np.int64] = np.searchsorted(starts, places, side="right")
    return begun - np.searchsorted(ends, places, side="left")


def size_bars(digest: FilesDigest) -> list[tuple[int, int, int]]:
    """Return powers of two with counts and bytes, from the smallest to the largest that occurs."""
    used = np.nonzero(digest.by_power)[0]
    if not len(used):
        return []
    low, high = max(int(used[0]) - 1, 0), int(used[-1]) + 1
    while high - low < _BARS:
        low, high = max(low - 1, 0), high + 1
    return [(power, int(digest.by_power[power]), int(digest.bytes_by_power[power])) for power in range(low, high + 1)]


def power_of(size: float) -> float:
    """Return the base-2 logarithm of a size."""
    return math.log2(max(size, 1))
