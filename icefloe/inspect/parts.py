"""The rows of a metadata table: all of them, or in parts that can be read apart from each other, also by other processes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from icefloe import manifests as mf, metadata as md, planning
from icefloe.inspect.entries import entry_batches, entry_manifests
from icefloe.inspect.manifests import manifest_batches
from icefloe.inspect.partitions import partition_batches
from icefloe.inspect.position_deletes import delete_manifests, position_delete_batches
from icefloe.inspect.pruning import SourcedManifest
from icefloe.inspect.request import MetadataRequest
from icefloe.inspect.snapshots import snapshot_batches

_BATCHES: dict[str, Callable[[MetadataRequest], Iterator[pa.RecordBatch]]] = {
    "history": snapshot_batches,
    "metadata_log_entries": snapshot_batches,
    "snapshots": snapshot_batches,
    "refs": snapshot_batches,
    "manifests": manifest_batches,
    "all_manifests": manifest_batches,
    "partitions": partition_batches,
    "position_deletes": position_delete_batches,
}

_PART_BYTES = 8 << 20
_PART_FILES = 100_000
"""What the manifests of a part weigh at most, and how many files they name, unless it is one manifest."""
_PART_LISTS = 50
"""Manifest lists of a part."""


@dataclass(frozen=True, slots=True)
class MetadataPart:
    """Some rows of a metadata table: those of manifests, each with a snapshot that has it, or those of snapshots."""

    files: int
    """How many files are looked at, about."""
    manifests: tuple[tuple[int, mf.ManifestFile], ...] | None = None
    snapshots: tuple[md.Snapshot, ...] = ()

    def rows(self, request: MetadataRequest) -> Iterator[pa.RecordBatch]:
        """The wanted rows of the part, of the request that it is a part of."""
        return batches_of(replace(request, manifests=self.manifests, snapshots=self.snapshots))


def batches_of(request: MetadataRequest) -> Iterator[pa.RecordBatch]:
    """The wanted rows, batch by batch."""
    return _BATCHES.get(request.name, entry_batches)(request)


def parts_of(request: MetadataRequest) -> list[MetadataPart]:
    """The parts that the rows can be read in; none if the table has no parts."""
    if request.name == "all_manifests":
        starts = range(0, len(request.snapshots), _PART_LISTS)
        return [MetadataPart(0, snapshots=request.snapshots[start : start + _PART_LISTS]) for start in starts]
    if request.name == "position_deletes":
        return _parts(delete_manifests(request))
    return [] if request.name in _BATCHES else _parts(entry_manifests(request))


def _parts(manifests: Sequence[SourcedManifest]) -> list[MetadataPart]:
    return [
        MetadataPart(
            sum(_files(sourced) for sourced in group),
            tuple((source.snapshot_id, manifest) for source, manifest in group),
        )
        for group in planning.pack(manifests, _weight, _PART_BYTES)
    ]


def _weight(sourced: SourcedManifest) -> int:
    """Of manifests that are small for their files, as equal ones take little room, the files count."""
    return max(sourced[1].manifest_length, _files(sourced) * _PART_BYTES // _PART_FILES)


def _files(sourced: SourcedManifest) -> int:
    _, manifest = sourced
    return sum(
        count or 0
        for count in (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    )
