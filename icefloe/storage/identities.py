"""When two paths name the same file: the normal form in which paths are compared, and which is never written.

A path stays in metadata as its writer spelled it; only comparisons that decide identity or deletion go through here.

- Schemes of one store are one: `s3a` and `s3n` are `s3`, `gcs` is `gs`, `abfss`, `wasb` and `wasbs` are `abfs`, with the
  blob end of an Azure account as its dfs end. `/x`, `file:/x`, `file:///x` and `file://localhost/x` are one.
- In `file:` and `hdfs:`, which have folders, slashes collapse and `.` and `..` are followed by name, since links are not known.
- In object stores and in `memory:` a key is literal: `a//b`, `a/./b` and `a/b` are three objects, since they are for the store.
- Nothing is decoded: `%20` is three characters. A path that is not a location is its own normal form.
- `hdfs:/x`, `hdfs://host/x` and `hdfs://host:8020/x` are three paths: only Hadoop's configuration knows whether they are one
  file. So whoever deletes compares by `possible_identity`, for which they may be.
"""

from typing import NamedTuple

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
    """The common beginning of some paths, and that of their normal forms."""

    text: str
    normal: str
    has_folders: bool


def identity(path: str) -> str:
    """The normal form of a path: equal for two paths if and only if they name the same file."""
    try:
        return normalize_location(path)
    except InvalidLocationError:
        return path


def is_same_file(one: str | None, other: str | None) -> bool:
    """Whether two paths name the same file; None names no file."""
    return one is not None and other is not None and (one == other or identity(one) == identity(other))


def possible_identity(path: str) -> str:
    """Equal for two paths that may name the same file: a deleted path must differ in this from every needed path."""
    normal = identity(path)
    # A name node has several names, and none at all if it is the default one of the configuration.
    return f"hdfs:/{normal[len(_HDFS) :].partition('/')[2]}" if normal.startswith(_HDFS) else normal


def identities(paths: pa.Array) -> pa.Array:
    """The normal forms of an Arrow column of paths; the column itself, and quickly, if all are in normal form already."""
    left = paths.is_valid()
    if len(paths) <= _FEW:
        return _one_by_one(paths, paths, left)
    normal, odd = paths, None
    for _ in range(_MOST_ROOTS):
        index = pc.index(left, True).as_py()
        if index < 0:
            break
        root = _root(paths[index].as_py())
        if root is None:
            break
        ours = pc.and_(left, _begins(paths, root))
        resolved = _with_folders_to_resolve(paths, ours, root) if root.has_folders else None
        if resolved is not None:
            odd = resolved if odd is None else pc.or_(odd, resolved)
            ours = pc.and_not(ours, resolved)
            left = pc.and_not(left, resolved)
        if root.text != root.normal:
            normal = pc.if_else(ours, _with_root(paths, root), normal)
        left = pc.and_not(left, ours)
    return _one_by_one(normal, paths, left if odd is None else pc.or_(left, odd))


def _root(path: str) -> _Root | None:
    try:
        location = parse_location(path)
    except InvalidLocationError:
        return None
    root = _Root(location.root, f"{location.scheme}://{location.authority}", location.scheme in _WITH_FOLDERS)
    # One that cannot be recognized by its beginning alone, like `//x`, is not the root of a group.
    return root if path.startswith(f"{root.text}/") and ("//" in root.text or path[len(root.text) + 1] != "/") else None


def _begins(paths: pa.Array, root: _Root) -> pa.Array:
    begins = pc.starts_with(paths, f"{root.text}/")
    if "//" not in root.text:
        begins = pc.and_not(begins, pc.starts_with(paths, f"{root.text}//"))
    return pc.fill_null(begins, False)


def _with_folders_to_resolve(paths: pa.Array, ours: pa.Array, root: _Root) -> pa.Array | None:
    """Which of the paths with this root have empty or dotted names, or end in a slash; None if none of them does."""
    some = paths if pc.all(ours).as_py() else paths.filter(ours)
    if not _may_need_resolving(some, root):
        return None
    rest = pc.utf8_slice_codeunits(paths, len(root.text))
    unresolved = pc.or_(pc.match_substring(rest, "//"), pc.match_substring(rest, "/."))
    unresolved = pc.and_(ours, pc.fill_null(pc.or_(unresolved, pc.ends_with(rest, "/")), False))
    return unresolved if pc.any(unresolved).as_py() else None


def _may_need_resolving(paths: pa.Array, root: _Root) -> bool:
    """Whether one of the paths has, after its root, a slash that is followed by a slash, a dot or nothing."""
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


def _with_root(paths: pa.Array, root: _Root) -> pa.Array:
    binary_type = pa.large_binary() if pa.types.is_large_string(paths.type) else pa.binary()
    changed = pc.binary_replace_slice(paths.cast(binary_type), 0, len(root.text.encode()), root.normal.encode())
    return changed.cast(paths.type, safe=False)


def _one_by_one(normal: pa.Array, paths: pa.Array, chosen: pa.Array) -> pa.Array:
    if not pc.any(chosen, min_count=0).as_py():
        return normal
    texts = [identity(path) for path in paths.filter(chosen).to_pylist()]
    return pc.replace_with_mask(normal, chosen, pa.array(texts, paths.type))
