"""Which concurrent commits an operation cannot live with; each check is as narrow as what the operation touches."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow.compute as pc

from icefloe.commit.history import Since
from icefloe.commit.located import LocatedFile
from icefloe.commit.matching import RowFilter
from icefloe.commit.named_files import NamedFiles
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet
from icefloe.errors import ValidationError
from icefloe.manifests import WITHOUT_METRICS, FileContent, ManifestColumns, ManifestFile, Wanted
from icefloe.metadata import TableMetadata
from icefloe.storage import identity


class Scope(Protocol):
    """Where an operation minds changes: rows of a predicate, or partitions."""

    @property
    def wanted(self) -> Wanted:
        """The columns that are needed to tell."""

    def may_be_in(self, manifest: ManifestFile) -> bool:
        """Whether the manifest may hold a file of the scope."""

    def might(self, files: ManifestColumns) -> Mask:
        """Which files may be in the scope."""


class PartitionScope:
    """Some partitions; deletes without a partition are about all of them."""

    wanted = WITHOUT_METRICS

    def __init__(self, partitions: PartitionSet, metadata: TableMetadata, *, data_only: bool = False) -> None:
        self._partitions = partitions
        without = () if data_only else metadata.partition_specs
        self._global = {each.spec_id for each in without if each.is_unpartitioned}

    def may_be_in(self, manifest: ManifestFile) -> bool:
        """Whether the manifest may hold a file of the partitions."""
        return manifest.partition_spec_id in self._global or self._partitions.may_be_in(manifest)

    def might(self, files: ManifestColumns) -> Mask:
        """Which files are in the partitions, or in none."""
        found = self._partitions.mask(files)
        if files.spec_id in self._global:
            # Data files of an unpartitioned spec lie in no partition of another; equality deletes reach everywhere.
            is_equality = pc.equal(files.column("content"), int(FileContent.EQUALITY_DELETES))
            found = found | is_equality.to_numpy(zero_copy_only=False)
        return found

    def __str__(self) -> str:
        return f"{len(self._partitions)} partitions"


def check_no_new_data(since: Since, scope: Scope) -> None:
    """No data file came that may hold a row of the scope."""
    _check_none(since.added_data(scope.may_be_in, scope.wanted), scope, "data file {} was added")


def check_no_removed_data(since: Since, scope: Scope) -> None:
    """No data file went that may have held a row of the scope."""
    _check_none(since.removed_data(scope.may_be_in, scope.wanted), scope, "data file {} was removed")


def check_no_file_left(since: Since, partitions: PartitionSet, metadata: TableMetadata) -> None:
    """No data file went from these partitions, not even by a rewrite: deletes by position might be about it."""
    scope = PartitionScope(partitions, metadata, data_only=True)
    _check_none(since.removed_data(scope.may_be_in, scope.wanted, by_rewrites=True), scope, "data file {} was removed")


def check_no_new_deletes(since: Since, scope: Scope, *, by_updates: bool = False) -> None:
    """No delete file came that may delete a row of the scope; with `by_updates`, none of a commit that added rows too."""
    found = since.added_deletes(scope.may_be_in, scope.wanted, by_updates=by_updates)
    _check_none(found, scope, "delete file {} was added")


def check_no_new_deletes_for(
    since: Since, files: Sequence[ManifestColumns], metadata: TableMetadata, *, ignore_equality: bool = False
) -> None:
    """No delete file came that may delete a row of these data files.

    Vectors and position deletes of one file are told by its path, others by the partition. Equality deletes may be
    ignored when the files are replaced by ones of an older sequence number, which they still reach.
    """
    if not files:
        return
    partitions = PartitionSet.of(files)
    scope = PartitionScope(partitions, metadata)
    paths = NamedFiles.of(files, metadata)
    for deletes in since.added_deletes(scope.may_be_in):
        contents = deletes.column("content").to_numpy(zero_copy_only=False)
        is_equality = contents == int(FileContent.EQUALITY_DELETES)
        about_one = deletes.column("referenced_data_file").is_valid().to_numpy(zero_copy_only=False)
        concerned = np.where(about_one, paths.mask(deletes, "referenced_data_file"), scope.might(deletes))
        if ignore_equality:
            concerned &= ~is_equality
        if concerned.any():
            path = deletes.column("file_path").filter(concerned.tolist())[0].as_py()
            raise ValidationError(
                f"delete file {path!r} was added by another commit for a data file that this commit removes; plan it anew"
            )


def check_no_new_unordered_deletes(
    since: Since, parent: Parent, files: Mapping[str, LocatedFile], *, by_updates: bool
) -> None:
    """No delete file came for these data files of which nobody can tell whether it deletes the same rows.

    Vectors can tell, and are compared by their positions elsewhere. With `by_updates` only deletes of updates count.
    """
    partitions = {(each.spec_id, each.partition) for each in files.values()}
    unpartitioned = {each.spec_id for each in parent.metadata.partition_specs if each.is_unpartitioned}
    for deletes in since.added_deletes(lambda _: True, by_updates=by_updates):
        for file in deletes.files():
            is_equality = file.content is FileContent.EQUALITY_DELETES
            if file.is_deletion_vector:
                continue
            if file.referenced_data_file is not None:
                concerned = identity(file.referenced_data_file) in files
            else:
                concerned = (file.spec_id, file.partition) in partitions
                concerned = concerned or (is_equality and file.spec_id in unpartitioned)
            if concerned:
                raise ValidationError(
                    f"delete file {file.file_path!r} was added by another commit, and may delete rows that this commit"
                    " changes; plan it anew"
                )


def _check_none(found: Iterable[ManifestColumns], scope: Scope, what: str) -> None:
    for columns in found:
        concerned = scope.might(columns)
        if concerned.any():
            place = int(np.flatnonzero(concerned)[0])
            path = columns.column("file_path")[place].as_py()
            raise ValidationError(
                f"{what.format(repr(path))} by another commit, and may concern {scope}; plan the operation anew"
            )


def row_scope(metadata: TableMetadata, row_filter: RowFilter | None) -> RowFilter:
    """The filter bound to the metadata that is committed to; None stands for all rows."""
    return RowFilter.of(True, metadata) if row_filter is None else RowFilter(metadata, row_filter.bound)
