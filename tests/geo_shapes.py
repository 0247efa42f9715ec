"""Random shapes and boxes from a seed, and what independent definitions say about them."""

import math
import struct
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import shapely

Rng = np.random.Generator
Numbers = npt.NDArray[np.float64]


def wkb(shape: Any, rng: Rng) -> bytes:
    """ISO WKB of a shape, in either byte order."""
    data: bytes = shapely.to_wkb(shape, byte_order=int(rng.integers(2)), flavor="iso")
    return data


def planar_shape(rng: Rng, size: float = 20) -> Any:
    """A valid shape with planar edges: on a grid, where shapes touch often, or anywhere."""
    while True:
        shape = _planar(rng, size)
        if shapely.is_valid(shape):
            return shape


def _planar(rng: Rng, size: float) -> Any:
    match int(rng.integers(8)):
        case 0 | 1:
            return shapely.Point(_positions(rng, 1, size)[0])
        case 2:
            return shapely.MultiPoint(_positions(rng, int(rng.integers(1, 4)), size))
        case 3:
            return shapely.LineString(_positions(rng, int(rng.integers(2, 5)), size))
        case 4:
            return shapely.MultiLineString([_positions(rng, 2, size)[:, :2] for _ in range(int(rng.integers(1, 4)))])
        case 5:
            return _star(rng, size)
        case 6:
            outer = _star(rng, size)
            return shapely.difference(outer, shapely.affinity.scale(outer, 0.4, 0.4)) if outer.is_valid else outer
        case _:
            empty = [shapely.Point(), shapely.Polygon(), shapely.GeometryCollection()]
            return shapely.GeometryCollection(
                [_star(rng, size), shapely.Point(_positions(rng, 1, size)[0]), empty[int(rng.integers(3))]]
            )


def _positions(rng: Rng, count: int, size: float) -> Numbers:
    positions = rng.uniform(-size, size, (count, 3 if rng.random() < 0.2 else 2))
    return np.round(positions) if rng.random() < 0.5 else positions


def _star(rng: Rng, size: float) -> Any:
    angles = np.sort(rng.uniform(0, 2 * math.pi, int(rng.integers(3, 8))))
    radii = rng.uniform(0.2, 1, len(angles)) * rng.choice([0.1, 0.5, 1]) * size
    positions = rng.uniform(-size, size, 2) + np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    return shapely.Polygon(np.round(positions) if rng.random() < 0.5 else positions)


def planar_box(rng: Rng, size: float = 20) -> tuple[float, float, float, float]:
    """xmin, ymin, xmax, ymax: often small, sometimes without an area."""
    low = rng.uniform(-size, size, 2)
    high = low + rng.choice([0, 0.5, 3, size]) * rng.random(2)
    if rng.random() < 0.5:
        low, high = np.round(low), np.round(high)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


# -- on a sphere


class SphereShape:
    """A point, line or ring of a geography: its positions, and those of a fine net over it."""

    def __init__(self, rng: Rng) -> None:
        self.kind = str(rng.choice(["point", "line", "polygon"]))
        if self.kind == "polygon":
            self.positions, self.centre = _cap_ring(rng)
        else:
            self.positions = sphere_positions(rng, 1 if self.kind == "point" else int(rng.integers(2, 4)))

    @property
    def wkb(self) -> bytes:
        x, y = self.positions.T
        if self.kind == "point":
            return struct.pack("<BIdd", 1, 1, x[0], y[0])
        ring = np.vstack([self.positions, self.positions[:1]]) if self.kind == "polygon" else self.positions
        header = struct.pack("<BI", 1, 2) if self.kind == "line" else struct.pack("<BII", 1, 3, 1)
        return header + struct.pack("<I", len(ring)) + bytes(ring.astype("<f8").tobytes())

    def edge_positions(self, steps: int = 2000) -> Numbers:
        """Positions along the edges, by interpolation of directions."""
        around = np.vstack([self.positions, self.positions[:1]]) if self.kind == "polygon" else self.positions
        vectors = directions(around)
        if len(vectors) == 1:
            return self.positions
        share = np.linspace(0, 1, steps)[:, None]
        parts = [slerp(one, other, share) for one, other in pairwise(vectors)]
        return np.vstack([self.positions, *(positions_of(part) for part in parts)])

    def contains(self, positions: Numbers) -> npt.NDArray[np.bool_]:
        """Which positions a polygon holds, in the gnomonic projection, where great circles are straight lines."""
        if self.kind != "polygon":
            return np.zeros(len(positions), np.bool_)
        vectors, centre = directions(self.positions), self.centre
        one = np.cross(centre, (0, 0, 1) if abs(centre[2]) < 0.9 else (1, 0, 0))
        one /= np.linalg.norm(one)
        axes = np.array([one, np.cross(centre, one)])
        ring = shapely.Polygon((vectors @ axes.T) / (vectors @ centre)[:, None])
        asked = directions(positions)
        depth = asked @ centre
        is_near = depth > 1e-6
        inside = np.zeros(len(positions), np.bool_)
        flat = (asked[is_near] @ axes.T) / depth[is_near, None]
        inside[is_near] = shapely.contains_xy(ring, flat[:, 0], flat[:, 1])
        return inside


