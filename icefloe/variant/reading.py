"""What the bytes of a variant mean; bytes that mean nothing are refused, whatever they are (parquet-format: VariantEncoding).

Two variants mean the same by their names and values; dictionaries, widths, scales and the order of storage do not count.

Values are walked with a stack of our own, so neither depth nor overlapping offsets can exhaust stack, time or memory.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

from icefloe.errors import InvalidValueError
from icefloe.variant.values import MAX_DEPTH, Variant, VariantKind, VariantPrimitive

OBJECT, ARRAY = 2, 3
"""The basic types of values with values inside."""

_PRIMITIVE, _SHORT_STRING = 0, 1
_VERSION = 1
_MAX_SCALE = 38
_TWO_BYTE_EMPTY = b"\x01\x00"
_EPOCH = datetime(1970, 1, 1)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY_MICROS = 86_400_000_000
_SHARING = 16
"""How much larger than its bytes a value may be once shared parts are written out."""

_FIXED = {
    VariantKind.INT8: struct.Struct("<b"),
    VariantKind.INT16: struct.Struct("<h"),
    VariantKind.INT32: struct.Struct("<i"),
    VariantKind.INT64: struct.Struct("<q"),
    VariantKind.DOUBLE: struct.Struct("<d"),
    VariantKind.FLOAT: struct.Struct("<f"),
    VariantKind.DATE: struct.Struct("<i"),
    VariantKind.TIMESTAMPTZ: struct.Struct("<q"),
    VariantKind.TIMESTAMP: struct.Struct("<q"),
    VariantKind.TIME: struct.Struct("<q"),
    VariantKind.TIMESTAMPTZ_NANOS: struct.Struct("<q"),
    VariantKind.TIMESTAMP_NANOS: struct.Struct("<q"),
}
_KINDS = {kind.value: kind for kind in VariantKind}
_DECIMAL_WIDTHS = {VariantKind.DECIMAL4: 4, VariantKind.DECIMAL8: 8, VariantKind.DECIMAL16: 16}


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The field names of a variant by id; `size` is how many bytes of metadata they took."""

    names: tuple[str, ...]
    size: int
    ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", {name: index for index, name in reversed(list(enumerate(self.names)))})


def read_dictionary(metadata: bytes) -> Dictionary:
    """The dictionary that the metadata starts with.

    The flag for sorted and unique names is not relied on: DuckDB sets it over names that are neither.
    """
    if metadata == _TWO_BYTE_EMPTY:  # how the shredding document once wrote the empty dictionary
        return Dictionary((), len(metadata))
    if not metadata or metadata[0] & 0b1111 != _VERSION:
        raise InvalidValueError(
            f"variant metadata starts with {metadata[:1].hex() or 'nothing'}; only version 1 is known"
        )
    width = (metadata[0] >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    start = 1 + width * (count + 2)
    if start > len(metadata):
        raise InvalidValueError(f"variant metadata of {len(metadata)} bytes cannot hold {count} names")
    offsets = _integers(metadata, 1 + width, count + 1, width)
    end = start + offsets[-1]
    if end > len(metadata) or offsets[0] != 0 or any(a > b for a, b in pairwise(offsets)):
        raise InvalidValueError("the names in variant metadata are out of order or beyond its end")
    try:
        names = tuple(metadata[start + a : start + b].decode() for a, b in pairwise(offsets))
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"a name in variant metadata is not UTF-8: {error}") from error
    return Dictionary(names, end)


def basic_type(value: bytes, start: int, end: int) -> int:
    """Which of the four basic types the value has that takes these bytes."""
    if not 0 <= start < end <= len(value):
        raise InvalidValueError(f"a variant value of {end - start} bytes is empty or cut off")
    return value[start] & 0b11


def read_fields(value: bytes, start: int, end: int, dictionary: Dictionary) -> list[tuple[str, int, int]]:
    """Name, start and end of each field of the object there, in the order of the names."""
    header = value[start] >> 2
    offset_width, id_width = (header & 0b11) + 1, (header >> 2 & 0b11) + 1
    count, position = _read_count(value, start, end, bool(header & 0b1_0000), id_width + offset_width)
    ids = _integers(value, position, count, id_width)
    offsets = _integers(value, position + count * id_width, count + 1, offset_width)
    first = position + count * id_width + (count + 1) * offset_width
    if any(index >= len(dictionary.names) for index in ids):
        raise InvalidValueError(f"a variant object has a field id above {len(dictionary.names)}, the number of names")
    names = [dictionary.names[index] for index in ids]
    if len(set(names)) != count:
        raise InvalidValueError("a variant object has two fields of the same name")
    total = offsets.pop()
    if first + total > end or any(offset >= total for offset in offsets):
        raise InvalidValueError(f"the fields of a variant object are beyond its {end - start} bytes")
    # Fields may be stored in any order, and two of them may share one value.
    borders = sorted({*offsets, total})
    ends = dict(pairwise(borders))
    return [(name, first + offset, first + ends[offset]) for name, offset in zip(names, offsets, strict=True)]


