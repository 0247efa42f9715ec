"""Rewrite: files are replaced by others with the same rows; compaction, sorting, another format, deletes applied.

The rows before must be the rows after, as far as counts can tell. New data files carry the sequence number of the snapshot
that they were read from, so that equality deletes that came since still reach their rows (spec: Sequence Numbers). Rows that
change their spec or partition escape such deletes all the same, or come in reach of others: that is a conflict. What vectors
deleted since then is deleted in the new files, in the same commit (`moved_rows`).
"""

from collections.abc import Sequence

import numpy as np

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit import added as new_files, conflicts, vectors
from icefloe.commit.moved_rows import DeletedSince, new_vectors, rows_of
from icefloe.commit.named_files import NamedDeletes, NamedFiles, NamedInput, locate
from icefloe.commit.new_manifests import NewManifests, merge_manifests, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet, as_mask, normal_paths
from icefloe.commit.producer import Delta
from icefloe.versions import Feature, allows


class RewriteFiles:
    """Replaces data files, or delete files, by others of the same meaning.

    `planned` is the snapshot that the replaced files were read from; its sequence number goes into the new data files, or,
    without `keeps_number`, that of the new snapshot, and then equality deletes that came since are a conflict. New delete
    files get `deletes_sequence_number`, or the new snapshot's. `live_rows` is how many rows were read of the replaced data
    files; without it, the number is known only as far as deletion vectors tell.
    """

    def __init__(
        self,
        metadata: md.TableMetadata,
        planned: conflicts.Planned,
        *,
        remove: NamedInput = (),
        add: new_files.FilesInput = (),
        remove_deletes: NamedInput = (),
        add_deletes: new_files.FilesInput = (),
        deletes_sequence_number: int | None = None,
        check_duplicates: bool = True,
        keeps_number: bool = True,
        live_rows: int | None = None,
    ) -> None:
        self._remove = NamedFiles.of(remove, metadata)
        self._remove_deletes = NamedDeletes.of(remove_deletes, metadata)
        self._planned = planned
        self._written = metadata
        self._check_duplicates = check_duplicates
        self._keeps_number = keeps_number
        self._live_rows = live_rows
        self._data = new_files.group_files(add, metadata, mf.ManifestContent.DATA)
        deletes = new_files.group_files(add_deletes, metadata, mf.ManifestContent.DELETES)
        self._deletes = tuple(new_files.with_sequence_number(group, deletes_sequence_number) for group in deletes)
        self.added = (*self._data, *self._deletes)
        vector_groups = map(new_files.vectors_of, self._deletes)
        self._vectors = [columns for columns in vector_groups if len(columns)]
        if not len(self._remove) and not len(self._remove_deletes):
            raise errors.InvalidInputError("a rewrite must name files to replace")
        if any(len(group.columns) for group in self._data) and not len(self._remove):
            raise errors.InvalidInputError(
                "a rewrite that adds data files must also replace some; otherwise it would add rows"
            )
        if self._deletes and not len(self._remove_deletes):
            raise errors.InvalidInputError(
                "a rewrite that adds delete files must also replace some; otherwise it would delete rows"
            )
        self._rows = rows_of(group.columns for group in self._data)

    def apply(self, parent: Parent) -> Delta:
        """The manifests with the new files in place of the old ones."""
        new_files.check_still_taken(parent.metadata, self._deletes)
        data = remove_files(parent, mf.ManifestContent.DATA, self._remove.may_be_in, self._remove.mask)
        since = conflicts.Since(parent, self._planned)
        self._check_row_ids(parent)
        number = self._number(parent.metadata)
        # With files of its own commit among the replaced ones, no one number can be right for all of them.
        is_settled = conflicts.settled(self._planned, parent.bench) == self._planned
        reaches = number is not None and is_settled
        moved = self._deleted_since(parent, data, since) if is_settled else None
        self._remove.check_removed(data.removed, "data file", () if moved is None else moved.gone_paths)
        since.check_no_new_deletes_for(
            data.removed, ignore_equality=reaches, ignore_vectors=moved is not None, number=number
        )
        added = new_files.fitted(parent.metadata, self._data)
        if reaches:
            replaced = [*data.removed, *(() if moved is None else moved.gone)]
            since.check_same_reach(replaced, [group.columns for group in added], self._written)
        again = self._delete_again(parent, moved, added) if moved else ()
        deletes = self._remaining_deletes(parent, data)
        self._check_rows(parent, data, rows_of(group.columns for group in again))
        if self._check_duplicates:
            new_files.check_not_live(parent, added)
        self._check_vectors(parent, deletes)
        carrying = tuple(new_files.with_sequence_number(group, number) for group in added)
        added_deletes = new_files.fitted(parent.metadata, self._deletes)
        new = write_added(parent, (self, number), (*carrying, *added_deletes))
        if moved:
            new += write_added(parent, (self, "again", moved.key), again)
        manifests = merge_manifests(parent, new, data, deletes)
        return Delta(md.Operation.REPLACE, manifests, [group.columns for group in (*added, *added_deletes, *again)])

    # -- what others deleted meanwhile

    def _deleted_since(self, parent: Parent, data: NewManifests, since: conflicts.Since) -> DeletedSince | None:
        """What of the replaced files was deleted since the plan; None if such rows cannot be told from others."""
        planned = self._planned.snapshot_id
        if planned is None or not allows(parent.metadata.format_version, Feature.ROW_LINEAGE):
            return None
        snapshot = parent.metadata.snapshot(planned)
        gone = since.removed_otherwise(self._remove.missing(data.removed))
        moved = DeletedSince(snapshot, new_vectors(parent, data.removed, snapshot.sequence_number), gone)
        moved.check_worth(self._rows)
        return moved

    def _delete_again(
        self, parent: Parent, moved: DeletedSince, added: Sequence[new_files.FileGroup]
    ) -> tuple[new_files.FileGroup, ...]:
        columns = [group.columns for group in added]
        specs = tuple(group.spec_id for group in added)
        files = parent.bench.remember(("again", self, moved.key, specs), lambda: moved.delete_again(parent, columns))
        return new_files.group_files(files, parent.metadata, mf.ManifestContent.DELETES)

    def _number(self, metadata: md.TableMetadata) -> int | None:
        """The sequence number of the planned snapshot; v1 has none."""
        has_numbers = allows(metadata.format_version, Feature.SEQUENCE_NUMBERS)
        if not has_numbers or not self._keeps_number or self._planned.snapshot_id is None:
            return None
        return metadata.snapshot(self._planned.snapshot_id).sequence_number

    def _check_row_ids(self, parent: Parent) -> None:
        """Rows without ids, of before an upgrade, get them by the first commit after it; new files would change those."""
        head, snapshot_id = parent.snapshot, self._planned.snapshot_id
        if head is None or head.first_row_id is None or snapshot_id is None or not self._data:
            return
        planned = parent.metadata.snapshot_by_id(snapshot_id)
        if planned is not None and planned.first_row_id is None:
            raise errors.ValidationError(
                f"rows of snapshot {snapshot_id} had no ids, but commits since then assigned some, which the new files lack;"
                " plan the rewrite again"
            )

    def _remaining_deletes(self, parent: Parent, data: NewManifests) -> NewManifests:
        removed = NamedFiles.of(data.removed, parent.metadata)

        def choose(files: mf.ManifestColumns) -> Mask:
            return self._remove_deletes.mask(files) | removed.mask(files, "referenced_data_file")

        deletes = remove_files(parent, mf.ManifestContent.DELETES, lambda _: True, choose)
        self._remove_deletes.check_removed(deletes.removed)
        renewed = normal_paths(self._vectors, "referenced_data_file").to_pylist()
        vectors.check_not_revived(deletes.removed, {*removed.paths.to_pylist(), *renewed})
        return deletes

    def _check_rows(self, parent: Parent, data: NewManifests, again: int) -> None:
        """Rows before are rows after: exactly, if only vectors delete rows of the replaced files, else at most as many.

        `again` is how many rows of the new files are deleted at once.
        """
        if not len(self._remove):
            return
        after = self._rows
        if self._live_rows is not None and after != self._live_rows:
            raise errors.ValidationError(
                f"a rewrite writes {after} rows in place of the {self._live_rows} that were read"
            )
        before, after = rows_of(data.removed), after - again
        deleted, is_exact = self._deleted_rows(parent, data)
        live = before - deleted
        if after > live or (is_exact and after != live):
            expected = f"{live}" if is_exact else f"at most {live}"
            raise errors.ValidationError(
                f"a rewrite writes {after} rows in place of {expected}: {before} in the replaced files minus {deleted} deleted"
            )

    def _deleted_rows(self, parent: Parent, data: NewManifests) -> tuple[int, bool]:
        """How many rows of the replaced files are deleted by vectors, and whether nothing else may delete any."""
        scope = conflicts.PartitionScope(PartitionSet.of(data.removed), parent.metadata)
        removed = NamedFiles.of(data.removed, parent.metadata)
        deleted, is_exact = 0, True
        for manifest in parent.manifests(mf.ManifestContent.DELETES):
            if scope.may_be_in(manifest):
                columns = parent.read(manifest, mf.WITHOUT_METRICS)
                columns = columns.filter(columns.is_live)
                is_vector = as_mask(new_files.vector_mask(columns))
                ours = is_vector & removed.mask(columns, "referenced_data_file")
                deleted += int(np.sum(columns.column("record_count").to_numpy(zero_copy_only=False)[ours]))
                is_exact &= not (scope.might(columns) & ~is_vector).any()
        return deleted, is_exact

    def _check_vectors(self, parent: Parent, deletes: NewManifests) -> None:
        if not self._vectors:
            return
        paths = normal_paths(self._vectors, "referenced_data_file").to_pylist()
        locate(parent, paths, PartitionSet.of(self._vectors), [])
        vectors.check_one_for_each(parent, deletes.manifests, self._vectors, anywhere=True)
