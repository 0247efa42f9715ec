"""Which bytes a Python object becomes as a variant: the smallest type that holds it, names sorted (parquet-format: VariantEncoding)."""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NoReturn
from uuid import UUID

from icefloe.errors import InvalidValueError
from icefloe.variant.values import EMPTY_METADATA, MAX_DEPTH, Variant, VariantKind, VariantPrimitive

_MAX_SHORT_STRING = 63
_MAX_SMALL_COUNT = 255
_MAX_SIZE = 2**32 - 1
_MAX_SCALE = 38
_EPOCH = datetime(1970, 1, 1)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MAX_DIGITS = 38

_INTEGER_WIDTHS = {
    VariantKind.INT8: 1,
    VariantKind.INT16: 2,
    VariantKind.INT32: 4,
    VariantKind.INT64: 8,
    VariantKind.DATE: 4,
    VariantKind.TIME: 8,
    VariantKind.TIMESTAMP: 8,
    VariantKind.TIMESTAMPTZ: 8,
    VariantKind.TIMESTAMP_NANOS: 8,
    VariantKind.TIMESTAMPTZ_NANOS: 8,
}
_DECIMALS = {VariantKind.DECIMAL4: (4, 9), VariantKind.DECIMAL8: (8, 18), VariantKind.DECIMAL16: (16, 38)}
"""Bytes and digits of each width of decimals."""


def encode(value: object) -> Variant:
    """A Python object as a variant; what `decode` returns is accepted, and any mapping, list or tuple of it."""
    leaves_done: list[Any] = [b""]
    containers: list[tuple[Any, Any, Any]] = []
    names: set[str] = set()
    stack: list[tuple[Any, Any, Any, int]] = [(value, leaves_done, 0, 0)]
    while stack:
        item, target, key, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise InvalidValueError(f"a value is nested deeper than {MAX_DEPTH} levels, or holds itself")
        if isinstance(item, Mapping):
            parts: Any = dict.fromkeys(_check_names(item), b"")
            names.update(parts)
            stack += ((inner, parts, name, depth + 1) for name, inner in item.items())
        elif isinstance(item, list | tuple):
            parts = [b""] * len(item)
            stack += ((inner, parts, index, depth + 1) for index, inner in enumerate(item))
        else:
            target[key] = encode_primitive(item)
            continue
        containers.append((parts, target, key))
    metadata, ids = encode_dictionary(names)
    # Outer containers were met before inner ones, so backwards every part is ready when its container needs it.
    for parts, target, key in reversed(containers):
        target[key] = encode_array(parts) if isinstance(parts, list) else encode_object(parts, ids)
    return Variant(metadata, leaves_done[0])


def encode_dictionary(names: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    """Variant metadata of these names, sorted, and the id of each."""
    try:
        encoded = sorted((name.encode(), name) for name in set(names))
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"a field name of a variant is not Unicode text: {error}") from error
    if not encoded:
        return EMPTY_METADATA, {}
    offsets = [0]
    for data, _ in encoded:
        offsets.append(offsets[-1] + len(data))
    width = _width(max(offsets[-1], len(encoded)))
    header = bytes((1 | 0b1_0000 | width - 1 << 6,))
    parts = [header, len(encoded).to_bytes(width, "little"), _table(offsets, width), *(data for data, _ in encoded)]
    return b"".join(parts), {name: index for index, (_, name) in enumerate(encoded)}


def encode_object(fields: Mapping[str, bytes], ids: Mapping[str, int]) -> bytes:
    """An object of these fields, whose values are already encoded; every name must have an id in the dictionary."""
    names = sorted(fields, key=str.encode)
    field_ids = [ids[name] for name in names]
    offsets, values = _offsets(fields[name] for name in names)
    id_width, offset_width = _width(max(field_ids, default=0)), _width(offsets[-1])
    is_large = len(names) > _MAX_SMALL_COUNT
    header = bytes(((offset_width - 1 | id_width - 1 << 2 | is_large << 4) << 2 | 0b10,))
    count = len(names).to_bytes(4 if is_large else 1, "little")
    return b"".join((header, count, _table(field_ids, id_width), _table(offsets, offset_width), *values))


