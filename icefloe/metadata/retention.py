"""Which snapshots and refs have expired (spec: Snapshot Retention Policy)."""

from collections.abc import Mapping
from dataclasses import dataclass

from icefloe import properties as props
from icefloe.metadata.refs import MAIN_BRANCH, SnapshotRef
from icefloe.metadata.table import TableMetadata


@dataclass(frozen=True, slots=True)
class RetentionDefaults:
    """Retention for refs that do not set their own."""

    max_snapshot_age_ms: int = props.MAX_SNAPSHOT_AGE_MS.default
    min_snapshots_to_keep: int = props.MIN_SNAPSHOTS_TO_KEEP.default
    max_ref_age_ms: int = props.MAX_REF_AGE_MS.default


def retention_defaults(properties: Mapping[str, str]) -> RetentionDefaults:
    """The retention that the table's properties set."""
    return RetentionDefaults(
        props.MAX_SNAPSHOT_AGE_MS.of(properties),
        props.MIN_SNAPSHOTS_TO_KEEP.of(properties),
        props.MAX_REF_AGE_MS.of(properties),
    )


def expired_refs(metadata: TableMetadata, now_ms: int, defaults: RetentionDefaults | None = None) -> tuple[str, ...]:
    """Names of the branches and tags whose snapshot is older than the ref's maximum age; never `main`."""
    rules = defaults or retention_defaults(metadata.properties)
    return tuple(name for name, ref in metadata.refs.items() if _ref_expired(metadata, name, ref, now_ms, rules))


def expired_snapshots(
    metadata: TableMetadata, now_ms: int, defaults: RetentionDefaults | None = None
) -> tuple[int, ...]:
    """Ids of the snapshots that no remaining ref keeps, in the table's order.

    This is the spec's rule: snapshots that no branch reaches expire whatever their age. A caller that wants to keep young
    ones among them (staged for a later publish, say) takes them from `unreferenced_snapshots`.
    """
    rules = defaults or retention_defaults(metadata.properties)
    retained: set[int] = set()
    for name, ref in metadata.refs.items():
        if _ref_expired(metadata, name, ref, now_ms, rules):
            continue
        retained.add(ref.snapshot_id)
        if ref.is_branch:
            retained.update(_retained_by_branch(metadata, ref, now_ms, rules))
    return tuple(snapshot.snapshot_id for snapshot in metadata.snapshots if snapshot.snapshot_id not in retained)


def unreferenced_snapshots(
    metadata: TableMetadata, now_ms: int, defaults: RetentionDefaults | None = None
) -> frozenset[int]:
    """Ids of the snapshots that no remaining branch has in its history, and that no remaining tag is at.

    What came before the snapshot of a tag is among them: a tag keeps that one alone, and has no rules for others.
    """
    rules = defaults or retention_defaults(metadata.properties)
    remaining = [ref for name, ref in metadata.refs.items() if not _ref_expired(metadata, name, ref, now_ms, rules)]
    reached: set[int] = set()
    for ref in (ref for ref in remaining if ref.is_branch):
        for ancestor in metadata.ancestors(ref.snapshot_id):
            if ancestor.snapshot_id in reached:
                break
            reached.add(ancestor.snapshot_id)
    return frozenset(metadata.snapshots_by_id) - reached - {ref.snapshot_id for ref in remaining}


def _ref_expired(metadata: TableMetadata, name: str, ref: SnapshotRef, now_ms: int, rules: RetentionDefaults) -> bool:
    if name == MAIN_BRANCH:
        return False
    limit = rules.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
    return now_ms - metadata.snapshot(ref.snapshot_id).timestamp_ms > limit


def _retained_by_branch(metadata: TableMetadata, ref: SnapshotRef, now_ms: int, rules: RetentionDefaults) -> set[int]:
    age = rules.max_snapshot_age_ms if ref.max_snapshot_age_ms is None else ref.max_snapshot_age_ms
    count = rules.min_snapshots_to_keep if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    retained: set[int] = set()
    for ancestor in metadata.ancestors(ref.snapshot_id):
        if len(retained) >= count and now_ms - ancestor.timestamp_ms > age:
            break
        retained.add(ancestor.snapshot_id)
    return retained
