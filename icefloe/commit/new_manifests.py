"""How the manifests of a new snapshot come to be: written for new files, rewritten without removed ones, merged when many.

What was written in one attempt is used again in the next, as long as the table's version and location stay.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import properties as props
from icefloe.commit.added import FileGroup
from icefloe.commit.named_files import NamedFiles
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet, by_partition_type
from icefloe.errors import InvalidPropertyError
from icefloe.manifests import (
    WITHOUT_METRICS,
    EntryStatus,
    ManifestColumns,
    ManifestContent,
    ManifestFile,
    ManifestFormat,
    Metric,
    MetricColumns,
    Wanted,
    write_manifests,
)
from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionSpec, partition_type
from icefloe.planning import differing_types
from icefloe.schema import Schema
from icefloe.storage.identities import identities


def write_entries(parent: Parent, columns: ManifestColumns, content: ManifestContent) -> tuple[ManifestFile, ...]:
    """The entries as new manifests of the target size."""
    metadata = parent.metadata
    version = metadata.format_version
    spec = metadata.spec(columns.spec_id)
    form = ManifestFormat(
        version=version,
        schema=_schema_of(columns, spec, (metadata.schema(), *metadata.schemas_newest_first)),
        spec=spec,
        snapshot_id=parent.snapshot_id,
        content=content,
        codec=props.MANIFEST_COMPRESSION.of(metadata.properties),
        level=_level(metadata.properties.get(props.MANIFEST_COMPRESSION_LEVEL.key)),
        table_location=metadata.relative_to,
        older_schemas=metadata.schemas_newest_first,
    )
    return tuple(
        write_manifests(
            columns,
            form,
            parent.bench.manifest_names(metadata),
            parent.bench.write,
            target_size=props.MANIFEST_TARGET_SIZE_BYTES.of(metadata.properties),
        )
    )


def _schema_of(columns: ManifestColumns, spec: PartitionSpec, schemas: Sequence[Schema]) -> Schema:
    """The first of the schemas that has the types of the partition values: a replaced column had another before."""
    return next(
        (each for each in schemas if not differing_types(columns.partition_type, partition_type(spec, each))),
        schemas[0],
    )


def form_of(metadata: TableMetadata) -> Hashable:
    """What manifests of one attempt must have in common with those of another to be used again.

    The version; and the location, where paths are relative to that: files stay where they are when the table moves.
    """
    return metadata.format_version, metadata.relative_to


def write_added(parent: Parent, key: Hashable, groups: Sequence[FileGroup]) -> tuple[ManifestFile, ...]:
    """Manifests of new files, written in the first attempt and used again in later ones.

    `key` tells the groups of one operation from those of others. Another id of their spec makes new manifests.
    """
    return tuple(
        manifest
        for place, group in enumerate(groups)
        if len(group.columns)
        for manifest in parent.bench.remember(
            ("added", key, form_of(parent.metadata), place, group.spec_id),
            partial(write_entries, parent, group.columns, group.content),
        )
    )


def _level(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().lstrip("-").isdigit():
        raise InvalidPropertyError(
            f"property {props.MANIFEST_COMPRESSION_LEVEL.key!r} is {text!r}; it must be a number"
        )
    return int(text)


MayHold = Callable[[ManifestFile], bool]
Choose = Callable[[ManifestColumns], Mask]


@dataclass(frozen=True, slots=True, eq=False)
class Filtered:
    """The manifests that stay, what was removed from them, and how many were written anew."""

    manifests: tuple[ManifestFile, ...]
    removed: list[ManifestColumns] = field(default_factory=list)
    replaced: int = 0


def remove_files(
    parent: Parent,
    manifests: Sequence[ManifestFile],
    may_hold: MayHold,
    choose: Choose,
    wanted: Wanted = WITHOUT_METRICS,
) -> Filtered:
    """The manifests without the files that `choose` marks among live entries; those that cannot hold any are not read.

    What is left is EXISTING with all its numbers, what goes is DELETED by this snapshot; what others deleted is dropped.
    """
    kept: list[ManifestFile] = []
    removed: list[ManifestColumns] = []
    replaced = 0
    for manifest in manifests:
        if not manifest.has_live_files:
            continue
        if not may_hold(manifest):
            kept.append(manifest)
            continue
        columns = parent.read(manifest, wanted)
        is_live = columns.is_live.to_numpy(zero_copy_only=False)
        chosen = np.zeros(len(columns), bool)
        chosen[is_live] = choose(columns if is_live.all() else columns.filter(is_live))
        if not chosen.any():
            kept.append(manifest)
            continue
        removed.append(columns.filter(chosen))
        kept += parent.bench.remember(
            ("filtered", form_of(parent.metadata), manifest, chosen.tobytes()),
            partial(_write_without, parent, manifest, is_live, chosen),
        )
        replaced += 1
    return Filtered(tuple(kept), removed, replaced)


def remove_dangling(parent: Parent, manifests: Sequence[ManifestFile], removed: Sequence[ManifestColumns]) -> Filtered:
    """Delete manifests without the vectors, and the position deletes of one file, of data files that are removed."""
    if not removed:
        return Filtered(tuple(each for each in manifests if each.has_live_files))
    paths = identities(pa.concat_arrays([each.column("file_path") for each in removed]))
    named = NamedFiles(paths, PartitionSet.of(removed))
    return remove_files(parent, manifests, named.may_be_in, lambda columns: named.mask(columns, "referenced_data_file"))


def _write_without(parent: Parent, manifest: ManifestFile, is_live: Mask, chosen: Mask) -> tuple[ManifestFile, ...]:
    everything = parent.read(manifest)
    status = np.where(chosen, int(EntryStatus.DELETED), int(EntryStatus.EXISTING)).astype(np.int32)
    deleter = pa.scalar(parent.snapshot_id, pa.int64())
    columns = everything.with_columns(
        status=pa.array(status),
        snapshot_id=pc.if_else(pa.array(chosen), deleter, everything.column("snapshot_id")),
    )
    if not is_live.all():
        columns = columns.filter(is_live)
    return write_entries(parent, columns, manifest.content)


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
