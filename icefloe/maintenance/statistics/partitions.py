"""Statistics of partitions: a file of counts per partition of a snapshot, made anew, or from that of an earlier snapshot.

A partition is a spec id and values by the field ids of all specs, so that it is the same one whatever the specs became. Counts
that were carried on are believed only if they add up to what the snapshot's manifest list says; else all manifests are counted.
"""

import io
import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit as cm, errors, manifests as mf, metadata as md, parallel, planning, properties as props
from icefloe.formats.file_formats import writer_of
from icefloe.inspect import (
    NEVER,
    PartitionTotals,
    join_totals,
    merge_totals,
    partition_column,
    partition_rows,
    partition_statistics as stats,
)
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.schema import StructType, schema_to_arrow, type_to_arrow
from icefloe.storage import Storage

_WANTED = mf.wanted("content", "file_path", "file_format", "file_size_in_bytes")
_MOST_PARTS = 64
"""How many manifests' counts are held before they are merged."""
_NO_NUMBERS = np.empty(0, np.int64)
_VECTOR = "vector"
_SUMS: tuple[tuple[str, mf.FileContent | str, str | None], ...] = (
    (stats.DATA_RECORDS, mf.FileContent.DATA, "record_count"),
    (stats.DATA_FILES, mf.FileContent.DATA, None),
    (stats.DATA_BYTES, mf.FileContent.DATA, "file_size_in_bytes"),
    (stats.POSITION_DELETE_RECORDS, mf.FileContent.POSITION_DELETES, "record_count"),
    (stats.POSITION_DELETE_RECORDS, _VECTOR, "record_count"),
    (stats.POSITION_DELETE_FILES, mf.FileContent.POSITION_DELETES, None),
    (stats.VECTORS, _VECTOR, None),
    (stats.EQUALITY_DELETE_RECORDS, mf.FileContent.EQUALITY_DELETES, "record_count"),
    (stats.EQUALITY_DELETE_FILES, mf.FileContent.EQUALITY_DELETES, None),
)
"""Each count, the files that it is of, and what is summed of them; None counts them."""


@dataclass(frozen=True)
class PartitionCounter:
    """Counts the entries of manifests of a table."""

    metadata: md.TableMetadata
    storage: Storage
    struct: StructType

    def of_snapshot(self, snapshot: md.Snapshot) -> PartitionTotals:
        """What the live files of a snapshot add up to."""
        source = self._source(snapshot)
        count = _CountEntries(source, self.struct, self._times(), changes_only=False)
        return self.folded(parallel.in_order(count, source.manifests(snapshot), planning.default_workers()))

    def of_changes(self, snapshots: Iterable[md.Snapshot]) -> Iterator[PartitionTotals]:
        """What was added less what was removed, for each manifest that one of these snapshots wrote."""
        times = self._times()
        for snapshot in snapshots:
            source = self._source(snapshot)
            own = [each for each in source.manifests(snapshot) if each.added_snapshot_id == snapshot.snapshot_id]
            yield from parallel.in_order(
                _CountEntries(source, self.struct, times, changes_only=True), own, planning.default_workers()
            )

    def folded(self, parts: Iterable[PartitionTotals]) -> PartitionTotals:
        """The sum of all parts, with a row for each partition."""
        nothing = pa.array([], type_to_arrow(self.struct, ids=False))
        rows = partition_rows(nothing, self.struct, _NO_NUMBERS)
        waiting = [PartitionTotals(rows, dict.fromkeys(stats.COUNTS, _NO_NUMBERS), *[_NO_NUMBERS] * 3)]
        for part in parts:
            waiting.append(part)
            if len(waiting) == _MOST_PARTS:
                waiting = [merge_totals(join_totals(waiting))]
        return merge_totals(join_totals(waiting))

    def totals_by_spec(self, snapshot: md.Snapshot) -> dict[int, list[int]]:
        """Rows and files of data, rows and files of deletes, by spec, as the manifest list alone says."""
        totals: dict[int, planning.Numbers] = defaultdict(lambda: np.zeros(4, np.int64))
        source = mf.SnapshotManifests(
            self.metadata, self.storage.read, self.storage.limits, keyring=self.storage.keyring
        )
        for manifest in source.counted(snapshot):
            files = (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)
            rows = (manifest.added_rows_count or 0) + (manifest.existing_rows_count or 0)
            is_data = manifest.content is mf.ManifestContent.DATA
            counts = np.array((rows, files, 0, 0) if is_data else (0, 0, rows, files), np.int64)
            totals[manifest.partition_spec_id] += counts
        return {spec_id: counts.tolist() for spec_id, counts in totals.items() if counts.any()}

    def _source(self, snapshot: md.Snapshot) -> planning.ManifestSource:
        return planning.ManifestSource(self.metadata, self.storage, snapshot.snapshot_id, self.metadata.schema())

    def _times(self) -> dict[int, int]:
        return {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in self.metadata.snapshots}


@dataclass(frozen=True)
class _CountEntries:
    """The counts of one manifest; runs in threads."""

    source: planning.ManifestSource
    struct: StructType
    commit_times: Mapping[int, int]
    changes_only: bool

    def __call__(self, manifest: mf.ManifestFile) -> PartitionTotals:
        entries = self.source.read(manifest, _WANTED)
        if self.changes_only:
            entries = entries.filter(pc.not_equal(entries.column("status"), int(mf.EntryStatus.EXISTING)))
        is_deleted = _numpy(entries.column("status")) == int(mf.EntryStatus.DELETED)
        sign = np.where(is_deleted, -1 if self.changes_only else 0, 1)
        spec_ids = np.full(len(entries), manifest.partition_spec_id, np.int64)
        partition = partition_column(entries, self.struct)
        rows = partition_rows(partition, self.struct, spec_ids)
        ids = _numpy(entries.column("snapshot_id"))
        return merge_totals(PartitionTotals(rows, _sums(entries, sign), self._times(ids), ids, spec_ids))

    def _times(self, snapshot_ids: planning.Numbers) -> planning.Numbers:
        distinct, indices = np.unique(snapshot_ids, return_inverse=True)
        times = [self.commit_times.get(snapshot_id, NEVER) for snapshot_id in distinct.tolist()]
        return np.array(times, np.int64)[indices]


