"""Decides which names of a list are on a page, and what the token of the next one says: the last name that was given."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence

import msgspec

from icefloe.catalog import Identifier
from icefloe.errors import InvalidInputError
from icefloe.rest.namespaces_codec import Page
from icefloe.rest.paths_codec import PAGE_SIZE, PAGE_TOKEN


def page_of(names: Sequence[Identifier], query: Mapping[str, str], largest: int) -> Page:
    """The page of names, which are in order, that a query asks for; all of them if it asks for none."""
    size = _size(query.get(PAGE_SIZE), largest)
    token = query.get(PAGE_TOKEN)
    if token is None or (not token and size is None):
        return Page(tuple(names))
    last = _last(token) if token else None
    rest = names if last is None else [name for name in names if name > last]
    limit = largest if size is None else size
    page = tuple(rest[:limit])
    return Page(page, _token(page[-1]) if len(rest) > limit else None)


def _size(text: str | None, largest: int) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise InvalidInputError(f"{PAGE_SIZE} is {text!r:.100}; it must be a whole number from 1 on")
    return min(int(text), largest)


def _token(name: Identifier) -> str:
    return urlsafe_b64encode(msgspec.json.encode(name)).decode("ascii")


def _last(token: str) -> Identifier:
    try:
        return tuple(msgspec.json.decode(urlsafe_b64decode(token.encode("ascii")), type=list[str]))
    except (binascii.Error, UnicodeError, ValueError, msgspec.MsgspecError):
        raise InvalidInputError(f"{PAGE_TOKEN} is {token!r:.100}; it must be one that this server gave") from None
