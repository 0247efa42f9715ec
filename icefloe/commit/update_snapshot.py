"""The operations on files under their names, each one call: what a transaction or a table hands out for low-level work."""

from collections.abc import Callable

from icefloe.commit.added import FilesInput
from icefloe.commit.append import Append
from icefloe.commit.change import Change
from icefloe.commit.producer import SnapshotChange, SnapshotOperation, Target
from icefloe.metadata.snapshot import Snapshot
from icefloe.metadata.table import TableMetadata

Submit = Callable[[Change], Snapshot | None]
"""Takes a change, and says which snapshot it made, if any."""


class UpdateSnapshot:
    """Changes of the files of one branch. Each method is one snapshot; it is returned once it is committed."""

    def __init__(self, metadata: TableMetadata, target: Target, submit: Submit) -> None:
        self._metadata = metadata
        self._target = target
        self._submit = submit

    def fast_append(self, files: FilesInput, *, check_duplicates: bool = True) -> Snapshot | None:
        """Add data files by new manifests alone."""
        return self._do(Append(files, self._metadata, check_duplicates=check_duplicates))

    def merge_append(self, files: FilesInput, *, check_duplicates: bool = True) -> Snapshot | None:
        """Add data files, and merge small manifests when there are many."""
        return self._do(Append(files, self._metadata, merge=True, check_duplicates=check_duplicates))

    def _do(self, operation: SnapshotOperation) -> Snapshot | None:
        return self._submit(SnapshotChange(operation, self._target))
