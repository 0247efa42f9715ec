"""What a location string names: which store, which part of it, and when two strings name the same file.

A location is a literal string, not a percent-encoded URI: `s3://b/a%20b` names the key `a%20b`, and `?` and `#`
are ordinary characters of a name. The Java library reads `file:`, `hdfs:` and `abfs:` locations in the same way
(Hadoop's `Path(String)` and `ADLSLocation` decode nothing). Its `S3URI` and `GCSLocation` decode nothing either,
but cut the key at the first `?` or `#`; that is not followed, since it would merge different files.
"""

import os
import posixpath
import re
from dataclasses import dataclass, field
from functools import lru_cache

from icefloe.errors import InvalidLocationError

SCHEMES = {
    "file": "file",
    "memory": "memory",
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "hdfs": "hdfs",
}
"""Every scheme that is understood, and the one that stands for it in comparisons."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")  # RFC 3986, section 3.1


@dataclass(frozen=True, slots=True)
class Location:
    """A parsed location; two of them are equal if they name the same file."""

    scheme: str
    authority: str
    path: str
    """Starts with a slash; literal."""
    root: str = field(compare=False)
    """What stands before the path, as it was written."""

    @property
    def key(self) -> str:
        """The key in an object store: the path without its first slash."""
        return self.path[1:]

    def __str__(self) -> str:
        return f"{self.root}{self.path}"


def parse_location(text: str) -> Location:
    """Parse a location; errors say what is wrong with it."""
    try:
        return _parsed(text)
    except TypeError:
        raise InvalidLocationError(f"location {text!r} is not a string") from None


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Location:
    if text == "":
        raise InvalidLocationError("an empty text is not a location")
    if "\0" in text:
        raise InvalidLocationError(f"location {text!r} holds a NUL character")
    match = _SCHEME.match(text)
    if match is None:
        if not text.startswith("/"):
            raise InvalidLocationError(
                f"location {text!r} is relative; resolve it against the table location, or give an absolute path"
            )
        return Location("file", "", _file_path(text), "")
    scheme = SCHEMES.get(match[1].lower())
    if scheme is None:
        raise InvalidLocationError(f"location {text!r} has the unknown scheme {match[1]!r}; known: {known_schemes()}")
    return _with_scheme(text, scheme, match.end())


def _with_scheme(text: str, scheme: str, start: int) -> Location:
    authority, path = "", text[start:]
    if path.startswith("//"):
        authority, slash, rest = path[2:].partition("/")
        path = slash + rest
    root = text[: len(text) - len(path)]
    match scheme:
        case "file":
            if authority.lower() not in ("", "localhost"):
                raise InvalidLocationError(
                    f"location {text!r} names the host {authority!r}; a local path is file:///path or /path"
                )
            return Location(scheme, "", _file_path(_absolute(text, path)), root)
        case "hdfs":
            if "@" in authority:
                raise InvalidLocationError(f"location {text!r} names a user; the property `hdfs.user` is for that")
            return Location(scheme, authority.lower(), _file_path(_absolute(text, path)), root)
        case "memory":
            if "@" in authority:
                raise InvalidLocationError(f"location {text!r} names a user; memory://name/path is expected")
            return Location(scheme, authority, _absolute(text, path), root)
        case "abfs":
            return Location(scheme, _azure_authority(text, authority), path or "/", root)
        case _:
            if not authority or "@" in authority:
                raise InvalidLocationError(f"location {text!r} names no bucket; {scheme}://bucket/key is expected")
            return Location(scheme, authority, path or "/", root)


def _absolute(text: str, path: str) -> str:
    if path and not path.startswith("/"):
        raise InvalidLocationError(f"location {text!r} has a relative path; an absolute one is expected")
    return path or "/"


def _file_path(path: str) -> str:
    # As Hadoop's Path: slashes collapse, `.` and `..` are resolved by name, a last slash says nothing.
    return "/" + posixpath.normpath(path).lstrip("/")


def _azure_authority(text: str, authority: str) -> str:
    container, at, host = authority.rpartition("@")
    if at and container and host and ":" not in container:
        # wasb names the blob end of an account and abfs the dfs end: the same bytes.
        return f"{container}@{host.lower().replace('.blob.', '.dfs.', 1)}"
    if at or not authority or "." in authority:
        raise InvalidLocationError(
            f"location {text!r} names no container; abfss://container@account.dfs.core.windows.net/path is expected"
        )
    return authority


def is_in_no_store(text: str) -> bool:
    """Whether a metadata location is an address of a catalog's server, which keeps metadata itself and has no such file."""
    return text.lower().startswith(("http://", "https://"))


def known_schemes() -> str:
    """The schemes that are understood, for messages."""
    return ", ".join(f"{name}:" for name in SCHEMES) + " and absolute local paths"


def normalize_location(text: str) -> str:
    """The canonical spelling of a location among all that name the same file."""
    location = parse_location(text)
    return f"{location.scheme}://{location.authority}{location.path}"


def same_location(left: str, right: str) -> bool:
    """Whether two locations name the same file."""
    return parse_location(left) == parse_location(right)


def names_below(folder: str, location: str) -> list[str]:
    """The names of folders, and last of the file, that lead from a folder to a file in it, as a listing gave it."""
    return parse_location(location).path.removeprefix(parse_location(folder).path).strip("/").split("/")


def is_beneath(folder: str, location: str) -> bool:
    """Whether a location is inside a folder, however either is spelled; `..` cannot escape it unnoticed."""
    around, inside = parse_location(folder), parse_location(location)
    if (around.scheme, around.authority) != (inside.scheme, inside.authority):
        return False
    return inside.path.startswith(f"{around.path.rstrip('/')}/")


def absolute_location(text: str | os.PathLike[str]) -> str:
    """A user's location, fully qualified: a local path becomes `file:///...`; others stay as they are."""
    location = os.fspath(text)
    if location and not _SCHEME.match(location):
        return f"file://{_file_path(os.path.abspath(os.path.expanduser(location)))}"
    parse_location(location)
    return location
