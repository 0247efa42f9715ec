"""Rewrite: files are replaced by others with the same rows; compaction, sorting, another format, deletes applied.

The rows before must be the rows after, as far as counts can tell. New data files carry the sequence number of the snapshot
that they were read from, so that deletes that came since still reach their rows (spec: Sequence Numbers).
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.added import (
    FileGroup,
    FilesInput,
    check_not_live,
    check_still_taken,
    fitted,
    group_files,
    vector_mask,
    with_sequence_number,
)
from icefloe.commit.conflicts import PartitionScope, Planned, Since, check_no_new_deletes_for, settled
from icefloe.commit.named_files import NamedDeletes, NamedFiles, NamedInput, locate
from icefloe.commit.new_manifests import Filtered, merge_manifests, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet
from icefloe.commit.producer import Delta
from icefloe.commit.vectors import check_not_revived, check_one_for_each
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.manifests import WITHOUT_METRICS, ManifestColumns, ManifestContent
from icefloe.metadata import Operation, TableMetadata
from icefloe.storage.identities import identities
from icefloe.versions import Feature, allows


class RewriteFiles:
    """Replaces data files, or delete files, by others of the same meaning.

    `planned` is the snapshot that the replaced files were read from; its sequence number goes into the new data files.
    New delete files get `deletes_sequence_number`, or the new snapshot's.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        planned: Planned,
        *,
        remove: NamedInput = (),
        add: FilesInput = (),
        remove_deletes: NamedInput = (),
        add_deletes: FilesInput = (),
        deletes_sequence_number: int | None = None,
        check_duplicates: bool = True,
    ) -> None:
        self._remove = NamedFiles.of(remove, metadata)
        self._remove_deletes = NamedDeletes.of(remove_deletes, metadata)
        self._planned = planned
        self._check_duplicates = check_duplicates
        self._data = group_files(add, metadata, ManifestContent.DATA)
        deletes = group_files(add_deletes, metadata, ManifestContent.DELETES)
        self._deletes = tuple(with_sequence_number(each, deletes_sequence_number) for each in deletes)
        if not len(self._remove) and not len(self._remove_deletes):
            raise InvalidInputError("a rewrite names no file to replace")
        if _rows(self._data) and not len(self._remove):
            raise InvalidInputError("a rewrite adds data files and replaces none; it would add rows")
        if self._deletes and not len(self._remove_deletes):
            raise InvalidInputError("a rewrite adds delete files and replaces none; it would delete rows")

    @property
    def added(self) -> Sequence[FileGroup]:
        """The files that come."""
        return (*self._data, *self._deletes)

    def apply(self, parent: Parent) -> Delta:
        """The manifests with the new files in place of the old ones."""
        check_still_taken(parent.metadata, self._deletes)
        data = remove_files(parent, parent.manifests(ManifestContent.DATA), self._remove.may_be_in, self._remove.mask)
        self._remove.check_found(data.removed, "data file")
        since = Since(parent, self._planned)
        number = self._number(parent.metadata)
        # With files of its own commit among the replaced ones, no one number can be right for all of them.
        reaches = number is not None and settled(self._planned, parent.bench) == self._planned
        check_no_new_deletes_for(since, data.removed, parent.metadata, ignore_equality=reaches)
        deletes = self._remaining_deletes(parent, data)
        self._check_rows(parent, data)
        added = fitted(parent.metadata, self._data)
        if self._check_duplicates:
            check_not_live(parent, added)
        self._check_vectors(parent, deletes)
        carrying = tuple(with_sequence_number(each, number) for each in added)
        added_deletes = fitted(parent.metadata, self._deletes)
        new = write_added(parent, (self, number), (*carrying, *added_deletes))
        merged = merge_manifests(parent, (*new, *data.manifests, *deletes.manifests))
        return Delta(
            Operation.REPLACE,
            merged.manifests,
            [group.columns for group in (*added, *added_deletes)],
            (*data.removed, *deletes.removed),
            replaced_manifests=data.replaced + deletes.replaced + merged.replaced,
        )

    def _number(self, metadata: TableMetadata) -> int | None:
        """The sequence number of the planned snapshot; v1 has none."""
        if not allows(metadata.format_version, Feature.SEQUENCE_NUMBERS) or self._planned.snapshot_id is None:
            return None
        return metadata.snapshot(self._planned.snapshot_id).sequence_number

    def _remaining_deletes(self, parent: Parent, data: Filtered) -> Filtered:
        gone = NamedFiles.of(data.removed, parent.metadata)

        def choose(files: ManifestColumns) -> Mask:
            return self._remove_deletes.mask(files) | gone.mask(files, "referenced_data_file")

        found = remove_files(parent, parent.manifests(ManifestContent.DELETES), lambda _: True, choose)
        self._remove_deletes.check_found(found.removed)
        about = (identities(each.column("referenced_data_file")) for each in self._new_vectors())
        renewed = [path for paths in about for path in paths.to_pylist()]
        check_not_revived(found.removed, gone.paths.to_pylist(), renewed)
        return found

    def _check_rows(self, parent: Parent, data: Filtered) -> None:
        """Rows before are rows after: exactly, if only vectors delete rows of the replaced files, else at most as many."""
        before = sum(int(pc.sum(each.column("record_count")).as_py()) for each in data.removed)
        after = _rows(self._data)
        if not data.removed:
            return
        deleted, is_exact = self._deleted_rows(parent, data)
        live = before - deleted
        if after > live or (is_exact and after != live):
            wanted = f"{live}" if is_exact else f"at most {live}"
            raise ValidationError(
                f"a rewrite puts {after} rows in place of {wanted}: {before} in the replaced files less {deleted} deleted"
            )

    def _deleted_rows(self, parent: Parent, data: Filtered) -> tuple[int, bool]:
        scope = PartitionScope(PartitionSet.of(data.removed), parent.metadata)
        gone = NamedFiles.of(data.removed, parent.metadata)
        deleted, is_exact = 0, True
        for manifest in parent.manifests(ManifestContent.DELETES):
            if not manifest.has_live_files or not scope.may_be_in(manifest):
                continue
            columns = parent.read(manifest, WITHOUT_METRICS)
            columns = columns.filter(columns.is_live)
            is_vector = vector_mask(columns).to_numpy(zero_copy_only=False)
            ours = is_vector & gone.mask(columns, "referenced_data_file")
            deleted += int(np.sum(columns.column("record_count").to_numpy(zero_copy_only=False)[ours]))
            is_exact &= not (scope.might(columns) & ~is_vector).any()
        return deleted, is_exact

    def _new_vectors(self) -> list[ManifestColumns]:
        found = [group.columns.filter(vector_mask(group.columns)) for group in self._deletes]
        return [each for each in found if len(each)]

    def _check_vectors(self, parent: Parent, deletes: Filtered) -> None:
        new = self._new_vectors()
        if not new:
            return
        paths = pa.concat_arrays([each.column("referenced_data_file") for each in new])
        locate(parent, paths.to_pylist(), PartitionSet.of(new), [])
        kept = [
            parent.read(each, WITHOUT_METRICS) for each in deletes.manifests if each.content is ManifestContent.DELETES
        ]
        check_one_for_each([*new, *(each.filter(each.is_live) for each in kept)])


def _rows(groups: tuple[FileGroup, ...]) -> int:
    return sum(int(pc.sum(each.columns.column("record_count"), min_count=0).as_py()) for each in groups)
