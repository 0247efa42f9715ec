"""How files leave a snapshot: manifests that hold some of them are written anew, with those marked as deleted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.commit.named_files import NamedFiles
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask, PartitionSet
from icefloe.commit.writing import form_of, write_entries
from icefloe.manifests import WITHOUT_METRICS, EntryStatus, ManifestColumns, ManifestFile, Wanted
from icefloe.storage.identities import identities

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
