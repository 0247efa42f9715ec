"""How several columns become one key along a curve: by bits that are interleaved (`zorder`), or turned first (`hilbert`).

The bits are those of values as Java Iceberg has them (`bytes`), or of ranks: in which part of a sample a value falls. Ranks
spread over all their bits whatever the values are, so that each column counts as much as the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.data import SortKey
from icefloe.maintenance.rewrite import curve_bytes as cb
from icefloe.schema import types

_AT_ONCE = 1 << 16
"""How many rows are worked on at a time; each of their bits takes a byte."""
_MOST_BITS = 16
_TEXT_BYTES = 64
"""How many bytes of a text its rank is told by."""
_ONE = np.uint64(1)

Ranks = npt.NDArray[np.uint64]
Bounds = npt.NDArray[np.generic]
"""Numbers, or texts as bytes."""


class Curve(StrEnum):
    """The curves."""

    ZORDER = "zorder"
    HILBERT = "hilbert"


@dataclass(frozen=True, slots=True)
class CurveColumn:
    """A column of the table that a curve goes through."""

    names: tuple[str, ...]
    """Its name, after those of the structs that it is in."""
    field_type: types.IcebergType
    field_id: int = 0

    def values(self, rows: pa.Table | pa.RecordBatch) -> pa.Array:
        """Its values."""
        top = rows.column(self.names[0])
        values = top.combine_chunks() if isinstance(top, pa.ChunkedArray) else top
        for name in self.names[1:]:
            values = pc.struct_field(values, name)
        return values


@dataclass(frozen=True, slots=True)
class ByteKeys:
    """Keys by the bytes of the values, compared as unsigned bytes. A `KeyMaker`."""

    curve: Curve
    columns: tuple[CurveColumn, ...]
    text_width: int = cb.WHOLE_WIDTH
    most_bytes: int = 2**31 - 1

    def __call__(self, rows: pa.Table) -> list[SortKey]:
        """The keys of the rows."""
        return [SortKey(self.of(rows))]

    def of(self, rows: pa.Table) -> pa.Array:
        """The keys as a column of bytes."""
        return _in_slices(rows, self._slice)

    def _slice(self, rows: pa.Table) -> pa.Array:
        is_hilbert = self.curve is Curve.HILBERT
        width = cb.WHOLE_WIDTH if is_hilbert else self.text_width
        parts = [cb.column_bytes(column.values(rows), column.field_type, width) for column in self.columns]
        if is_hilbert:
            axes = [part.copy().view(">u8").reshape(-1).astype(np.uint64) for part in parts]
            turned = hilbert_axes(axes, 8 * cb.WHOLE_WIDTH)
            parts = [axis.astype(">u8").view(np.uint8).reshape(-1, cb.WHOLE_WIDTH) for axis in turned]
        return _as_binary(_interleaved(parts)[:, : self.most_bytes])


@dataclass(frozen=True, slots=True, eq=False)
class RankKeys:
    """Keys by the parts of a sample that values fall into, as whole numbers. A `KeyMaker`."""

    curve: Curve
    columns: tuple[CurveColumn, ...]
    bounds: tuple[Bounds, ...]
    """Of each column the values, as ordered numbers or texts, at which parts begin."""

    @staticmethod
    def of_sample(curve: Curve, columns: Sequence[CurveColumn], sample: pa.Table) -> "RankKeys":
        """Parts that hold about as many rows of the sample each."""
        parts = (1 << _bits(len(columns))) - 2
        return RankKeys(curve, tuple(columns), tuple(_bounds(column, sample, parts) for column in columns))

    def __call__(self, rows: pa.Table) -> list[SortKey]:
        """The keys of the rows."""
        return [SortKey(self.of(rows))]

    def of(self, rows: pa.Table) -> pa.Array:
        """The keys as a column of numbers."""
        return _in_slices(rows, self._slice)

    def _slice(self, rows: pa.Table) -> pa.Array:
        bits = _bits(len(self.columns))
        ranks = [_ranks(column, bounds, rows, bits) for column, bounds in zip(self.columns, self.bounds, strict=True)]
        if self.curve is Curve.HILBERT:
            ranks = hilbert_axes(ranks, bits)
        key = np.zeros(rows.num_rows, np.uint64)
        for bit in range(bits - 1, -1, -1):
            for rank in ranks:
                key = key << _ONE | (rank >> np.uint64(bit)) & _ONE
        return pa.array(key.view(np.int64))


def _in_slices(rows: pa.Table, make: Callable[[pa.Table], pa.Array]) -> pa.Array:
    """What is made of the rows, some at a time."""
    starts = range(0, max(1, rows.num_rows), _AT_ONCE)
    return pa.concat_arrays([make(rows.slice(start, _AT_ONCE)) for start in starts])


# -- ranks


def _bits(columns: int) -> int:
    return min(_MOST_BITS, 63 // columns)


def _ordered(column: CurveColumn, rows: pa.Table) -> tuple[Bounds, npt.NDArray[np.bool_]]:
    """Values that numpy can compare, and which are null."""
    values = column.values(rows)
    if cb.is_text(column.field_type):
        texts = np.ascontiguousarray(cb.text_bytes(values, column.field_type, _TEXT_BYTES))
        return texts.view(f"S{_TEXT_BYTES}").reshape(-1), np.asarray(values.is_null())
    return cb.ordered_numbers(values, column.field_type), np.asarray(values.is_null())


def _bounds(column: CurveColumn, sample: pa.Table, parts: int) -> Bounds:
    values, is_null = _ordered(column, sample)
    known = np.sort(values[~is_null])
    at = np.arange(1, parts) * len(known) // parts
    return np.unique(known[at]) if len(known) else known


def _ranks(column: CurveColumn, bounds: Bounds, rows: pa.Table, bits: int) -> Ranks:
    """Spread evenly over all bits, also if there are few different values; nulls come first."""
    values, is_null = _ordered(column, rows)
    ranks = np.searchsorted(bounds, values, side="right") + 1
    ranks[is_null] = 0
    return (ranks * ((1 << bits) - 1) // (len(bounds) + 1)).astype(np.uint64)


# -- bits


def _interleaved(parts: Sequence[cb.ByteRows]) -> cb.ByteRows:
    """The first bits of all columns, then the second ones; a column that has no more is left out."""
    bits = np.unpackbits(np.concatenate(parts, axis=1), axis=1)
    widths = [8 * part.shape[1] for part in parts]
    firsts = np.cumsum([0, *widths[:-1]])
    order = [
        first + bit for bit in range(max(widths)) for first, width in zip(firsts, widths, strict=True) if bit < width
    ]
    return np.packbits(bits[:, order], axis=1)


def _as_binary(rows: cb.ByteRows) -> pa.Array:
    data = np.ascontiguousarray(rows)
    buffers = [None, pa.py_buffer(data.tobytes())]
    return pa.Array.from_buffers(pa.binary(data.shape[1]), len(data), buffers)


def hilbert_axes(axes: Sequence[Ranks], bits: int) -> list[Ranks]:
    """Coordinates as the transposed number of their point on Hilbert's curve (J. Skilling, Programming the Hilbert curve, 2004)."""
    turned = [axis.copy() for axis in axes]
    for number in range(bits - 1, 0, -1):
        bit, below = _ONE << np.uint64(number), (_ONE << np.uint64(number)) - _ONE
        for index, axis in enumerate(turned):
            is_set = (axis & bit) != 0
            swapped = np.where(is_set, np.uint64(0), (turned[0] ^ axis) & below)
            turned[0] = turned[0] ^ np.where(is_set, below, swapped)
            if index:
                turned[index] = axis ^ swapped
    for index in range(1, len(turned)):
        turned[index] = turned[index] ^ turned[index - 1]
    adjust = np.zeros_like(turned[0])
    for number in range(bits - 1, 0, -1):
        bit = _ONE << np.uint64(number)
        adjust ^= np.where((turned[-1] & bit) != 0, bit - _ONE, np.uint64(0))
    return [axis ^ adjust for axis in turned]
