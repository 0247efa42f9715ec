"""Edges on a sphere: which longitudes and latitudes the great circles between positions run through, and what rings enclose.

An edge is the shorter arc between its ends. It is kept by the longitude at its western end, how far it runs east, and the
latitudes of both ends. Edges over a pole are two, along the meridians of their ends. A ring encloses the smaller of the two
areas that it divides the sphere into. All angles are in degrees; the latitude along an edge is, with t as the way east from
its western end, `tan(latitude) = a cos(t) + b sin(t)`.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Numbers: TypeAlias = npt.NDArray[np.float64]

_CLOSE = 1e-9
"""Differences of degrees that rounding can make: a tenth of a millimetre on Earth."""

_HALF_SPHERE = 2 * math.pi
"""The area of one half of a sphere of radius 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges of one line or ring, each from west to east."""

    west: Numbers
    east: Numbers
    width: Numbers
    """How far each runs east: 0 for one along a meridian, always less than 180."""
    at_west: Numbers
    at_east: Numbers
    turn: float
    """How far the line turns around the axis from its first position to its last: 0 or 360 for a ring."""
    area: float
    """The area between the edges and the equator, on a sphere of radius 1: positive where a line north of it runs east."""
    touches_south: bool
    """Whether an edge goes through the south pole, or so close that rounding decides on which side it passes."""
    touches_north: bool
    """The same of the north pole."""

    def __len__(self) -> int:
        return len(self.west)


def sphere_edges(longitudes: Numbers, latitudes: Numbers, closed: bool) -> Edges:
    """The edges between positions that follow each other; those with NaN or infinity at an end are none."""
    if closed and len(longitudes):
        longitudes, latitudes = np.append(longitudes, longitudes[0]), np.append(latitudes, latitudes[0])
    x1, x2, y1, y2 = longitudes[:-1], longitudes[1:], latitudes[:-1], latitudes[1:]
    is_edge = np.isfinite(x1) & np.isfinite(x2) & np.isfinite(y1) & np.isfinite(y2)
    x1, x2, y1, y2 = x1[is_edge], x2[is_edge], y1[is_edge], y2[is_edge]
    # At a pole, the longitude is that of the other end.
    x1, x2 = np.where(np.abs(y1) >= 90, x2, x1), np.where(np.abs(y2) >= 90, x1, x2)
    east = (x2 - x1 + 180) % 360 - 180
    is_over = np.abs(np.abs(east) - 180) < _CLOSE
    if is_over.any():
        pole = np.where(y1[is_over] + y2[is_over] >= 0, 90.0, -90.0)
        x1, x2 = (np.concatenate([x[~is_over], x[is_over], x[is_over]]) for x in (x1, x2))
        x1[len(x1) - len(pole) :] = x2[len(x2) - len(pole) :]
        y1, y2 = np.concatenate([y1[~is_over], y1[is_over], pole]), np.concatenate([y2[~is_over], pole, y2[is_over]])
        east = np.concatenate([east[~is_over], np.zeros(2 * len(pole))])
    is_back = east < 0
    return Edges(
        np.where(is_back, x2, x1),
        np.where(is_back, x1, x2),
        np.abs(east),
        np.where(is_back, y2, y1),
        np.where(is_back, y1, y2),
        float(east.sum()),
        _area(east, y1, y2),
        bool((y1 <= -90).any() or (y2 <= -90).any()),
        bool((y1 >= 90).any() or (y2 >= 90).any()),
    )


def latitude_range(edges: Edges, start: Numbers, stop: Numbers) -> tuple[Numbers, Numbers]:
    """The least and greatest latitude of each edge, from so far east of its western end to so far."""
    a, b = _curve(edges)
    is_slim = edges.width < _CLOSE
    first = np.where(is_slim | (start <= 0), edges.at_west, _latitude(a, b, start))
    last = np.where(is_slim | (stop >= edges.width), edges.at_east, _latitude(a, b, stop))
    low, high = np.minimum(first, last), np.maximum(first, last)
    top = np.degrees(np.arctan2(b, a)) % 360
    summit = np.degrees(np.arctan(np.hypot(a, b)))
    low = np.where(~is_slim & _is_between((top + 180) % 360, start, stop), np.minimum(low, -summit), low)
    high = np.where(~is_slim & _is_between(top, start, stop), np.maximum(high, summit), high)
    return low, high


def edge_latitudes(edges: Edges) -> tuple[float, float]:
    """The least and greatest latitude of all edges, a little further apart than they are, since they are rounded."""
    low, high = latitude_range(edges, np.zeros(len(edges)), edges.width)
    # An edge that runs far north or south within a few degrees is sensitive to how its ends are rounded.
    return max(float(low.min()) - _CLOSE, -90.0), min(float(high.max()) + _CLOSE, 90.0)


def edges_meet(edges: Edges, west: float, width: float, south: float, north: float) -> bool:
    """Whether an edge meets the area between two meridians, so many degrees apart, and two parallels."""
    if not len(edges):
        return False
    begin = (edges.west - west) % 360
    end = begin + edges.width
    for start, stop in (
        (begin, np.minimum(end, width)),
        (np.full(len(edges), 360.0), np.minimum(end, 360.0 + width)),
    ):
        is_there = (start >= begin) & (start <= stop)
        low, high = latitude_range(edges, np.clip(start - begin, 0, None), np.clip(stop - begin, 0, None))
        if (is_there & (low <= north) & (high >= south)).any():
            return True
    # Wherever it comes from, an edge that reaches a pole meets all meridians there.
    ends = np.concatenate([edges.at_west, edges.at_east])
    return bool((north >= 90 and (ends >= 90).any()) or (south <= -90 and (ends <= -90).any()))


def enclosed_poles(ring: Edges) -> tuple[bool, bool] | None:
    """Whether a ring encloses the south and the north pole; None if it crosses itself, or if that cannot be told.

    The area that a ring cuts off from a pole is that between its edges and the parallel of the pole.
    """
    if abs(ring.turn) > 360 + _CLOSE or (ring.touches_south and ring.touches_north):
        return None
    cut_off = [abs(ring.area + sign * math.radians(ring.turn)) for sign in (-1, 1)]
    if any(abs(area - _HALF_SPHERE) < _CLOSE for area in cut_off):
        return None
    south, north = (area > _HALF_SPHERE for area in cut_off)
    if (ring.touches_south and north) or (ring.touches_north and south) or (south and north):
        return None
    # A pole on the ring is one of its positions already.
    return south and not ring.touches_south, north and not ring.touches_north


def ring_contains(longitudes: Numbers, latitudes: Numbers, longitude: float, latitude: float) -> bool:
    """Whether a position that is on no edge is inside of the ring: by how many edges are between it and the north pole."""
    ring = sphere_edges(longitudes, latitudes, True)
    if ring.touches_north:
        (*xs, longitude), (*ys, latitude) = _turned(np.append(longitudes, longitude), np.append(latitudes, latitude))
        ring = sphere_edges(np.array(xs), np.array(ys), True)
    east_of = (ring.west - longitude + 180) % 360 - 180
    is_crossed = (east_of < 0) != (east_of + ring.width < 0)
    above = _latitude(*_curve(ring), -east_of) > latitude
    has_north = abs(ring.area + math.radians(ring.turn)) > _HALF_SPHERE
    return bool(np.count_nonzero(is_crossed & above) % 2) != has_north


def _turned(longitudes: Numbers, latitudes: Numbers) -> tuple[Numbers, Numbers]:
    """The positions on a sphere that is turned, so that none of an ordinary ring is at a pole."""
    x, y = np.radians(longitudes), np.radians(latitudes)
    across, along, up = np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)
    cosine, sine = math.cos(1.1), math.sin(1.1)
    across, up = cosine * across - sine * up, sine * across + cosine * up
    along, up = cosine * along - sine * up, sine * along + cosine * up
    return np.degrees(np.arctan2(along, across)), np.degrees(np.arctan2(up, np.hypot(across, along)))


def _curve(edges: Edges) -> tuple[Numbers, Numbers]:
    """a and b of each edge."""
    a, east = np.tan(np.radians(edges.at_west)), np.tan(np.radians(edges.at_east))
    width = np.radians(np.maximum(edges.width, _CLOSE))
    return a, (east - a * np.cos(width)) / np.sin(width)


def _latitude(a: Numbers, b: Numbers, t: Numbers) -> Numbers:
    angle = np.radians(t)
    latitudes: Numbers = np.degrees(np.arctan(a * np.cos(angle) + b * np.sin(angle)))
    return latitudes


def _is_between(angle: Numbers, start: Numbers, stop: Numbers) -> npt.NDArray[np.bool_]:
    return (angle > start) & (angle < stop)


def _area(east: Numbers, y1: Numbers, y2: Numbers) -> float:
    """Between edges and the equator, by the tangents of half angles."""
    one, other = np.tan(np.radians(y1) / 2), np.tan(np.radians(y2) / 2)
    return float((2 * np.arctan2(np.tan(np.radians(east) / 2) * (one + other), 1 + one * other)).sum())
