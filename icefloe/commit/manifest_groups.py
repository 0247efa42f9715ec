"""Which manifests are worth writing anew: too many small ones, too large ones, and ones whose partitions overlap.

Decided by the manifest list alone, so that a table whose manifests are good costs nothing to look at; only v4 tables that
Java is to read are looked at more closely, for relative paths.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypeAlias

from icefloe import errors, manifests as mf, metadata as md, parallel, partitioning as pt, properties as props
from icefloe.schema import IcebergType, decode_bound

ROLL = 1.2
"""How much larger than the target a manifest may become, as in the Java library."""
_WORKERS = min(4, os.cpu_count() or 1)
_MANY = 2
"""Manifests are too many when there are so many times the number that their bytes need."""

Key: TypeAlias = tuple[int, object]
"""A value of a partition field in the order in which entries are sorted: values, then NaN, then null."""
_NAN: Key = (1, 0)
_NULL: Key = (2, 0)


@dataclass(frozen=True, slots=True)
class ManifestChoice:
    """Which manifests are asked for, and by which partition fields, by name, their entries are sorted first.

    `only` are locations of manifests that are written anew in any case, and of which none may be missing.
    """

    content: mf.ManifestContent | None = None
    spec_id: int | None = None
    sort_by: tuple[str, ...] = ()
    choose: Callable[[mf.ManifestFile], bool] | None = None
    only: frozenset[str] | None = None

    def includes(self, manifest: mf.ManifestFile) -> bool:
        """Whether a manifest is asked for."""
        return (
            self.content in (None, manifest.content)
            and self.spec_id in (None, manifest.partition_spec_id)
            and (self.only is None or manifest.manifest_path in self.only)
            and (self.choose is None or self.choose(manifest))
        )

    def check(self, metadata: md.TableMetadata) -> None:
        """Fail if the table has no such spec, or no such partition fields."""
        specs = metadata.specs_by_id
        if self.spec_id is not None and self.spec_id not in specs:
            raise errors.InvalidInputError(
                f"spec_id is {self.spec_id}; the table has {', '.join(map(str, sorted(specs)))}"
            )
        chosen = specs.values() if self.spec_id is None else [specs[self.spec_id]]
        known = list(dict.fromkeys(field.name for spec in chosen for field in spec.fields))
        for name in self.sort_by:
            if name not in known:
                raise errors.InvalidInputError(
                    f"sort_by names {name!r}, which is not a partition field; fields are {', '.join(known) or 'none'}"
                )

    def positions(self, spec: pt.PartitionSpec) -> list[int]:
        """The fields of a spec by their position: those that were named first, in that order, then the others."""
        names = [field.name for field in spec.fields]
        named = [names.index(name) for name in dict.fromkeys(self.sort_by) if name in names]
        return [*named, *(position for position in range(len(names)) if position not in named)]


@dataclass(frozen=True, slots=True)
class ManifestGroup:
    """Manifests of one spec and one kind that are written anew together, and why."""

    spec_id: int
    content: mf.ManifestContent
    manifests: tuple[mf.ManifestFile, ...]
    reason: str
    is_needed: bool = False
    """Whether they are written anew even if they stay as many."""

    @property
    def live_files(self) -> int:
        """The files that they hold."""
        return sum(map(live_files, self.manifests))

    def parts(self, target: int) -> int:
        """How many manifests of a target size their live entries need."""
        return min(_ideal_count(self.manifests, target), max(1, self.live_files))


def live_files(manifest: mf.ManifestFile) -> int:
    """The files of a manifest that are part of the snapshot, as far as its list counts them."""
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def groups_to_rewrite(
    metadata: md.TableMetadata,
    live: Iterable[mf.ManifestFile],
    choice: ManifestChoice,
    outdated: frozenset[str] = frozenset(),
) -> list[ManifestGroup]:
    """The groups of manifests that are worth it; none if sizes and order are good already.

    `outdated` are locations of manifests that are not in the form that the table asks for.
    """
    by_kind: dict[tuple[int, mf.ManifestContent], list[mf.ManifestFile]] = {}
    for manifest in filter(choice.includes, live):
        by_kind.setdefault((manifest.partition_spec_id, manifest.content), []).append(manifest)
    groups = []
    for (spec_id, content), members in by_kind.items():
        is_needed = any(each.manifest_path in outdated for each in members)
        reason = "paths in them are relative" if is_needed else _reason(metadata, spec_id, members, choice)
        if reason is not None:
            groups.append(ManifestGroup(spec_id, content, tuple(members), reason, is_needed))
    return groups


def outdated_manifests(
    metadata: md.TableMetadata, live: Iterable[mf.ManifestFile], read: mf.Read, limits: md.Limits
) -> frozenset[str]:
    """The manifests with relative paths, if the table asks for the form that Java reads; these alone are read for that."""
    if not metadata.is_for_java:
        return frozenset()
    paths = mf.wanted("file_path", "referenced_data_file", partition=False)

    def is_outdated(manifest: mf.ManifestFile) -> bool:
        # Without a table location, paths are as the file has them.
        stored = mf.read_manifest(manifest, read, paths, limits=limits)
        return stored.has_relative_paths

    known = parallel.in_order(lambda each: (each.manifest_path, is_outdated(each)), live, _WORKERS, "icefloe-manifests")
    return frozenset(path for path, outdated in known if outdated)


def _reason(
    metadata: md.TableMetadata, spec_id: int, members: Sequence[mf.ManifestFile], choice: ManifestChoice
) -> str | None:
    target = props.MANIFEST_TARGET_SIZE_BYTES.of(metadata.properties)
    count, ideal = len(members), _ideal_count(members, target)
    if choice.only is not None:
        return "it was planned"
    if count >= _MANY * ideal:
        return f"{count} manifests hold what fits into {ideal}"
    if any(each.manifest_length > ROLL * target and live_files(each) > 1 for each in members):
        return f"manifests are larger than {ROLL} times {target} bytes"
    spec = metadata.specs_by_id.get(spec_id)
    if count > 1 and spec is not None and not is_clustered(members, _fields(metadata, spec, choice)):
        return "partitions are spread over several manifests"
    return None


def _ideal_count(members: Sequence[mf.ManifestFile], target: int) -> int:
    """How many manifests of the target size live entries need; those that were deleted are not carried on."""
    size = sum(map(_live_bytes, members))
    return max(1, -(-size // target))


def _live_bytes(manifest: mf.ManifestFile) -> int:
    live = live_files(manifest)
    return manifest.manifest_length * live // max(1, live + (manifest.deleted_files_count or 0))


# -- the order of partitions


def _fields(
    metadata: md.TableMetadata, spec: pt.PartitionSpec, choice: ManifestChoice
) -> list[tuple[int, IcebergType]]:
    members = metadata.partition_type(spec.spec_id).fields
    return [(position, members[position].field_type) for position in choice.positions(spec)]


def is_clustered(manifests: Sequence[mf.ManifestFile], fields: Sequence[tuple[int, IcebergType]]) -> bool:
    """Whether the ranges of the first field do not overlap, and where they are one value, those of the next one.

    Ranges that only touch are fine. Without summaries nothing is known, which counts as out of order.
    """
    if not fields or len(manifests) < 2:
        return True
    (position, field_type), rest = fields[0], fields[1:]
    try:
        ranges = [_range_of(manifest, position, field_type) for manifest in manifests]
    except errors.InvalidValueError:
        return True  # bounds of a column that was replaced since, whose order nobody asks for
    if None in ranges:
        return False
    order = sorted(range(len(ranges)), key=lambda index: ranges[index] or ())
    ordered = [(ranges[index] or (_NULL, _NULL), manifests[index]) for index in order]
    if any(one[1] > other[0] for (one, _), (other, _) in pairwise(ordered)):
        return False
    return all(
        low != high or is_clustered([manifest for _, manifest in members], rest)
        for (low, high), members in groupby(ordered, key=lambda item: item[0])
    )


def _range_of(manifest: mf.ManifestFile, position: int, field_type: IcebergType) -> tuple[Key, Key] | None:
    summaries = manifest.partitions
    if summaries is None or position >= len(summaries):
        return None
    keys = sorted(_keys(summaries[position], field_type))
    return (keys[0], keys[-1]) if keys else (_NULL, _NULL)


def _keys(summary: mf.PartitionFieldSummary, field_type: IcebergType) -> Iterable[Key]:
    for bound in (summary.lower_bound, summary.upper_bound):
        if bound is not None:
            yield 0, decode_bound(bound, field_type)
    if summary.contains_nan:
        yield _NAN
    if summary.contains_null:
        yield _NULL
