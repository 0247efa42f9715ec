"""The metadata table of partitions: what the live files of each partition of a snapshot sum up to.

Two files are in one partition if their tuples are equal in the partition type of all specs, and their specs have equally
many of its fields: Java tells a missing field from a null one in no other way.
"""

from collections.abc import Iterator
from operator import attrgetter

import numpy as np
import pyarrow as pa

from icefloe.inspect.entries import NEEDED, partition_column
from icefloe.inspect.partition_totals import NEVER, PartitionTotals, join_totals, merge_totals, partition_rows
from icefloe.inspect.pruning import SourcedManifest, manifests_to_read
from icefloe.inspect.request import MetadataRequest
from icefloe.inspect.schemas import table_partition_type
from icefloe.manifests import FileContent, Wanted
from icefloe.metadata import TableMetadata
from icefloe.parallel import in_order
from icefloe.planning import Numbers
from icefloe.schema import StructType, schema_to_arrow

_SUMS = (
    ("record_count", FileContent.DATA, "record_count"),
    ("file_count", FileContent.DATA, None),
    ("total_data_file_size_in_bytes", FileContent.DATA, "file_size_in_bytes"),
    ("position_delete_record_count", FileContent.POSITION_DELETES, "record_count"),
    ("position_delete_file_count", FileContent.POSITION_DELETES, None),
    ("equality_delete_record_count", FileContent.EQUALITY_DELETES, "record_count"),
    ("equality_delete_file_count", FileContent.EQUALITY_DELETES, None),
)
"""Each column that is a sum, the files that count, and what is summed of them; None counts them."""


def partition_batches(request: MetadataRequest) -> Iterator[pa.RecordBatch]:
    """One batch of all partitions, in the order in which manifests first name them."""
    struct = table_partition_type(request.metadata)
    manifests = manifests_to_read(request, struct, attrgetter("has_live_files"))
    parts = list(in_order(_ManifestTotals(request.metadata, struct), manifests, request.workers))
    if parts:
        yield from request.narrowed([_batch(merge_totals(join_totals(parts)), request, struct)])


class _ManifestTotals:
    """The totals of one manifest; runs in threads."""

    def __init__(self, metadata: TableMetadata, struct: StructType) -> None:
        self._struct = struct
        self._field_ids = {field.field_id for field in struct.fields}
        self._commit_times = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
        self._wanted = Wanted(NEEDED, bool(struct.fields), frozenset(), ())

    def __call__(self, sourced: SourcedManifest) -> PartitionTotals:
        source, manifest = sourced
        files = source.read(manifest, self._wanted)
        files = files.filter(files.is_live)
        content = files.column("content").to_numpy(zero_copy_only=False)
        sums = {}
        for name, counted, column in _SUMS:
            amounts = np.int64(1) if column is None else files.column(column).to_numpy(zero_copy_only=False)
            sums[name] = np.where(content == int(counted), amounts, 0).astype(np.int64)
        ids = files.column("snapshot_id").to_numpy(zero_copy_only=False)
        distinct, indices = np.unique(ids, return_inverse=True)
        times = np.array([self._commit_times.get(snapshot_id, NEVER) for snapshot_id in distinct.tolist()], np.int64)
        spec_ids = np.full(len(files), files.spec_id, np.int64)
        field_count = sum(field.field_id in self._field_ids for field in source.spec(manifest).fields)
        partition = partition_column(files, self._struct) if self._struct.fields else None
        rows = partition_rows(partition, self._struct, np.full(len(files), field_count))
        return merge_totals(PartitionTotals(rows, sums, times[indices], ids, spec_ids))


def _batch(totals: PartitionTotals, request: MetadataRequest, struct: StructType) -> pa.RecordBatch:
    schema = schema_to_arrow(request.schema, ids=False)
    unknown = totals.updated_at == NEVER
    values: dict[str, pa.Array | Numbers] = {
        **totals.sums,
        "spec_id": totals.spec_ids,
        "last_updated_at": pa.array(totals.updated_at * 1000, mask=unknown),
        "last_updated_snapshot_id": pa.array(totals.updated_by, mask=unknown),
    }
    columns = [
        partition_column(totals.rows, struct)
        if field.name == "partition"
        else pa.array(values[field.name]).cast(field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
