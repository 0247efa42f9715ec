"""Append: data files are added and nothing else changes, so it applies to any state of the table.

A fast append adds manifests; a merge append also merges small ones when there are many (`commit.manifest.*`).
"""

from icefloe import manifests as mf, metadata as md
from icefloe.commit.added import FilesInput, check_not_live, fitted, group_files, note_paths
from icefloe.commit.new_manifests import NewManifests, merge_manifests, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.producer import Delta


class Append:
    """Adds data files. With `check_duplicates`, paths that are in the table already are an error."""

    def __init__(
        self, metadata: md.TableMetadata, files: FilesInput, *, merge: bool = False, check_duplicates: bool = True
    ) -> None:
        self.added = group_files(files, metadata, mf.ManifestContent.DATA)
        self._merge = merge
        self._check_duplicates = check_duplicates

    def apply(self, parent: Parent) -> Delta:
        """The parent's manifests and those of the new files."""
        groups = fitted(parent.metadata, self.added)
        if self._check_duplicates:
            check_not_live(parent, groups)
        new = write_added(parent, self, groups)
        if self._check_duplicates:
            note_paths(parent, new, groups)
        manifests = NewManifests((*new, *parent.manifests()))
        if self._merge:
            manifests = merge_manifests(parent, (), manifests)
        return Delta(md.Operation.APPEND, manifests, [group.columns for group in groups])
