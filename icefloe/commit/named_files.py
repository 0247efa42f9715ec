"""Files of the table that a commit names, to remove them or to rely on them: by path, and by partition where it is known.

New deletes name data files, too: these are located, with their partition, rows and sequence number in the current table.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.added import listed, vector_mask
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    ManifestColumns,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    columns_of,
    to_internal,
    wanted,
)
from icefloe.metadata import TableMetadata
from icefloe.planning import ReplacedColumns, differing_types
from icefloe.storage import identity
from icefloe.storage.identities import identities

NamedInput = Iterable[DataFile] | Iterable[str] | ManifestColumns | Sequence[ManifestColumns]
"""Files as values, in columns, or by their paths alone."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedFiles:
    """Paths in their normal form, and the partitions that the files are in; None if those are not known."""

    paths: Any
    partitions: PartitionSet | None

    @staticmethod
    def of(files: NamedInput, metadata: TableMetadata) -> "NamedFiles":
        """The files; naming one twice is naming it once."""
        given = listed(files)
        if not given:
            return NamedFiles(pa.array([], pa.string()), PartitionSet({}))
        if all(isinstance(each, str) for each in given):
            return NamedFiles(pc.unique(identities(pa.array(given, pa.string()))), None)
        columns = [each for each in given if isinstance(each, ManifestColumns)]
        values = [each for each in given if isinstance(each, DataFile)]
        if len(columns) + len(values) != len(given):
            raise InvalidInputError("files are named as DataFile values, ManifestColumns or paths, one way at a time")
        if any(ReplacedColumns(metadata, metadata.schema()).fields_ever(metadata.spec(each)) for each in _specs(given)):
            # Values of a column that was replaced are of another type than it is now, and would be looked for in vain.
            return NamedFiles(pc.unique(identities(_paths(columns, values))), None)
        columns += _by_spec(values, metadata)
        paths = pc.unique(identities(pa.concat_arrays([each.column("file_path") for each in columns])))
        return NamedFiles(paths, PartitionSet.of(columns))

    def __len__(self) -> int:
        return len(self.paths)

    def may_be_in(self, manifest: ManifestFile) -> bool:
        """Whether one of the files may be in the manifest."""
        return len(self) > 0 and (self.partitions is None or self.partitions.may_be_in(manifest))

    def mask(self, columns: ManifestColumns, name: str = "file_path") -> Mask:
        """Which entries have one of the paths, in that column."""
        if not len(self):
            return np.zeros(len(columns), bool)
        found: Mask = pc.is_in(identities(columns.column(name)), value_set=self.paths).to_numpy(zero_copy_only=False)
        return found

    def check_found(self, removed: Iterable[ManifestColumns], what: str) -> None:
        """Fail if some of the files are not among those that were found."""
        found = [each.column("file_path") for each in removed]
        known = identities(pa.concat_arrays(found)) if found else pa.array([], pa.string())
        missing = self.paths.filter(pc.invert(pc.is_in(self.paths, value_set=known)))
        if len(missing):
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise ValidationError(
                f"{what} {missing[0].as_py()!r}{more} cannot be removed: it is not in the table, or not any more"
            )


@dataclass(frozen=True, slots=True, eq=False)
class NamedDeletes:
    """Delete files that are named to be removed; a deletion vector by its place, since its file may hold others."""

    files: NamedFiles
    places: frozenset[tuple[str, int | None]]

    @staticmethod
    def of(files: NamedInput, metadata: TableMetadata) -> "NamedDeletes":
        """Whole files by path or value; vectors by value only."""
        whole: list[Any] = []
        places: set[tuple[str, int | None]] = set()
        for each in listed(files):
            for file in each.files() if isinstance(each, ManifestColumns) else (each,):
                if isinstance(file, DataFile) and file.is_deletion_vector:
                    places.add((identity(file.file_path), file.content_offset))
                else:
                    whole.append(file)
        return NamedDeletes(NamedFiles.of(whole, metadata), frozenset(places))

    def __len__(self) -> int:
        return len(self.files) + len(self.places)

    def mask(self, columns: ManifestColumns) -> Mask:
        """Which entries are named."""
        found = self.files.mask(columns)
        vectors = found & vector_mask(columns).to_numpy(zero_copy_only=False)
        if vectors.any():
            path = columns.column("file_path").filter(vectors.tolist())[0].as_py()
            raise InvalidInputError(
                f"{path!r} holds deletion vectors, maybe of other data files, too; name the vectors by their DataFile values"
            )
        return found | place_mask(columns, self.places)

    def check_found(self, removed: Sequence[ManifestColumns]) -> None:
        """Fail if some of the delete files are not among those that were found."""
        self.files.check_found(removed, "delete file")
        missing = self.places.difference(*(_places(each) for each in removed))
        if missing:
            raise ValidationError(
                f"the deletion vector at {min(missing)} cannot be removed: it is not in the table, or not any more"
            )


def place_mask(columns: ManifestColumns, places: Collection[tuple[str, int | None]]) -> Mask:
    """Which entries are at one of these places, a file and an offset in it."""
    if not places:
        return np.zeros(len(columns), bool)
    return np.array([place in places for place in _places(columns)], bool)


