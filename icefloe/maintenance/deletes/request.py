"""What a rewrite of delete files is asked for: which ones, of which branch, by which engine."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from icefloe import commit as cm, errors, expressions as ex
from icefloe.maintenance.deletes.options import CONCURRENT_GROUPS
from icefloe.maintenance.engines import MaintenanceEngine, Threads, in_rounds
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.options import Options
from icefloe.progress import Listener, Stage, silent

Group = TypeVar("Group")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class DeletesRequest:
    """Delete files of a table that are to be written anew."""

    table: MaintainedTable
    engine: MaintenanceEngine = field(default_factory=Threads)
    options: Options = field(default_factory=dict)
    where: str | ex.Expression | None = None
    branch: str | None = None
    progress: Listener = silent
    snapshot_properties: Mapping[str, str] | None = None

    @property
    def target(self) -> cm.Target:
        """The branch that is committed to, and what the summaries of its snapshots say."""
        return cm.target_of(self.table.metadata, self.branch, self.snapshot_properties)

    def map(self, work: Callable[[Group], Result], groups: Sequence[Group], stage: Stage) -> Iterator[Result]:
        """What the engine makes of the groups, as many of them at once as the caller allows."""
        at_once = CONCURRENT_GROUPS.of(self.options) or max(len(groups), 1)
        for result in in_rounds(self.engine, work, groups, at_once):
            stage.step()
            yield result

    def again_if_upgraded(self, run: Callable[[], Result]) -> Result:
        """What `run` returns; it plans anew if the table was upgraded meanwhile, and takes other delete files then."""
        version = self.table.metadata.format_version
        try:
            return run()
        except errors.ValidationError:
            if self.table.refresh().metadata.format_version == version:
                raise
            return run()