def encode_array(elements: Sequence[bytes]) -> bytes:
    """An array of these elements, which are already encoded."""
    offsets, values = _offsets(elements)
    width = _width(offsets[-1])
    is_large = len(values) > _MAX_SMALL_COUNT
    header = bytes(((width - 1 | is_large << 2) << 2 | 0b11,))
    count = len(values).to_bytes(4 if is_large else 1, "little")
    return b"".join((header, count, _table(offsets, width), *values))


def encode_primitive(value: object) -> bytes:
    """A Python object that is neither mapping nor list as a variant value."""
    primitive = to_primitive(value)
    kind, inner = primitive.kind, primitive.value
    if kind is VariantKind.STRING:
        return _string(inner)
    header = bytes((kind << 2,))
    if kind in _INTEGER_WIDTHS:
        return header + _integer(inner, _INTEGER_WIDTHS[kind], kind)
    if kind in _DECIMALS:
        return header + _decimal(inner, kind)
    try:
        match kind:
            case VariantKind.NULL | VariantKind.TRUE | VariantKind.FALSE:
                if inner is not (None if kind is VariantKind.NULL else kind is VariantKind.TRUE):
                    raise TypeError("of another type")
                return header
            case VariantKind.DOUBLE:
                return header + struct.pack("<d", inner)
            case VariantKind.FLOAT:
                return header + struct.pack("<f", inner)
            case VariantKind.BINARY:
                data = bytes(memoryview(inner))
                return header + _length(data) + data
            case VariantKind.UUID:
                return header + inner.bytes if isinstance(inner, UUID) else _refuse(inner, kind)
            case _:
                raise AssertionError(f"every kind is handled, so {kind!r} is")
    except (struct.error, OverflowError, TypeError) as error:
        raise InvalidValueError(f"{inner!r} is not a variant {kind.name.lower()}: {error}") from error


def to_primitive(value: object) -> VariantPrimitive:
    """The type and internal value that a Python object takes in a variant."""
    match value:
        case VariantPrimitive():
            return value
        case None:
            return VariantPrimitive(VariantKind.NULL, None)
        case bool():
            return VariantPrimitive(VariantKind.TRUE if value else VariantKind.FALSE, value)
        case int():
            return VariantPrimitive(_integer_kind(value), value)
        case float():
            return VariantPrimitive(VariantKind.DOUBLE, value)
        case str():
            return VariantPrimitive(VariantKind.STRING, value)
        case Decimal():
            return VariantPrimitive(_decimal_kind(value), value)
        case datetime():
            return _timestamp(value)
        case date():
            return VariantPrimitive(VariantKind.DATE, value.toordinal() - _EPOCH_ORDINAL)
        case time():
            return VariantPrimitive(VariantKind.TIME, _time_micros(value))
        case UUID():
            return VariantPrimitive(VariantKind.UUID, value)
        case bytes() | bytearray() | memoryview():
            return VariantPrimitive(VariantKind.BINARY, bytes(value))
        case _:
            raise InvalidValueError(f"{value!r} of type {type(value).__name__} has no form as a variant")


def _integer_kind(value: int) -> VariantKind:
    bits = value.bit_length() if value >= 0 else (~value).bit_length()
    for kind, width in (
        (VariantKind.INT8, 7),
        (VariantKind.INT16, 15),
        (VariantKind.INT32, 31),
        (VariantKind.INT64, 63),
    ):
        if bits <= width:
            return kind
    if abs(value) < 10**_MAX_DIGITS:
        return VariantKind.DECIMAL16
    raise InvalidValueError(f"an integer of {bits} bits does not fit in a variant; {_MAX_DIGITS} digits are the most")


