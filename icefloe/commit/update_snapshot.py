"""The operations on files under their names, each one call: what a transaction or a table hands out for low-level work."""

from collections.abc import Callable, Mapping, Sequence

from icefloe.commit.added import FilesInput
from icefloe.commit.append import Append
from icefloe.commit.change import Change
from icefloe.commit.history import Planned
from icefloe.commit.matching import FilterInput
from icefloe.commit.named_files import NamedInput
from icefloe.commit.overwrite import Overwrite
from icefloe.commit.producer import SnapshotChange, SnapshotOperation, Target
from icefloe.commit.replace_partitions import ReplacePartitions
from icefloe.commit.rewrite_files import RewriteFiles
from icefloe.commit.rewrite_manifests import RewriteManifests
from icefloe.commit.row_delta import RowDelta
from icefloe.formats.deletion_vectors import DeletionVector, Positions
from icefloe.manifests.values import ManifestContent, ManifestFile
from icefloe.metadata.snapshot import Snapshot
from icefloe.metadata.table import TableMetadata

Submit = Callable[[Change], Snapshot | None]
"""Takes a change, and says which snapshot it made, if any."""


class UpdateSnapshot:
    """Changes of the files of one branch. Each method makes one snapshot and returns it; None if nothing changed.

    In a transaction it is the snapshot as it will be, if no other writer is faster. `planned` is the snapshot that an
    operation was planned on, with the isolation that it wants; see `Planned.on`.
    """

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

    def overwrite(
        self,
        planned: Planned | None,
        *,
        add: FilesInput = (),
        row_filter: FilterInput = False,
        remove: NamedInput = (),
        conflict_filter: FilterInput | None = None,
        case_sensitive: bool = True,
        check_duplicates: bool = True,
        check_added_match: bool = False,
        relies_on_read: bool = False,
    ) -> Snapshot | None:
        """Remove data files, by a predicate that all their rows match or by name, and add others."""
        operation = Overwrite(
            self._metadata,
            planned,
            add=add,
            row_filter=row_filter,
            remove=remove,
            conflict_filter=conflict_filter,
            case_sensitive=case_sensitive,
            check_duplicates=check_duplicates,
            check_added_match=check_added_match,
            relies_on_read=relies_on_read,
        )
        return self._do(operation)

    def delete(self, row_filter: FilterInput, *, case_sensitive: bool = True) -> Snapshot | None:
        """Remove all files of matching rows; a file with other rows, too, is an error."""
        return self._do(Overwrite(self._metadata, None, row_filter=row_filter, case_sensitive=case_sensitive))

    def delete_files(
        self, files: NamedInput, planned: Planned, *, conflict_filter: FilterInput | None = None
    ) -> Snapshot | None:
        """Remove these data files, which must all be there."""
        return self._do(Overwrite(self._metadata, planned, remove=files, conflict_filter=conflict_filter))

    def replace_partitions(
        self, files: FilesInput, planned: Planned | None, *, check_duplicates: bool = True
    ) -> Snapshot | None:
        """Add data files in place of all others of their partitions."""
        return self._do(ReplacePartitions(files, self._metadata, planned, check_duplicates=check_duplicates))

    def row_delta(
        self,
        planned: Planned | None,
        *,
        add: FilesInput = (),
        deletes: FilesInput = (),
        vectors: Mapping[str, DeletionVector | Positions] | None = None,
        remove: NamedInput = (),
        remove_deletes: NamedInput = (),
        referenced: Sequence[str] = (),
        conflict_filter: FilterInput | None = None,
        case_sensitive: bool = True,
        check_duplicates: bool = True,
    ) -> Snapshot | None:
        """Add data files and delete rows of others, by delete files or by vectors."""
        operation = RowDelta(
            self._metadata,
            planned,
            add=add,
            deletes=deletes,
            vectors=vectors,
            remove=remove,
            remove_deletes=remove_deletes,
            referenced=referenced,
            conflict_filter=conflict_filter,
            case_sensitive=case_sensitive,
            check_duplicates=check_duplicates,
        )
        return self._do(operation)

    def rewrite_files(
        self,
        planned: Planned,
        *,
        remove: NamedInput = (),
        add: FilesInput = (),
        remove_deletes: NamedInput = (),
        add_deletes: FilesInput = (),
        deletes_sequence_number: int | None = None,
        check_duplicates: bool = True,
    ) -> Snapshot | None:
        """Replace files by others with the same rows."""
        operation = RewriteFiles(
            self._metadata,
            planned,
            remove=remove,
            add=add,
            remove_deletes=remove_deletes,
            add_deletes=add_deletes,
            deletes_sequence_number=deletes_sequence_number,
            check_duplicates=check_duplicates,
        )
        return self._do(operation)

    def rewrite_manifests(
        self,
        content: ManifestContent = ManifestContent.DATA,
        choose: Callable[[ManifestFile], bool] | None = None,
    ) -> Snapshot | None:
        """Write manifests anew, fewer and sorted by partition; no file comes or goes."""
        return self._do(RewriteManifests(content, choose))

    def _do(self, operation: SnapshotOperation) -> Snapshot | None:
        return self._submit(SnapshotChange(operation, self._target))
