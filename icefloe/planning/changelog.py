"""What changed between snapshots, row by row: files added, files removed, and rows that new deletes took from files that stay.

A snapshot is compared with its parent: a row that is there and was not is an insert, one that was there and is not is a
delete. Commits that only rewrite (`replace`) change nothing. An update is a delete and an insert, which rows join by their id.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Self

import pyarrow.compute as pc

from icefloe.errors import NoSuchSnapshotError
from icefloe.expressions import Expression
from icefloe.manifests import DataFile, EntryStatus, ManifestCache, ManifestColumns, ManifestContent, ManifestFile
from icefloe.metadata import Operation, Snapshot, TableMetadata
from icefloe.planning.incremental import IncrementalAppendScan
from icefloe.planning.plan import Mask, Plan, PlanRequest, Progress
from icefloe.planning.reading import ManifestSource
from icefloe.planning.report import LoggingReporter, Reporter
from icefloe.planning.scan import ALL_COLUMNS, TableScan
from icefloe.planning.tasks import FileScanTask
from icefloe.schema import Schema
from icefloe.storage import Storage, identity


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
    """The place of the snapshot in the range, from 0."""
    snapshot_id: int
    task: FileScanTask
    deleted_by: tuple[DataFile, ...] | None = None


@dataclass(frozen=True)
class ChangelogScan:
    """Changes after one snapshot and up to another, under the table's current schema; see IncrementalAppendScan."""

    metadata: TableMetadata
    storage: Storage
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None
    row_filter: str | Expression | None = ""
    selected_fields: tuple[str, ...] = ALL_COLUMNS
    branch: str | None = None
    case_sensitive: bool = True
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    cache: ManifestCache | None = field(default=None, compare=False, repr=False)
    reporter: Reporter = field(default_factory=LoggingReporter, compare=False, repr=False)
    pairs_updates: bool = False

    def with_updates(self) -> Self:
        """The same changes, with a delete and an insert of one row id told as an update; tasks are the same."""
        return replace(self, pairs_updates=True)

    def snapshots(self) -> list[Snapshot]:
        """The snapshots in the range that may have changed rows, oldest first."""
        between = IncrementalAppendScan(
            self.metadata, self.storage, self.from_snapshot_id, self.to_snapshot_id, branch=self.branch
        )
        return [each for each in between.snapshots() if each.operation != Operation.REPLACE]

    def projection(self) -> Schema:
        """The columns that are read."""
        return self._scan.projection()

    def plan_files(self) -> Generator[ChangelogScanTask, None, None]:
        """The changes, snapshot by snapshot, deletes before inserts; close it to stop early."""
        for ordinal, snapshot in enumerate(self.snapshots()):
            yield from self._changes(ordinal, snapshot)

    @cached_property
    def _scan(self) -> TableScan:
        return TableScan(
            self.metadata,
            self.storage,
            self.row_filter,
            self.selected_fields,
            case_sensitive=self.case_sensitive,
            options=self.options,
        )

    def _changes(self, ordinal: int, snapshot: Snapshot) -> Generator[ChangelogScanTask, None, None]:
        own = snapshot.snapshot_id
        source = ManifestSource(self.metadata, self.storage, own, self.metadata.schema(), self.cache)
        now = source.manifests(snapshot)
        written = [each for each in _of(now, ManifestContent.DATA) if each.added_snapshot_id == own]
        deletes = _of(now, ManifestContent.DELETES)
        before = self._deletes_before(source, snapshot)

        def made(
            kind: ChangeType, task: FileScanTask, deleted_by: tuple[DataFile, ...] | None = None
        ) -> ChangelogScanTask:
            return ChangelogScanTask(kind, ordinal, own, task, deleted_by)

        for task in self._plan(source, [*written, *before], EntryStatus.DELETED).tasks():
            yield made(ChangeType.DELETE, task)
        if any(each.added_snapshot_id == own for each in deletes):
            for old, new in self._stayed(source, now, before):
                if _names(old.deletes) != _names(new.deletes):
                    yield made(ChangeType.DELETE, old, new.deletes)
        for task in self._plan(source, [*written, *deletes], EntryStatus.ADDED).tasks():
            yield made(ChangeType.INSERT, task)

    def _deletes_before(self, source: ManifestSource, snapshot: Snapshot) -> list[ManifestFile]:
        """The delete manifests of the parent; one that expired does not matter to an append, which only adds rows."""
        parent_id = snapshot.parent_snapshot_id
        parent = None if parent_id is None else self.metadata.snapshot_by_id(parent_id)
        if parent is not None:
            return _of(source.manifests(parent), ManifestContent.DELETES)
        if parent_id is not None and snapshot.operation != Operation.APPEND:
            raise NoSuchSnapshotError(
                f"snapshot {parent_id} has expired, so nothing can be said of what its successor {snapshot.snapshot_id} "
                f"changed; start the changes after {snapshot.snapshot_id}"
            )
        return []

    def _stayed(
        self, source: ManifestSource, now: Sequence[ManifestFile], before: list[ManifestFile]
    ) -> Generator[tuple[FileScanTask, FileScanTask], None, None]:
        """Files that were there before and still are, with the deletes of then and of now."""
        data = _of(now, ManifestContent.DATA)
        # Deletes do not change which files a plan gives, nor in which order.
        old = self._plan(source, [*data, *before], EntryStatus.EXISTING)
        new = self._plan(source, [*data, *_of(now, ManifestContent.DELETES)], EntryStatus.EXISTING)
        yield from zip(old.tasks(), new.tasks(), strict=True)

    def _plan(self, source: ManifestSource, manifests: list[ManifestFile], what: EntryStatus) -> Plan:
        own = source.snapshot_id

        def entries(columns: ManifestColumns) -> Mask:
            is_own = pc.equal(columns.column("snapshot_id"), own)
            status = columns.column("status")
            if what is EntryStatus.EXISTING:
                is_new = pc.and_(pc.equal(status, int(EntryStatus.ADDED)), is_own)
                chosen = pc.and_not(columns.is_live, is_new)
            else:
                chosen = pc.and_(pc.equal(status, int(what)), is_own)
            found: Mask = pc.fill_null(chosen, False).to_numpy(zero_copy_only=False)
            return found

        request = PlanRequest(
            source,
            self._scan.bound_filter,
            self._scan.settings,
            lambda: manifests,
            entries,
            needs_live=what is not EntryStatus.DELETED,
        )
        return Plan(Progress(request, self.projection().column_names, self.reporter))


def _of(manifests: Sequence[ManifestFile], content: ManifestContent) -> list[ManifestFile]:
    return [each for each in manifests if each.content is content]


def _names(deletes: Sequence[DataFile]) -> set[tuple[str, int | None]]:
    """What tells delete files apart: several vectors share a file."""
    return {(identity(each.file_path), each.content_offset) for each in deletes}
