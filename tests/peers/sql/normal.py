"""The one form in which rows of two engines are compared: columns with types, and values that are equal if and only if they are the same."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefloe.variant.values import Variant
from tests.formats.variant_json import to_json

VARIANT_PARTS = {"metadata", "value"}


@dataclass(frozen=True, slots=True)
class Rows:
    """What a query gives: the columns, and the rows in the order they came in."""

    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    values: tuple[tuple[Any, ...], ...]

    def in_any_order(self) -> "Rows":
        """The same rows, ordered by their values."""
        return Rows(self.columns, tuple(sorted(self.values, key=repr)))

    def mapped(self, change: Callable[[Any], Any]) -> "Rows":
        """With another value for each."""
        return Rows(self.columns, tuple(tuple(change(each) for each in row) for row in self.values))


def rows_of(table: Any) -> Rows:
    """An Arrow table in the form that is compared."""
    columns = tuple((field.name, type_of(field.type)) for field in table.schema)
    values = [normal(column) for column in table.columns]
    return Rows(columns, tuple(zip(*values, strict=True)) if values else ())


def type_of(kind: Any) -> str:
    """The name of a type, the same for storage types that hold the same values."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pa.types.is_struct(kind):
        if _is_variant(kind):
            return "variant"
        return f"struct<{', '.join(f'{each.name}: {type_of(each.type)}' for each in _fields(kind))}>"
    if pa.types.is_map(kind):
        return f"map<{type_of(kind.key_type)}, {type_of(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list<{type_of(kind.value_type)}>"
    return str(kind).removeprefix("large_")


def normal(column: Any) -> list[Any]:
    """The values of an Arrow column, each as a value that can be compared and printed."""
    kind = column.type
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in normal(chunk)]
    if isinstance(kind, pa.BaseExtensionType):
        return normal(column.storage)
    if pa.types.is_struct(kind):
        return _structs(column)
    if pa.types.is_map(kind):
        keys, items = normal(column.keys), normal(column.items)
        return _slices(column, lambda a, b: ("map", *sorted(zip(keys[a:b], items[a:b], strict=True), key=repr)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = normal(column.values)
        return _slices(column, lambda a, b: ("list", *values[a:b]))
    if pa.types.is_timestamp(kind):
        unit = pa.timestamp("us", kind.tz)
        return [None if each is None else f"{each} us" for each in column.cast(unit).cast(pa.int64()).to_pylist()]
    if pa.types.is_date32(kind):
        return [None if each is None else f"day {each}" for each in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [None if each is None else each.decode("utf-8", "backslashreplace") for each in _bytes(column)]
    return [_scalar(each) for each in column.to_pylist()]


def _bytes(strings: Any) -> list[bytes | None]:
    """Of strings, which Spark makes of bytes that are no UTF-8 too."""
    found: list[bytes | None] = strings.cast(pa.large_binary()).to_pylist()
    return found


def _scalar(value: Any) -> Any:
    match value:
        case float():
            # Zero has a sign, and NaN is equal to itself here.
            return "NaN" if math.isnan(value) else repr(value)
        case bytes():
            return f"0x{value.hex()}"
        case None | bool() | int() | str():
            return value
        case _:
            return str(value)


def _structs(column: Any) -> list[Any]:
    names = [field.name for field in _fields(column.type)]
    parts = [normal(column.field(index)) for index in range(len(names))]
    valid = column.is_valid().to_pylist()
    if _is_variant(column.type):
        raw = column.to_pylist()
        return [None if each is None else _variant(each) for each in raw]
    return [
        tuple(zip(names, values, strict=True)) if is_valid else None
        for is_valid, values in zip(valid, zip(*parts, strict=True), strict=True)
    ]


def _fields(kind: Any) -> list[Any]:
    return [kind.field(index) for index in range(kind.num_fields)]


def _is_variant(kind: Any) -> bool:
    return {each.name for each in _fields(kind)} == VARIANT_PARTS and all(
        pa.types.is_binary(each.type) or pa.types.is_large_binary(each.type) for each in _fields(kind)
    )


def _variant(parts: Mapping[str, bytes]) -> str:
    text = to_json(Variant(parts["metadata"], parts["value"]))
    return f"variant {json.dumps(json.loads(text), sort_keys=True)}"


def _slices(column: Any, take: Callable[[int, int], Any]) -> list[Any]:
    offsets = column.offsets.to_pylist()
    valid = column.is_valid().to_pylist()
    return [take(offsets[i], offsets[i + 1]) if is_valid else None for i, is_valid in enumerate(valid)]