def _places(columns: ManifestColumns) -> list[tuple[str, int | None]]:
    paths, offsets = identities(columns.column("file_path")), columns.column("content_offset")
    return list(zip(paths.to_pylist(), offsets.to_pylist(), strict=True))


def _specs(given: Iterable[Any]) -> set[int]:
    return {each.spec_id for each in given}


def _paths(columns: Sequence[ManifestColumns], values: Sequence[DataFile]) -> Any:
    named = pa.array([each.file_path for each in values], pa.string())
    return pa.concat_arrays([named, *(each.column("file_path") for each in columns)])


def _by_spec(files: list[DataFile], metadata: TableMetadata) -> list[ManifestColumns]:
    by_spec: dict[int, list[DataFile]] = {}
    for file in files:
        by_spec.setdefault(file.spec_id, []).append(file)
    return [
        columns_of(
            (ManifestEntry(EntryStatus.EXISTING, file) for file in members),
            metadata.partition_type(spec_id),
            spec_id,
        )
        for spec_id, members in by_spec.items()
    ]


_PLACES = wanted("file_path")


@dataclass(frozen=True, slots=True)
class LocatedFile:
    """A data file of the table; one that the commit itself adds has no sequence number yet."""

    path: str
    """As the table spells it."""
    spec_id: int
    partition: tuple[Any, ...]
    record_count: int
    sequence_number: int | None


def locate(
    parent: Parent, paths: Iterable[str], partitions: PartitionSet | None, added: Sequence[ManifestColumns]
) -> dict[str, LocatedFile]:
    """The data files by the normal form of these paths, live ones and those that are added; an error if one is neither."""
    wanted_paths = pa.array(sorted(set(map(identity, paths))), pa.string())
    found: dict[str, LocatedFile] = {}
    for columns in added:
        found.update(_found(columns, wanted_paths))
    likely: list[ManifestFile] = []
    others: list[ManifestFile] = []
    for manifest in parent.manifests(ManifestContent.DATA):
        if manifest.has_live_files:
            (likely if partitions is None or partitions.may_be_in(manifest) else others).append(manifest)
    # A partition that was given wrongly must not hide the file: that error is told elsewhere, and better.
    for manifest in (*likely, *others):
        if len(found) == len(wanted_paths):
            break
        columns = parent.read(manifest, _PLACES)
        present = _found(columns.filter(columns.is_live), wanted_paths)
        if present:
            _check_types(columns, parent.metadata, next(iter(present)))
        found.update(present)
    missing = [path for path in wanted_paths.to_pylist() if path not in found]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValidationError(
            f"rows of data file {missing[0]!r}{more} are deleted, but it is not in the table, or not any more"
        )
    return found


def check_types(parent: Parent, deletes: Iterable[ManifestColumns]) -> None:
    """Fail if there are data files that deletes, which do not say of which files they are, may be about and cannot be."""
    replaced = ReplacedColumns(parent.metadata, parent.metadata.schema())
    specs = [parent.metadata.spec(each) for each in {columns.spec_id for columns in deletes}]
    doubtful = {each.spec_id: each for each in specs if replaced.fields_ever(each)}
    for manifest in parent.manifests(ManifestContent.DATA) if doubtful else ():
        spec = doubtful.get(manifest.partition_spec_id)
        if spec is not None and manifest.has_live_files and replaced.fields(spec, manifest):
            columns = parent.read(manifest, _PLACES)
            columns = columns.filter(columns.is_live)
            if len(columns):
                _check_types(columns, parent.metadata, columns.column("file_path")[0].as_py())


def _check_types(columns: ManifestColumns, metadata: TableMetadata, path: str) -> None:
    """Fail if delete files cannot be in the partitions of these data files, which the types of now cannot say."""
    unlike = differing_types(columns.partition_type, metadata.partition_type(columns.spec_id))
    if unlike:
        fields = ", ".join(f"{each.name!r}" for each in columns.partition_type.fields if each.field_id in unlike)
        raise ValidationError(
            f"rows of data file {path!r} cannot be deleted: it was written when the column of partition field {fields} was"
            " of another type, before the table was replaced; remove whole files, or work on a branch made since"
        )


def _found(columns: ManifestColumns, paths: Any) -> dict[str, LocatedFile]:
    names = identities(columns.column("file_path"))
    is_wanted = pc.is_in(names, value_set=paths)
    chosen, names = columns.filter(is_wanted), names.filter(is_wanted)
    if not len(chosen):
        return {}
    values = [
        to_internal(chosen.partition[each.field_id], each.field_type)
        if each.field_id in chosen.partition
        else [None] * len(chosen)
        for each in chosen.partition_type.fields
    ]
    tuples = list(zip(*values, strict=True)) if values else [()] * len(chosen)
    return {
        name: LocatedFile(path, chosen.spec_id, tuples[row], rows, number)
        for row, (name, path, rows, number) in enumerate(
            zip(
                names.to_pylist(),
                chosen.column("file_path").to_pylist(),
                chosen.column("record_count").to_pylist(),
                chosen.column("sequence_number").to_pylist(),
                strict=True,
            )
        )
    }
