"""Row delta: data files and delete files come in one step, so that rows are deleted, updated or merged without rewriting.

Positions are deleted by vectors from v3 on, by position delete files in v2; equality deletes from v2 on. Rows that were
changed by others since the operation was planned are a conflict; other rows of the same files are not.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit import added as new_files, conflicts, named_files as named, vectors as dv
from icefloe.commit.change import Workbench
from icefloe.commit.new_manifests import NewManifests, merge_manifests, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet, normal_paths
from icefloe.commit.producer import Delta
from icefloe.formats.deletion_vectors import DeletionVector, Positions
from icefloe.storage import identity
from icefloe.versions import Feature, allows, require


class RowDelta:
    """Adds data files and deletes rows of others.

    `deletes` are delete files that are written already, vectors among them; `vectors` are positions by data file, which
    are written here. `planned` is what all this was planned on; it may be left out only by operations that read nothing:
    new rows and equality deletes. If it does not say which rows were read, all may have been.
    """

    def __init__(
        self,
        metadata: md.TableMetadata,
        planned: conflicts.Planned | None,
        *,
        add: new_files.FilesInput = (),
        deletes: new_files.FilesInput = (),
        vectors: Mapping[str, DeletionVector | Positions] | None = None,
        remove: named.NamedInput = (),
        remove_deletes: named.NamedInput = (),
        referenced: Sequence[str] = (),
        check_duplicates: bool = True,
    ) -> None:
        self._data = new_files.group_files(add, metadata, mf.ManifestContent.DATA)
        self._deletes = new_files.group_files(deletes, metadata, mf.ManifestContent.DELETES)
        new_files.check_distinct((*self._data, *self._deletes))
        self._vectors = _by_identity(vectors or {})
        if self._vectors:
            require(metadata.format_version, Feature.DELETION_VECTORS, "deleting rows by position without delete files")
        self._stored = _stored_vectors(self._deletes)
        self._files = tuple(map(new_files.without_vectors, self._deletes))
        self._remove = named.NamedFiles.of(remove, metadata)
        self._remove_deletes = named.NamedDeletes.of(remove_deletes, metadata)
        self._planned = planned
        self._read = conflicts.rows_read(planned, metadata)
        self._check_duplicates = check_duplicates
        # Position deletes that do not say of which files they are, and nobody else does.
        self._anywhere = () if referenced else _unreferenced(self._files)
        # Data files by the normal form of their paths, here and in all that is keyed by paths below.
        self._referenced = {*map(identity, referenced), *self._vectors, *self._stored, *_referenced_by(self._files)}
        self._adds_data = any(len(group.columns) for group in self._data)
        by_position = any(map(_has_positions, self._files))
        if planned is None and (self._referenced or by_position or len(self._remove) or len(self._remove_deletes)):
            raise errors.InvalidInputError(
                "rows of files are deleted, but the snapshot that this was planned on is not given"
            )

    @property
    def added(self) -> Sequence[new_files.FileGroup]:
        """The files that come."""
        return (*self._data, *self._files)

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests with what comes, and without what goes."""
        if self._is_outdated(parent.metadata):
            return parent.bench.remember(("by vectors", self), lambda: self._by_vectors(parent.bench)).apply(parent)
        new_files.check_still_taken(parent.metadata, self._deletes)
        data = remove_files(parent, mf.ManifestContent.DATA, self._remove.may_be_in, self._remove.mask)
        self._remove.check_removed(data.removed, "data file")
        self._check_own_references()
        located = named.locate(parent, self._referenced, self._partitions(), [group.columns for group in self._data])
        named.check_types(parent, self._anywhere)
        self._check_conflicts(parent, located, data)
        new_vectors, superseded = self._new_vectors(parent, located)
        files = new_files.fitted(parent.metadata, self.added)
        if self._check_duplicates:
            new_files.check_not_live(parent, files)
        deletes = self._remaining_deletes(parent, data, superseded)
        added = [group.columns for group in (*files, *new_vectors) if len(group.columns)]
        if not added and not data.removed and not deletes.removed:
            return None
        new = write_added(parent, (self, "files"), files)
        blobs = tuple(key for group in new_vectors for key in named.blob_keys(group.columns))
        new += write_added(parent, (self, "vectors", blobs), new_vectors)
        dv.check_one_for_each(parent, deletes.manifests, [group.columns for group in new_vectors])
        adds_deletes = any(len(group.columns) for group in (*self._files, *new_vectors))
        return Delta(
            self._operation(bool(data.removed), adds_deletes), merge_manifests(parent, new, data, deletes), added
        )

    # -- what is checked

    def _is_outdated(self, metadata: md.TableMetadata) -> bool:
        """Whether the table was upgraded since the files were given, and takes vectors instead."""
        if allows(metadata.format_version, Feature.NEW_POSITION_DELETE_FILES):
            return False
        return any(map(_has_positions, self._files))

    def _by_vectors(self, bench: Workbench) -> "RowDelta":
        """The same with the positions that the delete files hold as vectors."""
        delta = copy(self)
        delta._vectors = dict(self._vectors)
        files = []
        for group in self._files:
            is_position = dv.position_mask(group.columns)
            for file in group.columns.filter(is_position).files():
                for path, vector in dv.positions_by_file(bench, file).items():
                    delta._vectors[path] = delta._vectors.get(path, DeletionVector(())) | vector
            files.append(replace(group, columns=group.columns.filter(pc.invert(is_position))))
        delta._files = delta._deletes = tuple(files)
        delta._anywhere = ()
        delta._referenced = {*self._referenced, *delta._vectors}
        return delta

    def _check_own_references(self) -> None:
        both = sorted(self._referenced & set(self._remove.paths.to_pylist()))
        if both:
            raise errors.ValidationError(
                f"data file {both[0]!r} cannot be removed in the same commit that deletes some of its rows"
            )

    def _check_conflicts(self, parent: Parent, located: Mapping[str, named.LocatedFile], data: NewManifests) -> None:
        if self._planned is None:
            return
        since = conflicts.Since(parent, self._planned)
        if not since.snapshots:
            return
        if self._planned.is_serializable:
            scope = conflicts.row_scope(parent.metadata, self._read)
            since.check_no_new_data(scope)
            if self._adds_data:
                # An update or merge has read rows that it did not touch, too; a delete has not.
                since.check_no_new_deletes(scope)
                since.check_no_removed_data(scope)
        since.check_no_new_deletes_for(data.removed)
        # To delete a row that another deleted, too, is no harm; to delete one that another replaced loses a delete.
        by_updates = not self._adds_data
        if self._anywhere:
            partitions = PartitionSet.of(self._anywhere)
            since.check_no_file_left(partitions)
            around = conflicts.PartitionScope(partitions, parent.metadata)
            since.check_no_new_deletes(around, by_updates=by_updates)
        if located:
            since.check_no_new_unordered_deletes(located, by_updates=by_updates)

    # -- what comes and what goes

    def _partitions(self) -> PartitionSet | None:
        """Where the referenced data files are, if every one of them comes with its partition."""
        return (
            PartitionSet.of(map(new_files.vectors_of, self._deletes))
            if self._stored.keys() == self._referenced
            else None
        )

    def _new_vectors(
        self, parent: Parent, located: Mapping[str, named.LocatedFile]
    ) -> tuple[tuple[new_files.FileGroup, ...], frozenset[named.BlobKey]]:
        """The vectors to add, and the deletes that they supersede."""
        paths = {*self._stored, *self._vectors}
        if not paths:
            return (), frozenset()
        files = {path: located[path] for path in paths}
        stored = {path: [dv.in_place_of(vector, files[path]) for vector in own] for path, own in self._stored.items()}
        now = dv.live_deletes(parent, files, parent.snapshot)
        others = dv.live_deletes(parent, files, conflicts.last_of_others(parent))
        seen = others
        if self._planned is not None:
            base = conflicts.settled(self._planned, parent.bench).snapshot_id
            seen = dv.live_deletes(parent, files, None if base is None else parent.metadata.snapshot_by_id(base))
        plan = dv.merge_with_live(parent, stored, self._vectors, files, now, others, seen)
        superseded = [now.vectors[path] for path in paths if path in now.vectors]
        superseded += [entry for path in paths for entry in now.of_one_file.get(path, ())]
        merged = frozenset(named.blob_key(entry.data_file) for entry in (*superseded, *now.shared))
        written = parent.bench.remember(
            ("vectors", self, merged), lambda: dv.write_vectors(parent, plan.written, files)
        )
        groups = new_files.group_files((*plan.unchanged, *written), parent.metadata, mf.ManifestContent.DELETES)
        return groups, frozenset(named.blob_key(entry.data_file) for entry in superseded)

    def _remaining_deletes(
        self, parent: Parent, data: NewManifests, superseded: frozenset[named.BlobKey]
    ) -> NewManifests:
        if not data.removed and not superseded and not len(self._remove_deletes):
            return NewManifests(parent.manifests(mf.ManifestContent.DELETES))
        removed = named.NamedFiles.of(data.removed, parent.metadata)

        def choose(files: mf.ManifestColumns) -> Mask:
            chosen = self._remove_deletes.mask(files) | removed.mask(files, "referenced_data_file")
            return chosen | named.blob_mask(files, superseded)

        deletes = remove_files(parent, mf.ManifestContent.DELETES, lambda _: True, choose)
        self._remove_deletes.check_removed(deletes.removed)
        dv.check_not_revived(deletes.removed, {*removed.paths.to_pylist(), *self._stored, *self._vectors})
        return deletes

    def _operation(self, removes: bool, adds_deletes: bool) -> md.Operation:
        if self._adds_data and not removes and not adds_deletes:
            return md.Operation.APPEND
        if not self._adds_data:
            return md.Operation.DELETE
        return md.Operation.OVERWRITE