def _decimal_kind(value: Decimal) -> VariantKind:
    unscaled, scale = _unscaled(value)
    for kind, (_, digits) in _DECIMALS.items():
        # The spec allows any scale in any width. Spark takes a scale beyond the digits of the width for damage.
        if abs(unscaled) < 10**digits and scale <= digits:
            return kind
    raise AssertionError("the number of digits was checked")


def _unscaled(value: Decimal | int) -> tuple[int, int]:
    """The digits of a decimal as an integer, and its scale."""
    number = Decimal(value)
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidValueError(f"{number} is not a finite decimal; a variant holds it as a float only")
    if exponent < -_MAX_SCALE or (any(digits) and len(digits) + max(exponent, 0) > _MAX_DIGITS):
        raise InvalidValueError(f"{number} has more than {_MAX_DIGITS} digits, or a scale above {_MAX_SCALE}")
    magnitude = int("".join(map(str, digits))) * 10 ** max(exponent, 0) if any(digits) else 0
    return -magnitude if sign else magnitude, max(-exponent, 0)


def _timestamp(value: datetime) -> VariantPrimitive:
    kind = VariantKind.TIMESTAMP
    if value.tzinfo is not None:
        kind = VariantKind.TIMESTAMPTZ
        offset = value.utcoffset()
        if offset is None:
            raise InvalidValueError(f"{value!r} has a time zone without an offset")
        delta = value.replace(tzinfo=None) - _EPOCH - offset
    else:
        delta = value - _EPOCH
    return VariantPrimitive(kind, (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds)


def _time_micros(value: time) -> int:
    if value.tzinfo is not None:
        raise InvalidValueError(f"{value!r} has a time zone; times in a variant have none")
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _integer(value: object, width: int, kind: VariantKind) -> bytes:
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(value, kind)
    try:
        return value.to_bytes(width, "little", signed=True)
    except OverflowError as error:
        raise InvalidValueError(f"{value} does not fit in a variant {kind.name.lower()}") from error


def _decimal(value: object, kind: VariantKind) -> bytes:
    if isinstance(value, bool) or not isinstance(value, Decimal | int):
        _refuse(value, kind)
    width, digits = _DECIMALS[kind]
    unscaled, scale = _unscaled(value)
    if abs(unscaled) >= 10**digits:
        raise InvalidValueError(f"{value} has more than {digits} digits, which is all that {kind.name.lower()} holds")
    return bytes((scale,)) + unscaled.to_bytes(width, "little", signed=True)


def _string(value: object) -> bytes:
    if not isinstance(value, str):
        _refuse(value, VariantKind.STRING)
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"a string is not Unicode text, so no variant holds it: {error}") from error
    if len(data) <= _MAX_SHORT_STRING:
        return bytes((len(data) << 2 | 0b01,)) + data
    return bytes((VariantKind.STRING << 2,)) + _length(data) + data


def _refuse(value: object, kind: VariantKind) -> NoReturn:
    raise InvalidValueError(f"{value!r} of type {type(value).__name__} is not a variant {kind.name.lower()}")


def _length(data: bytes) -> bytes:
    if len(data) > _MAX_SIZE:
        raise InvalidValueError(f"{len(data)} bytes are too many for a variant; 4 GiB is the most")
    return len(data).to_bytes(4, "little")


def _check_names(item: Mapping[object, object]) -> Iterator[str]:
    for name in item:
        if not isinstance(name, str):
            raise InvalidValueError(f"the field name {name!r} of a variant object is not a string")
        yield name


def _offsets(values: Iterable[bytes]) -> tuple[list[int], list[bytes]]:
    listed = list(values)
    offsets = [0]
    for value in listed:
        offsets.append(offsets[-1] + len(value))
    if offsets[-1] > _MAX_SIZE:
        raise InvalidValueError(f"{offsets[-1]} bytes are too many for a variant; 4 GiB is the most")
    return offsets, listed


def _table(numbers: list[int], width: int) -> bytes:
    if width == 1:
        return bytes(numbers)
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def _width(highest: int) -> int:
    return max(1, (highest.bit_length() + 7) // 8)
