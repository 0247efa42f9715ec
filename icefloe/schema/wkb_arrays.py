"""WKB in Arrow columns: the coordinates of all points at once, the rest one by one, and values that no table may have."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.errors import InvalidValueError
from icefloe.schema.wkb import AXES_OF, LINE, MEMBERS, POINT, RING_SHAPES, check_wkb

Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.int64]
Coordinates: TypeAlias = npt.NDArray[np.float64]
"""x, y, z and m of each row; NaN is none."""

_HEADER = 5
"""The bytes before the first coordinate of a point: the byte order and the type."""
_COUNT = 4
_SHORTEST = _HEADER + _COUNT
_NO_TYPE = 1 << 32
_MEMBER_OF = np.zeros(1000, np.int64)
"""By type, what the members of a multi-shape are, the type itself for lines and polygons, and 0 for all others."""
_MEMBER_OF[[LINE, *RING_SHAPES, *MEMBERS]] = [LINE, *RING_SHAPES, *MEMBERS.values()]


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


def check_wkb_column(values: pa.Array | pa.ChunkedArray, name: str) -> None:
    """Fail on values that are not one whole ISO WKB value each, EWKB among them."""
    column = wkb_column(values)
    starts, sizes, data = _layout(column.array)
    rows = column.others
    for row in rows[~_are_whole(data, starts[rows], sizes[rows])].tolist():
        try:
            check_wkb(column.array[row].as_py())
        except InvalidValueError as problem:
            raise InvalidValueError(f"column {name!r}, row {row}: {problem}") from None


def _are_whole(data: Bytes, starts: Rows, sizes: Rows) -> Mask:
    """Which values are known to be whole by the counts in them; collections, whose members may be any, are not."""
    is_whole = np.zeros(len(starts), np.bool_)
    rows = np.flatnonzero(sizes >= _SHORTEST)
    codes, counts = _part(data, starts[rows])
    is_known = (codes < 1000 * len(AXES_OF)) & (_MEMBER_OF[codes % 1000] > 0)
    rows, codes, counts = rows[is_known], codes[is_known], counts[is_known]
    is_multi = codes % 1000 != _MEMBER_OF[codes % 1000]
    walk = _Walk(
        data,
        starts[rows] + np.where(is_multi, _SHORTEST, 0),
        (starts + sizes)[rows],
        codes // 1000 * 1000 + _MEMBER_OF[codes % 1000],
        np.where(is_multi, counts, 1),
    )
    is_whole[rows] = walk.ends_are_met()
    return is_whole


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """Shapes that are walked through at once, a ring or a member of each at a step."""

    data: Bytes
    at: Rows
    ends: Rows
    codes: Rows
    """The type that each member of a shape has; a shape that is no multi-shape is its one member."""
    members: Rows
    """How many are left."""

    def ends_are_met(self) -> Mask:
        """Which of the shapes end where their bytes do."""
        rings = np.zeros(len(self.at), np.int64)
        is_little = np.zeros(len(self.at), np.bool_)
        widths = 8 * np.array([len(axes) for axes in AXES_OF])[self.codes // 1000]
        kinds = self.codes % 1000
        going = np.flatnonzero(self.members)
        while len(going):
            is_inside = rings[going] > 0
            # The shapes that have no room for what is next do not end well, and stay where they are.
            has_room = self.at[going] + np.where(is_inside, _COUNT, _SHORTEST) <= self.ends[going]
            inner, outer = going[is_inside & has_room], going[~is_inside & has_room]
            self.at[inner] += _COUNT + _numbers(self.data, self.at[inner], is_little[inner]) * widths[inner]
            rings[inner] -= 1
            codes, counts = _part(self.data, self.at[outer])
            is_right = codes == self.codes[outer]
            outer, counts = outer[is_right], counts[is_right]
            is_little[outer] = self.data[self.at[outer]] == 1
            kind, width = kinds[outer], widths[outer]
            self.at[outer] += np.select(
                [kind == POINT, kind == LINE], [_HEADER + width, _SHORTEST + counts * width], _SHORTEST
            )
            rings[outer] = np.where(np.isin(kind, RING_SHAPES), counts, 0)
            self.members[outer] -= 1
            going = np.concatenate([inner, outer])
            going = going[rings[going] + self.members[going] > 0]
        is_met: Mask = (self.members == 0) & (rings == 0) & (self.at == self.ends)
        return is_met


def _part(data: Bytes, at: Rows) -> tuple[Rows, Rows]:
    """The types of shapes, a type that there is not if they have no byte order, and the counts behind them."""
    is_little = data[at] == 1
    codes = np.where(data[at] <= 1, _numbers(data, at + 1, is_little), _NO_TYPE)
    return codes, _numbers(data, at + _HEADER, is_little)


def _numbers(data: Bytes, at: Rows, is_little: Mask) -> Rows:
    """The numbers of four bytes at these places."""
    raw = np.ascontiguousarray(data[at[:, None] + np.arange(_COUNT)])
    little, big = (raw.view(f"{order}u4")[:, 0].astype(np.int64) for order in ("<", ">"))
    return np.where(is_little, little, big)


def _binary(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    return values if values.type == pa.large_binary() else values.cast(pa.large_binary())


def _layout(array: pa.Array) -> tuple[Rows, Rows, Bytes]:
    """Where each value begins, its size, and the bytes of all."""
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or not len(array):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return offsets[:-1], np.diff(offsets), data


def _headers(data: Bytes, starts: Rows, is_whole: Mask) -> Bytes:
    """The first five bytes of each value; all ones, which no header is, where it is shorter."""
    headers = np.full((len(starts), _HEADER), 0xFF, np.uint8)
    headers[is_whole] = data[starts[is_whole, None] + np.arange(_HEADER)]
    return headers
