"""Replace partitions: the files that come take the place of all that was in their partitions before."""

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit import conflicts
from icefloe.commit.added import FilesInput, check_not_live, fitted, group_files
from icefloe.commit.new_manifests import merge_manifests, remove_dangling, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet
from icefloe.commit.producer import Delta
from icefloe.metadata import summary as totals


class ReplacePartitions:
    """Adds data files and removes all others of their partitions; without partitions, all others of the table.

    `planned` is what the new rows were made from, if they were made from rows of the table; None applies to any state.
    """

    def __init__(
        self,
        metadata: md.TableMetadata,
        files: FilesInput,
        planned: conflicts.Planned | None,
        *,
        check_duplicates: bool = True,
    ) -> None:
        self.added = group_files(files, metadata, mf.ManifestContent.DATA)
        if not any(len(group.columns) for group in self.added):
            raise errors.InvalidInputError("no files are given, so no partition can be replaced")
        self._is_whole_table = any(group.spec.is_unpartitioned for group in self.added)
        self._planned = planned
        self._check_duplicates = check_duplicates

    def apply(self, parent: Parent) -> Delta:
        """The manifests without all other files of the partitions, and with the new ones."""
        groups = fitted(parent.metadata, self.added)
        added = [group.columns for group in groups]
        partitions = PartitionSet.of(added)
        if self._planned is not None:
            since = conflicts.Since(parent, self._planned)
            scope = self._scope(parent, partitions)
            if self._planned.is_serializable:
                since.check_no_new_data(scope)
            since.check_no_new_deletes(scope)
            since.check_no_removed_data(scope)
        replaced = self._scope(parent, partitions, data_only=True)
        data = remove_files(parent, mf.ManifestContent.DATA, replaced.may_be_in, replaced.might)
        if self._check_duplicates:
            check_not_live(parent, groups)
        deletes = remove_dangling(parent, data.removed)
        manifests = merge_manifests(parent, write_added(parent, self, groups), data, deletes)
        return Delta(md.Operation.OVERWRITE, manifests, added, properties={totals.REPLACE_PARTITIONS: "true"})

    def _scope(self, parent: Parent, partitions: PartitionSet, *, data_only: bool = False) -> conflicts.Scope:
        if self._is_whole_table:
            return conflicts.row_scope(parent.metadata)
        return conflicts.PartitionScope(partitions, parent.metadata, data_only=data_only)
