"""The box around geometries and geographies of a column (spec: Bounds for Geometry and Geography).

NaN coordinates are skipped, per dimension; without x or y there is no box. Edges of a geography bulge beyond their ends: with
spherical edges a box holds the great circles, and the poles that rings enclose; where the edges are those of an ellipsoid, no
bound is known to hold, so only points have a box. A box that is too small would lose rows.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe.schema.geo_sphere import Numbers, edge_latitudes, enclosed_poles, sphere_edges
from icefloe.schema.types import DEFAULT_EDGE_ALGORITHM, GeographyType, GeometryType
from icefloe.schema.wkb import AXES_OF, Shape, parse_wkb
from icefloe.schema.wkb_arrays import wkb_column

_MOST_ARCS = 64
"""How many arcs of longitudes are kept apart until the box is asked for."""


@dataclass(frozen=True, slots=True)
class GeoPoint:
    """A corner of a bounding box; z and m are None where the values have none."""

    x: float
    y: float
    z: float | None = None
    m: float | None = None


def bounding_box(
    values: Iterable[bytes | None], field_type: GeometryType | GeographyType
) -> tuple[GeoPoint, GeoPoint] | None:
    """The lower and upper corner around all values, or None where there is no box."""
    collector = BoxCollector(field_type)
    collector.add(pa.array(list(values), pa.binary()))
    return collector.corners()


class BoxCollector:
    """The box around all shapes of a column, batch by batch."""

    def __init__(self, field_type: GeometryType | GeographyType) -> None:
        self._low = np.full(4, np.inf)
        self._high = np.full(4, -np.inf)
        self._is_geography = isinstance(field_type, GeographyType)
        self._has_edges = isinstance(field_type, GeometryType) or field_type.algorithm == DEFAULT_EDGE_ALGORITHM
        self._arcs = _Arcs()
        self._is_unknown = False

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Take in a column of WKB."""
        if self._is_unknown:
            return
        column = wkb_column(values)
        self._widen(column.coordinates, (0, 1, 2, 3))
        if self._is_geography:
            self._arcs.add_points(column.coordinates[:, 0])
        for value in column.other_values():
            for shape in parse_wkb(value).leaves():
                self._add(shape)
        self._arcs.settle()
        self._check_ranges()

    def corners(self) -> tuple[GeoPoint, GeoPoint] | None:
        """The corners around all that was added; the west is east of the east if they go over the antimeridian."""
        low, high = self._low.tolist(), self._high.tolist()
        if self._is_unknown or low[0] > high[0] or low[1] > high[1]:
            return None
        west, east = low[0], high[0]
        # Up to a half of the circle, the interval that does not wrap is the smallest or nearly so.
        if self._is_geography and east - west > 180:
            west, east = self._arcs.smallest()
        ends = [(bottom, top) if bottom <= top else (None, None) for bottom, top in zip(low, high, strict=True)]
        return GeoPoint(west, low[1], ends[2][0], ends[3][0]), GeoPoint(east, high[1], ends[2][1], ends[3][1])

    def _add(self, shape: Shape) -> None:
        for positions in shape.lines:
            if not len(positions):
                continue
            self._widen(positions, AXES_OF[shape.dimensions])
            if not self._is_geography:
                continue
            self._arcs.add_points(positions[:, 0])
            if len(positions) > 1 or not shape.is_point:
                self._add_edges(positions[:, 0], positions[:, 1], shape.is_ring_shape)

    def _add_edges(self, x: Numbers, y: Numbers, is_ring: bool) -> None:
        if not self._has_edges:
            self._is_unknown = True
            return
        edges = sphere_edges(x, y, is_ring)
        if not len(edges):
            return
        south, north = edge_latitudes(edges)
        poles = enclosed_poles(edges) if is_ring else (False, False)
        if poles is None or any(poles):
            south, north = (
                (-90.0, 90.0) if poles is None else (-90.0 if poles[0] else south, 90.0 if poles[1] else north)
            )
            self._widen_to(-180.0, 180.0, south, north)
            self._arcs.fill()
            return
        # An edge over the antimeridian, or over a pole, where its parts have the longitudes of the ends.
        wraps = bool((edges.west > edges.east).any())
        self._widen_to(-180.0 if wraps else math.inf, 180.0 if wraps else -math.inf, south, north)
        self._arcs.add(edges.west, edges.east)

    def _widen(self, positions: Numbers, axes: tuple[int, ...]) -> None:
        if len(positions):
            # fmin and fmax prefer a number over NaN, but not over a signalling one.
            positions = np.where(np.isnan(positions), np.nan, positions)
            columns = list(axes)
            self._low[columns] = np.fmin(self._low[columns], np.fmin.reduce(positions, axis=0))
            self._high[columns] = np.fmax(self._high[columns], np.fmax.reduce(positions, axis=0))

    def _widen_to(self, west: float, east: float, south: float, north: float) -> None:
        self._low[:2] = np.minimum(self._low[:2], (west, south))
        self._high[:2] = np.maximum(self._high[:2], (east, north))

    def _check_ranges(self) -> None:
        """What is outside of the canonical ranges has no place on a sphere, and so no box."""
        if self._is_geography and (
            self._low[0] < -180 or self._high[0] > 180 or self._low[1] < -90 or self._high[1] > 90
        ):
            self._is_unknown = True


class _Arcs:
    """Longitudes as arcs of the circle: at most so many, with the largest gaps between them."""

    def __init__(self) -> None:
        self._arcs = (np.zeros(0), np.zeros(0))
        """West and east of each; none goes over the antimeridian."""
        self._waiting: list[tuple[Numbers, Numbers]] = []

    def add_points(self, longitudes: Numbers) -> None:
        known = longitudes[np.isfinite(longitudes)]
        self._waiting.append((known, known))

    def add(self, west: Numbers, east: Numbers) -> None:
        """Take in arcs; those whose west is east of their east go over the antimeridian, and are kept as two."""
        over = west > east
        self._waiting.append((west, np.where(over, 180.0, east)))
        self._waiting.append((np.full(int(over.sum()), -180.0), east[over]))

    def fill(self) -> None:
        """All longitudes."""
        self._waiting.append((np.full(1, -180.0), np.full(1, 180.0)))

    def settle(self) -> None:
        """Put together what touches, and what is close if there is too much."""
        starts, ends = (np.concatenate(parts) for parts in zip(self._arcs, *self._waiting, strict=True))
        self._waiting = []
        if not len(starts):
            return
        order = np.argsort(starts, kind="stable")
        starts, reach = starts[order], np.maximum.accumulate(ends[order])
        gaps = starts[1:] - reach[:-1]
        is_cut: npt.NDArray[np.bool_] = gaps > 0
        if np.count_nonzero(is_cut) >= _MOST_ARCS:
            is_cut = gaps > np.partition(gaps, -_MOST_ARCS)[-_MOST_ARCS]
        cuts = np.flatnonzero(is_cut)
        self._arcs = starts[np.append(0, cuts + 1)], reach[np.append(cuts, len(reach) - 1)]

    def smallest(self) -> tuple[float, float]:
        """West and east of the smallest arc around all of them: what is left when the largest gap is cut out."""
        starts, ends = self._arcs
        around = starts[0] + 360 - ends[-1]
        gaps = starts[1:] - ends[:-1]
        if not len(gaps) or around >= gaps.max():
            return float(starts[0]), float(ends[-1])
        at = int(gaps.argmax())
        return float(starts[at + 1]), float(ends[at])
