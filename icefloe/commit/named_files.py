"""Files of the table that a commit names, to remove them or to rely on them: by path, and by partition where it is known.

New deletes name data files, too: these are located, with their partition, rows and sequence number in the current table.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, planning
from icefloe.commit.added import files_by_spec, listed, vector_mask
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet, as_mask, first_path, normal_paths
from icefloe.schema import Value
from icefloe.storage import identities, identity

NamedInput = Iterable[mf.DataFile] | Iterable[str] | mf.ManifestColumns | Sequence[mf.ManifestColumns]
"""Files as values, in columns, or by their paths alone."""

BlobKey: TypeAlias = tuple[str, int | None]
"""What distinguishes deletion vectors: the normal path of their file, and the offset in it."""

_LOCATED = mf.wanted("file_path")


@dataclass(frozen=True, slots=True, eq=False)
class NamedFiles:
    """Paths in their normal form, and the partitions that the files are in; None if those are not known."""

    paths: pa.Array
    partitions: PartitionSet | None

    @staticmethod
    def of(files: NamedInput, metadata: md.TableMetadata) -> "NamedFiles":
        """The files; naming one twice is naming it once."""
        items = listed(files)
        if not items:
            return NO_FILES
        if all(isinstance(item, str) for item in items):
            return NamedFiles(pc.unique(identities(pa.array(items, pa.string()))), None)
        columns = [item for item in items if isinstance(item, mf.ManifestColumns)]
        values = [item for item in items if isinstance(item, mf.DataFile)]
        if len(columns) + len(values) != len(items):
            raise errors.InvalidInputError(
                "name files as DataFile values, as ManifestColumns or as paths, without mixing them"
            )
        replaced = planning.ReplacedColumns(metadata, metadata.schema())
        if any(replaced.fields_ever(metadata.spec(spec_id)) for spec_id in {item.spec_id for item in columns + values}):
            # Values of a column that was replaced are of another type than it is now, and would be looked for in vain.
            named = pa.array([file.file_path for file in values], pa.string())
            paths = pa.concat_arrays([named, *(part.column("file_path") for part in columns)])
            return NamedFiles(pc.unique(identities(paths)), None)
        columns += [
            mf.columns_of(
                (mf.ManifestEntry(mf.EntryStatus.EXISTING, file) for file in members),
                metadata.partition_type(spec_id),
                spec_id,
            )
            for spec_id, members in files_by_spec(values).items()
        ]
        return NamedFiles(pc.unique(normal_paths(columns)), PartitionSet.of(columns))

    def __len__(self) -> int:
        return len(self.paths)

    def may_be_in(self, manifest: mf.ManifestFile) -> bool:
        """Whether one of the files may be in the manifest."""
        return len(self) > 0 and (self.partitions is None or self.partitions.may_be_in(manifest))

    def mask(self, columns: mf.ManifestColumns, name: str = "file_path") -> Mask:
        """Which entries have one of the paths, in that column."""
        if not len(self):
            return np.zeros(len(columns), bool)
        return as_mask(pc.is_in(identities(columns.column(name)), value_set=self.paths))

    def missing(self, removed: Iterable[mf.ManifestColumns]) -> pa.Array:
        """The paths of the files that are not among those that are removed."""
        return self.paths.filter(pc.invert(pc.is_in(self.paths, value_set=normal_paths(removed))))

    def check_removed(
        self, removed: Iterable[mf.ManifestColumns], what: str, gone: Collection[str] = frozenset()
    ) -> None:
        """Fail if some of the files are not among those that are removed, nor among those that may be gone."""
        missing = self.missing(removed)
        missing = missing.filter(pc.invert(pc.is_in(missing, value_set=pa.array(list(gone), pa.string()))))
        if len(missing):
            raise errors.ValidationError(
                f"{what} {_first_and_more(missing)} cannot be removed: it is not in the table, or no longer"
            )


NO_FILES = NamedFiles(pa.array([], pa.string()), PartitionSet({}))


def _first_and_more(paths: pa.Array) -> str:
    return f"{paths[0].as_py()!r}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


@dataclass(frozen=True, slots=True, eq=False)
class NamedDeletes:
    """Delete files that are named to be removed; a deletion vector by its offset, since its file may hold others."""

    files: NamedFiles
    vectors: frozenset[BlobKey]

    @staticmethod
    def of(files: NamedInput, metadata: md.TableMetadata) -> "NamedDeletes":
        """Whole files by path or value; vectors by value only."""
        whole: list[object] = []
        vectors: set[BlobKey] = set()
        for item in listed(files):
            for file in item.files() if isinstance(item, mf.ManifestColumns) else (item,):
                if isinstance(file, mf.DataFile) and file.is_deletion_vector:
                    vectors.add(blob_key(file))
                else:
                    whole.append(file)
        return NamedDeletes(NamedFiles.of(whole, metadata), frozenset(vectors))  # type: ignore[arg-type]  # checked there

    @staticmethod
    def in_columns(parts: Sequence[mf.ManifestColumns]) -> "NamedDeletes":
        """Delete files of the table, many at once."""
        masks = [vector_mask(part) for part in parts]
        whole = [part.filter(pc.invert(mask)) for part, mask in zip(parts, masks, strict=True)]
        vectors = (blob_keys(part.filter(mask)) for part, mask in zip(parts, masks, strict=True))
        return NamedDeletes(NamedFiles(pc.unique(normal_paths(whole)), None), frozenset().union(*vectors))

    def __len__(self) -> int:
        return len(self.files) + len(self.vectors)

    def __or__(self, other: "NamedDeletes") -> "NamedDeletes":
        paths = pc.unique(pa.concat_arrays([self.files.paths, other.files.paths]))
        return NamedDeletes(NamedFiles(paths, None), self.vectors | other.vectors)

    def mask(self, columns: mf.ManifestColumns) -> Mask:
        """Which entries are named."""
        by_path = self.files.mask(columns)
        vectors = by_path & as_mask(vector_mask(columns))
        if vectors.any():
            raise errors.InvalidInputError(
                f"{first_path(columns, vectors)!r} contains deletion vectors, possibly of other data files as well; name the vectors by"
                " their DataFile values"
            )
        return by_path | blob_mask(columns, self.vectors)

    def check_removed(self, removed: Sequence[mf.ManifestColumns]) -> None:
        """Fail if some of the delete files are not among those that are removed."""
        self.files.check_removed(removed, "delete file")
        missing = self.vectors.difference(*map(blob_keys, removed))
        if missing:
            raise errors.ValidationError(
                f"the deletion vector at {min(missing)} cannot be removed: it is not in the table, or no longer"
            )


def blob_key(file: mf.DataFile) -> BlobKey:
    """What distinguishes a vector from others."""
    return identity(file.file_path), file.content_offset


def blob_keys(columns: mf.ManifestColumns) -> list[BlobKey]:
    """The same of entries."""
    return list(zip(normal_paths([columns]).to_pylist(), columns.column("content_offset").to_pylist(), strict=True))


def blob_mask(columns: mf.ManifestColumns, blobs: Collection[BlobKey]) -> Mask:
    """Which entries are one of these vectors."""
    if not blobs:
        return np.zeros(len(columns), bool)
    return np.array([key in blobs for key in blob_keys(columns)], bool)


# -- data files that deletes are about


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """A data file of the table; one that the commit itself adds has no sequence number yet."""

    path: str
    """As the table spells it."""
    spec_id: int
    partition: tuple[Value, ...]
    record_count: int
    sequence_number: int | None


def locate(
    parent: Parent, paths: Iterable[str], partitions: PartitionSet | None, added: Sequence[mf.ManifestColumns]
) -> dict[str, LocatedFile]:
    """The data files by the normal form of these paths, live ones and those that are added; an error if one is neither."""
    searched = set(map(identity, paths))
    located = locate_live(parent, searched, partitions, added)
    missing = sorted(searched - located.keys())
    if missing:
        named = _first_and_more(pa.array(missing))
        raise errors.ValidationError(f"rows of data file {named} are deleted, but it is not in the table, or no longer")
    return located


def locate_live(
    parent: Parent,
    paths: Iterable[str],
    partitions: PartitionSet | None = None,
    added: Sequence[mf.ManifestColumns] = (),
) -> dict[str, LocatedFile]:
    """The same without those that are neither."""
    searched = pa.array(sorted(set(map(identity, paths))), pa.string())
    located: dict[str, LocatedFile] = {}
    for columns in added:
        located.update(_located(columns, searched))
    manifests = parent.manifests(mf.ManifestContent.DATA)
    if partitions is not None:
        # A partition that was given wrongly must not hide the file: that error is told elsewhere, and better.
        manifests = tuple(sorted(manifests, key=lambda manifest: not partitions.may_be_in(manifest)))
    for manifest in manifests:
        if len(located) == len(searched):
            break
        columns = parent.read(manifest, _LOCATED)
        present = _located(columns.filter(columns.is_live), searched)
        if present:
            _check_types(columns, parent.metadata, next(iter(present)))
        located.update(present)
    return located


def check_types(parent: Parent, deletes: Iterable[mf.ManifestColumns]) -> None:
    """Fail if there are data files that deletes, which do not say of which files they are, may be about and cannot be."""
    replaced = planning.ReplacedColumns(parent.metadata, parent.metadata.schema())
    specs = [parent.metadata.spec(spec_id) for spec_id in {columns.spec_id for columns in deletes}]
    doubtful = {spec.spec_id: spec for spec in specs if replaced.fields_ever(spec)}
    for manifest in parent.manifests(mf.ManifestContent.DATA) if doubtful else ():
        spec = doubtful.get(manifest.partition_spec_id)
        if spec is not None and replaced.fields(spec, manifest):
            columns = parent.read(manifest, _LOCATED)
            columns = columns.filter(columns.is_live)
            if len(columns):
                _check_types(columns, parent.metadata, columns.column("file_path")[0].as_py())


def _check_types(columns: mf.ManifestColumns, metadata: md.TableMetadata, path: str) -> None:
    """Fail if delete files cannot be in the partitions of these data files, which the current types cannot say."""
    unlike = planning.differing_types(columns.partition_type, metadata.partition_type(columns.spec_id))
    if unlike:
        fields = ", ".join(f"{each.name!r}" for each in columns.partition_type.fields if each.field_id in unlike)
        raise errors.ValidationError(
            f"rows of data file {path!r} cannot be deleted: it was written when the column of partition field {fields} had"
            " another type, before the table was replaced; remove whole files, or use a branch created since"
        )


def _located(columns: mf.ManifestColumns, paths: pa.Array) -> dict[str, LocatedFile]:
    names = normal_paths([columns])
    is_named = pc.is_in(names, value_set=paths)
    located = {}
    for name, entry in zip(names.filter(is_named).to_pylist(), columns.filter(is_named).entries(), strict=True):
        file = entry.data_file
        located[name] = LocatedFile(
            file.file_path, file.spec_id, file.partition, file.record_count, entry.sequence_number
        )
    return located
