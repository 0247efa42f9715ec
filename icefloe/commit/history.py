"""What other writers committed since an operation was planned: snapshot by snapshot, with no gap."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from icefloe import properties as props
from icefloe.commit.parent import Parent, manifests_of, read_entries
from icefloe.commit.workbench import Workbench
from icefloe.errors import InvalidInputError, InvalidPropertyError, ValidationError
from icefloe.manifests import WITHOUT_METRICS, EntryStatus, ManifestColumns, ManifestContent, ManifestFile, Wanted
from icefloe.metadata import MAIN_BRANCH, Operation, Snapshot, TableMetadata

_NOT_REWRITES = (Operation.REPLACE,)


class Isolation(Enum):
    """How much a commit minds what happened since it was planned.

    SERIALIZABLE: rows that it would have seen must not have come; as if one commit ran after the other. SNAPSHOT: rows
    that it changes must not have been changed.
    """

    SERIALIZABLE = "serializable"
    SNAPSHOT = "snapshot"

    @staticmethod
    def of(metadata: TableMetadata, setting: props.Property[str]) -> "Isolation":
        """What a table says for one kind of command."""
        text = setting.of(metadata.properties)
        try:
            return Isolation(text)
        except ValueError:
            raise InvalidPropertyError(
                f"property {setting.key!r} is {text!r}; it must be serializable or snapshot"
            ) from None


@dataclass(frozen=True, slots=True)
class Planned:
    """What an operation was planned on: the snapshot that its files and rows were read from, None for an empty table.

    `read_nothing` says that no file or row of it was read: when the snapshot has expired since then, only what is known to
    have happened counts.
    """

    snapshot_id: int | None
    isolation: Isolation = Isolation.SERIALIZABLE
    read_nothing: bool = False

    @staticmethod
    def on(
        metadata: TableMetadata, branch: str = MAIN_BRANCH, isolation: Isolation = Isolation.SERIALIZABLE
    ) -> "Planned":
        """The head of a branch, as this metadata has it."""
        ref = metadata.refs.get(branch, metadata.refs.get(MAIN_BRANCH))
        return Planned(None if ref is None else ref.snapshot_id, isolation)

    @property
    def is_serializable(self) -> bool:
        """Whether new rows count."""
        return self.isolation is Isolation.SERIALIZABLE


def snapshots_since(metadata: TableMetadata, head: Snapshot | None, planned: Planned) -> list[Snapshot]:
    """The snapshots after the planned one up to the head, newest first; an error if one of them is not known any more.

    With a gap nobody can tell what happened in it, so that an operation that has read something must be planned anew.
    """
    found: list[Snapshot] = []
    if head is None:
        if planned.snapshot_id is not None:
            raise ValidationError(f"planned on snapshot {planned.snapshot_id}, but the branch has no snapshot now")
        return found
    last: int | None = head.snapshot_id
    for each in metadata.ancestors(head.snapshot_id):
        if each.snapshot_id == planned.snapshot_id:
            return found
        found.append(each)
        last = each.parent_snapshot_id
    if planned.snapshot_id is None and last is None:
        return found
    if planned.read_nothing and planned.snapshot_id not in metadata.snapshots_by_id:
        return found
    raise ValidationError(
        f"what happened since snapshot {planned.snapshot_id} cannot be told: it is no ancestor of {head.snapshot_id},"
        " or snapshots in between have expired; plan the operation anew"
    )


def settled(planned: Planned, bench: Workbench) -> Planned:
    """The committed snapshot behind a plan: what is planned on a snapshot of the same commit is planned on what that one
    was built on first. In a later attempt the commit's own snapshots come after what others did meanwhile.
    """
    found = planned.snapshot_id
    while found is not None and found in bench.first_parents:
        found = bench.first_parents[found]
    return replace(planned, snapshot_id=found)


def last_of_others(parent: Parent) -> Snapshot | None:
    """The newest snapshot that the commit builds on and has not made itself."""
    found = parent.snapshot
    while found is not None and found.snapshot_id in parent.bench.first_parents:
        before = found.parent_snapshot_id
        found = None if before is None else parent.metadata.snapshot_by_id(before)
    return found


class Since:
    """The files that other writers added and removed since an operation was planned."""

    def __init__(self, parent: Parent, planned: Planned) -> None:
        if not isinstance(planned, Planned):
            raise InvalidInputError(
                f"{planned!r} is not what an operation is planned on; use Planned.on(table.metadata)"
            )
        self._view = parent
        found = snapshots_since(parent.metadata, parent.snapshot, settled(planned, parent.bench))
        self.snapshots = [each for each in found if each.snapshot_id not in parent.bench.first_parents]

    def added_data(self, may_hold: Callable[[ManifestFile], bool], wanted: Wanted) -> Iterator[ManifestColumns]:
        """Data files that were added. Those of rewrites hold no new rows and are left out."""
        return self._entries(ManifestContent.DATA, EntryStatus.ADDED, may_hold, wanted, _NOT_REWRITES)

    def removed_data(
        self,
        may_hold: Callable[[ManifestFile], bool],
        wanted: Wanted = WITHOUT_METRICS,
        *,
        by_rewrites: bool = False,
    ) -> Iterator[ManifestColumns]:
        """Data files that were removed. Rows of files that were rewritten are still there: those count only if asked for."""
        passed_over = () if by_rewrites else _NOT_REWRITES
        return self._entries(ManifestContent.DATA, EntryStatus.DELETED, may_hold, wanted, passed_over)

    def added_deletes(
        self,
        may_hold: Callable[[ManifestFile], bool],
        wanted: Wanted = WITHOUT_METRICS,
        *,
        by_updates: bool = False,
    ) -> Iterator[ManifestColumns]:
        """Delete files that were added. Those of rewrites delete nothing new and are left out.

        With `by_updates`, only those of commits that added rows too: a plain delete can be repeated without harm.
        """
        passed_over = (Operation.REPLACE, Operation.DELETE) if by_updates else _NOT_REWRITES
        return self._entries(ManifestContent.DELETES, EntryStatus.ADDED, may_hold, wanted, passed_over)

    def _entries(
        self,
        content: ManifestContent,
        status: EntryStatus,
        may_hold: Callable[[ManifestFile], bool],
        wanted: Wanted,
        passed_over: tuple[Operation, ...],
    ) -> Iterator[ManifestColumns]:
        parent = self._view
        for snapshot in self.snapshots:
            if snapshot.operation in passed_over:
                continue
            for manifest in manifests_of(snapshot, parent.metadata, parent.bench):
                is_new = manifest.added_snapshot_id == snapshot.snapshot_id and manifest.content is content
                has_some = manifest.has_added_files if status is EntryStatus.ADDED else manifest.has_deleted_files
                if not is_new or not has_some or not may_hold(manifest):
                    continue
                columns = read_entries(manifest, parent.metadata, parent.bench, wanted)
                wanted_status = columns.column("status").to_numpy() == int(status)
                by_it = columns.column("snapshot_id").to_numpy(zero_copy_only=False) == snapshot.snapshot_id
                found = columns.filter(wanted_status & by_it)
                if len(found):
                    yield found
