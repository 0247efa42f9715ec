"""The metadata table of partitions: what the live files of each partition of a snapshot sum up to.

Two files are in one partition if their tuples are equal in the partition type of all specs, and their specs have equally
many of its fields: Java tells a missing field from a null one in no other way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pyarrow as pa

from icefloe.inspect.entries import NEEDED, partition_column
from icefloe.inspect.pruning import SourcedManifest, manifests_to_read
from icefloe.inspect.request import MetadataRequest
from icefloe.inspect.schemas import table_partition_type
from icefloe.manifests import FileContent, ManifestColumns, MetricColumns, Wanted
from icefloe.metadata import TableMetadata
from icefloe.parallel import in_order
from icefloe.planning import Numbers, group_partitions
from icefloe.schema import NestedField, StructType, schema_to_arrow, types

_FIELD_COUNT_ID = -1
_NEVER = -1
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


@dataclass(frozen=True, slots=True, eq=False)
class _Totals:
    """Sums for some partitions, or for files, which are partitions of their own until they are merged.

    `rows` have a partition each, with the number of fields of its spec besides.
    """

    rows: ManifestColumns
    sums: dict[str, Numbers]
    updated_at: Numbers
    updated_by: Numbers
    spec_ids: Numbers


def partition_batches(request: MetadataRequest) -> Iterator[pa.RecordBatch]:
    """One batch of all partitions, in the order in which manifests first name them."""
    struct = table_partition_type(request.metadata)
    manifests = manifests_to_read(request, struct, attrgetter("has_live_files"))
    parts = list(in_order(_ManifestTotals(request.metadata, struct), manifests, request.workers))
    if parts:
        yield from request.narrowed([_batch(_merged(_joined(parts)), request, struct)])


class _ManifestTotals:
    """The totals of one manifest; runs in threads."""

    def __init__(self, metadata: TableMetadata, struct: StructType) -> None:
        self._struct = struct
        self._field_ids = {field.field_id for field in struct.fields}
        self._commit_times = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
        self._wanted = Wanted(NEEDED, bool(struct.fields), frozenset(), ())

    def __call__(self, sourced: SourcedManifest) -> _Totals:
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
        times = np.array([self._commit_times.get(snapshot_id, _NEVER) for snapshot_id in distinct.tolist()], np.int64)
        spec_ids = np.full(len(files), files.spec_id, np.int64)
        field_count = sum(field.field_id in self._field_ids for field in source.spec(manifest).fields)
        return _merged(_Totals(self._rows(files, field_count), sums, times[indices], ids, spec_ids))

    def _rows(self, files: ManifestColumns, field_count: int) -> ManifestColumns:
        fields = self._struct.fields
        columns = partition_column(files, self._struct).flatten() if fields else []
        partition = {
            field.field_id: column.storage if isinstance(column, pa.ExtensionArray) else column
            for field, column in zip(fields, columns, strict=True)
            if not isinstance(field.field_type, types.UnknownType)
        }
        partition[_FIELD_COUNT_ID] = pa.array(np.full(len(files), field_count, np.int32))
        struct = StructType(*fields, NestedField(_FIELD_COUNT_ID, "fields", types.IntegerType()))
        return ManifestColumns(len(files), {}, struct, partition, MetricColumns(len(files)))


def _joined(parts: list[_Totals]) -> _Totals:
    first = parts[0].rows
    partition = {key: pa.concat_arrays([part.rows.partition[key] for part in parts]) for key in first.partition}
    length = sum(len(part.rows) for part in parts)
    return _Totals(
        ManifestColumns(length, {}, first.partition_type, partition, MetricColumns(length)),
        {name: np.concatenate([part.sums[name] for part in parts]) for name, *_ in _SUMS},
        np.concatenate([part.updated_at for part in parts]),
        np.concatenate([part.updated_by for part in parts]),
        np.concatenate([part.spec_ids for part in parts]),
    )


def _merged(totals: _Totals) -> _Totals:
    """The same with one row for each partition; what the latest commit says of it counts, and of several, the first."""
    of = group_partitions(totals.rows).of
    count = int(of.max(initial=-1)) + 1
    rows = np.arange(len(of))
    first = np.full(count, len(of), np.int64)
    np.minimum.at(first, of, rows)
    order = np.argsort(first)
    number = np.empty(count, np.int64)
    number[order] = np.arange(count)
    of, first = number[of], first[order]
    newest = np.full(count, _NEVER, np.int64)
    np.maximum.at(newest, of, totals.updated_at)
    latest = np.full(count, len(of), np.int64)
    is_newest = totals.updated_at == newest[of]
    np.minimum.at(latest, of[is_newest], rows[is_newest])
    sums = {}
    for name, amounts in totals.sums.items():
        sums[name] = np.zeros(count, np.int64)
        np.add.at(sums[name], of, amounts)
    return _Totals(totals.rows.take(pa.array(first)), sums, newest, totals.updated_by[latest], totals.spec_ids[latest])


def _batch(totals: _Totals, request: MetadataRequest, struct: StructType) -> pa.RecordBatch:
    schema = schema_to_arrow(request.schema, ids=False)
    unknown = totals.updated_at == _NEVER
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
