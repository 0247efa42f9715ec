"""The bytes of geometries and geographies: ISO WKB to and from WKT (spec: Appendix G).

Reads both byte orders, XY, XYZ, XYM and XYZM, and writes little-endian. A point whose coordinates are all NaN is the empty point,
which WKB cannot write otherwise.
"""

import math
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from icefloe.errors import InvalidValueError

T = TypeVar("T")
Positions: TypeAlias = npt.NDArray[np.float64]
"""One row of coordinates for each position."""

POINT, LINE, _POLYGON, _MULTI_POINT, _COLLECTION = 1, 2, 3, 4, 7
_NAMES = {
    1: "POINT",
    2: "LINESTRING",
    3: "POLYGON",
    4: "MULTIPOINT",
    5: "MULTILINESTRING",
    6: "MULTIPOLYGON",
    7: "GEOMETRYCOLLECTION",
    15: "POLYHEDRALSURFACE",
    16: "TIN",
    17: "TRIANGLE",
}
_CODES = {name: code for code, name in _NAMES.items()}
RING_SHAPES = (_POLYGON, 17)
MEMBERS = {4: 1, 5: 2, 6: 3, 15: 3, 16: 17}
"""The one shape that the members of each multi-shape have; a collection's may be any."""

_DIMENSIONS = {"": 0, "Z": 1, "M": 2, "ZM": 3}
AXES_OF = ((0, 1), (0, 1, 2), (0, 1, 3), (0, 1, 2, 3))
"""Which of x, y, z, m the numbers of a position are, by dimension code."""

EWKB_HINT = (
    "; that is EWKB, whose high bits and SRID tables must not have: write ISO WKB, in PostGIS by ST_AsBinary(g), in shapely by"
    ' to_wkb(g, flavor="iso", include_srid=False), and name the CRS in the type of the column'
)
"""What a writer of EWKB has to do."""

_MAX_DEPTH = 64
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_WORD = re.compile(rf"\s*([(),]|(?:[+-]?[A-Za-z]+|{_NUMBER})(?=[\s(),]|$))")
_SPECIAL = {"NAN": math.nan, "INF": math.inf, "INFINITY": math.inf}


@dataclass(frozen=True, slots=True)
class Shape:
    """One geometry: the one line of a point or line, the rings of a polygon, or members, by its code."""

    code: int
    dimensions: int
    lines: tuple[Positions, ...] = ()
    members: "tuple[Shape, ...]" = ()

    @property
    def is_point(self) -> bool:
        """Whether it is a single position, or the empty point."""
        return self.code == POINT

    @property
    def is_ring_shape(self) -> bool:
        """Whether its lines are rings around an area: a polygon or a triangle."""
        return self.code in RING_SHAPES

    def leaves(self) -> "Iterator[Shape]":
        """The points, lines and polygons that it consists of."""
        if self.code in MEMBERS or self.code == _COLLECTION:
            for member in self.members:
                yield from member.leaves()
        else:
            yield self


def check_wkb(data: bytes) -> None:
    """Fail unless the bytes are one whole ISO WKB value."""
    parse_wkb(data)


def wkb_to_wkt(data: bytes) -> str:
    """The text form of a WKB value: `POINT (30 10)`."""
    return _tagged_text(parse_wkb(data))


def wkt_to_wkb(text: str) -> bytes:
    """The little-endian WKB form of a WKT text."""
    reader = _TextReader(text)
    shape = reader.tagged(0)
    if reader.peek() is not None:
        reader.fail(f"{reader.peek()!r} follows the end")
    return b"".join(_encode(shape))


def parse_wkb(data: bytes) -> Shape:
    """The shape of one whole ISO WKB value."""
    if not isinstance(data, bytes):
        raise InvalidValueError(f"{data!r} is not WKB; give bytes")
    shape, end = _read(data, 0, 0)
    if end != len(data):
        raise InvalidValueError(f"WKB has {len(data) - end} bytes after its end, at byte {end}")
    return shape


