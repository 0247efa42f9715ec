"""The metadata tables of manifests: what the manifest lists of snapshots say, with bounds of partitions as text."""

from collections.abc import Generator
from dataclasses import replace
from itertools import compress

import pyarrow as pa

from icefloe import errors, expressions as ex, manifests as mf, metadata as md, parallel, planning
from icefloe.inspect.entries import NEEDED
from icefloe.inspect.pruning import KnownValues
from icefloe.inspect.request import MetadataRequest, Row
from icefloe.partitioning import transforms as tr
from icefloe.schema import IcebergType, decode, types

_COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")
_ONLY_STATUS = mf.Wanted(NEEDED, False, frozenset(), ())


def manifest_batches(request: MetadataRequest) -> Generator[pa.RecordBatch, None, None]:
    """The manifests of each of the snapshots, again for each that has them; one batch for each snapshot."""
    results = parallel.in_order(_SnapshotRows(request), _chosen(request), request.workers)
    try:
        for rows in results:
            yield from request.few(rows)
    finally:
        results.close()


def _chosen(request: MetadataRequest) -> tuple[md.Snapshot, ...]:
    """The snapshots whose id the filter does not rule out."""
    field_id = request.schema.find_id("reference_snapshot_id")
    if field_id is None or not request.is_filtered or not request.snapshots:
        return request.snapshots
    ids = pa.array([snapshot.snapshot_id for snapshot in request.snapshots], pa.int64())
    return tuple(
        compress(request.snapshots, ex.might_match(request.bound, KnownValues(len(ids), {field_id: (ids, ids)})))
    )


class _SnapshotRows:
    """The rows of a snapshot; runs in threads. Most lists say the same of a manifest that is in several of them."""

    def __init__(self, request: MetadataRequest) -> None:
        self._request = request
        self._known: dict[mf.ManifestFile, Row] = {}

    def __call__(self, snapshot: md.Snapshot) -> list[Row]:
        source = self._request.source(snapshot.snapshot_id)
        rows = []
        for manifest in source.manifests(snapshot):
            row = self._known.get(manifest)
            if row is None:
                row = _row(_counted(manifest, source), source, is_all=self._request.name == "all_manifests")
                self._known[manifest] = row
            rows.append({**row, "reference_snapshot_id": snapshot.snapshot_id})
        return rows


def _row(manifest: mf.ManifestFile, source: planning.ManifestSource, *, is_all: bool) -> Row:
    is_data = manifest.content is mf.ManifestContent.DATA
    summaries = _summaries(manifest, source, is_all)
    return {
        "content": int(manifest.content),
        "path": manifest.manifest_path,
        "length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "added_snapshot_id": manifest.added_snapshot_id,
        **{name.replace("files", "data_files"): number for name, number in _counts(manifest, is_data)},
        **{name.replace("files", "delete_files"): number for name, number in _counts(manifest, not is_data)},
        "partition_summaries": [] if summaries is None and not is_all else summaries,
        # It holds the key itself, and whoever sees the row may show it to anybody.
        "key_metadata": None,
    }


def _counts(manifest: mf.ManifestFile, is_such: bool) -> list[tuple[str, int]]:
    return [(name, getattr(manifest, name) if is_such else 0) for name in _COUNTS]


def _counted(manifest: mf.ManifestFile, source: planning.ManifestSource) -> mf.ManifestFile:
    """The manifest with its counts, which lists of old v1 tables lack."""
    if all(getattr(manifest, name) is not None for name in _COUNTS):
        return manifest
    return replace(manifest, **mf.count_entries(source.read(manifest, _ONLY_STATUS)))


def _summaries(manifest: mf.ManifestFile, source: planning.ManifestSource, is_all: bool) -> list[Row] | None:
    if manifest.partitions is None:
        return None
    spec, fields = source.spec(manifest), source.partition_type(manifest).fields
    if len(manifest.partitions) != len(fields):
        problem = (
            f"the list has {len(manifest.partitions)} partition summaries for it; its spec has {len(fields)} fields"
        )
        raise errors.CorruptFileError(manifest.manifest_path, problem)
    written = source.replaced.types(spec, manifest)
    return [
        _summary(summary, part.transform, written.get(part.field_id, field.field_type), is_all)
        for summary, part, field in zip(manifest.partitions, spec.fields, fields, strict=True)
    ]


def _summary(summary: mf.PartitionFieldSummary, transform: tr.Transform, field_type: IcebergType, is_all: bool) -> Row:
    nan = summary.contains_nan
    if nan is None and is_all:
        # The column is required there. What is not known may be, and only these types have NaN at all.
        nan = isinstance(field_type, types.FloatType | types.DoubleType)
    return {
        "contains_null": summary.contains_null,
        "contains_nan": nan,
        "lower_bound": _text(summary.lower_bound, transform, field_type),
        "upper_bound": _text(summary.upper_bound, transform, field_type),
    }


def _text(bound: bytes | None, transform: tr.Transform, field_type: IcebergType) -> str | None:
    if bound is None:
        return None
    try:
        return transform.to_human(decode(bound, field_type), field_type)
    except errors.InvalidValueError:
        return None
