"""Cherry-pick: what one snapshot did is done again on a branch; for staged snapshots that is how they are published."""

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit import conflicts
from icefloe.commit.added import FileGroup, check_not_live, group_files
from icefloe.commit.change import Prepared, Workbench
from icefloe.commit.named_files import NamedFiles
from icefloe.commit.new_manifests import NewManifests, remove_dangling, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet
from icefloe.commit.producer import Delta, SnapshotChange, Target, check_not_published, head_of
from icefloe.commit.refs import replace_ref
from icefloe.metadata import requirements as req, summary as totals, updates as up


class CherryPick:
    """Appends and replacements of partitions can be picked; any other snapshot only if it comes right after the head."""

    def __init__(self, snapshot_id: int, to_branch: str = md.MAIN_BRANCH) -> None:
        self._picked_id = snapshot_id
        self._branch = to_branch
        self._change = SnapshotChange(_Pick(snapshot_id, to_branch), Target(to_branch))

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The id of the new snapshot, if there has to be one."""
        return self._change.snapshot_ids

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """The branch at the picked snapshot if that follows its head, else at a new one that does the same."""
        picked = metadata.snapshot(self._picked_id)
        head = head_of(metadata, self._branch)
        _check_not_there(metadata, picked, head)
        if picked.parent_snapshot_id != (None if head is None else head.snapshot_id):
            return self._change.prepare(metadata, bench)
        if self._branch in metadata.refs:
            return replace_ref(self._branch, md.SnapshotRefType.BRANCH, picked.snapshot_id).prepare(metadata, bench)
        moved = up.SetSnapshotRefUpdate(self._branch, md.branch(picked.snapshot_id))
        return Prepared((moved,), (req.AssertRefSnapshotId(self._branch, None),))


class _Pick:
    def __init__(self, snapshot_id: int, to_branch: str) -> None:
        self._picked_id = snapshot_id
        self._branch = to_branch

    added: tuple[FileGroup, ...] = ()
    """None: what comes is of a snapshot, which keeps its specs."""

    def apply(self, parent: Parent) -> Delta:
        picked = parent.metadata.snapshot(self._picked_id)
        summary = {} if picked.summary is None else picked.summary.properties
        is_replacement = picked.operation == md.Operation.OVERWRITE and summary.get(totals.REPLACE_PARTITIONS) == "true"
        if picked.operation != md.Operation.APPEND and not is_replacement:
            raise errors.ValidationError(
                f"snapshot {picked.snapshot_id} cannot be cherry-picked: its operation is {picked.operation}, neither an append nor a"
                f" replacement of partitions, and it does not directly follow the head of {self._branch!r}"
            )
        properties = {totals.SOURCE_SNAPSHOT_ID: str(picked.snapshot_id)}
        if totals.WAP_ID in summary:
            check_not_published(parent.metadata, summary[totals.WAP_ID], self._branch)
            properties[totals.PUBLISHED_WAP_ID] = summary[totals.WAP_ID]
        groups = parent.bench.remember(("picked", self), lambda: self._added(parent, picked))
        added = [group.columns for group in groups]
        if not is_replacement:
            check_not_live(parent, groups)
            manifests = NewManifests((*write_added(parent, self, groups), *parent.manifests()))
            return Delta(md.Operation.APPEND, manifests, added, properties=properties)
        # The partitions must be as they were when the picked snapshot replaced them.
        since = conflicts.Since(parent, conflicts.Planned(picked.parent_snapshot_id))
        since.check_no_new_data(conflicts.PartitionScope(PartitionSet.of(added), parent.metadata))
        removed = conflicts.entries_of(parent, picked, mf.ManifestContent.DATA, mf.EntryStatus.DELETED, mf.EVERYTHING)
        named = NamedFiles.of(list(removed), parent.metadata)
        data = remove_files(parent, mf.ManifestContent.DATA, named.may_be_in, named.mask)
        named.check_removed(data.removed, "data file")
        check_not_live(parent, groups)
        deletes = remove_dangling(parent, data.removed)
        manifests = NewManifests(
            (*write_added(parent, self, groups), *data.manifests, *deletes.manifests),
            (*data.removed, *deletes.removed),
            data.replaced + deletes.replaced,
        )
        properties[totals.REPLACE_PARTITIONS] = "true"
        return Delta(md.Operation.OVERWRITE, manifests, added, properties=properties)

    @staticmethod
    def _added(parent: Parent, picked: md.Snapshot) -> tuple[FileGroup, ...]:
        added = conflicts.entries_of(parent, picked, mf.ManifestContent.DATA, mf.EntryStatus.ADDED, mf.EVERYTHING)
        return group_files(list(added), parent.metadata, mf.ManifestContent.DATA, are_of_table=True)


def _check_not_there(metadata: md.TableMetadata, picked: md.Snapshot, head: md.Snapshot | None) -> None:
    for each in () if head is None else metadata.ancestors(head.snapshot_id):
        if each.snapshot_id == picked.snapshot_id:
            raise errors.ValidationError(
                f"snapshot {picked.snapshot_id} cannot be cherry-picked: it is already in the branch"
            )
        if each.summary is not None and each.summary.get(totals.SOURCE_SNAPSHOT_ID) == str(picked.snapshot_id):
            raise errors.ValidationError(
                f"snapshot {picked.snapshot_id} cannot be cherry-picked: it already was, as {each.snapshot_id}"
            )
