"""Scans of a range of snapshots: what append commits added, and every insert and delete that the range amounts to."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, expressions as ex, manifests as mf, metadata as md
from icefloe.planning.plan import Plan, PlanRequest, Progress
from icefloe.planning.reading import ManifestSource
from icefloe.planning.report import LoggingReporter, Reporter
from icefloe.planning.scan import ALL_COLUMNS, TableScan
from icefloe.planning.tasks import CombinedScanTask, FileScanTask, pack_tasks
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage, identity
from icefloe.versions import Feature, allows


@dataclass(frozen=True)
class _RangeScan:
    """A scan of the snapshots after one and up to another, under the table's current schema."""

    metadata: md.TableMetadata
    storage: Storage
    from_snapshot_id: int | None = None
    """Exclusive. It may have expired, as long as the snapshot after it has not. None is before the first of all, which must
    not have expired: else rows would be left out."""
    to_snapshot_id: int | None = None
    """Inclusive."""
    row_filter: str | ex.Expression | None = ""
    selected_fields: tuple[str, ...] = ALL_COLUMNS
    branch: str | None = None
    case_sensitive: bool = True
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    cache: mf.ManifestCache | None = field(default=None, compare=False, repr=False)
    reporter: Reporter = field(default_factory=LoggingReporter, compare=False, repr=False)
    table_name: str = field(default="", compare=False, repr=False)
    """What reports call the table."""

    def snapshots(self) -> list[md.Snapshot]:
        """All snapshots in the range, oldest first."""
        last = self._last()
        return [] if last is None else self._range(last)[::-1]

    def projection(self) -> Schema:
        """The columns that are read."""
        return self._scan.projection()

    @cached_property
    def _scan(self) -> TableScan:
        """A scan of the same rows and columns, which knows the filter and the options."""
        return TableScan(
            self.metadata,
            self.storage,
            self.row_filter,
            self.selected_fields,
            case_sensitive=self.case_sensitive,
            options=self.options,
        )

    def _source(self, snapshot: md.Snapshot) -> ManifestSource:
        return ManifestSource(self.metadata, self.storage, snapshot.snapshot_id, self.metadata.schema(), self.cache)

    def _request(
        self,
        source: ManifestSource,
        manifests: Callable[[], Sequence[mf.ManifestFile]],
        entries: Callable[[mf.ManifestColumns], ex.Mask],
        *,
        needs_live: bool = True,
        with_deletes: bool = True,
    ) -> PlanRequest:
        settings = self._scan.settings
        return PlanRequest(source, self._scan.bound_filter, settings, manifests, entries, needs_live, with_deletes)

    def _run(self, request: PlanRequest) -> Plan:
        return Plan(Progress(request, self.projection().column_names, self.reporter, self.table_name))

    def _last(self) -> md.Snapshot | None:
        head = self.metadata.snapshot_of_ref(self.branch)
        if self.to_snapshot_id is None:
            if head is None and self.from_snapshot_id is not None:
                raise errors.NoSuchSnapshotError(
                    f"the scan starts after snapshot {self.from_snapshot_id}, but the table is empty"
                )
            return head
        last = self.metadata.snapshot(self.to_snapshot_id)
        if self.branch is not None and (
            head is None or not self.metadata.is_ancestor(last.snapshot_id, head.snapshot_id)
        ):
            raise errors.StateError(
                f"snapshot {last.snapshot_id}, the last of the scan, is not in branch {self.branch!r}"
            )
        return last

    def _range(self, last: md.Snapshot) -> list[md.Snapshot]:
        """The snapshots of the range, newest first."""
        snapshots: list[md.Snapshot] = []
        for snapshot in self.metadata.ancestors(last.snapshot_id):
            if snapshot.snapshot_id == self.from_snapshot_id:
                return snapshots
            snapshots.append(snapshot)
        oldest = snapshots[-1]
        if self.from_snapshot_id is None and oldest.parent_snapshot_id is not None:
            raise errors.NoSuchSnapshotError(
                f"snapshot {oldest.parent_snapshot_id} has expired, so rows added by it and earlier snapshots would be"
                f" missing; scan snapshot {oldest.snapshot_id} for all rows at that point, and start after it"
            )
        if self.from_snapshot_id is not None and oldest.parent_snapshot_id != self.from_snapshot_id:
            raise errors.StateError(
                f"snapshot {self.from_snapshot_id} is not an ancestor of snapshot {last.snapshot_id}, "
                "so nothing can be said of what was appended between them"
            )
        return snapshots