def _read(data: bytes, at: int, depth: int) -> tuple[Shape, int]:
    if depth > _MAX_DEPTH:
        raise InvalidValueError(f"WKB nests geometries more than {_MAX_DEPTH} deep")
    if at >= len(data) or data[at] > 1:
        raise InvalidValueError(f"WKB has no byte order, 0 or 1, at byte {at} of {len(data)}")
    order = "<" if data[at] else ">"
    type_code = _uint(data, at + 1, order)
    dimensions, code = divmod(type_code, 1000)
    if code not in _NAMES or dimensions > 3:
        hint = EWKB_HINT if type_code >> 29 else ""
        raise InvalidValueError(f"WKB has the unknown geometry type {type_code} at byte {at + 1}{hint}")
    at += 5
    if code == POINT:
        positions, at = _read_positions(data, at, order, 1, dimensions)
        return Shape(code, dimensions, (positions[:0] if np.isnan(positions).all() else positions,)), at
    count = _uint(data, at, order)
    at += 4
    if code == LINE:
        positions, at = _read_positions(data, at, order, count, dimensions)
        return Shape(code, dimensions, (positions,)), at
    # Every ring and member takes four bytes at least, which bounds the loops on hostile counts.
    _check_room(data, at, 4 * count)
    if code in RING_SHAPES:
        rings = []
        for _ in range(count):
            ring, at = _read_positions(data, at + 4, order, _uint(data, at, order), dimensions)
            rings.append(ring)
        return Shape(code, dimensions, tuple(rings)), at
    members = []
    for _ in range(count):
        member, at = _read(data, at, depth + 1)
        if code != _COLLECTION and (member.code, member.dimensions) != (MEMBERS[code], dimensions):
            raise InvalidValueError(f"WKB has a {_tag(member)} inside a {_NAMES[code]}, before byte {at}")
        members.append(member)
    return Shape(code, dimensions, members=tuple(members)), at


def _uint(data: bytes, at: int, order: str) -> int:
    _check_room(data, at, 4)
    return int(struct.unpack_from(f"{order}I", data, at)[0])


def _read_positions(data: bytes, at: int, order: str, count: int, dimensions: int) -> tuple[Positions, int]:
    width = len(AXES_OF[dimensions])
    _check_room(data, at, 8 * width * count)
    numbers = np.frombuffer(data, f"{order}f8", width * count, at)
    return numbers.astype(np.float64, copy=False).reshape(count, width), at + 8 * width * count


def _check_room(data: bytes, at: int, size: int) -> None:
    if at + size > len(data):
        raise InvalidValueError(f"WKB of {len(data)} bytes ends early: {size} bytes are needed at byte {at}")


def _encode(shape: Shape) -> Iterator[bytes]:
    yield struct.pack("<BI", 1, shape.dimensions * 1000 + shape.code)
    if shape.code == POINT:
        empty = np.full((1, len(AXES_OF[shape.dimensions])), np.nan)
        yield (shape.lines[0] if len(shape.lines[0]) else empty).astype("<f8").tobytes()
    elif shape.code == LINE:
        yield _encode_positions(shape.lines[0])
    elif shape.code in RING_SHAPES:
        yield struct.pack("<I", len(shape.lines))
        yield from map(_encode_positions, shape.lines)
    else:
        yield struct.pack("<I", len(shape.members))
        for member in shape.members:
            yield from _encode(member)


def _encode_positions(positions: Positions) -> bytes:
    return struct.pack("<I", len(positions)) + bytes(positions.astype("<f8").tobytes())


def _tag(shape: Shape) -> str:
    suffix = next(text for text, code in _DIMENSIONS.items() if code == shape.dimensions)
    return f"{_NAMES[shape.code]} {suffix}".rstrip()


def _tagged_text(shape: Shape) -> str:
    return f"{_tag(shape)} {_body_text(shape)}"


def _body_text(shape: Shape) -> str:
    if shape.code in (POINT, LINE):
        return _positions_text(shape.lines[0])
    if shape.code in RING_SHAPES:
        parts = [_positions_text(ring) for ring in shape.lines]
    else:
        parts = [_tagged_text(m) if shape.code == _COLLECTION else _body_text(m) for m in shape.members]
    return f"({', '.join(parts)})" if parts else "EMPTY"


