"""Replace partitions: the files that come take the place of all that was in their partitions before."""

from collections.abc import Sequence

from icefloe.commit.added import FileGroup, FilesInput, check_not_live, fitted, group_files
from icefloe.commit.conflicts import (
    PartitionScope,
    Planned,
    Scope,
    Since,
    check_no_new_data,
    check_no_new_deletes,
    check_no_removed_data,
)
from icefloe.commit.matching import everything
from icefloe.commit.new_manifests import merge_manifests, remove_dangling, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet
from icefloe.commit.producer import Delta
from icefloe.errors import InvalidInputError
from icefloe.manifests import ManifestContent
from icefloe.metadata import Operation, TableMetadata, summary as totals


class ReplacePartitions:
    """Adds data files and removes all others of their partitions; without partitions, all others of the table.

    `planned` is what the new rows were made from, if they were made from rows of the table; None applies to any state.
    """

    def __init__(
        self, metadata: TableMetadata, files: FilesInput, planned: Planned | None, *, check_duplicates: bool = True
    ) -> None:
        self._groups = group_files(files, metadata, ManifestContent.DATA)
        if not any(len(group.columns) for group in self._groups):
            raise InvalidInputError("no files are given, so that no partition can be replaced")
        self._is_whole_table = any(group.spec.is_unpartitioned for group in self._groups)
        self._planned = planned
        self._check_duplicates = check_duplicates

    @property
    def added(self) -> Sequence[FileGroup]:
        """The files that come."""
        return self._groups

    def apply(self, parent: Parent) -> Delta:
        """The manifests without all other files of the partitions, and with the new ones."""
        groups = fitted(parent.metadata, self._groups)
        partitions = PartitionSet.of([group.columns for group in groups])
        scope: Scope = (
            everything(parent.metadata)
            if self._is_whole_table
            else PartitionScope(partitions, parent.metadata, data_only=True)
        )
        self._check_conflicts(parent, partitions)
        data = remove_files(parent, parent.manifests(ManifestContent.DATA), scope.may_be_in, scope.might)
        if self._check_duplicates:
            check_not_live(parent, groups)
        deletes = remove_dangling(parent, parent.manifests(ManifestContent.DELETES), data.removed)
        new = write_added(parent, self, groups)
        merged = merge_manifests(parent, (*new, *data.manifests, *deletes.manifests))
        return Delta(
            Operation.OVERWRITE,
            merged.manifests,
            [group.columns for group in groups],
            (*data.removed, *deletes.removed),
            replaced_manifests=data.replaced + deletes.replaced + merged.replaced,
            notes={totals.REPLACE_PARTITIONS: "true"},
        )

    def _check_conflicts(self, parent: Parent, partitions: PartitionSet) -> None:
        if self._planned is None:
            return
        scope: Scope = (
            everything(parent.metadata) if self._is_whole_table else PartitionScope(partitions, parent.metadata)
        )
        since = Since(parent, self._planned)
        if self._planned.is_serializable:
            check_no_new_data(since, scope)
        check_no_new_deletes(since, scope)
        check_no_removed_data(since, scope)
