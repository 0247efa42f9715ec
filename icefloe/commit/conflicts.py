"""What other writers committed since an operation was planned, and which of it the operation cannot live with.

History is read snapshot by snapshot, with no gap; each check is as narrow as what the operation touches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, properties as props
from icefloe.commit.added import vector_mask
from icefloe.commit.change import Workbench
from icefloe.commit.matching import FilterInput, RowFilter
from icefloe.commit.named_files import LocatedFile, NamedFiles
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet, as_mask, first_path
from icefloe.commit.reach import Replacement
from icefloe.storage import identity

_REWRITES = (md.Operation.REPLACE,)
_OTHERS = tuple(each for each in md.Operation if each not in _REWRITES)


class Isolation(Enum):
    """How much a commit minds what happened since it was planned.

    SERIALIZABLE: rows that it would have seen must not have come; as if one commit ran after the other. SNAPSHOT: rows
    that it changes must not have been changed.
    """

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"

    @staticmethod
    def of(metadata: md.TableMetadata, setting: props.Property[str]) -> "Isolation":
        """What a table says for one kind of command."""
        text = setting.of(metadata.properties)
        try:
            return Isolation(text)
        except ValueError:
            raise errors.InvalidPropertyError(
                f"property {setting.key!r} is {text!r}; it must be serializable or snapshot"
            ) from None


@dataclass(frozen=True, slots=True)
class Planned:
    """What an operation was planned on: the snapshot that its files and rows were read from, None for an empty table.

    `read_nothing` says that no file or row of it was read: when the snapshot has expired since then, only what is known to
    have happened counts. `read` says which rows were read; without it, that depends on the operation (see there).
    `relies_on_read` says that rows which were read and left alone are a reason for what is added, so they must still exist.
    """

    snapshot_id: int | None
    isolation: Isolation = Isolation.SERIALIZABLE
    read_nothing: bool = False
    read: FilterInput | None = None
    relies_on_read: bool = False

    @staticmethod
    def on(
        metadata: md.TableMetadata, branch: str = md.MAIN_BRANCH, isolation: Isolation = Isolation.SERIALIZABLE
    ) -> "Planned":
        """The head of a branch, as this metadata has it."""
        ref = metadata.refs.get(branch, metadata.refs.get(md.MAIN_BRANCH))
        return Planned(None if ref is None else ref.snapshot_id, isolation)

    def reading(self, rows: FilterInput, *, relies_on_read: bool = False) -> "Planned":
        """The same, with which rows were read."""
        return replace(self, read=rows, relies_on_read=relies_on_read)

    @property
    def is_serializable(self) -> bool:
        """Whether new rows count."""
        return self.isolation is Isolation.SERIALIZABLE


def _check_planned(planned: object) -> None:
    if not isinstance(planned, Planned):
        raise errors.InvalidInputError(f"{planned!r} is not a base for an operation; use Planned.on(table.metadata)")


def snapshots_since(metadata: md.TableMetadata, head: md.Snapshot | None, planned: Planned) -> list[md.Snapshot]:
    """The snapshots after the planned one up to the head, newest first; an error if one of them is not known any more.

    With a gap nobody can tell what happened in it, so that an operation that has read something must be planned anew.
    """
    if head is None:
        if planned.snapshot_id is not None:
            raise errors.ValidationError(
                f"planned on snapshot {planned.snapshot_id}, but the branch has no snapshot now"
            )
        return []
    newer: list[md.Snapshot] = []
    for snapshot in metadata.ancestors(head.snapshot_id):
        if snapshot.snapshot_id == planned.snapshot_id:
            return newer
        newer.append(snapshot)
    if planned.snapshot_id is None and newer[-1].parent_snapshot_id is None:
        return newer
    if planned.read_nothing and planned.snapshot_id not in metadata.snapshots_by_id:
        return newer
    raise errors.ValidationError(
        f"changes since snapshot {planned.snapshot_id} cannot be determined: it is not an ancestor of {head.snapshot_id},"
        " or snapshots in between have expired; plan the operation again"
    )


def settled(planned: Planned, bench: Workbench) -> Planned:
    """The committed snapshot behind a plan: what is planned on a snapshot of the same commit is planned on what that one
    was built on first. In a later attempt the commit's own snapshots come after what others did meanwhile.
    """
    snapshot_id = planned.snapshot_id
    while snapshot_id is not None and snapshot_id in bench.first_parents:
        snapshot_id = bench.first_parents[snapshot_id]
    return replace(planned, snapshot_id=snapshot_id)


def last_of_others(parent: Parent) -> md.Snapshot | None:
    """The newest snapshot that the commit builds on and has not made itself."""
    snapshot = parent.snapshot
    while snapshot is not None and snapshot.snapshot_id in parent.bench.first_parents:
        before = snapshot.parent_snapshot_id
        snapshot = None if before is None else parent.metadata.snapshot_by_id(before)
    return snapshot


class Scope(Protocol):
    """Where an operation minds changes: rows of a predicate, or partitions."""

    @property
    def wanted(self) -> mf.Wanted:
        """The columns that are needed to tell."""

    def may_be_in(self, manifest: mf.ManifestFile) -> bool:
        """Whether the manifest may hold a file of the scope."""

    def might(self, files: mf.ManifestColumns) -> Mask:
        """Which files may be in the scope."""


class PartitionScope:
    """Some partitions; deletes without a partition are about all of them."""

    wanted = mf.WITHOUT_METRICS

    def __init__(self, partitions: PartitionSet, metadata: md.TableMetadata, *, data_only: bool = False) -> None:
        self._partitions = partitions
        without = () if data_only else metadata.partition_specs
        self._global = {each.spec_id for each in without if each.is_unpartitioned}

    def may_be_in(self, manifest: mf.ManifestFile) -> bool:
        """Whether the manifest may hold a file of the partitions."""
        return manifest.partition_spec_id in self._global or self._partitions.may_be_in(manifest)

    def might(self, files: mf.ManifestColumns) -> Mask:
        """Which files are in the partitions, or in none."""
        inside = self._partitions.mask(files)
        if files.spec_id in self._global:
            # Data files of an unpartitioned spec lie in no partition of another; equality deletes reach everywhere.
            inside = inside | _is_equality(files)
        return inside

    def __str__(self) -> str:
        return f"{len(self._partitions)} partitions"


def _is_equality(files: mf.ManifestColumns) -> Mask:
    return as_mask(pc.equal(files.column("content"), int(mf.FileContent.EQUALITY_DELETES)))


class Since:
    """What other writers did since an operation was planned, and whether the operation can live with it.

    Rewrites add no rows and delete none, and rows of rewritten files still exist, so they are left out if not said otherwise.
    """

    def __init__(self, parent: Parent, planned: Planned) -> None:
        _check_planned(planned)
        self._parent = parent
        newer = snapshots_since(parent.metadata, parent.snapshot, settled(planned, parent.bench))
        self.snapshots = [each for each in newer if each.snapshot_id not in parent.bench.first_parents]

    def check_no_new_data(self, scope: Scope) -> None:
        """No data file came that may hold a row of the scope."""
        _check_none(self._data(mf.EntryStatus.ADDED, scope), scope, "data file {} was added")

    def check_no_removed_data(self, scope: Scope) -> None:
        """No data file went that may have held a row of the scope."""
        _check_none(self._data(mf.EntryStatus.DELETED, scope), scope, "data file {} was removed")

    def check_no_file_left(self, partitions: PartitionSet) -> None:
        """No data file went from these partitions, not even by a rewrite: deletes by position might be about it."""
        scope = PartitionScope(partitions, self._parent.metadata, data_only=True)
        _check_none(self._data(mf.EntryStatus.DELETED, scope, ignored=()), scope, "data file {} was removed")

    def check_no_new_deletes(self, scope: Scope, *, by_updates: bool = False) -> None:
        """No delete file came that may delete a row of the scope; with `by_updates`, none of a commit that added rows too."""
        _check_none(self._deletes(scope, by_updates=by_updates), scope, "delete file {} was added")

    def check_no_new_deletes_for(
        self,
        files: Sequence[mf.ManifestColumns],
        *,
        ignore_equality: bool = False,
        ignore_vectors: bool = False,
        number: int | None = None,
    ) -> None:
        """No delete file came that may delete a row of these data files.

        Vectors and position deletes of one file are recognized by its path, others by the partition. Equality deletes are
        ignored where `check_same_reach` looks at them, and vectors where `moved_rows` does. With the sequence number of the
        plan, a rewrite counts if it brought a newer number: it may stand for equality deletes that came meanwhile.
        """
        if not files:
            return
        scope = PartitionScope(PartitionSet.of(files), self._parent.metadata)
        paths = NamedFiles.of(files, self._parent.metadata)
        for deletes in (*self._deletes(scope), *self._rewritten_deletes(scope, number)):
            about_one = as_mask(deletes.column("referenced_data_file").is_valid())
            concerned = np.where(about_one, paths.mask(deletes, "referenced_data_file"), scope.might(deletes))
            if ignore_equality:
                concerned &= ~_is_equality(deletes)
            if ignore_vectors:
                concerned &= ~as_mask(vector_mask(deletes))
            if concerned.any():
                raise errors.ValidationError(
                    f"delete file {first_path(deletes, concerned)!r} was added by another commit for a data file that this"
                    " commit removes; plan it again"
                )

    def removed_otherwise(self, paths: pa.Array) -> tuple[mf.ManifestColumns, ...]:
        """Those of the data files, named by the normal form of their paths, that went by anything but a rewrite."""
        if not len(paths):
            return ()
        named = NamedFiles(paths, None)
        entries = self._entries(mf.ManifestContent.DATA, mf.EntryStatus.DELETED, None, _REWRITES)
        return tuple(columns.filter(named.mask(columns)) for columns in entries)

    def check_same_reach(
        self, replaced: Sequence[mf.ManifestColumns], new: Sequence[mf.ManifestColumns], written: md.TableMetadata
    ) -> None:
        """No equality delete came that may delete other rows of the new files than of those that they replace.

        The new files carry an older sequence number than such deletes, and were written for the table as `written` has it.
        """
        replacement = Replacement.of(replaced, new, written, self._parent.metadata)
        for deletes in self._deletes(PartitionScope(PartitionSet.of([*replaced, *new]), self._parent.metadata)):
            changed = _is_equality(deletes) & replacement.changes(deletes)
            if changed.any():
                raise errors.ValidationError(
                    f"equality delete file {first_path(deletes, changed)!r} was added by another commit and would not delete"
                    " the same rows after this commit moves them to another spec or partition, or drops its key columns;"
                    " plan it again"
                )

    def check_no_new_unordered_deletes(self, files: Mapping[str, LocatedFile], *, by_updates: bool) -> None:
        """No delete file came for these data files of which nobody can tell whether it deletes the same rows.

        Vectors can tell, and are compared by their positions elsewhere. With `by_updates` only deletes of updates count.
        """
        partitions = {(located.spec_id, located.partition) for located in files.values()}
        unpartitioned = {spec.spec_id for spec in self._parent.metadata.partition_specs if spec.is_unpartitioned}
        for file in (file for deletes in self._deletes(None, by_updates=by_updates) for file in deletes.files()):
            if file.is_deletion_vector:
                continue
            if file.referenced_data_file is not None:
                concerned = identity(file.referenced_data_file) in files
            else:
                is_global = file.content is mf.FileContent.EQUALITY_DELETES and file.spec_id in unpartitioned
                concerned = is_global or (file.spec_id, file.partition) in partitions
            if concerned:
                raise errors.ValidationError(
                    f"delete file {file.file_path!r} was added by another commit and may delete rows that this commit"
                    " changes; plan it again"
                )

    def _data(
        self, status: mf.EntryStatus, scope: Scope, ignored: tuple[md.Operation, ...] = _REWRITES
    ) -> Iterator[mf.ManifestColumns]:
        return self._entries(mf.ManifestContent.DATA, status, scope, ignored)

    def _deletes(self, scope: Scope | None, *, by_updates: bool = False) -> Iterator[mf.ManifestColumns]:
        # A plain delete can be repeated without harm.
        ignored = (*_REWRITES, md.Operation.DELETE) if by_updates else _REWRITES
        return self._entries(mf.ManifestContent.DELETES, mf.EntryStatus.ADDED, scope, ignored)

    def _rewritten_deletes(self, scope: Scope, number: int | None) -> Iterator[mf.ManifestColumns]:
        """The delete files that rewrites brought, and that are newer than the number, if there is one."""
        if number is None:
            return
        entries = self._entries(mf.ManifestContent.DELETES, mf.EntryStatus.ADDED, scope, ignored=_OTHERS)
        for deletes in entries:
            yield deletes.filter(pc.greater(deletes.column("sequence_number"), number))

    def _entries(
        self,
        content: mf.ManifestContent,
        status: mf.EntryStatus,
        scope: Scope | None,
        ignored: tuple[md.Operation, ...],
    ) -> Iterator[mf.ManifestColumns]:
        wanted = mf.WITHOUT_METRICS if scope is None else scope.wanted
        for snapshot in self.snapshots:
            if snapshot.operation not in ignored:
                yield from entries_of(self._parent, snapshot, content, status, wanted, scope)


def _check_none(changed: Iterable[mf.ManifestColumns], scope: Scope, what: str) -> None:
    for files in changed:
        concerned = scope.might(files)
        if concerned.any():
            path = first_path(files, concerned)
            raise errors.ValidationError(
                f"{what.format(repr(path))} by another commit and may affect {scope}; plan the operation again"
            )


def entries_of(
    parent: Parent,
    snapshot: md.Snapshot,
    content: mf.ManifestContent,
    status: mf.EntryStatus,
    wanted: mf.Wanted,
    scope: Scope | None = None,
) -> Iterator[mf.ManifestColumns]:
    """The files that a snapshot added or removed, of the manifests that may hold one of the scope."""
    for manifest in parent.manifests_of(snapshot):
        is_new = manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content is content
        has_some = manifest.has_added_files if status is mf.EntryStatus.ADDED else manifest.has_deleted_files
        if is_new and has_some and (scope is None or scope.may_be_in(manifest)):
            columns = parent.read(manifest, wanted)
            is_such = columns.column("status").to_numpy() == int(status)
            columns = columns.filter(is_such & as_mask(pc.equal(columns.column("snapshot_id"), snapshot.snapshot_id)))
            if len(columns):
                yield columns


def rows_read(planned: Planned | None, metadata: md.TableMetadata, *, case_sensitive: bool = True) -> RowFilter | None:
    """The rows that the plan says it has read, if it does."""
    if planned is None:
        return None
    _check_planned(planned)
    return None if planned.read is None else RowFilter.of(planned.read, metadata, case_sensitive=case_sensitive)


def row_scope(metadata: md.TableMetadata, row_filter: RowFilter | None = None) -> RowFilter:
    """The filter bound to the metadata that is committed to; None stands for all rows."""
    return RowFilter.of(True, metadata) if row_filter is None else RowFilter(metadata, row_filter.bound)
