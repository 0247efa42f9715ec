"""A new branch: at a snapshot of the table; of a table that has none, at one of its own that adds nothing, as Java's does."""

from dataclasses import replace

from icefloe.commit.append import Append
from icefloe.commit.change import Prepared
from icefloe.commit.producer import SnapshotChange, Target
from icefloe.commit.refs import Retention, create_ref
from icefloe.commit.workbench import Workbench
from icefloe.metadata import SnapshotRefType, TableMetadata, updates as up


class CreateBranch:
    """Makes a branch, at the current snapshot if none is given."""

    def __init__(self, name: str, snapshot_id: int | None, retention: Retention) -> None:
        self._name = name
        self._at = snapshot_id
        self._retention = retention
        self._ref = create_ref(name, SnapshotRefType.BRANCH, snapshot_id, retention)
        self._first: SnapshotChange | None = None
        self._begins = False

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """The snapshot that it begins with, if that is its own."""
        return self._first.snapshot_ids if self._first is not None and self._begins else ()

    def prepare(self, metadata: TableMetadata, bench: Workbench, /) -> Prepared:
        """The ref, and the snapshot that it is at if the table has none."""
        self._begins = self._at is None and metadata.current_snapshot_id is None and self._name not in metadata.refs
        if not self._begins:
            return self._ref.prepare(metadata, bench)
        if self._first is None:
            self._first = SnapshotChange(Append(metadata, ()), Target(self._name))
        made = self._first.prepare(metadata, bench)
        return replace(made, updates=tuple(map(self._kept, made.updates)))

    def _kept(self, update: up.TableUpdate) -> up.TableUpdate:
        if not isinstance(update, up.SetSnapshotRefUpdate):
            return update
        kept = self._retention
        return up.SetSnapshotRefUpdate(
            update.ref_name,
            replace(
                update.ref,
                min_snapshots_to_keep=kept.min_snapshots_to_keep,
                max_snapshot_age_ms=kept.max_snapshot_age_ms,
                max_ref_age_ms=kept.max_ref_age_ms,
            ),
        )
