"""Low-level changes of files, for callers that write files themselves."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from icefloe import commit, manifests as mf, metadata as md

P = ParamSpec("P")


def _adds(
    operation: Callable[Concatenate[md.TableMetadata, P], commit.SnapshotOperation],
) -> Callable[Concatenate["UpdateSnapshot", P], md.Snapshot | None]:
    """Return a method with the parameters of an operation, except for the metadata, that commits it."""

    @wraps(operation)
    def add(self: "UpdateSnapshot", /, *arguments: P.args, **options: P.kwargs) -> md.Snapshot | None:
        return self.add(operation(self.metadata, *arguments, **options))

    _, *parameters = inspect.signature(operation).parameters.values()
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    vars(add)["__signature__"] = inspect.Signature([own, *parameters], return_annotation=md.Snapshot | None)
    return add


class UpdateSnapshot:
    """File changes on one branch. Each method creates and returns a snapshot; None if nothing changed.

    In a transaction this is the snapshot that will be committed unless there are concurrent commits. `planned` is the
    snapshot that an operation was planned on, with its isolation level; see `Planned.on`.
    """

    def __init__(
        self, metadata: md.TableMetadata, target: commit.Target, submit: Callable[[commit.Change], md.Snapshot | None]
    ) -> None:
        self.metadata = metadata
        self._target = target
        self._submit = submit

    def add(self, operation: commit.SnapshotOperation) -> md.Snapshot | None:
        """Run any operation on the branch."""
        return self._submit(commit.SnapshotChange(operation, self._target))

    overwrite = _adds(commit.Overwrite)
    replace_partitions = _adds(commit.ReplacePartitions)
    rewrite_files = _adds(commit.RewriteFiles)
    row_delta = _adds(commit.RowDelta)

    def fast_append(self, files: commit.FilesInput, *, check_duplicates: bool = True) -> md.Snapshot | None:
        """Append data files in new manifests, without merging manifests."""
        return self.add(commit.Append(self.metadata, files, check_duplicates=check_duplicates))

    def merge_append(self, files: commit.FilesInput, *, check_duplicates: bool = True) -> md.Snapshot | None:
        """Append data files, and merge small manifests if there are many."""
        return self.add(commit.Append(self.metadata, files, merge=True, check_duplicates=check_duplicates))

    def delete(self, row_filter: commit.FilterInput, *, case_sensitive: bool = True) -> md.Snapshot | None:
        """Remove all files with matching rows; fails if only some rows of a file match."""
        return self.overwrite(None, row_filter=row_filter, case_sensitive=case_sensitive)

    def delete_files(self, files: commit.NamedInput, planned: commit.Planned) -> md.Snapshot | None:
        """Remove these data files, which must all be in the table."""
        return self.overwrite(planned, remove=files)

    def rewrite_manifests(
        self,
        content: mf.ManifestContent | None = None,
        choose: Callable[[mf.ManifestFile], bool] | None = None,
    ) -> md.Snapshot | None:
        """Rewrite manifests to the target size, sorted by partition; the set of files stays the same.

        Rewrites data manifests, delete manifests or both; does nothing if they are already in good shape.
        """
        return self.add(commit.RewriteManifests(content, choose))