def _by_identity(vectors: Mapping[str, DeletionVector | Positions]) -> dict[str, DeletionVector]:
    by_identity: dict[str, DeletionVector] = {}
    for path, positions in vectors.items():
        is_vector = isinstance(positions, DeletionVector)
        vector = positions if is_vector else DeletionVector.from_positions(positions)
        name = identity(path)
        by_identity[name] = by_identity[name] | vector if name in by_identity else vector
    return by_identity


def _stored_vectors(groups: Sequence[new_files.FileGroup]) -> dict[str, list[mf.DataFile]]:
    """The vectors that are written already, by data file."""
    stored: dict[str, list[mf.DataFile]] = {}
    for group in groups:
        for file in new_files.vectors_of(group).files():
            if file.referenced_data_file is None:
                raise errors.InvalidInputError(
                    f"deletion vector {file.file_path!r} does not say which data file it applies to"
                )
            stored.setdefault(identity(file.referenced_data_file), []).append(file)
    return stored


def _referenced_by(groups: Sequence[new_files.FileGroup]) -> set[str]:
    return {*normal_paths((g.columns for g in groups), "referenced_data_file").to_pylist()} - {None}


def _unreferenced(groups: Sequence[new_files.FileGroup]) -> tuple[mf.ManifestColumns, ...]:
    about = (group.columns.filter(dv.position_mask(group.columns)) for group in groups)
    unsaid = (columns.filter(pc.is_null(columns.column("referenced_data_file"))) for columns in about)
    return tuple(columns for columns in unsaid if len(columns))


def _has_positions(group: new_files.FileGroup) -> bool:
    return bool(pc.any(dv.position_mask(group.columns), min_count=0).as_py())
