"""Relative paths in metadata, and their locations (spec: Paths in Metadata)."""

import re

from icefloe.errors import InvalidLocationError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?")


def is_absolute(path: str) -> bool:
    """Whether the path starts with a URI scheme (RFC 3986, 3.1)."""
    return _SCHEME.match(path) is not None


def resolve_location(table_location: str | None, path: str) -> str:
    """The location of a path in v4 metadata.

    Separators are not counted and dots not followed: location, slash, path (spec: Path Resolution).
    """
    if is_absolute(path):
        return path
    if table_location is None:
        raise InvalidLocationError(
            f"relative path {path!r} has no table location to stand on; the catalog must supply one"
        )
    return f"{table_location}/{path}"


def relativize(table_location: str | None, path: str) -> str:
    """The form in which v4 metadata stores a location: what follows the table location, or the location itself."""
    prefix = f"{table_location}/"
    rest = path[len(prefix) :]
    # A rest that would read as absolute, like `a:b`, or as nothing, cannot be stored alone.
    if table_location is None or not is_absolute(path) or not path.startswith(prefix) or not rest or is_absolute(rest):
        return path
    return rest


def qualify(table_location: str, path: str) -> str:
    """A path of metadata from before v4 with a scheme: the table location's, when it lacks one (spec: Path Resolution)."""
    if is_absolute(path):
        return path
    match = _AUTHORITY.match(table_location)
    if match is None or not path.startswith("/"):
        raise InvalidLocationError(
            f"path {path!r} has no scheme and cannot get the one of the table location {table_location!r}"
        )
    return match[0] + path


def strip_trailing_slash(location: str) -> str:
    """The location without trailing slashes, so that joins do not double them; a root keeps its only slash."""
    stripped = location.rstrip("/")
    return location if not stripped or stripped.endswith(":") else stripped
