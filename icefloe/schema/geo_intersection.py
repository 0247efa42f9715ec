"""Whether geometries and geographies meet a box: exactly for shapes, and for boxes of files whether one of their shapes may.

A shape is what OGC's simple features say: its positions, edges and, for polygons, all that the rings enclose, without the
holes; the box has its border. z and m do not count. Shapes without positions meet nothing.

In a geometry, edges are straight and the box is a rectangle. In a geography, the box lies between two meridians and two
parallels, and goes over the antimeridian if its west is east of its east; -180 and 180 are one meridian, and a pole is
at all longitudes. Spherical edges are great circles, and a ring encloses the smaller area. What edges on an ellipsoid meet
is not computed, so shapes other than points are refused there.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.schema.geo_sphere import Numbers, edges_meet, ring_contains, sphere_edges
from icefloe.schema.types import DEFAULT_EDGE_ALGORITHM, GeographyType, GeometryType
from icefloe.schema.wkb import Shape, parse_wkb
from icefloe.schema.wkb_arrays import wkb_column

Mask: TypeAlias = npt.NDArray[np.bool_]
GeoType: TypeAlias = GeometryType | GeographyType

_ROUNDING = 4 * np.finfo(np.float64).eps
"""More than the relative error of a cross product of differences."""

_TINY = 1e-290
"""Products below this may have lost digits, or vanished."""


@dataclass(frozen=True, slots=True)
class GeoBox:
    """The box that shapes are asked about, in the coordinates of the column, and the CRS that its maker meant, if any."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    crs: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("xmin", "ymin", "xmax", "ymax"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
                raise InvalidValueError(f"{name} of a box is {value!r}; it must be a number")
            object.__setattr__(self, name, float(value))
        if self.ymin > self.ymax:
            raise InvalidValueError(f"a box has ymin {self.ymin} above ymax {self.ymax}; give the lower one first")

    def check(self, field_type: GeoType) -> None:
        """Fail unless the box can be one of a column of that type."""
        if self.crs is not None and self.crs.casefold() != field_type.crs.casefold():
            raise InvalidValueError(
                f"the box is in CRS {self.crs!r}, and the column in {field_type.crs!r}; transform the box into that of the column"
            )
        if isinstance(field_type, GeometryType):
            if self.xmin > self.xmax:
                raise InvalidValueError(
                    f"a box has xmin {self.xmin} above xmax {self.xmax}; only in a geography it goes over the antimeridian"
                )
        elif not (max(abs(self.xmin), abs(self.xmax)) <= 180 and max(abs(self.ymin), abs(self.ymax)) <= 90):
            raise InvalidValueError(
                f"the box {self.xmin} {self.ymin} {self.xmax} {self.ymax} is not on the globe; x is from -180 to 180 and y from"
                " -90 to 90"
            )

    @property
    def width(self) -> float:
        """How many degrees the box of a geography runs east."""
        return 360.0 if self.xmax - self.xmin >= 360 else (self.xmax - self.xmin) % 360


def intersects(values: pa.Array | pa.ChunkedArray, box: GeoBox, field_type: GeoType) -> Mask:
    """For each value of a column of WKB, whether it meets the box; null does not."""
    column = wkb_column(values)
    meets = np.zeros(len(column.array), np.bool_)
    is_sphere = isinstance(field_type, GeographyType)
    x, y = column.coordinates[:, 0], column.coordinates[:, 1]
    meets[column.points] = _on_sphere(x, y, box) if is_sphere else _inside(x, y, box)
    for row, value in zip(column.others.tolist(), column.other_values(), strict=True):
        meets[row] = any(_shape_meets(shape, box, field_type) for shape in parse_wkb(value).leaves())
    return meets


def boxes_may_intersect(
    lower: pa.Array | None, upper: pa.Array | None, box: GeoBox, field_type: GeoType
) -> Mask | None:
    """For each pair of corners (structs of x, y, z, m), whether a shape between them may meet the box; None: always.

    Corners that are missing or that make no sense for the type say nothing.
    """
    if lower is None or upper is None:
        return None
    west, south, east, north = (_axis(corner, name) for corner in (lower, upper) for name in ("x", "y"))
    is_known = south <= north
    if isinstance(field_type, GeometryType):
        is_known &= west <= east
        meets = (west <= box.xmax) & (east >= box.xmin)
    else:
        is_known &= (np.maximum(np.abs(west), np.abs(east)) <= 180) & (np.maximum(np.abs(south), np.abs(north)) <= 90)
        width = np.where(east - west >= 360, 360, (east - west) % 360)
        meets = ((west - box.xmin) % 360 <= box.width) | ((box.xmin - west) % 360 <= width)
        # Longitudes that differ by rounding alone.
        meets |= _is_close(west, box.xmax) | _is_close(box.xmin, east)
        meets |= (north >= 90) & (box.ymax >= 90) | (south <= -90) & (box.ymin <= -90)
    return ~is_known | (meets & (south <= box.ymax) & (north >= box.ymin))


def _is_close(one: Numbers | float, other: Numbers | float) -> Mask:
    difference = np.abs((np.asarray(one) - other + 180) % 360 - 180)
    is_close: Mask = difference < 1e-9
    return is_close


def _axis(corners: pa.Array, name: str) -> Numbers:
    numbers: Numbers = pc.fill_null(pc.struct_field(corners, name), math.nan).to_numpy(zero_copy_only=False)
    return numbers


