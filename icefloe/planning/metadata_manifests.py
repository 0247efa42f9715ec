"""The metadata tables of manifests: what the manifest lists of snapshots say, with bounds of partitions as text."""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.expressions import might_match
from icefloe.manifests import ManifestContent, ManifestFile, PartitionFieldSummary, Wanted
from icefloe.manifests.summaries import count_entries
from icefloe.metadata import Snapshot
from icefloe.partitioning.transforms import Transform
from icefloe.planning.metadata_entries import NEEDED
from icefloe.planning.metadata_pruning import KnownValues
from icefloe.planning.metadata_request import MetadataRequest, table_batches
from icefloe.planning.reading import ManifestSource, read_ahead
from icefloe.schema.binary import decode
from icefloe.schema.types import DoubleType, FloatType, IcebergType

_COUNTS = ("added_files_count", "existing_files_count", "deleted_files_count")
_ONLY_STATUS = Wanted(NEEDED, False, frozenset(), ())


def manifest_batches(request: MetadataRequest) -> Generator[Any, None, None]:
    """The manifests of each of the snapshots, again for each that has them; one batch for each snapshot."""
    chosen = _chosen(request)
    rows = read_ahead(lambda snapshot: list(_rows(request, snapshot)), chosen, request.workers)
    try:
        for found in rows:
            yield from request.narrowed(table_batches(request.schema, found))
    finally:
        rows.close()


def _chosen(request: MetadataRequest) -> tuple[Snapshot, ...]:
    """The snapshots whose id the filter does not rule out."""
    place = request.schema.find_id("reference_snapshot_id")
    if place is None or not request.is_filtered or not request.snapshots:
        return request.snapshots
    ids = pa.array([snapshot.snapshot_id for snapshot in request.snapshots], pa.int64())
    kept = might_match(request.bound, KnownValues(len(ids), {place: (ids, ids)}))
    return tuple(snapshot for snapshot, keep in zip(request.snapshots, kept, strict=True) if keep)


def _rows(request: MetadataRequest, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    source = request.source(snapshot)
    is_all = request.name == "all_manifests"
    for found in source.manifests(snapshot):
        manifest = _counted(found, source)
        is_data = manifest.content is ManifestContent.DATA
        data, deletes = (_counts(manifest, is_data), _counts(manifest, not is_data))
        summaries = _summaries(manifest, source, is_all)
        yield {
            "content": int(manifest.content),
            "path": manifest.manifest_path,
            "length": manifest.manifest_length,
            "partition_spec_id": manifest.partition_spec_id,
            "added_snapshot_id": manifest.added_snapshot_id,
            **{name.replace("files", "data_files"): number for name, number in data.items()},
            **{name.replace("files", "delete_files"): number for name, number in deletes.items()},
            "partition_summaries": [] if summaries is None and not is_all else summaries,
            "reference_snapshot_id": snapshot.snapshot_id,
            "key_metadata": manifest.key_metadata,
        }


def _counts(manifest: ManifestFile, is_such: bool) -> dict[str, int]:
    return {name: getattr(manifest, name) if is_such else 0 for name in _COUNTS}


def _counted(manifest: ManifestFile, source: ManifestSource) -> ManifestFile:
    """The manifest with its counts, which lists of old v1 tables lack."""
    if all(getattr(manifest, name) is not None for name in _COUNTS):
        return manifest
    counts: dict[str, Any] = dict(count_entries(source.read(manifest, _ONLY_STATUS)))
    return replace(manifest, **counts)


def _summaries(manifest: ManifestFile, source: ManifestSource, is_all: bool) -> list[dict[str, Any]] | None:
    if manifest.partitions is None:
        return None
    spec, kinds = source.spec(manifest), source.partition_type(manifest).fields
    if len(manifest.partitions) != len(kinds):
        problem = (
            f"the list has {len(manifest.partitions)} partition summaries for it; its spec has {len(kinds)} fields"
        )
        raise CorruptFileError(manifest.manifest_path, problem)
    return [
        _summary(summary, field.transform, kind.field_type, is_all)
        for summary, field, kind in zip(manifest.partitions, spec.fields, kinds, strict=True)
    ]


def _summary(summary: PartitionFieldSummary, transform: Transform, kind: IcebergType, is_all: bool) -> dict[str, Any]:
    nan = summary.contains_nan
    if nan is None and is_all:
        # The column is required there. What is not known may be, and only these types have NaN at all.
        nan = isinstance(kind, FloatType | DoubleType)
    return {
        "contains_null": summary.contains_null,
        "contains_nan": nan,
        "lower_bound": _text(summary.lower_bound, transform, kind),
        "upper_bound": _text(summary.upper_bound, transform, kind),
    }


def _text(bound: bytes | None, transform: Transform, kind: IcebergType) -> str | None:
    if bound is None:
        return None
    try:
        return transform.to_human(decode(bound, kind), kind)
    except InvalidValueError:
        return None
