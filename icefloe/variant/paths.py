"""Paths into variants: `$.a.b`, `$['a']['b']`, or `a.b` behind a column, and the normalized text that bounds have (RFC 9535).

A path here names fields only: it has one value in each variant, or none. Elements of arrays have no bounds, and no place in a
predicate.
"""

import re

from icefloe.errors import InvalidInputError

Path = tuple[str, ...]

_NAME = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*")
_QUOTED = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "'": "\\'", "\\": "\\\\"}
_UNESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_MAX_STEPS = 500


def parse_path(text: str) -> Path:
    """The names of fields that a path such as `$.a.b` or `$['a b'].c` leads through; `$` alone is the whole variant."""
    if not text.startswith("$"):
        raise InvalidInputError(f"{text!r} is not a path into a variant; it begins with $, such as $.a.b or $['a b']")
    names: list[str] = []
    position = 1
    while position < len(text):
        if text[position] == "." and (plain := _NAME.match(text, position + 1)):
            names.append(plain[0])
            position = plain.end()
        elif quoted := _QUOTED.match(text, position):
            names.append(_ESCAPE.sub(_unescaped, quoted[1] if quoted[1] is not None else quoted[2]))
            position = quoted.end()
        else:
            raise InvalidInputError(
                f"the path {text!r} goes no further at {text[position:]!r}; fields are .name or ['name'], and elements of "
                "arrays cannot be named"
            )
    if len(names) > _MAX_STEPS:
        raise InvalidInputError(f"a path into a variant has {len(names)} steps; {_MAX_STEPS} are the most")
    return tuple(names)


def normalized(path: Path) -> str:
    """The path as bounds name it: `$['a']['b']`."""
    return "$" + "".join(f"['{_escaped(name)}']" for name in path)


def _escaped(name: str) -> str:
    return "".join(_ESCAPES.get(letter) or (f"\\u{ord(letter):04x}" if letter < " " else letter) for letter in name)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _UNESCAPED.get(code, code)
