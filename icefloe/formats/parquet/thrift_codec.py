"""How structs of Thrift's compact protocol, in which Parquet keeps its metadata, are read, skipped and written.

A struct is a list of its fields in their order, with numbers and kinds but without names: what is not changed is written as it
was read, also where it is newer than this code.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
I16, I32, I64 = 4, 5, 6
_INTEGERS = (I16, I32, I64)
_BOOLEANS = (TRUE, FALSE)
_DOUBLE_BYTES = 8
_LONG_LIST = 15


ThriftValue: TypeAlias = Any
"""A struct, a list, a number, or the bytes of anything else, by its kind."""


@dataclass(slots=True)
class ThriftList:
    """The elements of a list or set, all of one kind."""

    kind: int
    values: list[ThriftValue]


class ThriftStruct:
    """The fields of a struct by their numbers, each with its kind, in their order."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields: dict[int, tuple[int, ThriftValue]] = {}

    def get(self, field: int, default: ThriftValue = None) -> ThriftValue:
        """The value of a field, if it is there."""
        return self._fields.get(field, (0, default))[1]

    def set(self, field: int, kind: int, value: ThriftValue) -> None:
        """Give a field a value."""
        self._fields[field] = (kind, value)

    def items(self) -> list[tuple[int, tuple[int, ThriftValue]]]:
        """All fields with their kinds and values, by number."""
        return sorted(self._fields.items())


class ThriftReader:
    """A walk over bytes of the protocol."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.at = at
        self._data = data

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        """The next number without a sign."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def integer(self) -> int:
        """The next number with a sign."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """The field number and type of each field of a struct; the caller must read or skip its value."""
        field = 0
        while (header := self.byte()) != 0:
            field = field + (header >> 4) if header >> 4 else self.integer()
            yield field, header & 0x0F

    def list_header(self) -> tuple[int, int]:
        """How many elements a list has, and of which kind."""
        header = self.byte()
        count = header >> 4
        return (self.varint() if count == _LONG_LIST else count), header & 0x0F

    def skip(self, kind: int, in_list: bool = False) -> None:
        """Go past a value."""
        if kind in _BOOLEANS:
            self.at += 1 if in_list else 0
        elif kind == BYTE:
            self.at += 1
        elif kind == DOUBLE:
            self.at += _DOUBLE_BYTES
        elif kind == BINARY:
            length = self.varint()
            self.at += length
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (LIST, SET):
            count, inner = self.list_header()
            for _ in range(count):
                self.skip(inner, in_list=True)
        elif kind == MAP:
            self._skip_map()
        else:
            self.varint()

    def struct(self) -> ThriftStruct:
        """The next struct, with all that is in it."""
        struct = ThriftStruct()
        for field, kind in self.fields():
            struct.set(field, kind, self._value(kind))
        return struct

    def _value(self, kind: int, in_list: bool = False) -> ThriftValue:
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            count, inner = self.list_header()
            return ThriftList(inner, [self._value(inner, in_list=True) for _ in range(count)])
        if kind in _INTEGERS:
            return self.integer()
        # The rest stays as bytes.
        start = self.at
        self.skip(kind, in_list)
        return self._data[start : self.at]

    def _skip_map(self) -> None:
        count = self.varint()
        kinds = self.byte() if count else 0
        for _ in range(count):
            self.skip(kinds >> 4, in_list=True)
            self.skip(kinds & 0x0F, in_list=True)


def write_struct(struct: ThriftStruct) -> bytes:
    """The bytes of a struct."""
    out = bytearray()
    _add_struct(out, struct)
    return bytes(out)


def write_varint(number: int) -> bytes:
    """The bytes of a number without a sign."""
    out = bytearray()
    _add_varint(out, number)
    return bytes(out)


def _add_struct(out: bytearray, struct: ThriftStruct) -> None:
    before = 0
    for field, (kind, value) in struct.items():
        if 0 < field - before < _LONG_LIST + 1:
            out.append((field - before) << 4 | kind)
        else:
            out.append(kind)
            _add_varint(out, _zigzag(field))
        _add_value(out, kind, value)
        before = field
    out.append(0)


def _add_value(out: bytearray, kind: int, value: ThriftValue) -> None:
    if kind == STRUCT:
        _add_struct(out, value)
    elif kind in (LIST, SET):
        count = len(value.values)
        out.append(min(count, _LONG_LIST) << 4 | value.kind)
        if count >= _LONG_LIST:
            _add_varint(out, count)
        for item in value.values:
            _add_value(out, value.kind, item)
    elif kind in _INTEGERS:
        _add_varint(out, _zigzag(value))
    else:
        out += value


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _add_varint(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
