"""Where a value is inside of a variant: paths like `$.a[0]['b c']`, the value there, and bounds by path.

The bounds of a variant column are an object keyed by normalized paths, behind its dictionary (spec: Bounds for Variant).
"""

import math
import re
from collections.abc import Iterable, Mapping

from icefloe.errors import InvalidValueError
from icefloe.formats.variant.reading import ARRAY, OBJECT, basic_type, read_dictionary, read_elements, read_fields, walk
from icefloe.formats.variant.values import Variant, VariantKind, VariantPrimitive
from icefloe.formats.variant.writing import encode, to_primitive

Step = str | int
"""The name of a field, or the index of an element from 0."""

_STEP = re.compile(
    r"""\.(?P<name>[^.\['"\]]+)
      |\[(?P<index>[0-9]{1,10})\]
      |\['(?P<single>(?:[^'\\]|\\.)*)'\]
      |\["(?P<double>(?:[^"\\]|\\.)*)"\]""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "'": "'", '"': '"', "\\": "\\", "/": "/"}
_NORMAL_ESCAPES = {char: f"\\{code}" for code, char in _ESCAPES.items() if code not in '"/'}


def parse_path(path: str) -> tuple[Step, ...]:
    """The steps of a path: `$` is the variant itself, `.name`, `['name']` and `["name"]` a field, `[0]` an element."""
    if not path.startswith("$"):
        raise InvalidValueError(f"the variant path {path!r} does not start with $, as in $.a[0]['b c']")
    steps: list[Step] = []
    position = 1
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            raise InvalidValueError(
                f"the variant path {path!r} cannot be read from {path[position:]!r} on; write it like $.a[0]['b c']"
            )
        if match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["name"] is not None:
            steps.append(match["name"])
        else:
            quoted = match["single"] if match["single"] is not None else match["double"]
            steps.append(_ESCAPE.sub(lambda match: _unescape(match, path), quoted))
        position = match.end()
    return tuple(steps)


def normalized_path(steps: Iterable[Step]) -> str:
    """The one way to write a path, which keys the bounds of variants (RFC 9535, Normalized Paths)."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f"['{_escape(step)}']" for step in steps)


def variant_get(variant: Variant, path: str) -> Variant | None:
    """The part of the variant at that path, if it is there; a variant null is there."""
    dictionary = read_dictionary(variant.metadata)
    value = variant.value
    start, end = 0, len(value)
    for step in parse_path(path):
        basic = basic_type(value, start, end)
        if isinstance(step, str):
            fields = read_fields(value, start, end, dictionary) if basic == OBJECT else []
            spans = [(first, last) for name, first, last in fields if name == step]
        else:
            spans = read_elements(value, start, end)[step : step + 1] if basic == ARRAY else []
        if not spans:
            return None
        start, end = spans[0]
    basic_type(value, start, end)
    return Variant(variant.metadata, value[start:end])


def encode_variant_bounds(bounds: Mapping[str, object]) -> bytes:
    """Lower or upper bounds by path, as one binary bound; paths may be written in any form, values must be primitive."""
    normalized: dict[str, VariantPrimitive] = {}
    for path, value in bounds.items():
        key = normalized_path(parse_path(path))
        if key in normalized:
            raise InvalidValueError(f"the path {key} has two bounds; one is wanted")
        normalized[key] = _check_bound(key, to_primitive(value))
    variant = encode(normalized)
    return variant.metadata + variant.value


def decode_variant_bounds(data: bytes) -> dict[str, VariantPrimitive]:
    """The bounds by normalized path, each with its exact type."""
    size = read_dictionary(data).size
    bounds = walk(Variant(data[:size], data[size:]), lambda primitive: primitive)
    if not isinstance(bounds, dict):
        raise InvalidValueError("the bounds of a variant are not an object keyed by paths")
    for path, value in bounds.items():
        if normalized_path(parse_path(path)) != path:
            raise InvalidValueError(f"the key {path!r} of variant bounds is not a normalized path like $['a']['b']")
        if not isinstance(value, VariantPrimitive):
            raise InvalidValueError(f"the bound of {path} in a variant is an object or array; bounds are primitive")
        _check_bound(path, value)
    return bounds


def _check_bound(path: str, bound: VariantPrimitive) -> VariantPrimitive:
    is_float = bound.kind in (VariantKind.DOUBLE, VariantKind.FLOAT)
    if bound.kind is VariantKind.NULL or (is_float and isinstance(bound.value, float) and math.isnan(bound.value)):
        raise InvalidValueError(f"the bound of {path} in a variant is {bound.value}; nulls and NaN are never bounds")
    return bound


def _escape(name: str) -> str:
    return "".join(_NORMAL_ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char < " " else char) for char in name)


def _unescape(match: re.Match[str], path: str) -> str:
    first, second, plain = match.groups()
    if plain is not None:
        if plain not in _ESCAPES:
            raise InvalidValueError(f"the variant path {path!r} has the unknown escape {match[0]!r}")
        return _ESCAPES[plain]
    high = int(first, 16)
    if 0xD800 <= high < 0xDC00 and second is not None:
        return chr(0x10000 + (high - 0xD800 << 10) + int(second, 16) - 0xDC00)
    return chr(high) + (chr(int(second, 16)) if second is not None else "")
