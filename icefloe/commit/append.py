"""Append: data files are added and nothing else changes, so it applies to any state of the table.

A fast append adds manifests; a merge append also merges small ones when there are many (`commit.manifest.*`).
"""

from collections.abc import Sequence

from icefloe.commit.added import FileGroup, FilesInput, check_not_live, fitted, group_files, note_paths
from icefloe.commit.new_manifests import merge_manifests, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.producer import Delta
from icefloe.manifests import ManifestContent
from icefloe.metadata import Operation, TableMetadata


class Append:
    """Adds data files. With `check_duplicates`, paths that are in the table already are an error."""

    def __init__(
        self, metadata: TableMetadata, files: FilesInput, *, merge: bool = False, check_duplicates: bool = True
    ) -> None:
        self._groups = group_files(files, metadata, ManifestContent.DATA)
        self._merge = merge
        self._check_duplicates = check_duplicates

    @property
    def added(self) -> Sequence[FileGroup]:
        """The files that come."""
        return self._groups

    def apply(self, parent: Parent) -> Delta:
        """The parent's manifests and those of the new files."""
        groups = fitted(parent.metadata, self._groups)
        if self._check_duplicates:
            check_not_live(parent, groups)
        new = write_added(parent, self, groups)
        if self._check_duplicates:
            note_paths(parent, new, groups)
        kept = tuple(each for each in parent.manifests() if each.has_live_files)
        added = [group.columns for group in groups]
        if not self._merge:
            return Delta(Operation.APPEND, (*new, *kept), added)
        merged = merge_manifests(parent, (*new, *kept))
        return Delta(Operation.APPEND, merged.manifests, added, replaced_manifests=merged.replaced)
