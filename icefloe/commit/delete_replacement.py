"""Replace delete files: others of the same meaning come in their place, or nothing, where they delete no row any more.

What goes and what comes is decided anew for each snapshot that the commit is tried on, so that whatever came meanwhile counts.
A data file that an old delete reaches keeps that delete; one that is gone needs its new deletes no more. A vector that came
meanwhile is united with ours: all rows of ours were deleted before it came. Delete files that are to be replaced as one stay as
they are if one of them is gone already.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit import added as new_files, conflicts, named_files as named, vectors as dv
from icefloe.commit.named_files import NO_FILES, NamedDeletes, NamedFiles
from icefloe.commit.new_manifests import NewManifests, merge_manifests, remove_files, write_added
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import Mask
from icefloe.commit.producer import Delta
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.storage import identity


@dataclass(frozen=True, slots=True, eq=False)
class DeleteSwap:
    """What a commit does to the delete files of one snapshot; rows stay as they are."""

    remove: NamedDeletes
    add: tuple[new_files.FileGroup, ...] = ()
    remove_data: NamedFiles = NO_FILES
    """Data files of which every row is deleted; their own deletes go with them."""
    ended: Collection[str] = field(default=())
    """Data files that are gone already, by normal path, among those whose deletion vectors are removed."""


Decide = Callable[[Parent], DeleteSwap | None]
"""What is to be done to the delete files of the snapshot that a commit builds on; None is nothing."""


class ReplaceDeletes:
    """Makes a `replace` snapshot of what is decided on its parent; in each attempt anew."""

    def __init__(self, decide: Decide) -> None:
        self.added: tuple[new_files.FileGroup, ...] = ()
        self._decide = decide

    def apply(self, parent: Parent) -> Delta | None:
        """The manifests with the new delete files in place of the old ones."""
        swap = self._decide(parent)
        if swap is None:
            return None
        gone = swap.remove_data
        data = remove_files(parent, mf.ManifestContent.DATA, gone.may_be_in, gone.mask)
        gone.check_removed(data.removed, "data file")
        deletes = _without(parent, swap, gone)
        vectors = [part for part in map(new_files.vectors_of, swap.add) if len(part)]
        dv.check_not_revived(
            deletes.removed, {*gone.paths.to_pylist(), *swap.ended, *dv.vector_paths(vectors).to_pylist()}
        )
        dv.check_one_for_each(parent, deletes.manifests, vectors)
        if not (data.removed or deletes.removed or swap.add):
            return None
        files = new_files.fitted(parent.metadata, swap.add)
        new = write_added(parent, (self, tuple(map(_key, swap.add))), files)
        merged = merge_manifests(parent, new, data, deletes)
        return Delta(md.Operation.REPLACE, merged, [group.columns for group in files])


def _without(parent: Parent, swap: DeleteSwap, gone: NamedFiles) -> NewManifests:
    def choose(files: mf.ManifestColumns) -> Mask:
        return swap.remove.mask(files) | gone.mask(files, "referenced_data_file")

    if not len(swap.remove) and not len(gone):
        return NewManifests(parent.manifests(mf.ManifestContent.DELETES))
    deletes = remove_files(parent, mf.ManifestContent.DELETES, lambda _: True, choose)
    swap.remove.check_removed(deletes.removed)
    return deletes


def _key(group: new_files.FileGroup) -> tuple[object, ...]:
    """What tells the new files of one attempt from those of another."""
    columns = group.columns
    names = ("file_path", "content_offset", "sequence_number")
    return group.spec_id, *(tuple(columns.column(name).to_pylist()) for name in names)


Unneeded = Callable[[Parent], Sequence[mf.ManifestColumns]]
"""Delete files of a snapshot that no data file there needs, once the rest of a replacement is done."""


@dataclass(frozen=True, slots=True)
class NewVector:
    """A vector that is written already, with all that was deleted by position of its data file, or is to be from now on."""

    file: mf.DataFile
    replaces: mf.DataFile | None = None
    """The vector that the data file had."""


@dataclass(frozen=True, slots=True)
class FileSwap:
    """Delete files that others stand for, all of them or none; `sequence_number` is that of the new ones."""

    old: tuple[mf.DataFile, ...]
    new: tuple[mf.DataFile, ...]
    sequence_number: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """What an attempt to commit does: delete files that come and go, and data files without live rows."""

    added: tuple[mf.DataFile, ...] = ()
    removed: tuple[mf.DataFile, ...] = ()
    removed_data: tuple[mf.DataFile, ...] = ()
    unneeded: tuple[mf.ManifestColumns, ...] = ()
    swaps: tuple[FileSwap, ...] = ()


def nothing_unneeded(parent: Parent) -> Sequence[mf.ManifestColumns]:  # noqa: ARG001 - as the type of the argument asks
    """No delete file goes besides."""
    return ()


class DeleteReplacement:
    """New deletes in place of old ones of the same meaning, planned on one snapshot; decided on any that follows it."""

    def __init__(
        self,
        planned: conflicts.Planned,
        *,
        vectors: Iterable[NewVector] = (),
        positions: Iterable[mf.DataFile] = (),
        swaps: Iterable[FileSwap] = (),
        remove: Iterable[mf.DataFile] = (),
        emptied: Iterable[mf.DataFile] = (),
        unneeded: Unneeded = nothing_unneeded,
    ) -> None:
        """What is to be replaced.

        Args:
            planned: the snapshot that all this was planned on.
            vectors: new vectors.
            positions: new position delete files, of one data file each.
            swaps: delete files that others replace.
            remove: position delete files that the new vectors stand for.
            emptied: data files without live rows.
            unneeded: which delete files go besides.
        """
        self._planned = planned
        self._vectors = {_about(vector.file): vector for vector in vectors}
        self._positions = {_about(file): file for file in positions}
        self._swaps = tuple(swaps)
        self._remove = tuple(remove)
        self._emptied = {identity(file.file_path): file for file in emptied}
        self._unneeded = unneeded
        self.done = Replaced()
        """What the last attempt did."""

    def decide(self, parent: Parent) -> DeleteSwap | None:
        """What is done to the delete files of the snapshot that the commit builds on."""
        # To find out whether something happened in between that is not known any more.
        conflicts.Since(parent, self._planned)
        paths = (*self._vectors, *self._positions, *self._emptied)
        files = named.locate_live(parent, paths) if paths else {}
        added, superseded = self._united(parent, files)
        added += [file for path, file in self._positions.items() if path in files]
        live = _live(parent, (*self._remove, *(file for swap in self._swaps for file in swap.old)))
        swaps = tuple(swap for swap in self._swaps if all(named.blob_key(file) in live for file in swap.old))
        removed = [file for file in self._remove if named.blob_key(file) in live]
        removed += [*superseded, *(file for swap in swaps for file in swap.old)]
        removed = list({named.blob_key(file): file for file in removed}.values())
        emptied = tuple(file for path, file in self._emptied.items() if path in files)
        unneeded = tuple(self._unneeded(parent))
        new = (*added, *(file for swap in swaps for file in swap.new))
        self.done = Replaced(new, tuple(removed), emptied, unneeded, swaps)
        if not (new or removed or emptied or unneeded):
            return None
        return DeleteSwap(
            named.NamedDeletes.of(removed, parent.metadata) | named.NamedDeletes.in_columns(unneeded),
            _grouped(parent, new, {named.blob_key(f): swap.sequence_number for swap in swaps for f in swap.new}),
            named.NamedFiles.of(emptied, parent.metadata),
        )

    def _united(
        self, parent: Parent, files: dict[str, named.LocatedFile]
    ) -> tuple[list[mf.DataFile], list[mf.DataFile]]:
        """The vectors to add, and the deletes that they stand for."""
        located = {path: files[path] for path in self._vectors if path in files}
        if not located:
            return [], []
        now = dv.live_deletes(parent, located, parent.snapshot)
        stay: list[mf.DataFile] = []
        united: dict[str, DeletionVector] = {}
        superseded: list[mf.DataFile] = []
        for path, file in located.items():
            ours, entry = self._vectors[path], now.vectors.get(path)
            if entry is None or _is_same(entry.data_file, ours.replaces):
                stay.append(dv.in_place_of(ours.file, file))
            else:
                both = _load(parent, ours.file, file) | _load(parent, entry.data_file, file)
                if both.cardinality == entry.data_file.record_count:
                    continue
                united[path] = both
            superseded += [] if entry is None else [entry.data_file]
            superseded += [old.data_file for old in now.of_one_file.get(path, ())]
        key = tuple((path, named.blob_key(now.vectors[path].data_file)) for path in united)
        written = parent.bench.remember(("united", self, key), lambda: dv.write_vectors(parent, united, located))
        return [*stay, *written], superseded


def _about(file: mf.DataFile) -> str:
    assert file.referenced_data_file is not None, f"{file.file_path} is of one data file"
    return identity(file.referenced_data_file)


def _is_same(file: mf.DataFile, other: mf.DataFile | None) -> bool:
    return other is not None and named.blob_key(file) == named.blob_key(other)


def _load(parent: Parent, vector: mf.DataFile, file: named.LocatedFile) -> DeletionVector:
    return dv.load_vector(parent.bench.storage, vector, file.record_count)


def _live(parent: Parent, files: Sequence[mf.DataFile]) -> frozenset[named.BlobKey]:
    """Which of some delete files are live."""
    keys = frozenset(map(named.blob_key, files))
    live: set[named.BlobKey] = set()
    for manifest in parent.manifests(mf.ManifestContent.DELETES) if keys else ():
        columns = parent.read(manifest, mf.WITHOUT_METRICS)
        live.update(keys.intersection(named.blob_keys(columns.filter(columns.is_live))))
    return frozenset(live)


def _grouped(
    parent: Parent, files: Sequence[mf.DataFile], numbers: dict[named.BlobKey, int]
) -> tuple[new_files.FileGroup, ...]:
    """The new delete files by spec, with the sequence numbers of those that have their own."""
    try:
        groups = new_files.group_files(files, parent.metadata, mf.ManifestContent.DELETES)
    except errors.InvalidInputError as error:
        raise errors.ValidationError(
            f"the table was changed by another commit since this one was planned: {error}; plan it again"
        ) from error
    if not numbers:
        return groups
    own = [[numbers.get(key) for key in named.blob_keys(group.columns)] for group in groups]
    return tuple(
        replace(group, columns=group.columns.with_columns(sequence_number=pa.array(each, pa.int64())))
        for group, each in zip(groups, own, strict=True)
    )
