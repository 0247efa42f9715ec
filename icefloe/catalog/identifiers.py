"""Decides what a name of a table, view or namespace is: its parts, how they are written, and which are refused.

A name is a tuple of parts, or a text with dots between them. A part that holds a dot is quoted, `"a.b".orders` or with
backquotes; a quote inside is doubled.
"""

import re
from collections.abc import Sequence

from icefloe.errors import InvalidInputError

Identifier = tuple[str, ...]
"""The parts of a name, outermost first."""

Name = str | Sequence[str]
"""A name as users give it: a text with dots, or the parts."""

_PART = re.compile(r'"(?:[^"]|"")*"|`(?:[^`]|``)*`|[^."`]+')
_PLAIN = re.compile(r"[^.\"`\s](?:[^.\"`]*[^.\"`\s])?")


def parse_identifier(name: Name, what: str = "table") -> Identifier:
    """The parts of a table's or view's name: one or more of a namespace, and its own."""
    parts = _parts(name, what)
    if len(parts) < 2:
        raise InvalidInputError(f"{what} name {name!r} has no namespace; write it as namespace.{show_part(parts[0])}")
    return parts


def parse_namespace(name: Name) -> Identifier:
    """The parts of a namespace's name; at least one."""
    return _parts(name, "namespace")


def show(identifier: Sequence[str]) -> str:
    """A name as a text that `parse_identifier` reads back."""
    return ".".join(show_part(part) for part in identifier)


def show_part(part: str) -> str:
    """One part of a name, quoted if it must be."""
    return part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"'


def check_length(text: str, limit: int, noun: str) -> str:
    """The text, unless it is longer than its column in a database."""
    if len(text) > limit:
        raise InvalidInputError(
            f"{noun} {text[:40]!r}... has {len(text)} characters; this catalog allows at most {limit}"
        )
    return text


def _parts(name: object, what: str) -> Identifier:
    if isinstance(name, str):
        parts = _split(name, what)
    elif isinstance(name, Sequence) and all(isinstance(part, str) for part in name):
        parts = tuple(name)
    else:
        raise InvalidInputError(f"{what} name {name!r:.100} is neither a string nor a tuple of strings")
    if not parts:
        raise InvalidInputError(f"{what} name {name!r} is empty")
    for part in parts:
        _check_part(part, name, what)
    return parts


def _split(text: str, what: str) -> Identifier:
    if not text:
        raise InvalidInputError(f"{what} name '' is empty")
    parts, position = [], 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            problem = "has an empty part" if text[position : position + 1] in ("", ".") else "has an open quote"
            raise InvalidInputError(f"{what} name {text!r} {problem} at character {position + 1}")
        part, quote = match[0], match[0][0]
        parts.append(part[1:-1].replace(quote * 2, quote) if quote in '"`' else part)
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            raise InvalidInputError(
                f"{what} name {text!r} has a quote inside a part, at character {position + 1};"
                " quote the whole part and double the quotes in it"
            )
        position += 1


def _check_part(part: str, name: object, what: str) -> None:
    if not part.strip():
        raise InvalidInputError(f"{what} name {name!r:.300} has an empty part")
    if part != part.strip():
        raise InvalidInputError(f"{what} name {name!r:.300} has the part {part!r}, which starts or ends with a space")
    try:
        part.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{what} name {name!r:.300} has a part that is not valid Unicode") from None
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in part):
        raise InvalidInputError(f"{what} name {name!r:.300} contains a control character")