@dataclass(frozen=True)
class IncrementalAppendScan(_RangeScan):
    """Rows that append commits added after one snapshot and up to another, whatever later commits did to them.

    Without a first snapshot it starts with the table, without a last one it ends with the head of the branch.
    Commits that are no appends are passed over, and deletes are not applied.
    """

    def appends(self) -> list[md.Snapshot]:
        """The append snapshots in the range, oldest first."""
        snapshots = self.snapshots()
        for snapshot in snapshots:
            if snapshot.operation is None:
                raise errors.StateError(
                    f"the summary of snapshot {snapshot.snapshot_id} does not say whether it appended rows, so some could be"
                    " missing; read the changes instead"
                )
        return [snapshot for snapshot in snapshots if snapshot.operation == md.Operation.APPEND]

    def plan_files(self) -> Generator[FileScanTask, None, None]:
        """A task for each appended data file that may hold a wanted row; close it to stop early."""
        if request := self.request():
            yield from self._run(request).tasks()

    def plan_tasks(self) -> Iterator[CombinedScanTask]:
        """Work of even size: files split and put together by `read.split.*`."""
        return pack_tasks(self.plan_files(), self._scan.settings)

    def request(self) -> PlanRequest | None:
        """All that a plan of it needs; None if nothing was appended."""
        snapshots = self.appends()
        if not snapshots:
            return None
        ids = {snapshot.snapshot_id for snapshot in snapshots}
        source = self._source(snapshots[-1])

        def manifests() -> list[mf.ManifestFile]:
            listed = (manifest for snapshot in snapshots for manifest in source.manifests(snapshot))
            appended = (manifest for manifest in listed if manifest.added_snapshot_id in ids)
            # A manifest is in the lists of all later snapshots too.
            return list({identity(manifest.manifest_path): manifest for manifest in _of_data(appended)}.values())

        def entries(columns: mf.ManifestColumns) -> ex.Mask:
            is_added = pc.equal(columns.column("status"), int(mf.EntryStatus.ADDED))
            is_ours = pc.is_in(columns.column("snapshot_id"), value_set=pa.array(sorted(ids), pa.int64()))
            return np.asarray(pc.and_(is_added, is_ours).to_numpy(zero_copy_only=False))

        return self._request(source, manifests, entries, with_deletes=False)


class ChangeType(StrEnum):
    """What happened to a row; the value is that of `_change_type`."""

    INSERT = "INSERT"
    DELETE = "DELETE"
    UPDATE_BEFORE = "UPDATE_BEFORE"
    """The row as it was; only where inserts and deletes are joined by row id."""
    UPDATE_AFTER = "UPDATE_AFTER"


@dataclass(frozen=True, slots=True)
class ChangelogScanTask:
    """Rows of one file that one snapshot inserted or deleted.

    They are the rows of `task`, its deletes applied and its residual asked; if `deleted_by` is given, only those of them
    that these delete files delete.
    """

    change_type: ChangeType
    ordinal: int
    """The position of the snapshot in the range, from 0."""
    snapshot_id: int
    task: FileScanTask
    deleted_by: tuple[mf.DataFile, ...] | None = None


