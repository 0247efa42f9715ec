"""A branch whose rows change: what the changes so far leave of it, what is read of it, and where its new files go."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from icefloe.commit import ChangeSet, SnapshotChange, SnapshotOperation, Target, target_of
from icefloe.data import ReadContext, WriteRequest
from icefloe.errors import StateError
from icefloe.expressions import Expression
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.metadata import Snapshot, TableMetadata
from icefloe.planning import ALL_COLUMNS, TableScan
from icefloe.rows.matching import MatchedRows


@dataclass(frozen=True)
class Branch:
    """A branch as a set of changes leaves it. `scan_table` begins a scan of the table, for all that scans of it share."""

    changes: ChangeSet
    metadata: TableMetadata
    target: Target
    scan_table: Callable[[], TableScan]

    @classmethod
    def on(
        cls,
        changes: ChangeSet,
        scan_table: Callable[[], TableScan],
        name: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> Self:
        """The branch of that name, `main` without one, on what the changes so far leave."""
        metadata = changes.table_metadata
        return cls(changes, metadata, target_of(metadata, name, snapshot_properties), scan_table)

    def renewed(self) -> Self | None:
        """The same on the newest state, if that is another one: files to read may have expired since it was loaded."""
        if not self.changes.rebase():
            return None
        return self.on(self.changes, self.scan_table, self.target.branch, self.target.properties)

    @cached_property
    def context(self) -> ReadContext:
        """What all reading of it shares."""
        return ReadContext(self.metadata, self.changes.storage)

    def scan(
        self,
        row_filter: Expression | None = None,
        selected_fields: Sequence[str] = ALL_COLUMNS,
        *,
        case_sensitive: bool = True,
    ) -> TableScan:
        """Rows of the branch; of `main` if it is yet to be created."""
        return replace(
            self.scan_table(),
            metadata=self.metadata,
            row_filter=row_filter,
            selected_fields=tuple(selected_fields),
            ref=self.target.branch if self.target.branch in self.metadata.refs else None,
            case_sensitive=case_sensitive,
            # Copy-on-write reads the other rows of these files, too.
            whole_files=True,
            # What earlier changes of the transaction leave is known here alone.
            planner=None,
        )

    def located(self, positions: Mapping[str, DeletionVector], row_filter: Expression) -> list[MatchedRows]:
        """Rows by the paths of their files and their positions, all of which match the filter."""
        matches = [
            MatchedRows(task, positions[task.file.file_path], self.context)
            for task in (self.scan(row_filter).plan_files() if positions else ())
            if task.file.file_path in positions
        ]
        if missing := positions.keys() - {match.path for match in matches}:
            raise StateError(
                f"rows of {min(missing)} are to change, but a plan by {row_filter} does not have that file"
            )
        return matches

    def request(self, *, lineage: bool = False, properties: Mapping[str, str] | None = None) -> WriteRequest:
        """Where new rows go; `properties` stand in for those of the table."""
        metadata = self.metadata
        if properties:
            metadata = replace(metadata, properties={**metadata.properties, **properties})
        return WriteRequest(metadata, self.changes.storage, self.changes.row_files, lineage)

    def add(self, operation: SnapshotOperation) -> Snapshot | None:
        """Do an operation on files, on this branch."""
        return self.changes.add(SnapshotChange(operation, self.target))