def _positions_text(positions: Positions) -> str:
    if not len(positions):
        return "EMPTY"
    return f"({', '.join(' '.join(map(_number_text, position)) for position in positions.tolist())})"


def _number_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number).removesuffix(".0")


class _TextReader:
    """A recursive descent parser over the words of a WKT text."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidValueError(f"{text!r} is not WKT; give a string like 'POINT (30 10)'")
        self.text = text
        self.words: list[str] = []
        self.at = 0
        end = len(text.rstrip())
        position = 0
        while position < end:
            match = _WORD.match(text, position)
            if match is None:
                self.fail(f"cannot read {text[position:].strip()[:20]!r}")
            self.words.append(match[1].upper())
            position = match.end()

    def fail(self, problem: str) -> NoReturn:
        shown = self.text if len(self.text) <= 100 else self.text[:100] + "..."
        raise InvalidValueError(
            f"{shown!r} is not WKT: {problem}; write it like 'POINT (30 10)' or 'POINT Z (30 10 5)'"
        )

    def peek(self) -> str | None:
        return self.words[self.at] if self.at < len(self.words) else None

    def take(self) -> str:
        word = self.peek()
        if word is None:
            self.fail("it ends early")
        self.at += 1
        return word

    def tagged(self, depth: int) -> Shape:
        if depth > _MAX_DEPTH:
            self.fail(f"geometries nest more than {_MAX_DEPTH} deep")
        name, suffix = self.take(), ""
        if name not in _CODES:
            name, suffix = next(((n, name[len(n) :]) for n in _CODES if name.startswith(n)), (name, "?"))
        elif self.peek() in ("Z", "M", "ZM"):
            suffix = self.take()
        if name not in _CODES or suffix not in _DIMENSIONS:
            self.fail(f"{self.words[self.at - 1]!r} is not one of {', '.join(_CODES)}")
        return self.body(_CODES[name], _DIMENSIONS[suffix], depth)

    def body(self, code: int, dimensions: int, depth: int) -> Shape:
        if code in (POINT, LINE):
            positions = self.positions(dimensions)
            if code == POINT and len(positions) > 1:
                self.fail(f"a point has {len(positions)} positions")
            return Shape(code, dimensions, (positions,))
        if code in RING_SHAPES:
            return Shape(code, dimensions, self.several(lambda: self.positions(dimensions)))
        return Shape(code, dimensions, (), self.several(lambda: self.member(code, dimensions, depth + 1)))

    def member(self, code: int, dimensions: int, depth: int) -> Shape:
        if code == _COLLECTION:
            return self.tagged(depth)
        if code == _MULTI_POINT and self.peek() not in ("(", "EMPTY"):
            return Shape(POINT, dimensions, (np.array([self.position(dimensions)]),))
        return self.body(MEMBERS[code], dimensions, depth)

    def several(self, read: Callable[[], T]) -> tuple[T, ...]:
        """What stands in parentheses, separated by commas; nothing for EMPTY."""
        if self.peek() == "EMPTY":
            self.take()
            return ()
        self.expect("(")
        parts = [read()]
        while self.expect(",", ")") == ",":
            parts.append(read())
        return tuple(parts)

    def positions(self, dimensions: int) -> Positions:
        rows = self.several(lambda: self.position(dimensions))
        return np.array(rows, dtype=np.float64).reshape(-1, len(AXES_OF[dimensions]))

    def position(self, dimensions: int) -> list[float]:
        return [self.number() for _ in AXES_OF[dimensions]]

    def number(self) -> float:
        word = self.take()
        sign, name = (word[0], word[1:]) if word[0] in "+-" else ("+", word)
        if name in _SPECIAL:
            return -_SPECIAL[name] if sign == "-" else _SPECIAL[name]
        try:
            return float(word)
        except ValueError:
            self.fail(f"{word!r} stands where a coordinate is needed")

    def expect(self, *words: str) -> str:
        word = self.take()
        if word not in words:
            self.fail(f"{word!r} stands where {' or '.join(map(repr, words))} is needed")
        return word
