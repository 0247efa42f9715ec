"""What a variant is: a dictionary of names and a value that carries its own type (parquet-format: VariantEncoding)."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

MAX_DEPTH = 1000
"""How deep values may be nested; the same limit as in the Java libraries of Iceberg and Parquet."""
EMPTY_METADATA = b"\x01\x00\x00"
"""The dictionary of a variant without any object field."""
VARIANT_NULL = b"\x00"
"""The value of a variant that is there and is null."""


class VariantKind(IntEnum):
    """The primitive types, each under its number in the encoding."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    DOUBLE = 7
    DECIMAL4 = 8
    DECIMAL8 = 9
    DECIMAL16 = 10
    DATE = 11
    TIMESTAMPTZ = 12
    TIMESTAMP = 13
    FLOAT = 14
    BINARY = 15
    STRING = 16
    TIME = 17
    TIMESTAMPTZ_NANOS = 18
    TIMESTAMP_NANOS = 19
    UUID = 20


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant as it is stored: the dictionary of field names, and the value."""

    metadata: bytes
    value: bytes


@dataclass(frozen=True, slots=True)
class VariantPrimitive:
    """A primitive value with its exact type, where the natural Python object would not tell it or cannot hold it.

    `value` has the form of the project's values: dates are days, times and timestamps are counts of micro- or
    nanoseconds, decimals are `Decimal`, UUIDs are `UUID`.
    """

    kind: VariantKind
    value: Any
