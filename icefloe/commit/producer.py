"""How a snapshot is made of what an operation does to the manifests: ids, numbers, parent, list, summary, branch.

The same for every operation. In each attempt there is a new manifest list, with new numbers; manifests are used again.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, partitioning as pt, properties as props
from icefloe.commit.added import FileGroup, vector_mask, with_specs
from icefloe.commit.change import Prepared, Workbench
from icefloe.commit.list_keys import NO_KEY, check_sealed, key_entries
from icefloe.commit.new_manifests import NewManifests
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import as_mask, count_partitions, partition_codes
from icefloe.commit.structure import text_check
from icefloe.commit.writable import check_writable, pin_updates
from icefloe.encryption import key_length_of
from icefloe.metadata import requirements as req, summary as totals, updates as up
from icefloe.versions import Feature, allows


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """What an operation makes of the parent's manifests, the files that it adds, and what it puts into the summary."""

    operation: md.Operation
    new: NewManifests
    added: Sequence[mf.ManifestColumns] = ()
    entries_processed: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    totals_before: Mapping[str, str] | None = None
    """The totals of the parent's files, if they were counted because its summary is wrong."""
    first_row_id: int | None = None
    """Where the row ids of the snapshot begin, if the table's own number is wrong."""


class SnapshotOperation(Protocol):
    """One kind of change of files: it may be applied many times, on newer and newer snapshots."""

    @property
    def added(self) -> Sequence[FileGroup]:
        """The files that come with a spec of their own."""

    def apply(self, parent: Parent) -> Delta | None:
        """What it does to the current files, after checking all that it relies on; None: nothing to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a new snapshot goes: to the head of a branch, or, staged, to no branch at all."""

    branch: str = md.MAIN_BRANCH
    staged: bool = False
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


