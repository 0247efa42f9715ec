"""How the manifests of a new snapshot come to be: written for new files, rewritten without removed ones, merged when many.

What was written in one attempt is used again in the next, as long as the table's version and location stay.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, partitioning as pt, planning, properties as props
from icefloe.commit.added import FileGroup
from icefloe.commit.named_files import NamedFiles
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet, as_mask, by_partition_type, normal_paths
from icefloe.encryption import key_length_of
from icefloe.schema import Schema
from icefloe.versions import Feature, allows


@dataclass(frozen=True, slots=True, eq=False)
class NewManifests:
    """Manifests of a new snapshot, the files removed from them, and how many existing manifests they replace."""

    manifests: tuple[mf.ManifestFile, ...]
    removed: tuple[mf.ManifestColumns, ...] = ()
    replaced: int = 0


# -- written for new files


def write_entries(
    parent: Parent, columns: mf.ManifestColumns, content: mf.ManifestContent, target_size: int | None = None
) -> tuple[mf.ManifestFile, ...]:
    """The entries as new manifests of a target size, by default the table's."""
    metadata = parent.metadata
    spec = metadata.spec(columns.spec_id)
    form = mf.ManifestFormat(
        version=metadata.format_version,
        schema=_schema_of(columns, spec, (metadata.schema(), *metadata.schemas_newest_first)),
        spec=spec,
        snapshot_id=parent.snapshot_id,
        content=content,
        codec=props.MANIFEST_COMPRESSION.of(metadata.properties),
        level=_level(metadata.properties.get(props.MANIFEST_COMPRESSION_LEVEL.key)),
        table_location=metadata.writes_relative_to,
        older_schemas=metadata.schemas_newest_first,
        stats=mf.StatsForm.BOTH if metadata.is_for_java else None,
        container=_container(metadata),
        key_length=key_length_of(metadata),
    )
    return tuple(
        mf.write_manifests(
            columns,
            form,
            parent.bench.manifest_names(metadata, form.container),
            parent.bench.write,
            target_size=target_size or props.MANIFEST_TARGET_SIZE_BYTES.of(metadata.properties),
        )
    )


def _schema_of(columns: mf.ManifestColumns, spec: pt.PartitionSpec, schemas: Sequence[Schema]) -> Schema:
    """The first of the schemas that has the types of the partition values: a replaced column had another before."""
    return next(
        (
            each
            for each in schemas
            if not planning.differing_types(columns.partition_type, pt.partition_type(spec, each))
        ),
        schemas[0],
    )


def _container(metadata: md.TableMetadata) -> str:
    """The format of new manifests: Avro, as in the spec, or Parquet, which Java 1.12 writes and reads in v4 tables."""
    chosen = props.V4_MANIFEST_FORMAT.of(metadata.properties)
    if chosen == props.AVRO or metadata.is_for_java:
        return chosen
    if not allows(metadata.format_version, Feature.CONTENT_STATS):
        return props.AVRO
    raise errors.InvalidPropertyError(
        f"property {props.V4_MANIFEST_FORMAT.key!r} is {chosen!r}, which is not in the spec; it requires"
        f" {props.V4_COMPAT.key!r} = {props.JAVA_1_12!r}"
    )


