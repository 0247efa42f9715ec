"""What a snapshot's summary counts: files, rows, bytes and partitions that a commit adds and removes, over whole columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from icefloe.commit.added import vector_mask
from icefloe.commit.partitions import count_partitions, partition_codes
from icefloe.manifests import FileContent, ManifestColumns, to_internal
from icefloe.metadata import TableMetadata, summary as totals
from icefloe.partitioning import partition_path


def count_files(columns: ManifestColumns) -> totals.FileCounts:
    """What these files are, all together. The size of a deletion vector is its own, not that of the file it is in."""
    kinds = columns.column("content").to_numpy(zero_copy_only=False)
    rows = columns.column("record_count").to_numpy(zero_copy_only=False)
    if not kinds.any():
        total = pc.sum(columns.column("file_size_in_bytes"), min_count=0).as_py()
        return totals.FileCounts(data_files=len(columns), records=int(rows.sum()), size_in_bytes=int(total))
    is_vector = vector_mask(columns)
    sizes = pc.if_else(is_vector, columns.column("content_size_in_bytes"), columns.column("file_size_in_bytes"))
    vectors = is_vector.to_numpy(zero_copy_only=False)
    data = kinds == int(FileContent.DATA)
    positions = kinds == int(FileContent.POSITION_DELETES)
    equality = kinds == int(FileContent.EQUALITY_DELETES)
    return totals.FileCounts(
        data_files=int(data.sum()),
        records=int(rows[data].sum()),
        position_delete_files=int((positions & ~vectors).sum()),
        deletion_vectors=int(vectors.sum()),
        position_deletes=int(rows[positions].sum()),
        equality_delete_files=int(equality.sum()),
        equality_deletes=int(rows[equality].sum()),
        size_in_bytes=int(pc.sum(sizes, min_count=0).as_py()),
    )


def count_changes(
    added: Sequence[ManifestColumns],
    removed: Sequence[ManifestColumns],
    metadata: TableMetadata,
    partition_limit: int,
    duplicates: int = 0,
) -> totals.ChangeCounts:
    """All that a commit adds and removes; single partitions only as far as there are no more than the limit."""
    changed = count_partitions((*added, *removed))
    return totals.ChangeCounts(
        added=sum((count_files(each) for each in added), totals.FileCounts()),
        removed=sum((count_files(each) for each in removed), totals.FileCounts()),
        deleted_duplicate_files=duplicates,
        changed_partition_count=changed,
        partitions=_by_partition(added, removed, metadata) if 0 < changed <= partition_limit else {},
    )


def _by_partition(
    added: Sequence[ManifestColumns], removed: Sequence[ManifestColumns], metadata: TableMetadata
) -> dict[str, totals.PartitionCounts]:
    found: dict[str, totals.PartitionCounts] = {}
    for is_added, groups in ((True, added), (False, removed)):
        for columns in groups:
            for path, members in _split(columns, metadata):
                counts, before = count_files(members), found.get(path, totals.PartitionCounts())
                found[path] = (
                    totals.PartitionCounts(before.added + counts, before.removed)
                    if is_added
                    else totals.PartitionCounts(before.added, before.removed + counts)
                )
    return found


def _split(columns: ManifestColumns, metadata: TableMetadata) -> list[tuple[str, ManifestColumns]]:
    codes = partition_codes([columns])[0]
    spec = metadata.spec(columns.spec_id)
    parts = []
    for code in np.unique(codes):
        members = columns.filter(codes == code)
        values: list[Any] = [
            to_internal(members.partition[each.field_id].slice(0, 1), each.field_type)[0]
            if each.field_id in members.partition
            else None
            for each in members.partition_type.fields
        ]
        path = partition_path(spec, values, metadata.schema()) if spec.fields else ""
        parts.append((path, members))
    return parts
