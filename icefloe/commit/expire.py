"""Expiry, as far as metadata goes: which snapshots and refs leave the table; no file is deleted here.

What may be deleted afterwards is what was reachable before and is not any more, by metadata read after the commit.
"""

from dataclasses import dataclass

from icefloe import properties as props
from icefloe.commit.change import Prepared
from icefloe.commit.workbench import Workbench
from icefloe.errors import InvalidInputError, InvalidPropertyError, ValidationError
from icefloe.metadata import (
    RetentionDefaults,
    TableMetadata,
    expired_refs,
    expired_snapshots,
    requirements as req,
    retention_defaults,
    unreferenced_snapshots,
    updates as up,
)


@dataclass(frozen=True)
class Expire:
    """Snapshots leave that are older than `older_than_ms` and that no ref keeps, and those that are named.

    Without a time, the table's own retention decides. `retain_last` is how many of each branch stay in any case. Snapshots
    that no ref reaches, such as staged ones, stay until they are older than the time, too.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None
    snapshot_ids_to_expire: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.retain_last is not None and self.retain_last < 1:
            raise InvalidInputError(f"{self.retain_last} snapshots cannot be retained; it must be 1 or more")

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None: no snapshot is made."""
        return ()

    def prepare(self, metadata: TableMetadata, bench: Workbench, /) -> Prepared:
        """The refs and snapshots to drop; every branch and tag must stay where it is until then."""
        if not props.GC_ENABLED.of(metadata.properties):
            raise InvalidPropertyError(
                f"property {props.GC_ENABLED.key!r} is false: files of this table may be used elsewhere"
            )
        gone_refs, gone = self._expired(metadata, bench.clock_ms())
        updates: list[up.TableUpdate] = [up.RemoveSnapshotRefUpdate(name) for name in gone_refs]
        if gone:
            updates.append(up.RemoveSnapshotsUpdate(gone))
        if not updates:
            return Prepared()
        unmoved = tuple(req.AssertRefSnapshotId(name, ref.snapshot_id) for name, ref in metadata.refs.items())
        return Prepared(tuple(updates), unmoved)

    def _expired(self, metadata: TableMetadata, now_ms: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
        rules = retention_defaults(metadata.properties)
        rules = RetentionDefaults(
            rules.max_snapshot_age_ms if self.older_than_ms is None else max(now_ms - self.older_than_ms, 0),
            self.retain_last or rules.min_snapshots_to_keep,
            rules.max_ref_age_ms,
        )
        named = self._named(metadata)
        if named and self.older_than_ms is None and self.retain_last is None:
            return (), named
        refs = expired_refs(metadata, now_ms, rules)
        loose = unreferenced_snapshots(metadata)
        by_age = [
            each
            for each in expired_snapshots(metadata, now_ms, rules)
            if each not in loose or now_ms - metadata.snapshot(each).timestamp_ms > rules.max_snapshot_age_ms
        ]
        return refs, tuple(dict.fromkeys((*by_age, *named)))

    def _named(self, metadata: TableMetadata) -> tuple[int, ...]:
        heads = {ref.snapshot_id: name for name, ref in metadata.refs.items()}
        for snapshot_id in self.snapshot_ids_to_expire:
            if snapshot_id in heads:
                raise ValidationError(f"snapshot {snapshot_id} cannot expire: {heads[snapshot_id]!r} is at it")
        return tuple(each for each in self.snapshot_ids_to_expire if each in metadata.snapshots_by_id)