def _level(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().lstrip("-").isdigit():
        raise errors.InvalidPropertyError(
            f"property {props.MANIFEST_COMPRESSION_LEVEL.key!r} is {text!r}; it must be a number"
        )
    return int(text)


def form_of(metadata: md.TableMetadata) -> Hashable:
    """What manifests of one attempt must have in common with those of another to be used again.

    The version; the location, where paths are relative to that: files stay where they are when the table moves; and what
    the table's properties say of the form.
    """
    return metadata.format_version, metadata.writes_relative_to, metadata.is_for_java, _container(metadata)


def write_added(parent: Parent, key: Hashable, groups: Sequence[FileGroup]) -> tuple[mf.ManifestFile, ...]:
    """Manifests of new files, written in the first attempt and used again in later ones.

    `key` distinguishes the groups of one operation from those of others. Another id of their spec makes new manifests.
    """
    return tuple(
        manifest
        for index, group in enumerate(groups)
        if len(group.columns)
        for manifest in parent.bench.remember(
            ("added", key, form_of(parent.metadata), index, group.spec_id),
            partial(write_entries, parent, group.columns, group.content),
        )
    )


# -- rewritten without removed files


def remove_files(
    parent: Parent,
    content: mf.ManifestContent,
    may_hold: Callable[[mf.ManifestFile], bool],
    choose: Callable[[mf.ManifestColumns], Mask],
    wanted: mf.Wanted = mf.WITHOUT_METRICS,
) -> NewManifests:
    """The parent's manifests without the files that `choose` marks; those that cannot hold any are not read.

    What is left is EXISTING with all its numbers, what goes is DELETED by this snapshot; what others deleted is dropped.
    """
    manifests: list[mf.ManifestFile] = []
    removed: list[mf.ManifestColumns] = []
    for manifest in parent.manifests(content):
        if not may_hold(manifest):
            manifests.append(manifest)
            continue
        columns = parent.read(manifest, wanted)
        is_live = as_mask(columns.is_live)
        chosen = np.zeros(len(columns), bool)
        chosen[is_live] = choose(columns if is_live.all() else columns.filter(is_live))
        if not chosen.any():
            manifests.append(manifest)
            continue
        removed.append(columns.filter(chosen))
        manifests += parent.bench.remember(
            ("filtered", form_of(parent.metadata), manifest, chosen.tobytes()),
            partial(_write_without, parent, manifest, is_live, chosen),
        )
    return NewManifests(tuple(manifests), tuple(removed), len(removed))


def remove_dangling(parent: Parent, removed: Sequence[mf.ManifestColumns]) -> NewManifests:
    """Delete manifests without the vectors, and the position deletes of one file, of data files that are removed."""
    if not removed:
        return NewManifests(parent.manifests(mf.ManifestContent.DELETES))
    named = NamedFiles(normal_paths(removed), PartitionSet.of(removed))
    return remove_files(
        parent, mf.ManifestContent.DELETES, named.may_be_in, lambda files: named.mask(files, "referenced_data_file")
    )


def _write_without(
    parent: Parent, manifest: mf.ManifestFile, is_live: Mask, chosen: Mask
) -> tuple[mf.ManifestFile, ...]:
    entries = parent.read(manifest)
    status = np.where(chosen, int(mf.EntryStatus.DELETED), int(mf.EntryStatus.EXISTING)).astype(np.int32)
    deleter = pa.scalar(parent.snapshot_id, pa.int64())
    columns = entries.with_columns(
        status=pa.array(status),
        snapshot_id=pc.if_else(pa.array(chosen), deleter, entries.column("snapshot_id")),
    )
    return write_entries(parent, columns if is_live.all() else columns.filter(is_live), manifest.content)


# -- merged when there are many (`commit.manifest.*`)


def merge_manifests(parent: Parent, new: Sequence[mf.ManifestFile], *rest: NewManifests) -> NewManifests:
    """All manifests, small ones merged, when the table wants that; each spec and each kind for itself.

    The newest ones are packed last, so that a bin with them is filled only when there are enough: what every append adds
    is then merged once in a while, not each time.
    """
    manifests = (*new, *(manifest for part in rest for manifest in part.manifests))
    removed = tuple(columns for part in rest for columns in part.removed)
    replaced = sum(part.replaced for part in rest)
    if not props.MANIFEST_MERGE_ENABLED.of(parent.metadata.properties):
        return NewManifests(manifests, removed, replaced)
    groups: dict[tuple[mf.ManifestContent, int], list[mf.ManifestFile]] = {}
    for manifest in manifests:
        groups.setdefault((manifest.content, -manifest.partition_spec_id), []).append(manifest)
    merged: list[mf.ManifestFile] = []
    for _, members in sorted(groups.items(), key=lambda item: item[0]):
        target = props.MANIFEST_TARGET_SIZE_BYTES.of(parent.metadata.properties)
        for packed in planning.pack_from_end(members, attrgetter("manifest_length"), target):
            if not _is_worth_it(parent, members, packed):
                merged += packed
                continue
            key = ("merged", form_of(parent.metadata), tuple(packed))
            merged += parent.bench.remember(key, partial(_merge, parent, packed))
            others = sum(each.added_snapshot_id != parent.snapshot_id for each in packed)
            parent.bench.has_merged_own |= others < len(packed)
            replaced += others
    return NewManifests(tuple(merged), removed, replaced)


def _is_worth_it(parent: Parent, members: list[mf.ManifestFile], packed: list[mf.ManifestFile]) -> bool:
    if len(packed) == 1:
        return False
    # The first manifest is the newest one. Its bin grows with every commit and is merged only when it is large enough.
    is_newest = packed[0] is members[0]
    return not is_newest or len(packed) >= props.MANIFEST_MIN_COUNT_TO_MERGE.of(parent.metadata.properties)


def _merge(parent: Parent, manifests: list[mf.ManifestFile]) -> tuple[mf.ManifestFile, ...]:
    return _write_together(parent, [_carried(parent, manifest) for manifest in manifests], manifests[0].content)


def _carried(parent: Parent, manifest: mf.ManifestFile) -> mf.ManifestColumns:
    """The entries of a manifest as they go on in another: own ones as they are, live ones of others as EXISTING.

    Files that others deleted are left out; those that this commit deletes stay to be told of.
    """
    columns = parent.read(manifest)
    is_own = pc.equal(columns.column("snapshot_id"), parent.snapshot_id)
    stays = pc.or_(columns.is_live, is_own)
    status = columns.column("status")
    existing = pa.scalar(int(mf.EntryStatus.EXISTING), status.type)
    return columns.with_columns(status=pc.if_else(is_own, status, existing)).filter(stays)


def _write_together(
    parent: Parent, parts: Sequence[mf.ManifestColumns], content: mf.ManifestContent
) -> tuple[mf.ManifestFile, ...]:
    """The entries of several manifests of one spec in new ones: at least as many as they have types of partitions."""
    return tuple(
        manifest
        for alike in by_partition_type([part for part in parts if len(part)])
        for manifest in write_entries(parent, concat_entries(alike), content)
    )


def concat_entries(parts: Sequence[mf.ManifestColumns]) -> mf.ManifestColumns:
    """The entries of all parts, which are of one spec and one type of partitions, one after the other."""
    if len(parts) == 1:
        return parts[0]
    length = sum(len(part) for part in parts)
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    field_ids = [field.field_id for field in parts[0].partition_type.fields]
    held = [field_id for field_id in field_ids if any(field_id in part.partition for part in parts)]
    return replace(
        parts[0],
        length=length,
        columns={name: pa.concat_arrays([part.column(name) for part in parts]) for name in names},
        partition={field_id: _concat_partition(parts, field_id) for field_id in held},
        metrics=mf.MetricColumns(
            length, {metric: pa.concat_arrays([part.metrics.as_map(metric) for part in parts]) for metric in mf.Metric}
        ),
        location="",
        header=None,
    )


def _concat_partition(parts: Sequence[mf.ManifestColumns], field_id: int) -> pa.Array:
    arrow_type = next(part.partition[field_id].type for part in parts if field_id in part.partition)
    return pa.concat_arrays(
        [part.partition[field_id] if field_id in part.partition else pa.nulls(len(part), arrow_type) for part in parts]
    )