def sphere_positions(rng: Rng, count: int) -> Numbers:
    """Longitudes and latitudes all over the globe, near each other or not, often at the antimeridian or a pole."""
    x, y = rng.uniform(-180, 180, count), np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    if rng.random() < 0.4:
        x = (x[0] + rng.uniform(-20, 20, count) + 180) % 360 - 180
    if rng.random() < 0.3:
        x = np.where(rng.random(count) < 0.5, rng.choice([-180.0, 180.0, 170.0, -170.0]), x)
    if rng.random() < 0.2:
        y = np.where(rng.random(count) < 0.3, rng.choice([-90.0, 90.0, 0.0]), y)
    return np.column_stack([x, y])


def _cap_ring(rng: Rng) -> tuple[Numbers, Numbers]:
    """A star around any place of the globe, poles included, within a half of it, and the direction of that place."""
    centre = directions(sphere_positions(rng, 1))[0]
    if rng.random() < 0.3:
        centre = np.array([0.0, 0.0, 1.0 if rng.random() < 0.5 else -1.0])
        centre[:2] += rng.uniform(-0.3, 0.3, 2) * rng.integers(2)
        centre /= np.linalg.norm(centre)
    one = np.cross(centre, (0, 0, 1) if abs(centre[2]) < 0.9 else (1, 0, 0))
    one /= np.linalg.norm(one)
    other = np.cross(centre, one)
    count = int(rng.integers(4, 9))
    angles = (np.arange(count) + rng.uniform(0, 0.8, count)) * 2 * math.pi / count
    radii = rng.uniform(0.4, 1, count)[:, None] * rng.choice([0.05, 0.5, 1.4])
    sides = np.cos(angles)[:, None] * one + np.sin(angles)[:, None] * other
    ring = positions_of(np.cos(radii) * centre + np.sin(radii) * sides)
    return ring[::-1] if rng.random() < 0.5 else ring, centre


def sphere_box(rng: Rng) -> tuple[float, float, float, float]:
    """West, south, east and north, over the antimeridian or not, at a pole or not."""
    west, width = rng.uniform(-180, 180), rng.choice([0, 1, 20, 200]) * rng.random()
    south, height = rng.uniform(-90, 90), rng.choice([0, 1, 20, 100]) * rng.random()
    if rng.random() < 0.2:
        west = float(rng.choice([-180.0, 180.0, 170.0]))
    if rng.random() < 0.1:
        west, width = -180.0, 360.0
    east = west + width
    north = 90.0 if rng.random() < 0.1 else min(south + height, 90.0)
    south = -90.0 if rng.random() < 0.1 else south
    return west, south, east if east <= 180 else east - 360, north


def is_in_sphere_box(positions: Numbers, box: tuple[float, float, float, float], margin: float = 0) -> Any:
    """Which positions are in the box, or so close to it."""
    west, south, east, north = box
    x, y = positions.T
    width = 360.0 if (west, east) == (-180, 180) else (east - west) % 360
    # Degrees of longitude become short near the poles.
    reach = margin / np.maximum(np.cos(np.radians(y)), 1e-3)
    is_east = ((x - west + reach) % 360 <= width + 2 * reach) | (np.abs(y) >= 90 - margin)
    return is_east & (y >= south - margin) & (y <= north + margin)


def directions(positions: Numbers) -> Numbers:
    """Unit vectors."""
    x, y = np.radians(positions).T
    return np.column_stack([np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)])


def positions_of(vectors: Numbers) -> Numbers:
    """Longitudes and latitudes of unit vectors."""
    x, y, z = vectors.T
    positions: Numbers = np.degrees(np.column_stack([np.arctan2(y, x), np.arctan2(z, np.hypot(x, y))]))
    return positions


def slerp(one: Numbers, other: Numbers, share: Numbers) -> Numbers:
    """Unit vectors between two of them, along the shorter arc."""
    angle = math.atan2(float(np.linalg.norm(np.cross(one, other))), float(one @ other))
    if angle < 1e-12:
        return np.vstack([one, other])
    between: Numbers = (np.sin((1 - share) * angle) * one + np.sin(share * angle) * other) / math.sin(angle)
    return between
