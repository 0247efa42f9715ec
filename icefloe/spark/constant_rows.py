"""How the constants of many files reach Catalyst in one call: in the serialization format of Spark and Java."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from icefloe.partitioning import minimal_big_endian, unscaled
from icefloe.schema import DecimalType
from icefloe.spark.gateway import Gateway

_ROW = "org.apache.spark.sql.catalyst.expressions.UnsafeRow"
_WORD = 8
_BITS = 64
_LONG_DIGITS = 18
"""Decimals of more digits than fit a long are kept as bytes."""
_DECIMAL_BYTES = 16
_MOST_OF_SHORT_BLOCK = 255

# Java Object Serialization Specification, 6.4: the stream's marks, and the first number of an object in it.
_HEADER = b"\xac\xed\x00\x05"
_OBJECT, _ARRAY, _CLASS, _REFERENCE, _END, _NULL = b"\x73", b"\x75", b"\x72", b"\x71", b"\x78", b"\x70"
_SHORT_BLOCK, _LONG_BLOCK = b"\x77", b"\x7a"
_SERIALIZABLE, _EXTERNALIZABLE = b"\x02", b"\x0c"
_CLASS_OF_ROWS = struct.pack(">i", 0x7E0002)
"""The third thing in the stream, after the array's class and the array."""


def constant_rows(gateway: Gateway, kinds: Sequence[Any], rows: Sequence[Sequence[Any]]) -> Any:
    """A Java array of Catalyst rows of these Spark types, from plain values."""
    jvm = gateway.jvm
    number = jvm.java.io.ObjectStreamClass.lookup(gateway.load_class(_ROW)).getSerialVersionUID()
    blob = _stream(int(number), len(kinds), [unsafe_row(kinds, values) for values in rows])
    return jvm.java.io.ObjectInputStream(jvm.java.io.ByteArrayInputStream(blob)).readObject()


def unsafe_row(kinds: Sequence[Any], values: Sequence[Any]) -> bytes:
    """A row in the form of Spark's `UnsafeRow`: a bit for each null, a word for each value, then the longer values."""
    nulls = bytearray((len(kinds) + _BITS - 1) // _BITS * _WORD)
    words, after = [], bytearray()
    start = len(nulls) + _WORD * len(kinds)
    for index, (data_type, value) in enumerate(zip(kinds, values, strict=True)):
        if value is None:
            nulls[index // 8] |= 1 << index % 8
        is_long_decimal = data_type.typeName() == "decimal" and data_type.precision > _LONG_DIGITS
        if value is None and not is_long_decimal:
            words.append(bytes(_WORD))
        elif (word := _word(data_type, value)) is not None:
            words.append(word.ljust(_WORD, b"\0"))
        else:
            content = b"" if value is None else _bytes(data_type, value)
            words.append(struct.pack("=q", start + len(after) << 32 | len(content)))
            # A long decimal has room for any other, so that it can be updated in place.
            after += content.ljust(_DECIMAL_BYTES if is_long_decimal else -(-len(content) // _WORD) * _WORD, b"\0")
    return b"".join((bytes(nulls), *words, bytes(after)))


def _word(data_type: Any, value: Any) -> bytes | None:
    """The value as a word, if it fits one."""
    match data_type.typeName():
        case "long" | "timestamp" | "timestamp_ntz":
            return struct.pack("=q", value)
        case "integer" | "date":
            return struct.pack("=i", value)
        case "boolean":
            return b"\1" if value else b"\0"
        case "double":
            return struct.pack("=d", value)
        case "float":
            return struct.pack("=f", value)
        case "decimal" if data_type.precision <= _LONG_DIGITS:
            return struct.pack("=q", unscaled(value, DecimalType(data_type.precision, data_type.scale)))
        case _:
            return None


def _bytes(data_type: Any, value: Any) -> bytes:
    match data_type.typeName():
        case "string":
            return value if isinstance(value, bytes) else str(value).encode()
        case "binary":
            return bytes(value.bytes if hasattr(value, "bytes") else value)
        case "decimal":
            return minimal_big_endian(unscaled(value, DecimalType(data_type.precision, data_type.scale)))
        case _:
            raise AssertionError(f"no constant column is of type {data_type}")


def _stream(number: int, width: int, rows: Sequence[bytes]) -> bytes:
    return b"".join(_parts(number, width, rows))


def _parts(number: int, width: int, rows: Sequence[bytes]) -> Iterator[bytes]:
    yield _HEADER + _ARRAY + _class(f"[L{_ROW};", 0, _SERIALIZABLE) + struct.pack(">i", len(rows))
    for index, row in enumerate(rows):
        content = struct.pack(">ii", len(row), width) + row
        size = len(content)
        is_short = size <= _MOST_OF_SHORT_BLOCK
        yield _OBJECT + (_REFERENCE + _CLASS_OF_ROWS if index else _class(_ROW, number, _EXTERNALIZABLE))
        yield _SHORT_BLOCK + bytes((size,)) if is_short else _LONG_BLOCK + struct.pack(">i", size)
        yield content
        yield _END


def _class(name: str, number: int, flags: bytes) -> bytes:
    encoded = name.encode()
    return (
        _CLASS + struct.pack(">H", len(encoded)) + encoded + struct.pack(">q", number) + flags + b"\0\0" + _END + _NULL
    )
