"""Statistics of partitions: a file of counts per partition of a snapshot, made anew, or from that of an earlier snapshot.

Counts that were carried on are believed only if they add up to what the snapshot's manifest list says; else all manifests are
counted.
"""

import io
import logging
import uuid
from dataclasses import dataclass
from itertools import chain, takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import properties as props
from icefloe.commit import WriteStatistics, check_statistics_allowed, metadata_folder
from icefloe.errors import IcefloeError, StateError
from icefloe.formats.file_formats import writer_of
from icefloe.inspect import NEVER, PartitionTotals, merge_totals, partition_column, partition_statistics as stats
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.statistics.counted_partitions import PartitionCounter, totals_of_rows
from icefloe.metadata import PartitionStatisticsFile, Snapshot, TableMetadata, relativize
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.planning import choose_snapshot
from icefloe.schema import StructType, schema_to_arrow
from icefloe.storage import Storage

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComputedPartitionStats:
    """The partition statistics file of a snapshot; None of a table without snapshots, or a snapshot without files."""

    partition_statistics_file: str | None = None
    """Where the file is: the column of Java's procedure."""
    snapshot_id: int | None = None
    partitions: int | None = None
    """How many partitions were counted; None if the snapshot had a file already."""
    counted_from: int | None = None
    """The earlier snapshot whose file was carried on; None if all manifests were counted."""


def compute_partition_stats(table: MaintainedTable, snapshot_id: int | None = None) -> ComputedPartitionStats:
    """Count the files and rows of each partition of a snapshot, and commit the file of counts."""
    metadata = table.metadata
    check_statistics_allowed(metadata)
    snapshot = choose_snapshot(metadata, snapshot_id, None, None)
    struct = stats.statistics_partition_type(metadata)
    if not struct.fields:
        raise StateError("the table never had a partition field, so there are no partitions to count")
    if snapshot is None:
        return ComputedPartitionStats()
    for file in metadata.partition_statistics:
        if file.snapshot_id == snapshot.snapshot_id:
            return ComputedPartitionStats(metadata.resolve(file.statistics_path), snapshot.snapshot_id)
    totals, counted_from = _counted(metadata, table.storage, snapshot, struct)
    if not len(totals):
        return ComputedPartitionStats(None, snapshot.snapshot_id)
    change = _statistics_file(metadata, snapshot, totals, struct)
    with table.transaction() as tx:
        tx.add(change)
        tx.commit()
    return ComputedPartitionStats(change.location, snapshot.snapshot_id, len(totals), counted_from)


# -- the counts


class _Doubt(Exception):
    """Why an earlier file cannot be carried on."""


def _counted(
    metadata: TableMetadata, storage: Storage, snapshot: Snapshot, struct: StructType
) -> tuple[PartitionTotals, int | None]:
    """The counts, and the snapshot whose counts were carried on, if any."""
    counter = PartitionCounter(metadata, storage, struct)
    earlier = _earlier_file(metadata, snapshot)
    if earlier is not None:
        try:
            return _carried_on(counter, earlier, snapshot), earlier.snapshot_id
        except (_Doubt, IcefloeError) as error:
            LOG.warning("partitions of snapshot %d are counted from scratch: %s", snapshot.snapshot_id, error)
    return _occupied(counter.of_snapshot(snapshot)), None


def _earlier_file(metadata: TableMetadata, snapshot: Snapshot) -> PartitionStatisticsFile | None:
    """The file of the nearest snapshot before this one; snapshots between them are all known."""
    files = {file.snapshot_id: file for file in metadata.partition_statistics}
    ancestors = metadata.ancestors(snapshot.snapshot_id)
    return next((files[earlier.snapshot_id] for earlier in ancestors if earlier.snapshot_id in files), None)


def _carried_on(counter: PartitionCounter, file: PartitionStatisticsFile, snapshot: Snapshot) -> PartitionTotals:
    before = _totals_of_file(counter, file)
    ancestors = counter.metadata.ancestors(snapshot.snapshot_id)
    newer = takewhile(lambda each: each.snapshot_id != file.snapshot_id, ancestors)
    totals = counter.folded(chain([before], counter.of_changes(newer)))
    if any((amounts < 0).any() for amounts in totals.sums.values()):
        raise _Doubt("more was removed from a partition since than the earlier file has of it")
    totals = _occupied(totals)
    expected, found = counter.totals_by_spec(snapshot), _totals_by_spec(totals)
    if found != expected:
        raise _Doubt(f"the earlier file and the changes since add up to {found}, the manifest list says {expected}")
    return totals


