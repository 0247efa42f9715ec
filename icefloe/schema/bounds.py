"""Lower and upper bounds of a column, and their bytes (spec: Appendix D, Bound serialization).

Bounds may be loose, never tight on the wrong side: a lower bound is at most, an upper bound at least every value.
"""

import math
import struct

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.schema import types
from icefloe.schema.binary import Array, decode, decode_array, encode
from icefloe.schema.geo_boxes import GeoPoint

DEFAULT_BOUND_WIDTH = 16
"""How many code points or bytes a bound keeps unless the table says otherwise; the Java library's `truncate(16)`."""

_LAST_CODE_POINT = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = 0xD7FF, 0xE000


def truncate_lower(value: types.Value, field_type: types.IcebergType, width: int) -> types.Value:
    """A value of at most `width` code points or bytes that is not above the given one; other types are not cut."""
    _check_width(width)
    return value[:width] if isinstance(field_type, types.StringType | types.BinaryType) else value


def truncate_upper(value: types.Value, field_type: types.IcebergType, width: int) -> types.Value:
    """A value of at most `width` code points or bytes that is not below the given one, or None when there is none."""
    _check_width(width)
    if not isinstance(field_type, types.StringType | types.BinaryType) or len(value) <= width:
        return value
    return next_prefix(value[:width])


def encode_bound(value: types.Value, field_type: types.IcebergType) -> bytes:
    """The bytes of a bound: those of the value, and for geometry and geography those of a corner, a GeoPoint."""
    if isinstance(field_type, types.GeometryType | types.GeographyType):
        return encode_geo_bound(value)
    return encode(value, _stored_type(field_type))


def decode_bound(data: bytes, field_type: types.IcebergType) -> types.Value:
    """The bound that the bytes hold: a value, or a GeoPoint for geometry and geography."""
    if isinstance(field_type, types.GeometryType | types.GeographyType):
        return decode_geo_bound(data)
    return decode(data, _stored_type(field_type))


def decode_bounds(data: Array, field_type: types.IcebergType) -> pa.Array:
    """All bounds of an Arrow array of bytes: of the natural Arrow type, binary for `fixed`, struct of x, y, z, m for geo types.

    Corners of other lengths than theirs, as early writers made them, are null: they say nothing.
    """
    if isinstance(field_type, types.GeometryType | types.GeographyType):
        return _decode_geo_bounds(data)
    return decode_array(data, _stored_type(field_type))


def encode_geo_bound(point: GeoPoint) -> bytes:
    """A corner as little-endian doubles: x:y, x:y:z, x:y:z:m, or x:y:NaN:m when only z is missing."""
    if not isinstance(point, GeoPoint):
        raise InvalidValueError(f"{point!r} is not a geo bound; give a GeoPoint")
    numbers = [point.x, point.y]
    if point.m is not None:
        numbers += [math.nan if point.z is None else point.z, point.m]
    elif point.z is not None:
        numbers.append(point.z)
    try:
        if math.isnan(point.x) or math.isnan(point.y):
            raise InvalidValueError(f"{point!r} has NaN for x or y; then there is no bound at all")
        return struct.pack(f"<{len(numbers)}d", *numbers)
    except (struct.error, TypeError):
        raise InvalidValueError(f"{point!r} is not a geo bound; its coordinates must be floats") from None


def decode_geo_bound(data: object) -> GeoPoint:
    """The corner that 16, 24 or 32 bytes hold."""
    if not isinstance(data, bytes | bytearray | memoryview) or len(data) not in (16, 24, 32):
        raise InvalidValueError(f"{data!r} is not a geo bound; it has 16, 24 or 32 bytes: x, y, z and m as doubles")
    x, y, z, m = (*struct.unpack(f"<{len(data) // 8}d", data), math.nan, math.nan)[:4]
    return GeoPoint(x, y, None if math.isnan(z) else z, None if math.isnan(m) else m)


def _stored_type(field_type: types.IcebergType) -> types.IcebergType:
    if isinstance(field_type, types.VariantType):
        return types.BinaryType()  # An object with the bounds of all paths, in the encoding of variants.
    # Earlier Java releases cut bounds of `fixed` like those of binary, so they may be shorter than the values.
    return types.BinaryType() if isinstance(field_type, types.FixedType) else field_type


def _decode_geo_bounds(data: Array) -> pa.Array:
    data = decode_array(data, types.BinaryType())
    lengths = pc.binary_length(data)
    data = pc.if_else(pc.is_in(lengths, pa.array([16, 24, 32], lengths.type), skip_nulls=False), data, None)
    columns = []
    for name, start in (("x", 0), ("y", 8), ("z", 16), ("m", 24)):
        part = pc.binary_slice(data, start, start + 8)
        part = pc.if_else(pc.greater(lengths, start), part, None)
        number = decode_array(part, types.DoubleType())
        columns.append(number if name in "xy" else pc.if_else(pc.is_nan(number), None, number))
    return pa.StructArray.from_arrays(columns, ["x", "y", "z", "m"], mask=pc.is_null(data))


def _check_width(width: object) -> None:
    if isinstance(width, bool) or not isinstance(width, int) or width < 1:
        raise InvalidValueError(f"bounds cannot be cut to width {width!r}; it must be a positive int")


def next_prefix(prefix: str | bytes) -> str | bytes | None:
    """The first text or bytes after all that have this prefix, and no longer than it; None if there is none."""
    if isinstance(prefix, bytes):
        rest = prefix.rstrip(b"\xff")
        return rest[:-1] + bytes([rest[-1] + 1]) if rest else None
    text = prefix.rstrip(_LAST_CODE_POINT)
    if not text:
        return None
    code_point = ord(text[-1])
    # Surrogates are not characters: UTF-8 cannot hold them.
    return text[:-1] + chr(_AFTER_SURROGATES if code_point == _BEFORE_SURROGATES else code_point + 1)
