"""A branch whose rows change: what the changes so far leave of it, what is read of it, and where its new files go."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from icefloe import commit as cm, errors, expressions as ex, metadata as md, planning
from icefloe.data import ReadContext, WriteRequest
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.progress import Listener, Stage, silent
from icefloe.rows.matching import MatchedRows


@dataclass(frozen=True)
class Branch:
    """A branch as a set of changes leaves it. `scan_table` begins a scan of the table, for all that scans of it share."""

    changes: cm.ChangeSet
    metadata: md.TableMetadata
    target: cm.Target
    scan_table: Callable[[], planning.TableScan]
    progress: Listener = silent
    """Who is told how far a change is."""
    written: Stage = field(default_factory=lambda: Stage("rows", None, silent))
    """Counts the rows that a change has written."""

    def renewed(self) -> Self | None:
        """The same on the newest state, if that is another one: files to read may have expired since it was loaded."""
        if not self.changes.rebase():
            return None
        metadata = self.changes.table_metadata
        return replace(
            self, metadata=metadata, target=cm.target_of(metadata, self.target.branch, self.target.properties)
        )

    @cached_property
    def context(self) -> ReadContext:
        """What all reading of it shares."""
        return ReadContext(self.metadata, self.changes.storage)

    def scan(
        self,
        row_filter: ex.Expression | None = None,
        selected_fields: Sequence[str] = planning.ALL_COLUMNS,
        *,
        case_sensitive: bool = True,
    ) -> planning.TableScan:
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

    def located(self, positions: Mapping[str, DeletionVector], row_filter: ex.Expression) -> list[MatchedRows]:
        """Rows by the paths of their files and their positions, all of which match the filter."""
        matches = [
            MatchedRows(task, positions[task.file.file_path], self.context)
            for task in (self.scan(row_filter).plan_files() if positions else ())
            if task.file.file_path in positions
        ]
        if missing := positions.keys() - {match.path for match in matches}:
            raise errors.StateError(
                f"rows of {min(missing)} are to be changed, but the plan for {row_filter} does not contain that file"
            )
        return matches

    def request(self, *, lineage: bool) -> WriteRequest:
        """Where rows go that this branch had before, in other files."""
        return WriteRequest(
            self.metadata, self.changes.storage, self.changes.row_files, lineage, wrote=self.written.step
        )