def _sums(entries: mf.ManifestColumns, sign: planning.Numbers) -> dict[str, planning.Numbers]:
    content = _numpy(entries.column("content"))
    is_vector = _numpy(pc.equal(pc.utf8_lower(entries.column("file_format")), "puffin"))
    is_vector &= content == int(mf.FileContent.POSITION_DELETES)
    sums = {name: np.zeros(len(entries), np.int64) for name in stats.COUNTS}
    for name, counted, column in _SUMS:
        is_counted = is_vector if isinstance(counted, str) else (content == int(counted)) & ~is_vector
        amounts = np.int64(1) if column is None else _numpy(entries.column(column))
        sums[name] += np.where(is_counted, amounts, 0) * sign
    return sums


def totals_of_rows(rows: pa.Table, struct: StructType) -> PartitionTotals:
    """The rows of a partition statistics file as totals."""
    spec_ids = _numpy(rows.column(stats.SPEC_ID)).astype(np.int64)
    partition = rows.column(stats.PARTITION_COLUMN).combine_chunks()
    at, by = (pc.fill_null(rows.column(name), NEVER) for name in (stats.UPDATED_AT, stats.UPDATED_BY))
    sums = {name: _numpy(rows.column(name)).astype(np.int64) for name in stats.COUNTS}
    return PartitionTotals(partition_rows(partition, struct, spec_ids), sums, _numpy(at), _numpy(by), spec_ids)


def _numpy(column: pa.Array | pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    values: np.ndarray[tuple[int], np.dtype[np.int64]] = array.to_numpy(zero_copy_only=False)
    return values


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
    metadata = table.refresh().metadata
    cm.check_partition_statistics_allowed(metadata)
    snapshot = planning.choose_snapshot(metadata, snapshot_id, None, None)
    struct = stats.statistics_partition_type(metadata)
    if not struct.fields:
        raise errors.StateError("the table never had a partition field, so there are no partitions to count")
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
    metadata: md.TableMetadata, storage: Storage, snapshot: md.Snapshot, struct: StructType
) -> tuple[PartitionTotals, int | None]:
    """The counts, and the snapshot whose counts were carried on, if any."""
    counter = PartitionCounter(metadata, storage, struct)
    earlier = _earlier_file(metadata, snapshot)
    if earlier is not None:
        try:
            return _carried_on(counter, earlier, snapshot), earlier.snapshot_id
        except (_Doubt, errors.IcefloeError) as error:
            LOG.warning("partitions of snapshot %d are counted from scratch: %s", snapshot.snapshot_id, error)
    return _occupied(counter.of_snapshot(snapshot)), None


def _earlier_file(metadata: md.TableMetadata, snapshot: md.Snapshot) -> md.PartitionStatisticsFile | None:
    """The file of the nearest snapshot before this one; snapshots between them are all known."""
    files = {file.snapshot_id: file for file in metadata.partition_statistics}
    ancestors = metadata.ancestors(snapshot.snapshot_id)
    return next((files[earlier.snapshot_id] for earlier in ancestors if earlier.snapshot_id in files), None)


def _carried_on(counter: PartitionCounter, file: md.PartitionStatisticsFile, snapshot: md.Snapshot) -> PartitionTotals:
    before = _totals_of_file(counter, file)
    ancestors = counter.metadata.ancestors(snapshot.snapshot_id)
    newer = takewhile(lambda each: each.snapshot_id != file.snapshot_id, ancestors)
    totals = counter.folded(chain([before], counter.of_changes(newer)))
    if any((amounts < 0).any() for amounts in totals.sums.values()):
        raise _Doubt("more was removed from a partition since than the earlier file has of it")
    totals = _occupied(totals)
    expected, counted = counter.totals_by_spec(snapshot), _totals_by_spec(totals)
    if counted != expected:
        raise _Doubt(f"the earlier file and the changes since add up to {counted}, the manifest list says {expected}")
    return totals


def _totals_of_file(counter: PartitionCounter, file: md.PartitionStatisticsFile) -> PartitionTotals:
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
    metadata: md.TableMetadata, snapshot: md.Snapshot, totals: PartitionTotals, struct: StructType
) -> cm.WriteStatistics:
    extension = props.WRITE_FORMAT.of(metadata.properties)
    name = f"partition-stats-{snapshot.snapshot_id}-{uuid.uuid4()}.{extension}"
    location = f"{md.metadata_folder(metadata)}/{name}"
    schema = stats.partition_statistics_schema(metadata, struct)
    sink = io.BytesIO()
    writer = writer_of(extension)(sink, schema)
    writer.write(_rows(metadata, totals, struct).select([field.name for field in schema.fields]))
    writer.close()
    path = metadata.stored_path(location)
    file = md.PartitionStatisticsFile(snapshot.snapshot_id, path, sink.tell())
    return cm.WriteStatistics(location, sink.getvalue(), file)


def _rows(metadata: md.TableMetadata, totals: PartitionTotals, struct: StructType) -> pa.Table:
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


def _rows_left(metadata: md.TableMetadata, totals: PartitionTotals) -> pa.Array:
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