def _totals_of_file(counter: PartitionCounter, file: PartitionStatisticsFile) -> PartitionTotals:
    """What an earlier file says; a file that does not tell all partitions of its specs apart says nothing."""
    rows, written = stats.read_partition_statistics(counter.metadata, file, counter.storage)
    specs = counter.metadata.specs_by_id
    for spec_id in pc.unique(rows.column(stats.SPEC_ID)).to_pylist():
        fields = specs[spec_id].fields if spec_id in specs else None
        known = {field.field_id for field in counter.struct.fields}
        if fields is None or not {field.field_id for field in fields} & known <= written.fields_by_id.keys():
            raise _Doubt(f"{file.statistics_path} lacks fields of spec {spec_id}")
    totals = totals_of_rows(rows, counter.struct)
    if len(merge_totals(totals)) != len(totals):
        raise _Doubt(f"{file.statistics_path} has two rows for one partition")
    return totals


def _totals_by_spec(totals: PartitionTotals) -> dict[int, list[int]]:
    sums = totals.sums
    counts = (
        sums[stats.DATA_RECORDS],
        sums[stats.DATA_FILES],
        sums[stats.POSITION_DELETE_RECORDS] + sums[stats.EQUALITY_DELETE_RECORDS],
        sums[stats.POSITION_DELETE_FILES] + sums[stats.VECTORS] + sums[stats.EQUALITY_DELETE_FILES],
    )
    by_spec = {
        spec_id: [int(amounts[totals.spec_ids == spec_id].sum()) for amounts in counts]
        for spec_id in np.unique(totals.spec_ids).tolist()
    }
    return {spec_id: amounts for spec_id, amounts in by_spec.items() if any(amounts)}


def _occupied(totals: PartitionTotals) -> PartitionTotals:
    """Only the partitions that have files."""
    files = (stats.DATA_FILES, stats.POSITION_DELETE_FILES, stats.VECTORS, stats.EQUALITY_DELETE_FILES)
    return totals.filter(np.logical_or.reduce([totals.sums[name] != 0 for name in files]))


# -- the file


def _statistics_file(
    metadata: TableMetadata, snapshot: Snapshot, totals: PartitionTotals, struct: StructType
) -> WriteStatistics:
    extension = props.WRITE_FORMAT.of(metadata.properties)
    name = f"partition-stats-{snapshot.snapshot_id}-{uuid.uuid4()}.{extension}"
    location = f"{metadata_folder(metadata)}/{name}"
    schema = stats.partition_statistics_schema(metadata, struct)
    sink = io.BytesIO()
    writer = writer_of(extension)(sink, schema)
    writer.write(_rows(metadata, totals, struct).select([field.name for field in schema.fields]))
    writer.close()
    path = relativize(metadata.relative_to, location)
    file = PartitionStatisticsFile(snapshot.snapshot_id, path, sink.tell())
    return WriteStatistics(location, sink.getvalue(), file)


def _rows(metadata: TableMetadata, totals: PartitionTotals, struct: StructType) -> pa.Table:
    """The rows of the file, in the order of partitions."""
    schema = schema_to_arrow(stats.readable_schema(struct))
    unknown = totals.updated_at == NEVER
    values = {
        **totals.sums,
        stats.SPEC_ID: totals.spec_ids,
        stats.TOTAL_RECORDS: _rows_left(metadata, totals),
        stats.UPDATED_AT: pa.array(totals.updated_at, mask=unknown),
        stats.UPDATED_BY: pa.array(totals.updated_by, mask=unknown),
    }
    columns = [
        partition_column(totals.rows, struct).cast(field.type)
        if field.name == stats.PARTITION_COLUMN
        else pa.array(values[field.name]).cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema).take(_order(totals, struct))


def _order(totals: PartitionTotals, struct: StructType) -> pa.Array:
    """By the fields of the partition, nulls first; then by spec."""
    fields = [totals.rows.partition[field.field_id] for field in struct.fields]
    keys = [key for values in fields for key in (values.is_valid(), values)]
    table = pa.Table.from_arrays([*keys, pa.array(totals.spec_ids)], [str(number) for number in range(len(keys) + 1)])
    return pc.sort_indices(table, [(name, "ascending") for name in table.column_names])


def _rows_left(metadata: TableMetadata, totals: PartitionTotals) -> pa.Array:
    """Rows that are not deleted, where manifests alone say so: where nothing but deletion vectors deletes."""
    sums = totals.sums
    left = sums[stats.DATA_RECORDS] - sums[stats.POSITION_DELETE_RECORDS]
    is_unknown = (sums[stats.POSITION_DELETE_FILES] + sums[stats.EQUALITY_DELETE_FILES] > 0) | (left < 0)
    # Equality deletes of an unpartitioned spec delete rows of every partition (spec: Scan Planning).
    is_global = np.isin(totals.spec_ids, [spec.spec_id for spec in metadata.partition_specs if _is_unpartitioned(spec)])
    if sums[stats.EQUALITY_DELETE_FILES][is_global].any():
        is_unknown[:] = True
    return pa.array(left, mask=is_unknown)


def _is_unpartitioned(spec: PartitionSpec) -> bool:
    return all(isinstance(field.transform, tr.VoidTransform) for field in spec.fields)
