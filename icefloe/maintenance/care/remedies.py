"""The finding that each maintenance step fixes, and the command that runs it."""

from collections.abc import Mapping
from dataclasses import dataclass

from icefloe.maintenance.care.policy import Step


@dataclass(frozen=True, slots=True)
class Remedy:
    """A finding and its fix."""

    finding: str
    """Short name of the finding."""
    title: str
    """Human-readable title."""
    _command: str

    def command(self, table: str) -> str:
        """Return the command line for a table."""
        return f"icefloe {self._command.format(table)}"


REMEDIES: Mapping[Step, Remedy] = {
    Step.CONVERT: Remedy("equality-deletes", "Equality deletes slow down scans", "rewrite-deletes {} --kind equality"),
    Step.COMPACT: Remedy("small-files", "Data files that are too small or too large", "compact {}"),
    Step.SORT: Remedy("overlap", "Files overlap in the sort order", "compact {} --strategy sort"),
    Step.DANGLING_DELETES: Remedy("dangling-deletes", "Dangling delete files", "rewrite-deletes {} --kind dangling"),
    Step.POSITION_DELETES: Remedy(
        "position-deletes", "Many position delete files", "rewrite-deletes {} --kind position"
    ),
    Step.MANIFESTS: Remedy("manifests", "Manifests need merging or sorting", "rewrite-manifests {}"),
    Step.EXPIRE: Remedy("old-snapshots", "Snapshots past their retention", "expire-snapshots {}"),
    Step.STATISTICS: Remedy("no-statistics", "No statistics for the current snapshot", "compute-stats {}"),
}
"""Findings by the step that fixes them."""
