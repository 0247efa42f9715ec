"""Which delete files delete no row of any live data file, from manifests alone, and how they leave the table.

They are looked for in every snapshot that the removal is tried on, so that a data file that came meanwhile, such as one that a
compaction made of older ones, keeps the deletes that reach it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from icefloe import commit as cm, errors, manifests as mf, planning
from icefloe.maintenance.branches import branch_head
from icefloe.maintenance.deletes.equality_reach import EqualityReach
from icefloe.maintenance.deletes.position_reach import PositionReach
from icefloe.maintenance.maintained_table import MaintainedTable


@dataclass(frozen=True, slots=True)
class RemovedDeletes:
    """How many delete files a removal took out of the table, and what they were."""

    removed_delete_files_count: int = 0
    removed_position_delete_files_count: int = 0
    removed_equality_delete_files_count: int = 0
    removed_deletion_vectors_count: int = 0
    snapshot_id: int | None = field(default=None, kw_only=True)
    """The snapshot without them; None if there was nothing to remove."""

    @staticmethod
    def of(parts: list[mf.ManifestColumns], snapshot_id: int | None = None) -> "RemovedDeletes":
        """The counts of some delete files."""
        vectors = sum(int(cm.vector_mask(part).true_count) for part in parts)
        equality = sum(int((_content(part) == mf.FileContent.EQUALITY_DELETES).sum()) for part in parts)
        total = sum(map(len, parts))
        return RemovedDeletes(total, total - vectors - equality, equality, vectors, snapshot_id=snapshot_id)


@dataclass(frozen=True, slots=True)
class RemovalPlan:
    """Dangling deletes of a branch; nothing is removed before `run`."""

    files: tuple[mf.DataFile, ...]
    branch: str | None
    snapshot_id: int | None
    """The snapshot that they were looked for in."""
    _table: MaintainedTable = field(repr=False, compare=False)
    _properties: Mapping[str, str] | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"remove {len(self.files)} delete files that delete nothing from snapshot {self.snapshot_id}"

    def to_json(self) -> str:
        """The plan as JSON: the snapshot, and each file with its content and, for a vector, its offset."""
        files = [
            {"path": file.file_path, "content": file.content.name.lower(), "offset": file.content_offset}
            for file in self.files
        ]
        return json.dumps({"snapshot-id": self.snapshot_id, "branch": self.branch, "files": files})

    def run(self) -> RemovedDeletes:
        """Remove exactly these files; an error if one of them is not dangling any more, or not there."""
        only = frozenset((file.file_path, file.content_offset) for file in self.files)
        return _remove(self._table, _Removal(only), self.branch, self._properties) if only else RemovedDeletes()


def remove_dangling_deletes(
    table: MaintainedTable, branch: str | None = None, *, snapshot_properties: Mapping[str, str] | None = None
) -> RemovedDeletes:
    """Remove the delete files of a branch that delete no row any more, in one `replace` snapshot."""
    if branch_head(table.refresh().metadata, branch) is None:
        return RemovedDeletes()
    return _remove(table, _Removal(), branch, snapshot_properties)


def plan_dangling_deletes(
    table: MaintainedTable, branch: str | None = None, *, snapshot_properties: Mapping[str, str] | None = None
) -> RemovalPlan:
    """What `remove_dangling_deletes` would remove now."""
    head = branch_head(table.refresh().metadata, branch)
    parent = cm.Parent(table.metadata, cm.Workbench(table.storage, cm.Caches(), cm.now_ms), head)
    files = tuple(file for part in dangling_deletes(parent) for file in part.files())
    snapshot_id = None if head is None else head.snapshot_id
    return RemovalPlan(files, branch, snapshot_id, table, snapshot_properties)


def dangling_deletes(parent: cm.Parent) -> list[mf.ManifestColumns]:
    """The delete files of a snapshot that delete no row of its data files (spec: Scan Planning)."""
    read = (
        parent.read(manifest, planning.WANTED_OF_DELETES) for manifest in parent.manifests(mf.ManifestContent.DELETES)
    )
    parts = [columns.filter(columns.is_live) for columns in read]
    is_position = [_content(part) == mf.FileContent.POSITION_DELETES for part in parts]
    positions = PositionReach([part.filter(mask) for part, mask in zip(parts, is_position, strict=True)])
    equality = EqualityReach(
        parent.metadata, [part.filter(~mask) for part, mask in zip(parts, is_position, strict=True)]
    )
    columns = mf.wanted("file_path", field_ids=equality.field_ids)
    for manifest in parent.manifests(mf.ManifestContent.DATA) if parts else ():
        if (manifest.min_sequence_number or 0) <= max(positions.highest, equality.highest_open):
            data = parent.read(manifest, columns)
            data = data.filter(data.is_live)
            positions.add(data)
            equality.add(data)
    kinds = np.concatenate([np.empty(0, bool), *is_position])
    needed = np.empty(len(kinds), bool)
    needed[kinds], needed[~kinds] = positions.is_needed, equality.is_needed
    of_parts = np.split(needed, np.cumsum([len(part) for part in parts])[:-1])
    dangling = [part.filter(~mask) for part, mask in zip(parts, of_parts, strict=False)]
    return [part for part in dangling if len(part)]


class _Removal:
    """What is removed in an attempt to commit, and what of it was agreed before."""

    def __init__(self, only: frozenset[tuple[str, int | None]] | None = None) -> None:
        self._only = only
        self.removed: list[mf.ManifestColumns] = []

    def decide(self, parent: cm.Parent) -> cm.DeleteSwap | None:
        """All that is dangling now, or what was planned, if that still is."""
        parts = dangling_deletes(parent)
        self.removed = parts if self._only is None else self._planned(parts, self._only)
        if not self.removed:
            return None
        ended = frozenset(cm.vector_paths(self.removed).to_pylist())
        return cm.DeleteSwap(cm.NamedDeletes.in_columns(self.removed), ended=ended)

    def _planned(
        self, parts: list[mf.ManifestColumns], only: frozenset[tuple[str, int | None]]
    ) -> list[mf.ManifestColumns]:
        keys = [_keys(part) for part in parts]
        missing = only.difference(*keys)
        if missing:
            raise errors.ValidationError(
                f"{min(missing)[0]!r} was planned to be removed, and is not dangling any more, or not there; plan it anew"
            )
        chosen = [part.filter(np.array([k in only for k in own], bool)) for part, own in zip(parts, keys, strict=True)]
        return [part for part in chosen if len(part)]


def _keys(part: mf.ManifestColumns) -> list[tuple[str, int | None]]:
    return list(zip(part.column("file_path").to_pylist(), part.column("content_offset").to_pylist(), strict=True))


def _remove(
    table: MaintainedTable, removal: _Removal, branch: str | None, properties: Mapping[str, str] | None
) -> RemovedDeletes:
    change = cm.SnapshotChange(cm.ReplaceDeletes(removal.decide), cm.target_of(table.metadata, branch, properties))
    with table.transaction() as tx:
        tx.add(change)
        done = tx.commit()
    return RemovedDeletes.of(removal.removed, next(iter(done.snapshot_ids), None))


def _content(part: mf.ManifestColumns) -> planning.Numbers:
    return np.asarray(part.column("content").to_numpy(), np.int64)
