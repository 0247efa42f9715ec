"""What each step of maintenance mends, and the command that does it."""

from collections.abc import Mapping
from dataclasses import dataclass

from icefloe.maintenance.care.policy import Step


@dataclass(frozen=True, slots=True)
class Remedy:
    """A finding, and how it is mended."""

    finding: str
    """A word for what is wrong."""
    title: str
    """The same for people."""
    _command: str

    def command(self, table: str) -> str:
        """The command line for a table."""
        return f"icefloe {self._command.format(table)}"


REMEDIES: Mapping[Step, Remedy] = {
    Step.CONVERT: Remedy("equality-deletes", "Deletes by value slow scans down", "rewrite-deletes {} --kind equality"),
    Step.COMPACT: Remedy("small-files", "Data files of the wrong size", "compact {}"),
    Step.SORT: Remedy("overlap", "Files overlap by the sort order", "compact {} --strategy sort"),
    Step.DANGLING_DELETES: Remedy(
        "dangling-deletes", "Delete files that delete nothing", "rewrite-deletes {} --kind dangling"
    ),
    Step.POSITION_DELETES: Remedy(
        "position-deletes", "Many files of deleted positions", "rewrite-deletes {} --kind position"
    ),
    Step.MANIFESTS: Remedy("manifests", "Manifests to be merged or sorted", "rewrite-manifests {}"),
    Step.EXPIRE: Remedy("old-snapshots", "Snapshots past their retention", "expire-snapshots {}"),
    Step.STATISTICS: Remedy("no-statistics", "No statistics of the current snapshot", "compute-stats {}"),
}
"""By the step that mends them."""
