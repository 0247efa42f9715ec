"""Which variant a JSON text is, and the text of a variant; numbers as in Spark's `parse_json`, text as in its `to_json`.

Numbers without exponent are exact, integers up to 64 bits and decimals up to 38 digits; all others are doubles. Types
that JSON lacks become strings: days and moments in ISO form, bytes in base64, NaN and the infinities by name. And whether two
variants mean the same.
"""

import json
import math
from base64 import b64encode
from collections import Counter
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np

from icefloe.errors import InvalidValueError
from icefloe.schema import temporal
from icefloe.variant.reading import walk
from icefloe.variant.values import Variant, VariantKind, VariantPrimitive
from icefloe.variant.writing import encode

_MAX_DIGITS = 38
EXACT_NUMBERS = frozenset(
    {
        VariantKind.INT8,
        VariantKind.INT16,
        VariantKind.INT32,
        VariantKind.INT64,
        VariantKind.DECIMAL4,
        VariantKind.DECIMAL8,
        VariantKind.DECIMAL16,
    }
)
"""The types whose values are equal when their numbers are, whatever their width and scale."""


def parse_json(text: str | bytes) -> Variant:
    """The variant that a JSON text stands for; a name that occurs twice in one object is an error."""
    try:
        document = text.decode() if isinstance(text, bytes) else text
        return encode(_DECODER.decode(document))
    except RecursionError as error:
        raise InvalidValueError("a JSON text is nested too deep to be read as a variant") from error
    except InvalidValueError:
        raise
    except ValueError as error:
        raise InvalidValueError(f"not a JSON text: {error}") from error


def to_json(variant: Variant) -> str:
    """The variant as JSON text, without spaces."""
    pieces: list[str] = []
    stack: list[Any] = [walk(variant, _leaf_text)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        is_object = isinstance(item, dict)
        stack.append("}" if is_object else "]")
        inner = list(item.items()) if is_object else [(None, element) for element in item]
        for index in range(len(inner) - 1, -1, -1):
            name, element = inner[index]
            lead = "," if index else ""
            stack.append(element)
            stack.append(lead if name is None else f"{lead}{_quote(name)}:")
        pieces.append("{" if is_object else "[")
    return "".join(pieces)


def _leaf_text(primitive: VariantPrimitive) -> str:
    value = primitive.value
    match primitive.kind:
        case VariantKind.NULL:
            return "null"
        case VariantKind.TRUE | VariantKind.FALSE:
            return "true" if value else "false"
        case VariantKind.INT8 | VariantKind.INT16 | VariantKind.INT32 | VariantKind.INT64:
            return str(value)
        case VariantKind.DOUBLE:
            return repr(value) if math.isfinite(value) else _quote(_name_of(value))
        case VariantKind.FLOAT:
            return _shortest_float(value) if math.isfinite(value) else _quote(_name_of(value))
        case VariantKind.DECIMAL4 | VariantKind.DECIMAL8 | VariantKind.DECIMAL16:
            return f"{value:f}"
        case VariantKind.DATE:
            return _quote(temporal.format_date(value))
        case VariantKind.TIME:
            is_of_a_day = 0 <= value < temporal.MICROS_PER_DAY
            return _quote(_without_zeros(temporal.format_time(value))) if is_of_a_day else str(value)
        case VariantKind.TIMESTAMP | VariantKind.TIMESTAMPTZ:
            return _moment(value, temporal.MICROS_PER_SECOND, primitive.kind is VariantKind.TIMESTAMPTZ)
        case VariantKind.TIMESTAMP_NANOS | VariantKind.TIMESTAMPTZ_NANOS:
            return _moment(value, temporal.NANOS_PER_SECOND, primitive.kind is VariantKind.TIMESTAMPTZ_NANOS)
        case VariantKind.BINARY:
            return _quote(b64encode(value).decode())
        case VariantKind.STRING:
            return _quote(value)
        case VariantKind.UUID:
            return _quote(str(value))


def _moment(ticks: int, per_second: int, zoned: bool) -> str:
    text = _without_zeros(temporal.format_timestamp(ticks, per_second).replace("T", " "))
    return _quote(text + "+00:00" if zoned else text)


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def _name_of(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _shortest_float(value: float) -> str:
    """The fewest digits that name this 32-bit float among all 32-bit floats."""
    return repr(float(str(np.float32(value))))


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _parse_integer(text: str) -> int | float:
    return int(text) if len(text.lstrip("-")) <= _MAX_DIGITS else float(text)


def _parse_fraction(text: str) -> Decimal | float:
    if "e" in text or "E" in text:
        return float(text)
    digits = text.replace("-", "").replace(".", "")
    scale = len(text.partition(".")[2])
    is_exact = scale <= _MAX_DIGITS and len(digits.lstrip("0")) <= _MAX_DIGITS
    return Decimal(text) if is_exact else float(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _unique_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {repeated!r} occurs twice in one object")
    return fields


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_names,
    parse_float=_parse_fraction,
    parse_int=_parse_integer,
    parse_constant=_refuse_constant,
)


def same_meaning(left: Variant, right: Variant) -> bool:
    """Whether the variants are equal by meaning: all integers and decimals are one class, every other type its own.

    NaN equals NaN, and the two zeros of floating point are equal.
    """
    stack: list[tuple[Any, Any]] = [(walk(left, lambda primitive: primitive), walk(right, lambda primitive: primitive))]
    while stack:
        a, b = stack.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, dict):
            if a.keys() != b.keys():
                return False
            stack += ((a[name], b[name]) for name in a)
        elif isinstance(a, list):
            if len(a) != len(b):
                return False
            stack += zip(a, b, strict=True)
        elif not _same_primitive(a, b):
            return False
    return True


def _same_primitive(a: VariantPrimitive, b: VariantPrimitive) -> bool:
    if a.kind in EXACT_NUMBERS and b.kind in EXACT_NUMBERS:
        return bool(a.value == b.value)
    if a.kind is not b.kind:
        return False
    if a.kind in (VariantKind.DOUBLE, VariantKind.FLOAT) and math.isnan(a.value):
        return math.isnan(b.value)
    return bool(a.value == b.value)