def _inside(x: Numbers, y: Numbers, box: GeoBox) -> Mask:
    return (x >= box.xmin) & (x <= box.xmax) & (y >= box.ymin) & (y <= box.ymax)


def _on_sphere(x: Numbers, y: Numbers, box: GeoBox) -> Mask:
    # Outside of the ranges there is no place on a sphere.
    is_there = (np.abs(x) <= 180) & (np.abs(y) <= 90)
    with np.errstate(invalid="ignore"):
        is_between = (x - box.xmin) % 360 <= box.width
    is_edge = (x == box.xmin) | (x == box.xmax) | (np.abs(x) == 180) & (180 in (abs(box.xmin), abs(box.xmax)))
    is_met: Mask = is_there & (is_between | is_edge | (np.abs(y) == 90)) & (y >= box.ymin) & (y <= box.ymax)
    return is_met


def _shape_meets(shape: Shape, box: GeoBox, field_type: GeoType) -> bool:
    lines = [(line[:, 0], line[:, 1]) for line in shape.lines]
    if isinstance(field_type, GeographyType):
        if any(_on_sphere(x, y, box).any() for x, y in lines):
            return True
        if shape.is_point or not any(len(x) for x, _ in lines):
            return False
        if field_type.algorithm != DEFAULT_EDGE_ALGORITHM:
            raise InvalidValueError(
                f"what a {field_type} with {field_type.algorithm} edges meets is not computed; only points of such a column can be"
                " tested by st_intersects"
            )
        return _lines_meet_on_sphere(lines, box, shape.is_ring_shape)
    if any(_inside(x, y, box).any() for x, y in lines):
        return True
    return not shape.is_point and _lines_meet(lines, box, shape.is_ring_shape)


# -- on a sphere


def _lines_meet_on_sphere(lines: list[tuple[Numbers, Numbers]], box: GeoBox, are_rings: bool) -> bool:
    for x, y in lines:
        if edges_meet(sphere_edges(x, y, are_rings), box.xmin, box.width, box.ymin, box.ymax):
            return True
    if not are_rings:
        return False
    # No edge meets the box, so that one position of it is as good as any.
    return sum(len(x) > 0 and ring_contains(x, y, box.xmin, box.ymin) for x, y in lines) % 2 == 1


# -- in the plane


def _lines_meet(lines: list[tuple[Numbers, Numbers]], box: GeoBox, are_rings: bool) -> bool:
    segments = [segment for x, y in lines for segment in _segments(x, y, are_rings)]
    if not segments:
        return False
    x1, y1, x2, y2 = np.concatenate(segments, axis=1)
    # Two convex sets are apart if and only if one of their sides divides them: here, that of the box or the segment itself.
    is_near = (np.minimum(x1, x2) <= box.xmax) & (np.maximum(x1, x2) >= box.xmin)
    is_near &= (np.minimum(y1, y2) <= box.ymax) & (np.maximum(y1, y2) >= box.ymin)
    near = (x1[is_near], y1[is_near], x2[is_near], y2[is_near])
    if len(near[0]):
        sides = np.array([_side(*near, x, y) for x, y in _corners(box)])
        if ((sides.min(axis=0) <= 0) & (sides.max(axis=0) >= 0)).any():
            return True
    return are_rings and _is_in_rings(x1, y1, x2, y2, *next(_corners(box)))


def _segments(x: Numbers, y: Numbers, closed: bool) -> Iterator[Numbers]:
    """The ends of the segments of a line, those with NaN or infinity left out."""
    if closed and len(x):
        x, y = np.append(x, x[0]), np.append(y, y[0])
    ends = np.array([x[:-1], y[:-1], x[1:], y[1:]])
    yield ends[:, np.isfinite(ends).all(axis=0)]


def _corners(box: GeoBox) -> Iterator[tuple[float, float]]:
    for x in (box.xmin, box.xmax):
        for y in (box.ymin, box.ymax):
            yield x, y


def _is_in_rings(x1: Numbers, y1: Numbers, x2: Numbers, y2: Numbers, x: float, y: float) -> bool:
    """Whether a position that is on no segment is inside of rings: by how many of their segments are to the east of it."""
    is_level = (y1 > y) != (y2 > y)
    side = _side(x1[is_level], y1[is_level], x2[is_level], y2[is_level], x, y)
    is_east = np.where(y2[is_level] > y1[is_level], side > 0, side < 0)
    return bool(np.count_nonzero(is_east) % 2)


def _side(x1: Numbers, y1: Numbers, x2: Numbers, y2: Numbers, x: float, y: float) -> Numbers:
    """On which side of each segment a position is: positive to the left, zero on its line, exactly."""
    if not (math.isfinite(x) and math.isfinite(y)):
        # An open side of the box: as far away as any number.
        x, y = (math.copysign(1.0, n) * np.finfo(np.float64).max if math.isinf(n) else n for n in (x, y))
    with np.errstate(over="ignore", invalid="ignore"):
        one, other = (x2 - x1) * (y - y1), (y2 - y1) * (x - x1)
        side = one - other
        size = np.abs(one) + np.abs(other)
        is_doubtful = ~((np.abs(side) > _ROUNDING * size) & (size > _TINY))
    for at in np.flatnonzero(is_doubtful).tolist():
        ax, ay, bx, by, px, py = map(Fraction, (x1[at], y1[at], x2[at], y2[at], x, y))
        exact = (bx - ax) * (py - ay) - (by - ay) * (px - ax)
        side[at] = (exact > 0) - (exact < 0)
    return side
