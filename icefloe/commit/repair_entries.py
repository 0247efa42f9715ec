"""Repair entries: the manifests of a snapshot with entries corrected or left out, and its totals counted anew.

What is wrong with a table may be what other operations rely on, so that nothing here trusts counts, summaries or totals.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from icefloe.commit.added import FileGroup
from icefloe.commit.new_manifests import NewManifests, concat_entries, write_entries
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask
from icefloe.commit.producer import Delta, count_files
from icefloe.manifests import EntryStatus, ManifestColumns, ManifestFile
from icefloe.metadata import Operation, summary as totals


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """The live entries of a manifest as they should be, and those that are left out; None is none."""

    entries: ManifestColumns
    removed: ManifestColumns | None = None

    @staticmethod
    def without(entries: ManifestColumns, wrong: Mask) -> "Fixed":
        """The entries without those that are wrong."""
        return Fixed(entries.filter(~wrong), entries.filter(wrong)) if wrong.any() else Fixed(entries)


Fix = Callable[[ManifestFile, ManifestColumns], Fixed]
"""What becomes of the live entries of one manifest; the same entries if nothing is wrong with them."""


def read_live(parent: Parent, manifest: ManifestFile) -> ManifestColumns:
    """The live entries of a manifest."""
    columns = parent.read(manifest)
    return columns.filter(columns.is_live)


@dataclass(slots=True, eq=False)
class RepairEntries:
    """Makes a snapshot of what `fix` makes of each manifest; `rewrite` are manifests that are written anew in any case.

    `prepare` gives the fix for the snapshot that is built on, in each attempt. With `recount` there is a snapshot even if no
    manifest changes, for the sake of its totals, or of the row ids that begin with `first_row_id`.
    """

    prepare: Callable[[Parent], Fix]
    operation: Operation = Operation.REPLACE
    rewrite: Collection[str] = ()
    recount: bool = False
    read: Callable[[Parent, ManifestFile], ManifestColumns] = read_live
    """How the live entries of a manifest are known."""
    first_row_id: int | None = None
    """The first id that the table has for new rows from now on, if it is higher than the table says."""
    added: tuple[FileGroup, ...] = field(default=(), init=False)

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests as they should be; nothing if they are."""
        fix = self.prepare(parent)
        manifests: list[ManifestFile] = []
        removed: list[ManifestColumns] = []
        replaced = 0
        counts = totals.FileCounts()
        for manifest in parent.manifests_of(parent.snapshot):
            live = self.read(parent, manifest)
            fixed = fix(manifest, live)
            for part in (fixed.entries, fixed.removed):
                counts += totals.FileCounts() if part is None or not len(part) else count_files(part)
            if fixed.entries is live and manifest.manifest_path not in self.rewrite:
                manifests += [manifest] if len(live) else []
                continue
            replaced += 1
            manifests += _written(parent, manifest, fixed)
            removed += [] if fixed.removed is None else [fixed.removed]
        if not replaced and not self.recount:
            return None
        new = NewManifests(tuple(manifests), tuple(removed), replaced)
        return Delta(self.operation, new, totals_before=_totals(counts), first_row_id=self.first_row_id)


def _written(parent: Parent, manifest: ManifestFile, fixed: Fixed) -> tuple[ManifestFile, ...]:
    parts = [_with_status(fixed.entries, EntryStatus.EXISTING, None)]
    if fixed.removed is not None:
        parts.append(_with_status(fixed.removed, EntryStatus.DELETED, parent.snapshot_id))
    held = [part for part in parts if len(part)]
    return write_entries(parent, concat_entries(held), manifest.content) if held else ()


def _with_status(columns: ManifestColumns, status: EntryStatus, snapshot_id: int | None) -> ManifestColumns:
    changed = {"status": pa.array(np.full(len(columns), int(status), np.int32))}
    if snapshot_id is not None:
        changed["snapshot_id"] = pa.array(np.full(len(columns), snapshot_id, np.int64))
    return columns.with_columns(**changed)


def _totals(counts: totals.FileCounts) -> dict[str, str]:
    return {
        totals.TOTAL_DATA_FILES: str(counts.data_files),
        totals.TOTAL_RECORDS: str(counts.records),
        totals.TOTAL_DELETE_FILES: str(counts.delete_files),
        totals.TOTAL_POSITION_DELETES: str(counts.position_deletes),
        totals.TOTAL_EQUALITY_DELETES: str(counts.equality_deletes),
        totals.TOTAL_FILES_SIZE: str(counts.size_in_bytes),
    }
