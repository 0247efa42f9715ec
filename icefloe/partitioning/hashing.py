"""Which bytes of a value are hashed, and the 32-bit hash of them (spec: Appendix B, 32-bit Hash Requirements)."""

import struct
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import cast
from uuid import UUID

import mmh3

from icefloe.errors import InvalidTransformError, InvalidValueError
from icefloe.schema import Value, types

CANONICAL_NAN_BITS = 0x7FF8000000000000
NANOS_PER_MICRO = 1000
# Room for every digit, so that nothing is rounded without an error.
_EXACT = Context(prec=100, traps=[InvalidOperation, Inexact])


def hash_value(value: Value, field_type: types.IcebergType) -> int:
    """The signed 32-bit Murmur3 hash of a non-null value."""
    return mmh3.hash(bytes_to_hash(value, field_type), 0, signed=True)


def bytes_to_hash(value: Value, field_type: types.IcebergType) -> bytes:
    """The bytes of the value that are hashed; int, long and date hash alike, so that promotion keeps buckets."""
    try:
        return _bytes_to_hash(value, field_type)
    except (TypeError, AttributeError, struct.error, UnicodeEncodeError) as error:
        raise InvalidValueError(f"{value!r} is not a value of type {field_type}: {error}") from None


def unscaled(value: Decimal, field_type: types.DecimalType) -> int:
    """The decimal as an integer count of its smallest unit; exact, whatever the decimal context."""
    try:
        scaled = _EXACT.scaleb(value, field_type.scale)
        number = int(scaled)
    except (ArithmeticError, ValueError) as error:
        raise InvalidValueError(f"{value} is not a value of type {field_type}: {error}") from None
    if number != scaled:
        raise InvalidValueError(
            f"{value} is not a value of type {field_type}: it has more than {field_type.scale} decimals"
        )
    return number


def minimal_big_endian(number: int) -> bytes:
    """Two's complement in the fewest bytes, most significant first."""
    bits = number.bit_length() if number >= 0 else (-number - 1).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def _bytes_to_hash(value: Value, field_type: types.IcebergType) -> bytes:
    match field_type:
        case (
            types.IntegerType()
            | types.LongType()
            | types.DateType()
            | types.TimeType()
            | types.TimestampType()
            | types.TimestamptzType()
        ):
            return struct.pack("<q", value)
        case types.TimestampNanoType() | types.TimestamptzNanoType():
            # Hashed as microseconds, so that both timestamp widths share buckets; floor, also before 1970.
            return struct.pack("<q", value // NANOS_PER_MICRO)
        case types.StringType():
            return cast(str, value).encode()
        case types.DecimalType():
            return minimal_big_endian(unscaled(value, field_type))
        case types.UUIDType():
            return cast(UUID, value).bytes
        case types.FixedType() | types.BinaryType():
            return bytes(memoryview(value))
        case types.BooleanType():
            return struct.pack("<q", bool(value))
        case types.FloatType() | types.DoubleType():
            if value != value:
                return struct.pack("<Q", CANONICAL_NAN_BITS)
            # Adding 0.0 turns -0.0 into 0.0, which must hash alike because they are equal.
            return struct.pack("<d", value + 0.0)
        case _:
            raise InvalidTransformError(f"values of type {field_type} have no hash")
