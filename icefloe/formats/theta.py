"""Theta sketches: how many distinct values there are, from the smallest hashes of their single-value bytes (spec: Puffin).

A sketch of up to `NOMINAL` distinct values is exact; a larger one keeps that many hashes, all those below its theta. Sketches
of parts, united in any order, are the sketch of the whole.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.schema import IcebergType, arrow_value_type, encode_array, types

NOMINAL = 4096
"""How many hashes a sketch keeps: the default of Apache DataSketches."""
ALL = 2**63 - 1
"""The theta of a sketch that keeps every hash."""

_SLOTS = 1 << 14
_MOST_IN_TABLE = 3 * _SLOTS // 4

Hashes = npt.NDArray[np.int64]


def _no_hashes() -> Hashes:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ThetaSketch:
    """Distinct hashes in ascending order, all above 0 and below theta."""

    hashes: Hashes = field(default_factory=_no_hashes)
    theta: int = ALL

    @property
    def is_exact(self) -> bool:
        """Whether no hash was left out."""
        return self.theta == ALL

    @property
    def estimate(self) -> float:
        """About how many distinct values there are."""
        return float(len(self.hashes)) if self.is_exact else len(self.hashes) * (2.0**63 / self.theta)


def unite(sketches: Iterable[ThetaSketch]) -> ThetaSketch:
    """The sketch of all values that went into some sketches."""
    return reduce(_united, sketches, ThetaSketch())


def _united(one: ThetaSketch, other: ThetaSketch) -> ThetaSketch:
    theta = min(one.theta, other.theta)
    hashes = np.union1d(one.hashes, other.hashes)
    return _cut(hashes[: np.searchsorted(hashes, theta)], theta)


def _cut(hashes: Hashes, theta: int) -> ThetaSketch:
    """The sketch of sorted hashes below theta."""
    if len(hashes) <= NOMINAL:
        return ThetaSketch(hashes, theta)
    return ThetaSketch(hashes[:NOMINAL].copy(), int(hashes[NOMINAL]))


class ThetaBuilder:
    """Makes the sketch of a column of some type from arrays of its values; nulls and empty values are left out."""

    def __init__(self, field_type: IcebergType) -> None:
        self._type = field_type
        self._table = np.zeros(_SLOTS, np.int64)
        self._count = 0
        self._theta = ALL

    def update(self, values: pa.Array) -> None:
        """Take in the values of an array."""
        if isinstance(self._type, types.UnknownType) or values.null_count == len(values):
            return
        array = _dense(values, self._type)
        if pa.types.is_binary(array.type):
            self._put_binary(array)
        else:
            self._put_fixed(array)

    def sketch(self) -> ThetaSketch:
        """The sketch of all values so far."""
        return _cut(np.sort(self._table[self._table != 0]), self._theta)

    def _put_binary(self, array: pa.Array) -> None:
        from icefloe.formats.theta_kernels import put_values

        _, offset_buffer, buffer = array.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
        data = np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
        done: np.int64 | int = 0
        while done < len(array):
            done, new = put_values(data, offsets, done, self._table, self._theta, _MOST_IN_TABLE - self._count)
            self._added(int(new))

    def _put_fixed(self, array: pa.Array) -> None:
        from icefloe.formats.theta_kernels import put_equal_widths

        width = array.type.bit_width // 8
        data = np.frombuffer(array.buffers()[1], np.uint8, width * len(array), width * array.offset)
        done: np.int64 | int = 0
        while done < len(array):
            done, new = put_equal_widths(data, width, done, self._table, self._theta, _MOST_IN_TABLE - self._count)
            self._added(int(new))

    def _added(self, new: int) -> None:
        from icefloe.formats.theta_kernels import put_hashes

        self._count += new
        if self._count == _MOST_IN_TABLE:
            kept = self.sketch()
            self._table.fill(0)
            put_hashes(kept.hashes, self._table)
            self._count, self._theta = len(kept.hashes), kept.theta


def _dense(values: pa.Array, field_type: IcebergType) -> pa.Array:
    """The values but nulls as bytes: of one width each, or an array of type binary."""
    array = values.storage if isinstance(values, pa.ExtensionArray) else values
    array = array.drop_null() if array.null_count else array
    if isinstance(field_type, types.DecimalType):
        return encode_array(array, field_type)
    array = array.cast(arrow_value_type(field_type))
    if isinstance(field_type, types.BooleanType):
        return array.cast(pa.uint8())
    return array.cast(pa.binary()) if pa.types.is_string(array.type) else array