def read_elements(value: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Start and end of each element of the array there."""
    header = value[start] >> 2
    width = (header & 0b11) + 1
    count, position = _read_count(value, start, end, bool(header & 0b100), width)
    offsets = _integers(value, position, count + 1, width)
    first = position + (count + 1) * width
    if first + offsets[-1] > end or any(a >= b for a, b in pairwise(offsets)):
        raise InvalidValueError("the elements of a variant array are out of order or beyond its end")
    return [(first + a, first + b) for a, b in pairwise(offsets)]


def read_primitive(value: bytes, start: int, end: int) -> VariantPrimitive:
    """The primitive value there, with its type."""
    basic = basic_type(value, start, end)
    header = value[start] >> 2
    if basic == _SHORT_STRING:
        return VariantPrimitive(VariantKind.STRING, _text(_body(value, start, end, header, "short string")))
    if basic != _PRIMITIVE or header not in _KINDS:
        raise InvalidValueError(f"a variant value has the type {header}, which is not known or not primitive")
    kind = _KINDS[header]
    if layout := _FIXED.get(kind):
        return VariantPrimitive(kind, layout.unpack(_body(value, start, end, layout.size, kind.name))[0])
    if width := _DECIMAL_WIDTHS.get(kind):
        return VariantPrimitive(kind, _decimal(_body(value, start, end, 1 + width, kind.name)))
    match kind:
        case VariantKind.NULL:
            return VariantPrimitive(kind, None)
        case VariantKind.TRUE | VariantKind.FALSE:
            return VariantPrimitive(kind, kind is VariantKind.TRUE)
        case VariantKind.UUID:
            return VariantPrimitive(kind, UUID(bytes=_body(value, start, end, 16, kind.name)))
    length = int.from_bytes(_body(value, start, end, 4, kind.name), "little")
    body = _body(value, start, end, 4 + length, kind.name)[4:]
    return VariantPrimitive(kind, _text(body) if kind is VariantKind.STRING else body)


def walk(variant: Variant, leaf: Callable[[VariantPrimitive], object]) -> Any:
    """The variant as nested lists and dicts, in which `leaf` says what stands for a primitive value."""
    dictionary = read_dictionary(variant.metadata)
    value = variant.value
    root: list[Any] = [None]
    stack: list[tuple[Any, Any, int, int, int]] = [(root, 0, 0, len(value), 0)]
    budget = _SHARING * (len(value) + 4096)
    while stack:
        container, key, start, end, depth = stack.pop()
        budget -= end - start
        if depth > MAX_DEPTH:
            raise InvalidValueError(f"a variant is nested deeper than {MAX_DEPTH} levels")
        if budget < 0 and depth:
            raise InvalidValueError("a variant object shares its parts so often that it would become far too large")
        basic = basic_type(value, start, end)
        if basic == OBJECT:
            fields = read_fields(value, start, end, dictionary)
            # What is inside is counted when it is visited; of the object itself only its number of fields counts.
            budget += end - start - len(fields)
            container[key] = inner = dict.fromkeys(name for name, _, _ in fields)
            stack += ((inner, name, first, last, depth + 1) for name, first, last in fields)
        elif basic == ARRAY:
            elements = read_elements(value, start, end)
            budget += end - start - len(elements)
            container[key] = items = [None] * len(elements)
            stack += ((items, index, first, last, depth + 1) for index, (first, last) in enumerate(elements))
        else:
            container[key] = leaf(read_primitive(value, start, end))
    return root[0]


def decode(variant: Variant) -> Any:
    """The variant as Python objects: dict, list, str, int, Decimal, float, bool, bytes, UUID, dates and times, None.

    Nanosecond timestamps, and days and moments beyond the years 1 to 9999, come as `VariantPrimitive`.
    """
    return walk(variant, to_natural)


def to_natural(primitive: VariantPrimitive) -> Any:
    """The Python object that stands for the value; the primitive itself where there is none."""
    value = primitive.value
    match primitive.kind:
        case VariantKind.DATE:
            ordinal = value + _EPOCH_ORDINAL
            return date.fromordinal(ordinal) if 1 <= ordinal <= date.max.toordinal() else primitive
        case VariantKind.TIMESTAMP | VariantKind.TIMESTAMPTZ:
            try:
                moment = _EPOCH + timedelta(microseconds=value)
            except OverflowError:
                return primitive
            return moment.replace(tzinfo=UTC) if primitive.kind is VariantKind.TIMESTAMPTZ else moment
        case VariantKind.TIME:
            return (_EPOCH + timedelta(microseconds=value)).time() if 0 <= value < _DAY_MICROS else primitive
        case VariantKind.TIMESTAMP_NANOS | VariantKind.TIMESTAMPTZ_NANOS:
            return primitive
        case _:
            return value


def _read_count(value: bytes, start: int, end: int, is_large: bool, entry_width: int) -> tuple[int, int]:
    position = start + 1 + (4 if is_large else 1)
    count = int.from_bytes(value[start + 1 : position], "little")
    if position + count * entry_width >= end:
        raise InvalidValueError(f"a variant of {end - start} bytes cannot hold {count} values")
    return count, position


def _integers(data: bytes, start: int, count: int, width: int) -> list[int]:
    end = start + count * width
    if end > len(data):
        raise InvalidValueError("a table of offsets in a variant is cut off")
    if width == 1:
        return list(data[start:end])
    return [int.from_bytes(data[i : i + width], "little") for i in range(start, end, width)]


def _body(value: bytes, start: int, end: int, length: int, what: str) -> bytes:
    if start + 1 + length > end:
        raise InvalidValueError(f"a variant {what.lower()} needs {length} bytes, but {end - start - 1} are there")
    return value[start + 1 : start + 1 + length]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"a variant string is not UTF-8: {error}") from error


def _decimal(body: bytes) -> Decimal:
    if body[0] > _MAX_SCALE:
        raise InvalidValueError(f"a variant decimal has the scale {body[0]}; scales are 0 to {_MAX_SCALE}")
    # Through text, because arithmetic would round to the precision of the current context.
    return Decimal(f"{int.from_bytes(body[1:], 'little', signed=True)}E-{body[0]}")