class SnapshotChange:
    """A change that makes one snapshot by an operation; its id stays the same in all attempts."""

    def __init__(self, operation: SnapshotOperation, target: Target | None = None) -> None:
        self.operation = operation
        self.target = target or Target()
        self._snapshot_id: int | None = None
        self._was_made = False
        self._had_branch = False

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The id of the snapshot, once it was made in some attempt."""
        return (self._snapshot_id,) if self._snapshot_id is not None and self._was_made else ()

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """The snapshot on top of the branch as it is now."""
        if self._snapshot_id is None:
            self._snapshot_id = new_snapshot_id(metadata)
        head = head_of(metadata, self.target.branch)
        self._check_branch(metadata)
        check_writable(metadata)
        bench.first_parents.setdefault(self._snapshot_id, None if head is None else head.snapshot_id)
        with_all, added_specs = with_specs(metadata, self.operation.added)
        parent = Parent(with_all, bench, head, self._snapshot_id)
        delta = self.operation.apply(parent)
        if delta is None:
            return Prepared()
        check_sealed(metadata, delta.added)
        self._was_made = True
        snapshot, keys = make_snapshot(parent, delta, self.target)
        added_keys = (up.AddEncryptionKeyUpdate(key) for key in keys)
        updates: tuple[up.TableUpdate, ...] = (
            *added_specs,
            *added_keys,
            *pin_updates(metadata),
            up.AddSnapshotUpdate(snapshot),
        )
        needed = _relied_on(metadata, self.target.branch)
        if self.target.staged:
            return Prepared(updates, needed)
        ref = metadata.refs.get(self.target.branch)
        moved = md.branch(snapshot.snapshot_id) if ref is None else replace(ref, snapshot_id=snapshot.snapshot_id)
        return Prepared((*updates, up.SetSnapshotRefUpdate(self.target.branch, moved)), needed)

    def _check_branch(self, metadata: md.TableMetadata) -> None:
        """The branch must not be gone since this was first prepared: another of its name would be made, of other rows."""
        has_branch = self.target.branch in metadata.refs
        if self._had_branch and not has_branch and self.target.branch != md.MAIN_BRANCH:
            raise errors.ValidationError(f"branch {self.target.branch!r} was removed by another commit")
        self._had_branch = has_branch


def _relied_on(metadata: md.TableMetadata, name: str) -> tuple[req.TableRequirement, ...]:
    """What a new snapshot on top of the branch relies on, as far as requirements can say it.

    Manifests of the head are part of it, and go with the head once that expires; files are of the default spec as a rule, and
    of the current schema, and those go when nothing seems to need them.
    """
    names = (name,) if name in metadata.refs else (name, md.MAIN_BRANCH)
    heads = {each: metadata.refs.get(each) for each in names}
    return (
        *(req.AssertRefSnapshotId(each, None if ref is None else ref.snapshot_id) for each, ref in heads.items()),
        req.AssertCurrentSchemaId(metadata.current_schema_id),
        req.AssertDefaultSpecId(metadata.default_spec_id),
    )


def new_snapshot_id(metadata: md.TableMetadata) -> int:
    """A random id that no snapshot of the table has."""
    while not (snapshot_id := secrets.randbits(63)) or snapshot_id in metadata.snapshots_by_id:
        pass
    return snapshot_id


def head_of(metadata: md.TableMetadata, name: str) -> md.Snapshot | None:
    """The snapshot that a commit to the branch builds on; a branch that does not exist starts at the head of `main`."""
    ref = metadata.refs.get(name)
    if ref is None:
        return metadata.current_snapshot()
    if not ref.is_branch:
        raise errors.InvalidInputError(f"{name!r} is a tag; only branches accept commits")
    if ref.snapshot_id not in metadata.snapshots_by_id:
        raise errors.NoSuchSnapshotError(
            f"branch {name!r} refers to snapshot {ref.snapshot_id}, which the table does not have"
        )
    return metadata.snapshot(ref.snapshot_id)


def make_snapshot(parent: Parent, delta: Delta, target: Target) -> tuple[md.Snapshot, tuple[md.EncryptedKey, ...]]:
    """The snapshot with these manifests, whose list is written, and the keys that the table needs for it."""
    metadata, version = parent.metadata, parent.metadata.format_version
    number = metadata.next_sequence_number
    has_row_ids = allows(version, Feature.ROW_LINEAGE)
    first_row_id = max(metadata.next_row_id, delta.first_row_id or 0) if has_row_ids else None
    parent_id = None if parent.snapshot is None else parent.snapshot.snapshot_id
    listed = mf.encode_manifest_list(
        # Data manifests first; each kind in the order of the operation.
        sorted(delta.new.manifests, key=lambda each: each.content is mf.ManifestContent.DELETES),
        version,
        snapshot_id=parent.snapshot_id,
        parent_snapshot_id=parent_id,
        sequence_number=number,
        first_row_id=first_row_id,
        table_location=metadata.writes_relative_to,
        key_length=key_length_of(metadata),
    )
    location = parent.bench.list_name(metadata, parent.snapshot_id)
    key_id, keys = NO_KEY if listed.key is None else key_entries(metadata, parent.bench, listed.key)
    parent.bench.write(location, listed.data)
    snapshot = md.Snapshot(
        snapshot_id=parent.snapshot_id,
        timestamp_ms=parent.bench.clock_ms(),
        manifest_list=metadata.stored_path(location),
        summary=totals.summarize(
            delta.operation,
            _counts(parent, delta, listed.manifests),
            _previous_summary(parent.snapshot) if delta.totals_before is None else delta.totals_before,
            {**target.properties, **delta.properties},
            props.PARTITION_SUMMARY_LIMIT.of(metadata.properties),
        ),
        parent_snapshot_id=parent_id,
        sequence_number=number,
        schema_id=metadata.current_schema_id,
        first_row_id=first_row_id,
        added_rows=listed.added_rows,
        key_id=key_id,
    )
    parent.bench.caches.manifests.lists.keep(mf.list_place(snapshot, location), listed.manifests)
    return snapshot, keys


def _counts(parent: Parent, delta: Delta, manifests: Sequence[mf.ManifestFile]) -> totals.ChangeCounts:
    """All that a commit adds and removes; single partitions only as far as there are no more than the limit."""
    added, removed = delta.added, delta.new.removed
    changed = count_partitions((*added, *removed))
    limit = props.PARTITION_SUMMARY_LIMIT.of(parent.metadata.properties)
    created = sum(each.added_snapshot_id == parent.snapshot_id for each in manifests)
    return totals.ChangeCounts(
        added=sum(map(count_files, added), totals.FileCounts()),
        removed=sum(map(count_files, removed), totals.FileCounts()),
        changed_partition_count=changed,
        partitions=_by_partition(added, removed, parent.metadata) if 0 < changed <= limit else {},
        manifests_created=created,
        manifests_kept=len(manifests) - created,
        manifests_replaced=delta.new.replaced,
        entries_processed=delta.entries_processed,
    )


def _previous_summary(parent: md.Snapshot | None) -> Mapping[str, str] | None:
    if parent is None:
        return None
    return {} if parent.summary is None else parent.summary.properties


def count_files(columns: mf.ManifestColumns) -> totals.FileCounts:
    """What these files are, all together. The size of a deletion vector is its own, not that of the file it is in."""
    content = columns.column("content").to_numpy(zero_copy_only=False)
    rows = columns.column("record_count").to_numpy(zero_copy_only=False)
    if not content.any():
        total = pc.sum(columns.column("file_size_in_bytes"), min_count=0).as_py()
        return totals.FileCounts(data_files=len(columns), records=int(rows.sum()), size_in_bytes=int(total))
    is_vector = vector_mask(columns)
    sizes = pc.if_else(is_vector, columns.column("content_size_in_bytes"), columns.column("file_size_in_bytes"))
    vectors = as_mask(is_vector)
    data, positions, equality = (content == int(each) for each in mf.FileContent)
    return totals.FileCounts(
        data_files=int(data.sum()),
        records=int(rows[data].sum()),
        position_delete_files=int((positions & ~vectors).sum()),
        deletion_vectors=int(vectors.sum()),
        position_deletes=int(rows[positions].sum()),
        equality_delete_files=int(equality.sum()),
        equality_deletes=int(rows[equality].sum()),
        size_in_bytes=int(pc.sum(sizes, min_count=0).as_py()),
    )


def _by_partition(
    added: Sequence[mf.ManifestColumns], removed: Sequence[mf.ManifestColumns], metadata: md.TableMetadata
) -> dict[str, totals.PartitionCounts]:
    counts: dict[str, totals.PartitionCounts] = {}
    for side, groups in (("added", added), ("removed", removed)):
        for columns in groups:
            for path, members in _split(columns, metadata):
                before = counts.get(path, totals.PartitionCounts())
                counts[path] = replace(before, **{side: getattr(before, side) + count_files(members)})
    return counts


def _split(columns: mf.ManifestColumns, metadata: md.TableMetadata) -> Iterator[tuple[str, mf.ManifestColumns]]:
    """The files by the path of their partition."""
    codes = partition_codes([columns])[0]
    spec = metadata.spec(columns.spec_id)
    for code in np.unique(codes):
        members = columns.filter(codes == code)
        partition = members.file_at(0).partition
        yield pt.partition_path(spec, partition, metadata.schema()), members


WAP_BRANCH = "wap.branch"


def target_of(
    metadata: md.TableMetadata,
    branch: str | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    stage_only: bool = False,
) -> Target:
    """Where a commit goes with these snapshot properties.

    `wap.id` stages the snapshot under that id, `wap.branch` sends it to that branch; both need `write.wap.enabled` on the
    table. `wap.branch` is an instruction and is not written into the summary.
    """
    summary = dict(properties or {})
    text_check(summary, "snapshot property")
    to_branch = summary.pop(WAP_BRANCH, None)
    if to_branch is None and totals.WAP_ID not in summary:
        return Target(branch or md.MAIN_BRANCH, stage_only, summary)
    if not props.WAP_ENABLED.of(metadata.properties):
        raise errors.InvalidPropertyError(
            f"{totals.WAP_ID!r} and {WAP_BRANCH!r} require the table property {props.WAP_ENABLED.key!r} to be true"
        )
    if to_branch is not None and totals.WAP_ID in summary:
        raise errors.InvalidInputError(f"{totals.WAP_ID!r} and {WAP_BRANCH!r} are mutually exclusive")
    if to_branch is not None:
        if branch not in (None, to_branch):
            raise errors.InvalidInputError(f"the commit is for branch {branch!r}, but {WAP_BRANCH!r} is {to_branch!r}")
        return Target(to_branch, stage_only, summary)
    check_not_published(metadata, summary[totals.WAP_ID])
    return Target(branch or md.MAIN_BRANCH, True, summary)


def check_not_published(metadata: md.TableMetadata, wap_id: str, branch: str = md.MAIN_BRANCH) -> None:
    """Fail if a snapshot of that id was published to the branch before: its rows would count twice."""
    ref = metadata.refs.get(branch)
    for each in () if ref is None else metadata.ancestors(ref.snapshot_id):
        summary = each.summary
        if summary is not None and wap_id in (summary.get(totals.WAP_ID), summary.get(totals.PUBLISHED_WAP_ID)):
            raise errors.ValidationError(
                f"{totals.WAP_ID} {wap_id!r} was already published, with snapshot {each.snapshot_id}"
            )
