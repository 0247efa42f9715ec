"""One deletion vector in place of several of one data file: it deletes all rows that any of them deletes."""

import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np

from icefloe import commit as cm, errors, manifests as mf
from icefloe.formats.deletion_vector_codec import read_vector
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.maintenance.deletes.writing import DeleteWriter
from icefloe.storage import Storage, identity


@dataclass(frozen=True, slots=True)
class RivalVectors:
    """The live deletion vectors of one data file, which should be one, the newest first."""

    file: mf.DataFile
    entries: tuple[mf.ManifestEntry, ...]

    def union(self, storage: Storage) -> DeletionVector:
        """The rows that one of them deletes; an error if one cannot be read."""
        return DeletionVector().union(*(self._read(entry.data_file, storage) for entry in self.entries))

    def _read(self, vector: mf.DataFile, storage: Storage) -> DeletionVector:
        if vector.content_offset is None or vector.content_size_in_bytes is None:
            raise errors.CorruptFileError(
                vector.file_path, "its manifest does not say where in it the deletion vector is"
            )
        return read_vector(
            mf.range_reader(vector, storage),
            vector.content_offset,
            vector.content_size_in_bytes,
            vector.file_path,
            cardinality=vector.record_count,
            row_count=self.file.record_count,
        )


def rival_vectors(parent: cm.Parent) -> list[RivalVectors]:
    """The data files of a snapshot that have more than one deletion vector."""
    by_file: dict[str, list[mf.ManifestEntry]] = {}
    for entry in _live(parent, mf.ManifestContent.DELETES):
        if entry.data_file.is_deletion_vector:
            by_file.setdefault(identity(entry.data_file.referenced_data_file or ""), []).append(entry)
    several = {name: entries for name, entries in by_file.items() if len(set(map(_place, entries))) > 1}
    files = (entry.data_file for entry in _live(parent, mf.ManifestContent.DATA)) if several else iter(())
    return [
        RivalVectors(file, tuple(sorted(several[name], key=_number, reverse=True)))
        for file in files
        if (name := identity(file.file_path)) in several
    ]


def _live(parent: cm.Parent, content: mf.ManifestContent) -> Iterator[mf.ManifestEntry]:
    for manifest in parent.manifests(content):
        columns = parent.read(manifest)
        yield from columns.filter(columns.is_live).entries()


def _number(entry: mf.ManifestEntry) -> int:
    return entry.sequence_number or 0


def _place(entry: mf.ManifestEntry) -> tuple[str, int | None]:
    return identity(entry.data_file.file_path), entry.data_file.content_offset


class UnitedVectors:
    """Puts one vector in the place of the newest, and leaves the others out. What it writes belongs to the commit."""

    def __init__(self, parent: cm.Parent, files: Collection[str]) -> None:
        """`files` are the data files whose vectors are united."""
        chosen = [rivals for rivals in rival_vectors(parent) if rivals.file.file_path in files]
        storage = parent.bench.storage
        writer = DeleteWriter(parent.metadata, storage, str(uuid.uuid4()))
        new = writer.vectors((rivals.file, rivals.union(storage)) for rivals in chosen)
        parent.bench.row_files.extend(new)
        self._new = {_place(each.entries[0]): vector for each, vector in zip(chosen, new, strict=True)}
        self._others = {_place(entry) for rivals in chosen for entry in rivals.entries[1:]}

    def __call__(self, manifest: mf.ManifestFile, entries: mf.ManifestColumns) -> cm.Fixed:
        """The live entries of a manifest with united vectors."""
        if manifest.content is not mf.ManifestContent.DELETES:
            return cm.Fixed(entries)
        listed = list(entries.entries())
        is_newest = np.array([_place(entry) in self._new for entry in listed], bool)
        is_other = np.array([_place(entry) in self._others for entry in listed], bool)
        if not (is_newest | is_other).any():
            return cm.Fixed(entries)
        united = [replace(entry, data_file=self._new[_place(entry)]) for entry in listed if _place(entry) in self._new]
        made = mf.columns_of(united, entries.partition_type, entries.spec_id)
        kept = [part for part in (entries.filter(~(is_newest | is_other)), made) if len(part)]
        removed = entries.filter(is_other)
        return cm.Fixed(
            cm.concat_entries(kept) if kept else entries.filter(is_newest), removed if len(removed) else None
        )
