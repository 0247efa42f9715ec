"""Where a value is inside of a variant: paths like `$.a[0]['b c']`, their normalized form, and the value found there."""

import re
from collections.abc import Iterable

from icefloe.errors import InvalidValueError
from icefloe.formats.variant.reading import ARRAY, OBJECT, basic_type, read_dictionary, read_elements, read_fields
from icefloe.formats.variant.values import Variant

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
            steps.append(_ESCAPE.sub(lambda found: _unescape(found, path), quoted))
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
            places = [(first, last) for name, first, last in fields if name == step]
        else:
            places = read_elements(value, start, end)[step : step + 1] if basic == ARRAY else []
        if not places:
            return None
        start, end = places[0]
    basic_type(value, start, end)
    return Variant(variant.metadata, value[start:end])


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
