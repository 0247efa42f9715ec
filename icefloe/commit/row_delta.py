"""Row delta: data files and delete files come in one step, so that rows are deleted, updated or merged without rewriting.

Positions are deleted by vectors from v3 on, by position delete files in v2; equality deletes from v2 on. Rows that were
changed by others since the operation was planned are a conflict; other rows of the same files are not.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.added import (
    FileGroup,
    FilesInput,
    check_distinct,
    check_not_live,
    check_still_taken,
    fitted,
    group_files,
    vector_mask,
)
from icefloe.commit.change import Workbench
from icefloe.commit.conflicts import (
    PartitionScope,
    Planned,
    Since,
    check_no_file_left,
    check_no_new_data,
    check_no_new_deletes,
    check_no_new_deletes_for,
    check_no_new_unordered_deletes,
    check_no_removed_data,
    last_of_others,
    row_scope,
    settled,
)
from icefloe.commit.matching import FilterInput, RowFilter
from icefloe.commit.named_files import (
    LocatedFile,
    NamedDeletes,
    NamedFiles,
    NamedInput,
    check_types,
    locate,
    place_mask,
)
from icefloe.commit.new_manifests import Filtered, merge_manifests, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet
from icefloe.commit.producer import Delta
from icefloe.commit.vectors import (
    check_not_revived,
    check_one_for_each,
    in_place_of,
    live_deletes,
    merge_with_live,
    positions_by_file,
    write_vectors,
)
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.formats.deletion_vectors import DeletionVector, Positions
from icefloe.manifests import WITHOUT_METRICS, DataFile, FileContent, ManifestColumns, ManifestContent, ManifestFile
from icefloe.metadata import Operation, TableMetadata
from icefloe.storage import identity
from icefloe.storage.identities import identities
from icefloe.versions import Feature, allows, require


class RowDelta:
    """Adds data files and deletes rows of others.

    `deletes` are delete files that are written already, vectors among them; `vectors` are positions by data file, which
    are written here. `planned` is what all this was planned on; it may be left out only by operations that read nothing:
    new rows and equality deletes. `conflict_filter` says which rows were read; without it, all may have been.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        planned: Planned | None,
        *,
        add: FilesInput = (),
        deletes: FilesInput = (),
        vectors: Mapping[str, DeletionVector | Positions] | None = None,
        remove: NamedInput = (),
        remove_deletes: NamedInput = (),
        referenced: Sequence[str] = (),
        conflict_filter: FilterInput | None = None,
        case_sensitive: bool = True,
        check_duplicates: bool = True,
    ) -> None:
        self._data = group_files(add, metadata, ManifestContent.DATA)
        self._deletes = group_files(deletes, metadata, ManifestContent.DELETES)
        check_distinct((*self._data, *self._deletes))
        self._vectors = _by_identity(vectors or {})
        if self._vectors:
            require(metadata.format_version, Feature.DELETION_VECTORS, "deleting rows by position without delete files")
        self._given = _given_vectors(self._deletes)
        self._files = tuple(_without_vectors(group) for group in self._deletes)
        self._remove = NamedFiles.of(remove, metadata)
        self._remove_deletes = NamedDeletes.of(remove_deletes, metadata)
        self._planned = planned
        self._filter = (
            None if conflict_filter is None else RowFilter.of(conflict_filter, metadata, case_sensitive=case_sensitive)
        )
        self._check_duplicates = check_duplicates
        # Position deletes that do not say of which files they are, and nobody else does.
        self._anywhere = () if referenced else tuple(_unreferenced(self._files))
        # Data files by the normal form of their paths, here and in all that is keyed by paths below.
        self._referenced = {*map(identity, referenced), *self._vectors, *self._given, *_referenced_by(self._files)}
        self._adds_data = any(len(group.columns) for group in self._data)
        by_position = any(_has_positions(group.columns) for group in self._files)
        if planned is None and (self._referenced or by_position or len(self._remove) or len(self._remove_deletes)):
            raise InvalidInputError("rows of files are deleted, but the snapshot that this was planned on is not given")

    @property
    def added(self) -> Sequence[FileGroup]:
        """The files that come."""
        return (*self._data, *self._files)

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests with what comes, and without what goes."""
        if self._is_outdated(parent.metadata):
            return parent.bench.remember(("by vectors", self), lambda: self._by_vectors(parent.bench)).apply(parent)
        check_still_taken(parent.metadata, self._deletes)
        data = remove_files(parent, parent.manifests(ManifestContent.DATA), self._remove.may_be_in, self._remove.mask)
        self._remove.check_found(data.removed, "data file")
        self._check_own_references()
        located = locate(parent, self._referenced, self._partitions(), [group.columns for group in self._data])
        check_types(parent, self._anywhere)
        self._check_conflicts(parent, located, data)
        new_vectors, superseded = self._new_vectors(parent, located)
        files = fitted(parent.metadata, (*self._data, *self._files))
        if self._check_duplicates:
            check_not_live(parent, files)
        deletes = self._remaining_deletes(parent, data, superseded)
        added = [group.columns for group in (*files, *new_vectors) if len(group.columns)]
        if not added and not data.removed and not deletes.removed:
            return None
        new = write_added(parent, (self, "files"), files)
        new += write_added(parent, (self, "vectors", _places(new_vectors)), new_vectors)
        kept = (*data.manifests, *deletes.manifests)
        self._check_one_vector(parent, kept, new_vectors)
        merged = merge_manifests(parent, (*new, *kept))
        return Delta(
            self._operation(bool(data.removed), any(len(each.columns) for each in (*self._files, *new_vectors))),
            merged.manifests,
            added,
            (*data.removed, *deletes.removed),
            replaced_manifests=data.replaced + deletes.replaced + merged.replaced,
        )

    # -- what is checked

    def _is_outdated(self, metadata: TableMetadata) -> bool:
        """Whether the table was upgraded since the files were given, and takes vectors instead."""
        if allows(metadata.format_version, Feature.NEW_POSITION_DELETE_FILES):
            return False
        return any(_has_positions(group.columns) for group in self._files)

    def _by_vectors(self, bench: Workbench) -> "RowDelta":
        """The same with the positions that the delete files hold as vectors."""
        found = copy(self)
        found._vectors = dict(self._vectors)
        for group in self._files:
            is_position = pc.equal(group.columns.column("content"), int(FileContent.POSITION_DELETES))
            for file in group.columns.filter(is_position).files():
                for path, vector in positions_by_file(bench, file).items():
                    found._vectors[path] = found._vectors.get(path, DeletionVector(())) | vector
        found._files = found._deletes = tuple(map(_without_positions, self._files))
        found._anywhere = ()
        found._referenced = {*self._referenced, *found._vectors}
        return found

    def _check_own_references(self) -> None:
        both = sorted(self._referenced & set(self._remove.paths.to_pylist()))
        if both:
            raise ValidationError(f"data file {both[0]!r} is removed, and rows of it are deleted, in one commit")

    def _check_conflicts(self, parent: Parent, located: Mapping[str, LocatedFile], data: Filtered) -> None:
        if self._planned is None:
            return
        since = Since(parent, self._planned)
        if not since.snapshots:
            return
        scope = row_scope(parent.metadata, self._filter)
        if self._planned.is_serializable:
            check_no_new_data(since, scope)
            if self._adds_data:
                # An update or merge has read rows that it did not touch, too; a delete has not.
                check_no_new_deletes(since, scope)
                check_no_removed_data(since, scope)
        check_no_new_deletes_for(since, data.removed, parent.metadata)
        if self._anywhere:
            partitions = PartitionSet.of(self._anywhere)
            check_no_file_left(since, partitions, parent.metadata)
            check_no_new_deletes(since, PartitionScope(partitions, parent.metadata), by_updates=not self._adds_data)
        if located:
            # To delete a row that another deleted, too, is no harm; to delete one that another replaced loses a delete.
            check_no_new_unordered_deletes(since, parent, located, by_updates=not self._adds_data)

    def _check_one_vector(self, parent: Parent, kept: Sequence[ManifestFile], new_vectors: Sequence[FileGroup]) -> None:
        if not new_vectors:
            return
        partitions = PartitionSet.of([group.columns for group in new_vectors])
        paths = identities(pa.concat_arrays([group.columns.column("referenced_data_file") for group in new_vectors]))
        live = [group.columns for group in new_vectors]
        for manifest in kept:
            if (
                manifest.content is ManifestContent.DELETES
                and manifest.has_live_files
                and partitions.may_be_in(manifest)
            ):
                columns = parent.read(manifest, WITHOUT_METRICS)
                about = identities(columns.column("referenced_data_file"))
                concerned = pc.and_(columns.is_live, pc.is_in(about, value_set=paths))
                live.append(columns.filter(pc.fill_null(concerned, False)))
        check_one_for_each(live)

    # -- what comes and what goes

    def _partitions(self) -> PartitionSet | None:
        """Where the referenced data files are, if every one of them comes with its partition."""
        if set(self._given) != self._referenced:
            return None
        return PartitionSet.of([group.columns.filter(vector_mask(group.columns)) for group in self._deletes])

    def _new_vectors(
        self, parent: Parent, located: Mapping[str, LocatedFile]
    ) -> tuple[tuple[FileGroup, ...], frozenset[tuple[str, int | None]]]:
        """The vectors to add, and the places of all that they take the place of."""
        paths = {*self._given, *self._vectors}
        if not paths:
            return (), frozenset()
        files = {path: located[path] for path in paths}
        given = {path: tuple(in_place_of(each, files[path]) for each in stored) for path, stored in self._given.items()}
        now = live_deletes(parent, files, parent.snapshot)
        others = live_deletes(parent, files, last_of_others(parent))
        seen = others
        if self._planned is not None:
            base = settled(self._planned, parent.bench).snapshot_id
            seen = live_deletes(parent, files, None if base is None else parent.metadata.snapshot_by_id(base))
        plan = merge_with_live(parent, given, self._vectors, files, now, others, seen)
        replaced = [now.vectors[path].place for path in paths if path in now.vectors]
        replaced += [each.place for path in paths for each in now.of_one_file.get(path, ())]
        merged = (*replaced, *(each.place for each in now.shared))
        written = parent.bench.remember(
            ("vectors", self, frozenset(merged)), lambda: write_vectors(parent, plan.written, files)
        )
        groups = group_files((*plan.kept, *written), parent.metadata, ManifestContent.DELETES)
        return groups, frozenset(replaced)

    def _remaining_deletes(
        self, parent: Parent, data: Filtered, superseded: frozenset[tuple[str, int | None]]
    ) -> Filtered:
        if not data.removed and not superseded and not len(self._remove_deletes):
            return Filtered(tuple(each for each in parent.manifests(ManifestContent.DELETES) if each.has_live_files))
        gone = NamedFiles.of(data.removed, parent.metadata)

        def choose(files: ManifestColumns) -> Mask:
            chosen = self._remove_deletes.mask(files) | gone.mask(files, "referenced_data_file")
            return chosen | place_mask(files, superseded)

        found = remove_files(parent, parent.manifests(ManifestContent.DELETES), lambda _: True, choose)
        self._remove_deletes.check_found(found.removed)
        check_not_revived(found.removed, gone.paths.to_pylist(), (*self._given, *self._vectors))
        return found

    def _operation(self, removes: bool, adds_deletes: bool) -> Operation:
        if self._adds_data and not removes and not adds_deletes:
            return Operation.APPEND
        if not self._adds_data:
            return Operation.DELETE
        return Operation.OVERWRITE


def _places(groups: Sequence[FileGroup]) -> tuple[tuple[str, int], ...]:
    """What tells these vectors from others: files and offsets."""
    return tuple(
        place
        for group in groups
        for place in zip(
            group.columns.column("file_path").to_pylist(),
            group.columns.column("content_offset").to_pylist(),
            strict=True,
        )
    )


def _by_identity(vectors: Mapping[str, DeletionVector | Positions]) -> dict[str, DeletionVector]:
    found: dict[str, DeletionVector] = {}
    for path, each in vectors.items():
        name = identity(path)
        found[name] = found[name] | _as_vector(each) if name in found else _as_vector(each)
    return found


def _as_vector(given: DeletionVector | Positions) -> DeletionVector:
    return given if isinstance(given, DeletionVector) else DeletionVector.from_positions(given)


def _given_vectors(groups: Sequence[FileGroup]) -> dict[str, list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for group in groups:
        for file in group.columns.filter(vector_mask(group.columns)).files():
            if file.referenced_data_file is None:
                raise InvalidInputError(f"deletion vector {file.file_path!r} does not say of which data file it is")
            found.setdefault(identity(file.referenced_data_file), []).append(file)
    return found


def _without_vectors(group: FileGroup) -> FileGroup:
    return replace(group, columns=group.columns.filter(pc.invert(vector_mask(group.columns))))


def _referenced_by(groups: Sequence[FileGroup]) -> set[str]:
    return {
        path
        for group in groups
        for path in identities(pc.unique(group.columns.column("referenced_data_file"))).to_pylist()
        if path is not None
    }


def _unreferenced(groups: Sequence[FileGroup]) -> Iterator[ManifestColumns]:
    for group in groups:
        is_position = pc.equal(group.columns.column("content"), int(FileContent.POSITION_DELETES))
        found = group.columns.filter(pc.and_(is_position, pc.is_null(group.columns.column("referenced_data_file"))))
        if len(found):
            yield found


def _without_positions(group: FileGroup) -> FileGroup:
    is_position = pc.equal(group.columns.column("content"), int(FileContent.POSITION_DELETES))
    return replace(group, columns=group.columns.filter(pc.invert(is_position)))


def _has_positions(columns: ManifestColumns) -> bool:
    is_position = pc.equal(columns.column("content"), int(FileContent.POSITION_DELETES))
    return bool(pc.any(is_position, min_count=0).as_py())
