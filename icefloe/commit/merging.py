"""Which manifests are merged with others, so that their number stays small (`commit.manifest.*`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import properties as props
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import by_partition_type
from icefloe.commit.writing import form_of, write_entries
from icefloe.manifests import EntryStatus, ManifestColumns, ManifestContent, ManifestFile, Metric, MetricColumns


@dataclass(frozen=True, slots=True)
class Merged:
    """Manifests after merging, and how many of other snapshots were replaced by it."""

    manifests: tuple[ManifestFile, ...]
    replaced: int = 0


def merge_manifests(parent: Parent, manifests: Sequence[ManifestFile]) -> Merged:
    """The manifests, small ones merged, when the table wants that; each spec and each kind for itself.

    The newest ones are packed last, so that a bin with them is filled only when there are enough: what every append adds
    is then merged once in a while, not each time.
    """
    if not props.MANIFEST_MERGE_ENABLED.of(parent.metadata.properties):
        return Merged(tuple(manifests))
    groups: dict[tuple[ManifestContent, int], list[ManifestFile]] = {}
    for manifest in manifests:
        groups.setdefault((manifest.content, -manifest.partition_spec_id), []).append(manifest)
    found: list[ManifestFile] = []
    replaced = 0
    for _, members in sorted(groups.items(), key=lambda item: item[0]):
        for packed in _bins(members, props.MANIFEST_TARGET_SIZE_BYTES.of(parent.metadata.properties)):
            if not _is_worth_it(parent, members, packed):
                found += packed
                continue
            key = ("merged", form_of(parent.metadata), tuple(packed))
            found += parent.bench.remember(key, partial(_merge, parent, packed))
            replaced += sum(each.added_snapshot_id != parent.snapshot_id for each in packed)
    return Merged(tuple(found), replaced)


def _is_worth_it(parent: Parent, members: list[ManifestFile], packed: list[ManifestFile]) -> bool:
    if len(packed) == 1:
        return False
    # The first manifest is the newest one. Its bin grows with every commit and is merged only when it is large enough.
    is_newest = packed[0] is members[0]
    return not is_newest or len(packed) >= props.MANIFEST_MIN_COUNT_TO_MERGE.of(parent.metadata.properties)


def _bins(manifests: list[ManifestFile], target: int) -> list[list[ManifestFile]]:
    """Runs of manifests that fit into the target size, packed from the end, so that the first run is what is left over."""
    bins: list[list[ManifestFile]] = []
    size = 0
    for manifest in reversed(manifests):
        if not bins or size + manifest.manifest_length > target:
            bins.append([])
            size = 0
        bins[-1].insert(0, manifest)
        size += manifest.manifest_length
    return bins[::-1]


def _merge(parent: Parent, manifests: list[ManifestFile]) -> tuple[ManifestFile, ...]:
    parts = [carried(parent, manifest) for manifest in manifests]
    return tuple(
        manifest
        for columns in concat_entries([part for part in parts if len(part)])
        for manifest in write_entries(parent, columns, manifests[0].content)
    )


def carried(parent: Parent, manifest: ManifestFile) -> ManifestColumns:
    """The entries of a manifest as they go on in another: own ones as they are, live ones of others as EXISTING.

    Files that others deleted are left out; those that this commit deletes stay to be told of.
    """
    columns = parent.read(manifest)
    own_entry = pc.equal(columns.column("snapshot_id"), parent.snapshot_id)
    columns = columns.filter(pc.or_(columns.is_live, own_entry))
    status, own_entry = columns.column("status"), pc.equal(columns.column("snapshot_id"), parent.snapshot_id)
    existing = pa.scalar(int(EntryStatus.EXISTING), status.type)
    return columns.with_columns(status=pc.if_else(own_entry, status, existing))


def concat_entries(parts: Sequence[ManifestColumns]) -> list[ManifestColumns]:
    """The entries of several manifests of one spec, one after the other: as many groups as they have types of partitions."""
    return [_concat(alike) for alike in by_partition_type(parts)]


def _concat(parts: Sequence[ManifestColumns]) -> ManifestColumns:
    if len(parts) == 1:
        return parts[0]
    length = sum(len(part) for part in parts)
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    fields = [each.field_id for each in parts[0].partition_type.fields]
    held = [each for each in fields if any(each in part.partition for part in parts)]
    return replace(
        parts[0],
        length=length,
        columns={name: pa.concat_arrays([part.column(name) for part in parts]) for name in names},
        partition={each: _concat_partition(parts, each) for each in held},
        metrics=MetricColumns(
            length, {metric: pa.concat_arrays([part.metrics.as_map(metric) for part in parts]) for metric in Metric}
        ),
        location="",
        header=None,
    )


def _concat_partition(parts: Sequence[ManifestColumns], field_id: int) -> pa.Array:
    kind = next(part.partition[field_id].type for part in parts if field_id in part.partition)
    return pa.concat_arrays(
        [part.partition[field_id] if field_id in part.partition else pa.nulls(len(part), kind) for part in parts]
    )


def as_existing(columns: ManifestColumns) -> ManifestColumns:
    """The entries as EXISTING ones."""
    return columns.with_columns(status=pa.array(np.full(len(columns), int(EntryStatus.EXISTING), np.int32)))
