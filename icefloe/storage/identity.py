"""Decides when two paths name one file: the normal form in which paths are compared, and which is never written.

A path stays in metadata as its writer spelled it; only comparisons that decide identity or deletion go through here.

- Schemes of one store are one: `s3a` and `s3n` are `s3`, `gcs` is `gs`, `abfss`, `wasb` and `wasbs` are `abfs`, with the
  blob end of an Azure account as its dfs end. `/x`, `file:/x`, `file:///x` and `file://localhost/x` are one.
- In `file:` and `hdfs:`, which have folders, slashes collapse and `.` and `..` are followed by name, links not being known.
- In object stores and in `memory:` a key is literal: `a//b`, `a/./b` and `a/b` are three objects, since they are for the store.
- Nothing is decoded: `%20` is three characters. A path that is no location at all is its own normal form.
- `hdfs:/x`, `hdfs://host/x` and `hdfs://host:8020/x` are three paths: only Hadoop's configuration knows whether they are one
  file. So whoever deletes compares by `possible_identity`, for which they may be.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidLocationError
from icefloe.storage.locations import normalize_location, parse_location

_WITH_FOLDERS = frozenset({"file", "hdfs"})
_HDFS = "hdfs://"
_FEW = 8
_MOST_ROOTS = 8
_PIECE = 1 << 17
_SLASH = ord("/")


class _Root(NamedTuple):
    """How some paths begin, and how their normal forms do."""

    text: str
    normal: str
    has_folders: bool


def identity(path: str) -> str:
    """The normal form of a path: equal for two paths if, and only if, they name one file."""
    try:
        return normalize_location(path)
    except InvalidLocationError:
        return path


def is_same_file(one: str | None, other: str | None) -> bool:
    """Whether two paths name one file; no path names none."""
    return one is not None and other is not None and (one == other or identity(one) == identity(other))


def possible_identity(path: str) -> str:
    """Equal for two paths that may name one file: what is deleted must differ in this from all that is needed."""
    normal = identity(path)
    # A name node has several names, and none at all if it is the default one of the configuration.
    return f"hdfs:/{normal[len(_HDFS) :].partition('/')[2]}" if normal.startswith(_HDFS) else normal


def deletion_key(doomed: Iterable[str]) -> Callable[[str], str]:
    """By what paths in their normal form, of which there may be millions, are compared with those that are to be deleted."""
    return possible_identity if any(each.startswith(_HDFS[:5]) for each in doomed) else str


def identities(paths: Any) -> Any:
    """The normal forms of an Arrow column of paths; the column itself, and quickly, if all are spelled so already."""
    left = paths.is_valid()
    if len(paths) <= _FEW:
        return _one_by_one(paths, paths, left)
    found, odd = paths, None
    for _ in range(_MOST_ROOTS):
        place = pc.index(left, True).as_py()
        if place < 0:
            break
        root = _root(paths[place].as_py())
        if root is None:
            break
        ours = pc.and_(left, _begins(paths, root))
        resolved = _with_folders_to_resolve(paths, ours, root) if root.has_folders else None
        if resolved is not None:
            odd = resolved if odd is None else pc.or_(odd, resolved)
            ours = pc.and_not(ours, resolved)
            left = pc.and_not(left, resolved)
        if root.text != root.normal:
            found = pc.if_else(ours, _with_root(paths, root), found)
        left = pc.and_not(left, ours)
    return _one_by_one(found, paths, left if odd is None else pc.or_(left, odd))


def _root(path: str) -> _Root | None:
    try:
        place = parse_location(path)
    except InvalidLocationError:
        return None
    root = _Root(place.root, f"{place.scheme}://{place.authority}", place.scheme in _WITH_FOLDERS)
    # One that is not told from others by its beginning alone, like `//x`, is not the root of a group.
    return root if path.startswith(f"{root.text}/") and ("//" in root.text or path[len(root.text) + 1] != "/") else None


def _begins(paths: Any, root: _Root) -> Any:
    found = pc.starts_with(paths, f"{root.text}/")
    if "//" not in root.text:
        found = pc.and_not(found, pc.starts_with(paths, f"{root.text}//"))
    return pc.fill_null(found, False)


def _with_folders_to_resolve(paths: Any, ours: Any, root: _Root) -> Any | None:
    """Which of the paths with this root have empty names or ones of dots, or end in a slash; None if none of them has."""
    some = paths if pc.all(ours).as_py() else paths.filter(ours)
    if not _may_need_resolving(some, root):
        return None
    rest = pc.utf8_slice_codeunits(paths, len(root.text))
    found = pc.or_(pc.match_substring(rest, "//"), pc.match_substring(rest, "/."))
    found = pc.and_(ours, pc.fill_null(pc.or_(found, pc.ends_with(rest, "/")), False))
    return found if pc.any(found).as_py() else None


def _may_need_resolving(paths: Any, root: _Root) -> bool:
    """Whether a slash that is followed by a slash or a dot, or by nothing, is in one of them; the root has its own."""
    width = np.int64 if pa.types.is_large_string(paths.type) else np.int32
    _, offsets, data = paths.buffers()
    ends = np.frombuffer(offsets, width, len(paths) + 1, paths.offset * np.dtype(width).itemsize)
    texts = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]
    pairs = 0
    # In pieces that the processor's cache holds.
    for start in range(0, len(texts), _PIECE):
        piece = texts[start : start + _PIECE + 1]
        pairs += int(np.count_nonzero((piece[:-1] == _SLASH) & ((piece[1:] | 1) == _SLASH)))
    begin = f"{root.text}/"
    expected = sum(begin[at] == "/" and begin[at + 1] == "/" for at in range(len(begin) - 1))
    return pairs != expected * len(paths) or bool((texts[ends[1:] - ends[0] - 1] == _SLASH).any())


def _with_root(paths: Any, root: _Root) -> Any:
    kind = pa.large_binary() if pa.types.is_large_string(paths.type) else pa.binary()
    changed = pc.binary_replace_slice(paths.cast(kind), 0, len(root.text.encode()), root.normal.encode())
    return changed.cast(paths.type, safe=False)


def _one_by_one(found: Any, paths: Any, chosen: Any) -> Any:
    if not pc.any(chosen, min_count=0).as_py():
        return found
    texts = [identity(each) for each in paths.filter(chosen).to_pylist()]
    return pc.replace_with_mask(found, chosen, pa.array(texts, paths.type))
