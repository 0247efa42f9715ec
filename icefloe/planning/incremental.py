"""What was appended between two snapshots: the files that append commits added, whatever later commits did to them."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import NoSuchSnapshotError, StateError
from icefloe.expressions import Expression
from icefloe.manifests import EntryStatus, ManifestCache, ManifestColumns, ManifestContent, ManifestFile
from icefloe.metadata import Operation, Snapshot, TableMetadata
from icefloe.planning.plan import Mask, Plan, PlanRequest, Progress
from icefloe.planning.reading import ManifestSource
from icefloe.planning.report import LoggingReporter, Reporter
from icefloe.planning.scan import ALL_COLUMNS, TableScan
from icefloe.planning.tasks import CombinedScanTask, FileScanTask, pack_tasks
from icefloe.schema import Schema
from icefloe.storage import Storage, identity


@dataclass(frozen=True)
class IncrementalAppendScan:
    """Rows that append commits added after one snapshot and up to another, under the table's current schema.

    Without a first snapshot it starts with the oldest ancestor, without a last one it ends with the head of the branch.
    Commits that are no appends are passed over, and deletes are not applied.
    """

    metadata: TableMetadata
    storage: Storage
    from_snapshot_id: int | None = None
    """Exclusive. It may have expired, as long as the snapshot after it has not."""
    to_snapshot_id: int | None = None
    """Inclusive."""
    row_filter: str | Expression | None = ""
    selected_fields: tuple[str, ...] = ALL_COLUMNS
    branch: str | None = None
    case_sensitive: bool = True
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    cache: ManifestCache | None = field(default=None, compare=False, repr=False)
    reporter: Reporter = field(default_factory=LoggingReporter, compare=False, repr=False)

    def snapshots(self) -> list[Snapshot]:
        """All snapshots in the range, oldest first."""
        last = self._last()
        return [] if last is None else self._range(last)[::-1]

    def appends(self) -> list[Snapshot]:
        """The append snapshots in the range, oldest first."""
        return [each for each in self.snapshots() if each.operation == Operation.APPEND]

    def projection(self) -> Schema:
        """The columns that are read."""
        return self._scan.projection()

    def plan_files(self) -> Generator[FileScanTask, None, None]:
        """A task for each appended data file that may hold a wanted row; close it to stop early."""
        snapshots = self.appends()
        if not snapshots:
            return
        yield from self._plan(snapshots).tasks()

    def plan_tasks(self) -> Iterator[CombinedScanTask]:
        """Work of even size: files split and put together by `read.split.*`."""
        return pack_tasks(self.plan_files(), self._scan.settings)

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

    def _plan(self, snapshots: list[Snapshot]) -> Plan:
        ids = {each.snapshot_id for each in snapshots}
        source = ManifestSource(
            self.metadata, self.storage, snapshots[-1].snapshot_id, self.metadata.schema(), self.cache
        )

        def manifests() -> list[ManifestFile]:
            found = (manifest for each in snapshots for manifest in source.manifests(each))
            appended = (
                each for each in found if each.content is ManifestContent.DATA and each.added_snapshot_id in ids
            )
            # A manifest is in the lists of all later snapshots too.
            return list({identity(each.manifest_path): each for each in appended}.values())

        def entries(columns: ManifestColumns) -> Mask:
            is_added = pc.equal(columns.column("status"), int(EntryStatus.ADDED))
            is_ours = pc.is_in(columns.column("snapshot_id"), value_set=pa.array(sorted(ids), pa.int64()))
            found: Mask = np.asarray(pc.and_(is_added, is_ours).to_numpy(zero_copy_only=False))
            return found

        request = PlanRequest(
            source, self._scan.bound_filter, self._scan.settings, manifests, entries, with_deletes=False
        )
        return Plan(Progress(request, self.projection().column_names, self.reporter))

    def _last(self) -> Snapshot | None:
        head = self.metadata.snapshot_of_ref(self.branch)
        if self.to_snapshot_id is None:
            if head is None and self.from_snapshot_id is not None:
                raise NoSuchSnapshotError(
                    f"the scan starts after snapshot {self.from_snapshot_id}, but the table is empty"
                )
            return head
        last = self.metadata.snapshot(self.to_snapshot_id)
        if self.branch is not None and (
            head is None or not self.metadata.is_ancestor(last.snapshot_id, head.snapshot_id)
        ):
            raise StateError(f"snapshot {last.snapshot_id}, the last of the scan, is not in branch {self.branch!r}")
        return last

    def _range(self, last: Snapshot) -> list[Snapshot]:
        """The snapshots of the range, newest first."""
        found: list[Snapshot] = []
        for snapshot in self.metadata.ancestors(last.snapshot_id):
            if snapshot.snapshot_id == self.from_snapshot_id:
                return found
            found.append(snapshot)
        if self.from_snapshot_id is not None and found[-1].parent_snapshot_id != self.from_snapshot_id:
            raise StateError(
                f"snapshot {self.from_snapshot_id} is not an ancestor of snapshot {last.snapshot_id}, "
                "so nothing can be said of what was appended between them"
            )
        return found
