"""WKB in Arrow columns: the coordinates of all points at once, the rest one by one, and headers that no table may have."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.errors import InvalidValueError
from icefloe.schema.wkb import AXES_OF, POINT, check_wkb

Rows: TypeAlias = npt.NDArray[np.int64]
Coordinates: TypeAlias = npt.NDArray[np.float64]
"""x, y, z and m of each row; NaN is none."""

_HEADER = 5
"""The bytes before the first coordinate of a point: the byte order and the type."""


@dataclass(frozen=True, slots=True, eq=False)
class WkbColumn:
    """The values of a column that are not null: points as coordinates, and the positions of the other rows."""

    points: Rows
    coordinates: Coordinates
    others: Rows
    array: pa.Array

    def other_values(self) -> list[bytes]:
        """The bytes of the shapes that are not points."""
        values: list[bytes] = self.array.take(pa.array(self.others)).to_pylist()
        return values


def wkb_column(values: pa.Array | pa.ChunkedArray) -> WkbColumn:
    """The points of a column of WKB, without a look at single rows."""
    array = _binary(values)
    starts, sizes, data = _layout(array)
    valid = np.ones(len(array), np.bool_) if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
    headers = _headers(data, starts, sizes >= _HEADER)
    coordinates = np.full((len(array), 4), np.nan)
    is_point = np.zeros(len(array), np.bool_)
    for order in ("<", ">"):
        codes = headers[:, 1:].copy().view(f"{order}u4")[:, 0]
        for dimensions, axes in enumerate(AXES_OF):
            is_such = valid & (headers[:, 0] == (order == "<")) & (codes == dimensions * 1000 + POINT)
            rows = np.flatnonzero(is_such & (sizes == _HEADER + 8 * len(axes)))
            if len(rows):
                raw = data[starts[rows, None] + np.arange(_HEADER, _HEADER + 8 * len(axes))]
                coordinates[rows[:, None], np.array(axes)] = raw.view(f"{order}f8")
                is_point[rows] = True
    points = np.flatnonzero(is_point)
    return WkbColumn(points, coordinates[points], np.flatnonzero(valid & ~is_point), array)


def check_wkb_headers(values: pa.Array | pa.ChunkedArray, column: str) -> None:
    """Fail on values that do not begin like ISO WKB, EWKB among them; what follows the first header is not looked at."""
    array = _binary(values)
    starts, sizes, data = _layout(array)
    headers = _headers(data, starts, sizes >= _HEADER)
    little, big = (headers[:, 1:].copy().view(f"{order}u4")[:, 0] for order in ("<", ">"))
    codes = np.where(headers[:, 0] == 1, little, big)
    kinds = codes % 1000
    is_known = (codes < 4000) & (((kinds >= 1) & (kinds <= 7)) | ((kinds >= 15) & (kinds <= 17)))
    is_wrong = (headers[:, 0] > 1) | ~is_known | (sizes < _HEADER)
    if array.null_count:
        is_wrong &= array.is_valid().to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(is_wrong)[:1].tolist():
        try:
            check_wkb(array[row].as_py())
        except InvalidValueError as problem:
            raise InvalidValueError(f"column {column!r}, row {row}: {problem}") from None


def _binary(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values if values.type == pa.large_binary() else values.cast(pa.large_binary())


def _layout(array: pa.Array) -> tuple[Rows, Rows, npt.NDArray[np.uint8]]:
    """Where each value begins, its size, and the bytes of all."""
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or not len(array):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return offsets[:-1], np.diff(offsets), data


def _headers(data: npt.NDArray[np.uint8], starts: Rows, is_whole: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
    """The first five bytes of each value; all ones, which no header is, where it is shorter."""
    headers = np.full((len(starts), _HEADER), 0xFF, np.uint8)
    headers[is_whole] = data[starts[is_whole, None] + np.arange(_HEADER)]
    return headers
