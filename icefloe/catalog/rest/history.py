"""Metadata whose older snapshots are still with the server: they are loaded when something needs them."""

from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any

from icefloe import commit as cm, metadata as md


class ReferencedMetadata(md.TableMetadata):
    """Metadata as a server gives it with only those snapshots that branches and tags point to.

    A snapshot is looked up among these first. Whatever needs others loads all of them, once; changes do, too.
    """

    _known: dict[int, md.Snapshot]
    _load: Callable[[], md.TableMetadata]

    @staticmethod
    def of(metadata: md.TableMetadata, load: Callable[[], md.TableMetadata]) -> "ReferencedMetadata":
        """The metadata, and the way to load the newest one with all its snapshots."""
        partial = ReferencedMetadata.__new__(ReferencedMetadata)
        partial.__setstate__(metadata.__getstate__())
        # What is not in the dictionary is made by the property of that name.
        del partial.__dict__["snapshots"]
        partial.__dict__.update(_known=dict(metadata.snapshots_by_id), _load=load)
        return partial

    @cached_property
    def snapshots(self) -> tuple[md.Snapshot, ...]:
        """All snapshots, of which those that came after this version of the table are left out."""
        newest = self._load()
        cm.check_same_table(self, newest, "the table")
        older = tuple(each for each in newest.snapshots if self._had(each))
        expired = tuple(each for each in self._known.values() if each.snapshot_id not in newest.snapshots_by_id)
        return expired + older

    def _had(self, snapshot: md.Snapshot) -> bool:
        if snapshot.snapshot_id in self._known:
            return True
        is_older = snapshot.timestamp_ms <= self.last_updated_ms
        return is_older and snapshot.sequence_number <= self.last_sequence_number

    def snapshot_by_id(self, snapshot_id: int) -> md.Snapshot | None:
        """The snapshot of that id, if the table has it."""
        return self._known.get(snapshot_id) or super().snapshot_by_id(snapshot_id)

    def snapshot(self, snapshot_id: int) -> md.Snapshot:
        """The snapshot of that id; an error if there is none."""
        return self._known.get(snapshot_id) or super().snapshot(snapshot_id)

    def evolve(self, **changes: Any) -> md.TableMetadata:
        """The same metadata with other values in these fields, and whole."""
        kept = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in changes}
        return md.TableMetadata(**kept, **changes)

    def __reduce__(self) -> tuple[object, tuple[dict[str, object]]]:
        return _restored, (self.__getstate__(),)


def _restored(state: dict[str, object]) -> md.TableMetadata:
    metadata = md.TableMetadata.__new__(md.TableMetadata)
    metadata.__setstate__(state)
    return metadata
