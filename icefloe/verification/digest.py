"""What is remembered of the live files of a manifest: numbers and hashes, about 80 bytes for a file."""

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import manifests as mf, planning
from icefloe.schema import reserved, types
from icefloe.storage import identities

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

UNKNOWN = -1
"""Stands for a missing number."""


class FileKind(IntEnum):
    """What a file is; deletion vectors are not position delete files here."""

    DATA = int(mf.FileContent.DATA)
    POSITION_DELETES = int(mf.FileContent.POSITION_DELETES)
    EQUALITY_DELETES = int(mf.FileContent.EQUALITY_DELETES)
    VECTOR = 3


_COLUMNS = (
    "file_path",
    "file_format",
    "file_size_in_bytes",
    "equality_ids",
    "sort_order_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)


def wanted_of(content: mf.ManifestContent) -> mf.Wanted:
    """What is decoded of a manifest to check its entries."""
    if content is mf.ManifestContent.DATA:
        return mf.wanted(*_COLUMNS)
    return mf.wanted(*_COLUMNS, field_ids=(reserved.DELETE_FILE_PATH.field_id,), metrics=mf.BOUNDS)


@dataclass(frozen=True, slots=True, eq=False)
class Digest:
    """Live files, in columns. Paths and partitions are 64-bit hashes, equal for equal ones."""

    kind: npt.NDArray[np.int8]
    path: Numbers
    name: Numbers
    """The path, and for a deletion vector its offset in the file too."""
    target: Numbers
    """The one data file that a delete is about; 0 if there is none, or several."""
    partition: Numbers
    sequence_number: Numbers
    rows: Numbers
    size: Numbers
    """What is stored for the file: of a deletion vector its own bytes."""
    file_size: Numbers
    first_row_id: Numbers
    is_added: Mask
    is_global: Mask
    """Whether it is of a spec without partitions."""
    manifest: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]
    """Which entry of the manifest it is."""

    def __len__(self) -> int:
        return len(self.path)

    def take(self, chosen: Numbers | Mask) -> "Digest":
        """Some of the files, by position or mask."""
        return Digest(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def of(self, *kinds: FileKind) -> "Digest":
        """The files of these kinds."""
        return self.take(np.isin(self.kind, kinds))


def joined(parts: Iterable[Digest]) -> Digest:
    """The files of several manifests."""
    digests = list(parts)
    if not digests:
        return Digest(*(np.zeros(0, np.int64) for _ in fields(Digest)))  # type: ignore[arg-type]  # the rest has no rows
    return Digest(*(np.concatenate([getattr(digest, field.name) for digest in digests]) for field in fields(Digest)))


def hashes(texts: pa.Array) -> Numbers:
    """A 64-bit hash of each text; 0 for null."""
    return np.fromiter((0 if text is None else hash(text) for text in texts.to_pylist()), np.int64, len(texts))


def is_in_sample(paths: pa.Array, sample: float) -> Mask:
    """Whether each path is in the sample: the same ones every time, since it goes by the path alone."""
    if sample >= 1:
        return np.ones(len(paths), bool)
    limit = int(sample * 2**32)
    return np.fromiter((zlib.crc32(path.encode()) < limit for path in paths.to_pylist()), bool, len(paths))


def digest_of(columns: mf.ManifestColumns, manifest: int, is_global: bool) -> Digest:
    """The live files of a manifest, with its number to find them again."""
    indices = np.flatnonzero(columns.is_live.to_numpy(zero_copy_only=False))
    live = columns.take(pa.array(indices))
    kinds = kinds_of(live)
    paths = hashes(identities(live.column("file_path")))
    offsets = _numbers(live.column("content_offset"))
    groups = planning.group_partitions(live)
    keys = np.array(list(map(hash, groups.keys())), np.int64)
    own = _numbers(live.column("content_size_in_bytes"))
    sizes = _numbers(live.column("file_size_in_bytes"))
    is_vector = kinds == FileKind.VECTOR
    status = live.column("status").to_numpy(zero_copy_only=False)
    return Digest(
        kinds,
        paths,
        np.where(is_vector, _mixed(paths, offsets), paths),
        hashes(identities(scopes(live))),
        keys[groups.of] if len(keys) else np.zeros(len(live), np.int64),
        _numbers(live.column("sequence_number")),
        _numbers(live.column("record_count")),
        np.where(is_vector & (own >= 0), own, sizes),
        sizes,
        _numbers(live.column("first_row_id")),
        status == int(mf.EntryStatus.ADDED),
        np.full(len(live), is_global),
        np.full(len(live), manifest, np.int32),
        indices.astype(np.int32),
    )


def kinds_of(columns: mf.ManifestColumns) -> npt.NDArray[np.int8]:
    """The kind of each file."""
    content = columns.column("content").to_numpy(zero_copy_only=False).astype(np.int8)
    is_puffin = pc.fill_null(pc.equal(pc.utf8_lower(columns.column("file_format")), "puffin"), False)
    is_vector = (content == FileKind.POSITION_DELETES) & is_puffin.to_numpy(zero_copy_only=False)
    return np.where(is_vector, np.int8(FileKind.VECTOR), content)


def scopes(columns: mf.ManifestColumns) -> pa.Array:
    """The data file that each delete is about: the one it names, or the only one within the bounds of its paths."""
    named = columns.column("referenced_data_file")
    lower, upper = (
        bounds(reserved.DELETE_FILE_PATH.field_id, types.StringType())
        for bounds in (columns.lower_bounds, columns.upper_bounds)
    )
    if lower is None or upper is None:
        return named
    is_one = pc.fill_null(pc.equal(lower, upper), False)
    return pc.coalesce(named, pc.if_else(is_one, lower, pa.scalar(None, pa.string())))


def _mixed(first: Numbers, second: Numbers) -> Numbers:
    """One hash of two numbers."""
    return first ^ (second * np.int64(0x1E3779B97F4A7C15))


def recorded(digest: Digest) -> Numbers:
    """A hash of a file's name and of what is recorded of it: it differs for records that differ."""
    return _mixed(_mixed(digest.name, digest.rows), digest.file_size * 31 + 7)


def _numbers(column: pa.Array) -> Numbers:
    numbers: Numbers = pc.fill_null(column, UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


class HashTable:
    """Numbers by the hash of a path."""

    def __init__(self, keys: Numbers, values: Numbers) -> None:
        self._keys, first = np.unique(keys, return_index=True)
        self._values = values[first]

    def get(self, path: str) -> int | None:
        """The number of a path, if there is one."""
        key = hash(path)
        at = int(np.searchsorted(self._keys, key))
        return int(self._values[at]) if at < len(self._keys) and self._keys[at] == key else None