@dataclass(frozen=True)
class ChangelogScan(_RangeScan):
    """What changed after one snapshot and up to another, row by row.

    A snapshot is compared with its parent: a row that is there and was not is an insert, one that was there and is not is a
    delete. Commits that only rewrite (`replace`) change nothing, and neither does a row that leaves one file for another of the
    same commit: a delete and an insert of equal rows cancel each other. An update is a delete and an insert, which can be
    joined by identifier columns or row ids.
    """

    pairs_updates: bool = False
    identifier_columns: tuple[str, ...] = ()
    """The columns by which a delete and an insert are one row; empty: the table's identifier fields, or else row ids."""
    is_net: bool = False

    def with_updates(self, identifier_columns: Sequence[str] = ()) -> Self:
        """The same changes, with a delete and an insert of one row in one snapshot shown as an update; tasks are the same.

        Args:
            identifier_columns: what makes two rows one; without it the table's identifier fields, or row ids if it has none.
                Where a table has neither, deletes and inserts stay what they are.
        """
        if self.is_net:
            raise errors.InvalidInputError("net changes have no updates, since a row may change in several snapshots")
        return replace(self, pairs_updates=True, identifier_columns=tuple(identifier_columns))

    def with_net_changes(self) -> Self:
        """What is left of the changes of the whole range: a row that was inserted and deleted later is not shown."""
        if self.pairs_updates:
            raise errors.InvalidInputError("net changes have no updates, since a row may change in several snapshots")
        return replace(self, is_net=True)

    def identifier(self) -> tuple[str, ...]:
        """The columns by which updates are paired, `_row_id` among them if it is rows' ids; empty if there is nothing."""
        schema, shown = self.metadata.schema(), self.projection()
        if self.identifier_columns:
            return tuple(_shown_name(name, shown, self.case_sensitive) for name in self.identifier_columns)
        known = sorted(schema.identifier_field_ids)
        if known and all(any(field.field_id == own for field in shown.fields) for own in known):
            return tuple(shown.names_by_id[field_id] for field_id in known)
        return (reserved.ROW_ID.name,) if allows(self.metadata.format_version, Feature.ROW_LINEAGE) else ()

    def snapshots(self) -> list[md.Snapshot]:
        """The snapshots in the range that may have changed rows, oldest first."""
        return [snapshot for snapshot in super().snapshots() if snapshot.operation != md.Operation.REPLACE]

    def plan_files(self) -> Generator[ChangelogScanTask, None, None]:
        """The changes, snapshot by snapshot, deletes before inserts; close it to stop early."""
        for ordinal, snapshot in enumerate(self.snapshots()):
            for change_type, task, deleted_by in self._changes(snapshot):
                yield ChangelogScanTask(change_type, ordinal, snapshot.snapshot_id, task, deleted_by)

    def _changes(
        self, snapshot: md.Snapshot
    ) -> Generator[tuple[ChangeType, FileScanTask, tuple[mf.DataFile, ...] | None], None, None]:
        own, source = snapshot.snapshot_id, self._source(snapshot)
        now = source.manifests(snapshot)
        data, deletes = _of_data(now), _of_deletes(now)
        written = [manifest for manifest in data if manifest.added_snapshot_id == own]
        before = self._deletes_before(source, snapshot)
        for task in self._of_status(source, [*written, *before], mf.EntryStatus.DELETED).tasks():
            yield ChangeType.DELETE, task, None
        if any(manifest.added_snapshot_id == own for manifest in deletes):
            # Files that were there before and still are. Deletes do not change which files a plan gives, nor their order.
            old_tasks = self._of_status(source, [*data, *before], mf.EntryStatus.EXISTING).tasks()
            new_tasks = self._of_status(source, [*data, *deletes], mf.EntryStatus.EXISTING).tasks()
            for old, new in zip(old_tasks, new_tasks, strict=True):
                if _names(old.deletes) != _names(new.deletes):
                    yield ChangeType.DELETE, old, new.deletes
        for task in self._of_status(source, [*written, *deletes], mf.EntryStatus.ADDED).tasks():
            yield ChangeType.INSERT, task, None

    def _deletes_before(self, source: ManifestSource, snapshot: md.Snapshot) -> list[mf.ManifestFile]:
        """The delete manifests of the parent; one that expired does not matter to an append, which only adds rows."""
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else self.metadata.snapshot_by_id(parent_id)
        if parent is not None:
            return _of_deletes(source.manifests(parent))
        if parent_id is not None and snapshot.operation != md.Operation.APPEND:
            raise errors.NoSuchSnapshotError(
                f"snapshot {parent_id} has expired, so nothing can be said of what its successor {snapshot.snapshot_id} "
                f"changed; start the changes after {snapshot.snapshot_id}"
            )
        return []

    def _of_status(self, source: ManifestSource, manifests: list[mf.ManifestFile], status: mf.EntryStatus) -> Plan:
        """The files that the snapshot added, removed, or left as they were."""

        def entries(columns: mf.ManifestColumns) -> ex.Mask:
            is_own = pc.equal(columns.column("snapshot_id"), source.snapshot_id)
            if status is mf.EntryStatus.EXISTING:
                is_added = pc.equal(columns.column("status"), int(mf.EntryStatus.ADDED))
                chosen = pc.and_not(columns.is_live, pc.and_(is_added, is_own))
            else:
                chosen = pc.and_(pc.equal(columns.column("status"), int(status)), is_own)
            return np.asarray(pc.fill_null(chosen, False).to_numpy(zero_copy_only=False))

        needs_live = status is not mf.EntryStatus.DELETED
        return self._run(self._request(source, lambda: manifests, entries, needs_live=needs_live))


def _of_data(manifests: Iterable[mf.ManifestFile]) -> list[mf.ManifestFile]:
    return [manifest for manifest in manifests if manifest.content is mf.ManifestContent.DATA]


def _of_deletes(manifests: Iterable[mf.ManifestFile]) -> list[mf.ManifestFile]:
    return [manifest for manifest in manifests if manifest.content is mf.ManifestContent.DELETES]


def _shown_name(name: str, shown: Schema, case_sensitive: bool) -> str:
    """The name of a column as the scan shows it."""
    for column in shown.fields:
        if column.name == name or (not case_sensitive and column.name.lower() == name.lower()):
            return column.name
    names = ", ".join(column.name for column in shown.fields)
    raise errors.InvalidInputError(f"identifier column {name!r} is not a column of the changes; they have {names}")


def _names(deletes: Sequence[mf.DataFile]) -> set[tuple[str, int | None]]:
    """What distinguishes delete files: several vectors share a file."""
    return {(identity(file.file_path), file.content_offset) for file in deletes}
