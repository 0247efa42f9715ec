"""The metadata table of partitions: what the live files of each partition of a snapshot sum up to.

Two files are in one partition if their tuples are equal in the partition type of all specs, and their specs have equally
many of its fields: Java tells a missing field from a null one in no other way.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefloe import manifests as mf, metadata as md, parallel, planning
from icefloe.inspect.entries import NEEDED, partition_column
from icefloe.inspect.pruning import SourcedManifest, manifests_to_read
from icefloe.inspect.request import MetadataRequest
from icefloe.inspect.schemas import table_partition_type
from icefloe.schema import NestedField, StructType, schema_to_arrow, types

NEVER = -1
"""The time of a commit that nobody knows any more."""

_SCOPE_ID = -1


@dataclass(frozen=True, slots=True, eq=False)
class PartitionTotals:
    """Sums for some partitions, or for files, which are partitions of their own until they are merged."""

    rows: mf.ManifestColumns
    """A partition each, and the scope within which equal tuples are one partition."""
    sums: Mapping[str, planning.Numbers]
    updated_at: planning.Numbers
    updated_by: planning.Numbers
    spec_ids: planning.Numbers

    def __len__(self) -> int:
        return len(self.rows)

    def filter(self, mask: npt.NDArray[np.bool_]) -> "PartitionTotals":
        """Those for which the mask is true."""
        return PartitionTotals(
            self.rows.filter(mask),
            {name: amounts[mask] for name, amounts in self.sums.items()},
            self.updated_at[mask],
            self.updated_by[mask],
            self.spec_ids[mask],
        )


def partition_rows(partition: pa.StructArray | None, struct: StructType, scope: planning.Numbers) -> mf.ManifestColumns:
    """Partition tuples of a type of fields of several specs as rows; None if it has no fields."""
    columns = {
        field.field_id: column.storage if isinstance(column, pa.ExtensionArray) else column
        for field, column in zip(struct.fields, [] if partition is None else partition.flatten(), strict=True)
        if not isinstance(field.field_type, types.UnknownType)
    }
    columns[_SCOPE_ID] = pa.array(scope.astype(np.int32))
    both = StructType(*struct.fields, NestedField(_SCOPE_ID, "scope", types.IntegerType()))
    return mf.ManifestColumns(len(scope), {}, both, columns, mf.MetricColumns(len(scope)))


def join_totals(parts: Sequence[PartitionTotals]) -> PartitionTotals:
    """The rows of several parts, at least one, one after the other."""
    first = parts[0]
    partition = {key: pa.concat_arrays([part.rows.partition[key] for part in parts]) for key in first.rows.partition}
    length = sum(len(part.rows) for part in parts)
    return PartitionTotals(
        mf.ManifestColumns(length, {}, first.rows.partition_type, partition, mf.MetricColumns(length)),
        {name: np.concatenate([part.sums[name] for part in parts]) for name in first.sums},
        np.concatenate([part.updated_at for part in parts]),
        np.concatenate([part.updated_by for part in parts]),
        np.concatenate([part.spec_ids for part in parts]),
    )


def merge_totals(totals: PartitionTotals) -> PartitionTotals:
    """The same with one row for each partition; what the latest commit says of it counts, and of several, the first."""
    of, first = planning.number_partitions(totals.rows)
    rows = np.arange(len(of))
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    of, first = number[of], first[order]
    newest = np.full(len(first), NEVER, np.int64)
    np.maximum.at(newest, of, totals.updated_at)
    latest = np.full(len(first), len(of), np.int64)
    is_newest = totals.updated_at == newest[of]
    np.minimum.at(latest, of[is_newest], rows[is_newest])
    sums = {}
    for name, amounts in totals.sums.items():
        sums[name] = np.zeros(len(first), np.int64)
        np.add.at(sums[name], of, amounts)
    return PartitionTotals(
        totals.rows.take(pa.array(first)), sums, newest, totals.updated_by[latest], totals.spec_ids[latest]
    )


_SUMS = (
    ("record_count", mf.FileContent.DATA, "record_count"),
    ("file_count", mf.FileContent.DATA, None),
    ("total_data_file_size_in_bytes", mf.FileContent.DATA, "file_size_in_bytes"),
    ("position_delete_record_count", mf.FileContent.POSITION_DELETES, "record_count"),
    ("position_delete_file_count", mf.FileContent.POSITION_DELETES, None),
    ("equality_delete_record_count", mf.FileContent.EQUALITY_DELETES, "record_count"),
    ("equality_delete_file_count", mf.FileContent.EQUALITY_DELETES, None),
)
"""Each column that is a sum, the files that count, and what is summed of them; None counts them."""


def partition_batches(request: MetadataRequest) -> Iterator[pa.RecordBatch]:
    """One batch of all partitions, in the order in which manifests first name them."""
    struct = table_partition_type(request.metadata)
    manifests = manifests_to_read(request, struct, attrgetter("has_live_files"))
    parts = list(parallel.in_order(_ManifestTotals(request.metadata, struct), manifests, request.workers))
    if parts:
        yield from request.narrowed([_batch(merge_totals(join_totals(parts)), request, struct)])


class _ManifestTotals:
    """The totals of one manifest; runs in threads."""

    def __init__(self, metadata: md.TableMetadata, struct: StructType) -> None:
        self._struct = struct
        self._field_ids = {field.field_id for field in struct.fields}
        self._commit_times = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
        self._wanted = mf.Wanted(NEEDED, bool(struct.fields), frozenset(), ())

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
    values: dict[str, pa.Array | planning.Numbers] = {
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
