"""Which rows of a data file are deleted: a set of 64-bit positions (spec: Deletion Vectors)."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import FrozenBitMap

from icefloe.errors import InvalidValueError

MAX_KEY = 2**31 - 2
"""The highest upper half of a position; the Java library cannot hold more."""
MAX_POSITION = MAX_KEY << 32 | 0x8000_0000
"""The highest position that the Java library accepts."""

_LOW_BITS = 0xFFFF_FFFF
_CHUNK_ROWS = 1 << 22
"""How many rows are expanded at a time, so that a dense vector needs little memory beyond its result."""

Positions: TypeAlias = Any
"""Positions in any form: a numpy array, an Arrow array (chunked or not) or an iterable of ints."""


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A set of row positions, as one 32-bit bitmap per upper half of the positions, ascending and none of them empty."""

    bitmaps: tuple[tuple[int, FrozenBitMap], ...] = ()

    @classmethod
    def from_positions(cls, positions: Positions) -> "DeletionVector":
        """The vector of these positions, in any order, repeated or not."""
        numbers = _as_numpy(positions)
        if not len(numbers):
            return cls()
        lowest, highest = int(numbers.min()), int(numbers.max())
        for position in (lowest, highest):
            if not 0 <= position <= MAX_POSITION:
                raise InvalidValueError(f"position {position} is not between 0 and {MAX_POSITION}")
        if highest <= _LOW_BITS:
            return cls(((0, _bitmap(numbers)),))
        numbers = np.sort(numbers.astype(np.int64, copy=False))
        keys = numbers >> 32
        parts = np.split(numbers, np.flatnonzero(keys[1:] != keys[:-1]) + 1)
        return cls(tuple((int(part[0]) >> 32, _bitmap(part & _LOW_BITS)) for part in parts))

    @classmethod
    def from_portable(cls, content: bytes, upper: int = 0) -> "DeletionVector":
        """The vector of a portable 32-bit roaring bitmap of lower halves, which share an upper half."""
        bitmap = FrozenBitMap.deserialize(content)
        return cls(((upper, bitmap),)) if bitmap else cls()

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""
        return sum(len(bitmap) for _, bitmap in self.bitmaps)

    @property
    def highest(self) -> int | None:
        """The highest position, if there is one."""
        if not self.bitmaps:
            return None
        key, bitmap = self.bitmaps[-1]
        return key << 32 | bitmap.max()

    def __bool__(self) -> bool:
        return bool(self.bitmaps)

    def __contains__(self, position: int) -> bool:
        return any(key == position >> 32 and position & _LOW_BITS in bitmap for key, bitmap in self.bitmaps)

    def __or__(self, other: "DeletionVector") -> "DeletionVector":
        return self.union(other)

    def union(self, *others: "DeletionVector") -> "DeletionVector":
        """The positions of all the vectors."""
        merged = dict(self.bitmaps)
        for other in others:
            for key, bitmap in other.bitmaps:
                merged[key] = merged[key] | bitmap if key in merged else bitmap
        return DeletionVector(tuple(sorted(merged.items(), key=lambda item: item[0])))

    def intersection(self, other: "DeletionVector") -> "DeletionVector":
        """The positions that are in both vectors."""
        others = dict(other.bitmaps)
        common = ((key, bitmap & others[key]) for key, bitmap in self.bitmaps if key in others)
        return DeletionVector(tuple((key, bitmap) for key, bitmap in common if bitmap))

    def positions(self) -> npt.NDArray[np.int64]:
        """All positions in ascending order."""
        parts = [_values(bitmap).astype(np.int64) | key << 32 for key, bitmap in self.bitmaps]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def mask(self, start: int, stop: int) -> npt.NDArray[np.bool_]:
        """For each row from `start` up to but not including `stop`, whether it is deleted."""
        if not 0 <= start <= stop:
            raise InvalidValueError(f"rows {start} to {stop} are not a range of rows")
        mask = np.zeros(stop - start, np.bool_)
        for key, bitmap in self.bitmaps:
            base = key << 32
            first, last = max(start, base), min(stop, base + _LOW_BITS + 1)
            for low in range(first, last, _CHUNK_ROWS):
                rows = FrozenBitMap(range(low - base, min(low + _CHUNK_ROWS, last) - base))
                mask[_values(bitmap & rows).astype(np.int64) + (base - start)] = True
        return mask

    def portable(self, row_count: int) -> bytes:
        """The deleted rows of a file with `row_count` rows, as a portable 32-bit roaring bitmap; nothing if there are none."""
        if row_count > _LOW_BITS:
            raise InvalidValueError(f"a file of {row_count} rows has positions of more than 32 bits")
        if not self.bitmaps or self.bitmaps[0][0]:
            return b""
        _, bitmap = self.bitmaps[0]
        if bitmap.max() >= row_count:
            bitmap &= FrozenBitMap(range(row_count))
        return bytes(bitmap.serialize()) if bitmap else b""

    def check_rows(self, row_count: int) -> None:
        """Fail if a position is not a row of a file with `row_count` rows."""
        if self.highest is not None and self.highest >= row_count:
            raise InvalidValueError(f"position {self.highest} is deleted in a file of {row_count} rows")

    def __iter__(self) -> Iterator[int]:
        for key, bitmap in self.bitmaps:
            yield from (key << 32 | low for low in bitmap)

    def __repr__(self) -> str:
        return f"DeletionVector(cardinality={self.cardinality}, highest={self.highest})"


def _as_numpy(positions: Positions) -> npt.NDArray[Any]:
    if isinstance(positions, pa.Array | pa.ChunkedArray):
        if positions.null_count:
            raise InvalidValueError(f"{positions.null_count} of the positions are null")
        numbers = np.asarray(positions)
    elif isinstance(positions, np.ndarray):
        numbers = positions
    elif isinstance(positions, Iterable):
        numbers = _from_iterable(positions)
    else:
        raise InvalidValueError(f"positions are {type(positions).__name__}; an array or iterable of ints is expected")
    if not numbers.size:
        return np.empty(0, np.int64)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise InvalidValueError(
            f"positions are a {numbers.ndim}-dimensional array of {numbers.dtype}; a one-dimensional array of ints is expected"
        )
    return numbers


def _from_iterable(positions: Iterable[object]) -> npt.NDArray[Any]:
    listed = list(positions)
    for position in listed:
        if isinstance(position, bool) or not isinstance(position, int | np.integer):
            raise InvalidValueError(f"position {position!r} is not an int")
        if not 0 <= position <= MAX_POSITION:
            raise InvalidValueError(f"position {position} is not between 0 and {MAX_POSITION}")
    return np.array(listed, np.int64)


def _bitmap(lows: npt.NDArray[Any]) -> FrozenBitMap:
    # pyroaring takes an array.array as it is, and everything else value by value.
    return FrozenBitMap(array("I", lows.astype(np.uint32, copy=False).tobytes()))


def _values(bitmap: FrozenBitMap) -> npt.NDArray[np.uint32]:
    return np.frombuffer(bitmap.to_array(), np.uint32)
