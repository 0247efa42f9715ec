"""Avro rows as values of Python, whatever their schema: records are dicts, and logical types are left to the caller."""

import struct
from collections.abc import Iterator
from typing import Any, TypeVar

from icefloe.avro import nodes as av

Choice = TypeVar("Choice")

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


class ValueReader:
    """Reads values one after the other; bytes that are none are an error of Python's, a ValueError mostly."""

    def __init__(self, data: bytes | memoryview, at: int = 0) -> None:
        self._data = data
        self._records: list[av.AvroRecord] = []
        self.at = at

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self.at

    def value(self, node: av.AvroNode) -> Any:
        """The next value."""
        match node:
            case av.AvroPrimitive(kind):
                return self._primitive(kind)
            case av.AvroFixed(size):
                return self._take(size)
            case av.AvroEnum(symbols):
                return self._one_of(symbols)
            case av.AvroUnion(branches):
                return self.value(self._one_of(branches))
            case av.AvroRecord():
                return self._record(node)
            case av.AvroRecursion(up):
                return self._again(up)
            case av.AvroArray(items):
                return [self.value(items) for _ in self._items()]
            case av.AvroMap(values):
                return {self._primitive("string"): self.value(values) for _ in self._items()}
            case _:
                raise AssertionError(f"an Avro type without values: {node}")

    def _record(self, node: av.AvroRecord) -> dict[str, Any]:
        self._records.append(node)
        row = {field.name: self.value(field.node) for field in node.fields}
        self._records.pop()
        return row

    def _again(self, up: int) -> dict[str, Any]:
        """A record that is inside itself."""
        inner = self._records[-up:]
        del self._records[-up:]
        row = self._record(inner[0])
        self._records += inner
        return row

    def _primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._one_of((False, True), self._take(1)[0])
            case "int" | "long":
                return self.number()
            case "float":
                return _FLOAT.unpack(self._take(4))[0]
            case "double":
                return _DOUBLE.unpack(self._take(8))[0]
            case "bytes":
                return self._take(self.number())
            case _:
                return self._take(self.number()).decode()

    def _take(self, length: int) -> bytes:
        if not 0 <= length <= self.left:
            raise ValueError(f"a value of {length} bytes is longer than what is left")
        self.at += length
        return bytes(self._data[self.at - length : self.at])

    def number(self) -> int:
        """The next whole number."""
        value = 0
        for shift in range(0, 70, 7):
            if not self.left:
                break
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                if value >> 64:
                    break
                return (value >> 1) ^ -(value & 1)
        raise ValueError("a number is cut off or has more than 64 bits")

    def _one_of(self, choices: tuple[Choice, ...], index: int | None = None) -> Choice:
        index = self.number() if index is None else index
        if not 0 <= index < len(choices):
            raise ValueError(f"number {index} of {len(choices)}")
        return choices[index]

    def _items(self) -> Iterator[int]:
        while count := self.number():
            if count < 0:
                count, _ = -count, self.number()
            if count > self.left:
                raise ValueError(f"{count} items are more than the bytes that are left")
            yield from range(count)
