"""The changes of files under their names, each one call: the door for who brings files of their own."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from icefloe import commit, manifests as mf, metadata as md

P = ParamSpec("P")


def _adds(
    operation: Callable[Concatenate[md.TableMetadata, P], commit.SnapshotOperation],
) -> Callable[Concatenate["UpdateSnapshot", P], md.Snapshot | None]:
    """A method that takes what the operation takes, except for the metadata, and does it."""

    @wraps(operation)
    def add(self: "UpdateSnapshot", /, *arguments: P.args, **options: P.kwargs) -> md.Snapshot | None:
        return self.add(operation(self.metadata, *arguments, **options))

    _, *parameters = inspect.signature(operation).parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    vars(add)["__signature__"] = inspect.Signature([own, *parameters], return_annotation=md.Snapshot | None)
    return add


class UpdateSnapshot:
    """Changes of the files of one branch. Each method makes one snapshot and returns it; None if nothing changed.

    In a transaction it is the snapshot as it will be, if no other writer is faster. `planned` is the snapshot that an
    operation was planned on, with the isolation that it wants; see `Planned.on`.
    """

    def __init__(
        self, metadata: md.TableMetadata, target: commit.Target, submit: Callable[[commit.Change], md.Snapshot | None]
    ) -> None:
        self.metadata = metadata
        self._target = target
        self._submit = submit

    def add(self, operation: commit.SnapshotOperation) -> md.Snapshot | None:
        """Do any operation, on the branch of this door."""
        return self._submit(commit.SnapshotChange(operation, self._target))

    overwrite = _adds(commit.Overwrite)
    replace_partitions = _adds(commit.ReplacePartitions)
    rewrite_files = _adds(commit.RewriteFiles)
    row_delta = _adds(commit.RowDelta)

    def fast_append(self, files: commit.FilesInput, *, check_duplicates: bool = True) -> md.Snapshot | None:
        """Add data files by new manifests alone."""
        return self.add(commit.Append(self.metadata, files, check_duplicates=check_duplicates))

    def merge_append(self, files: commit.FilesInput, *, check_duplicates: bool = True) -> md.Snapshot | None:
        """Add data files, and merge small manifests when there are many."""
        return self.add(commit.Append(self.metadata, files, merge=True, check_duplicates=check_duplicates))

    def delete(self, row_filter: commit.FilterInput, *, case_sensitive: bool = True) -> md.Snapshot | None:
        """Remove all files of matching rows; a file with other rows, too, is an error."""
        return self.overwrite(None, row_filter=row_filter, case_sensitive=case_sensitive)

    def delete_files(self, files: commit.NamedInput, planned: commit.Planned) -> md.Snapshot | None:
        """Remove these data files, which must all be in the table."""
        return self.overwrite(planned, remove=files)

    def rewrite_manifests(
        self,
        content: mf.ManifestContent | None = None,
        choose: Callable[[mf.ManifestFile], bool] | None = None,
    ) -> md.Snapshot | None:
        """Write manifests anew, of the right size and sorted by partition; no file comes or goes.

        Those of one kind, or of both; nothing happens if they are good already.
        """
        return self.add(commit.RewriteManifests(content, choose))
