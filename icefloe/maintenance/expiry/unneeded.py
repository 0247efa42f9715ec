"""Which files a table stops to need when snapshots leave it: those of the snapshots that leave, less those of all that stay.

Nothing is held as text: manifests and files wait on disk, and what is known of them is a hash. Lists are read once; manifests that
stay are read only if there are files to look for, those first that most likely took them over, and none once all were met. Numbers
and partitions of manifests never rule one out: a picked, rolled back or re-added file has others than it had before.
An entry that says DELETED neither keeps a file nor condemns it; only what is live in what stays counts (FAILURES, rule 8).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, parallel
from icefloe.maintenance.engines import MaintenanceEngine, in_rounds, reader_of
from icefloe.maintenance.files.path_hashes import Hashes, location_hashes
from icefloe.maintenance.files.path_set import PathSet
from icefloe.maintenance.files.reachable import statistics_in
from icefloe.maintenance.files.spool import Spool
from icefloe.progress import Listener, Stage
from icefloe.storage import Storage, identities, identity

LOG = logging.getLogger(__name__)

KINDS = (*(content.name.lower() for content in mf.FileContent), "manifest", "manifest_list", "statistics")
"""What a file is, by number, in the order of the counts of Java's procedure."""
MANIFEST, MANIFEST_LIST, STATISTICS = range(3, 6)
FILES = pa.schema([("location", pa.string()), ("kind", pa.int8()), ("size", pa.int64())])
"""The columns of files to delete: locations in their normal form."""

_LISTS_AT_ONCE = 4
_COLUMNS = mf.wanted("file_path", "content", "file_size_in_bytes", partition=False)


@dataclass(frozen=True, slots=True)
class Departure:
    """Snapshots that left a table: what it was before, what it is after, and which of them are to go with their files."""

    before: md.TableMetadata
    after: md.TableMetadata
    snapshot_ids: tuple[int, ...]
    held_back: tuple[int, ...] = ()
    """Snapshots that left, too, and whose files stay for now."""

    @property
    def leaving(self) -> list[md.Snapshot]:
        """The snapshots whose files may go."""
        return [self.before.snapshot(snapshot_id) for snapshot_id in self.snapshot_ids]

    @property
    def staying(self) -> list[tuple[md.TableMetadata, md.Snapshot]]:
        """The snapshots whose files are needed, each with the metadata that it is part of."""
        held = (self.before.snapshot(snapshot_id) for snapshot_id in self.held_back)
        return [(self.after, snapshot) for snapshot in self.after.snapshots] + [(self.before, each) for each in held]


@dataclass(frozen=True, slots=True)
class Search:
    """How files are looked for: where they are, who reads manifests, and who is told."""

    storage: Storage
    engine: MaintenanceEngine
    listener: Listener
    with_content: bool = True
    """Whether data and delete files are looked for, or metadata files alone."""


def unneeded_files(departure: Departure, search: Search) -> Spool:
    """The files that nothing needs any more, those first that others lead to; the caller closes it."""
    unneeded = Spool(FILES)
    try:
        _collect(departure, search, unneeded)
    except BaseException:
        unneeded.close()
        raise
    return unneeded


def _collect(departure: Departure, search: Search, unneeded: Spool) -> None:
    with ExitStack() as stack:
        kept, gone = stack.enter_context(PathSet()), stack.enter_context(PathSet())
        staying = stack.enter_context(Spool(mf.MANIFEST_TABLE))
        leaving = stack.enter_context(Spool(mf.MANIFEST_TABLE))
        lists = _read_lists(departure, search, kept, gone, staying, leaving)
        if search.with_content:
            doomed = stack.enter_context(Spool(FILES))
            for batch in _content(departure, search, staying, leaving, doomed, stack):
                unneeded.write(batch)
        for batch in leaving.batches():
            unneeded.write(_rows(batch["manifest_path"], MANIFEST, batch["manifest_length"]))
    unneeded.write(_certain(lists, _locations_of_lists(departure.staying), MANIFEST_LIST))
    unneeded.write(_certain(statistics_in(departure.before), statistics_in(departure.after), STATISTICS))


def _read_lists(
    departure: Departure, search: Search, kept: PathSet, gone: PathSet, staying: Spool, leaving: Spool
) -> dict[str, int]:
    """Sort manifests by whether they stay; the lists of snapshots that leave, with their sizes."""
    sizes: dict[str, int] = {}
    todo = departure.staying
    stage = Stage("lists", len(todo) + len(departure.snapshot_ids), search.listener)
    for manifests, _ in parallel.in_order(partial(list_of, search.storage), todo, _LISTS_AT_ONCE):
        is_new = kept.add_new(location_hashes(_one(manifests["manifest_path"])))
        staying.write(manifests.filter(is_new))
        stage.step()
    tolerant = partial(_list_if_there, search.storage)
    for snapshot, (manifests, size) in zip(
        departure.leaving,
        parallel.in_order(tolerant, [(departure.before, each) for each in departure.leaving], _LISTS_AT_ONCE),
        strict=True,
    ):
        hashes = location_hashes(_one(manifests["manifest_path"]))
        is_leaving = ~kept.contains_hashes(hashes) & gone.add_new(hashes)
        leaving.write(manifests.filter(is_leaving))
        if snapshot.manifest_list is not None:
            sizes[identity(departure.before.resolve(snapshot.manifest_list))] = size
        stage.step()
    return sizes


def list_of(storage: Storage, of: tuple[md.TableMetadata, md.Snapshot]) -> tuple[pa.Table, int]:
    """The manifests of a snapshot, and the size of its list."""
    metadata, snapshot = of
    source = mf.SnapshotManifests(metadata, storage.read, storage.limits, keyring=storage.keyring)
    location = source.list_location(snapshot)
    if location is None:
        return mf.manifest_table(source.of(snapshot)), 0
    try:
        data = storage.read(location)
        plain = mf.unsealed(data, mf.list_key(metadata, snapshot, storage.keyring), location)
        table = mf.decode_manifest_table(plain, location, table_location=metadata.relative_to, limits=storage.limits)
    except (errors.CorruptFileError, errors.StorageError) as error:
        raise mf.error_of_snapshot(error, snapshot.snapshot_id) from error
    return table, len(data)


def _list_if_there(storage: Storage, of: tuple[md.TableMetadata, md.Snapshot]) -> tuple[pa.Table, int]:
    """The same; if the list is missing, all that it led to was deleted before it."""
    try:
        return list_of(storage, of)
    except errors.LocationNotFoundError as error:
        LOG.warning("files of an expired snapshot are deleted by others, or stay behind: %s", error)
        return mf.MANIFEST_TABLE.empty_table(), 0


def _content(
    departure: Departure, search: Search, staying: Spool, leaving: Spool, doomed: Spool, stack: ExitStack
) -> Iterator[pa.RecordBatch]:
    """The data and delete files of manifests that leave, less those that are live in one that stays."""
    candidates, needed = stack.enter_context(PathSet()), stack.enter_context(PathSet())
    read = partial(_live_if_there, search.storage, departure.before.relative_to)
    for files in in_rounds(reader_of(search.engine, _size_of(leaving)), read, _with_live_files(leaving)):
        is_new = candidates.add_new(location_hashes(files["location"]))
        doomed.write(files.filter(pa.array(is_new)))
    if not len(doomed):
        return
    kinds = frozenset(
        mf.ManifestContent.DELETES if kind else mf.ManifestContent.DATA
        for batch in doomed.batches()
        for kind in pc.unique(batch["kind"]).to_pylist()
    )
    _mark_needed(departure, search, staying, _likely(leaving), kinds, candidates, needed)
    for batch in doomed.batches():
        unneeded = ~needed.contains_hashes(location_hashes(batch["location"]))
        yield batch.filter(pa.array(unneeded))


def _mark_needed(
    departure: Departure,
    search: Search,
    staying: Spool,
    likely: Callable[[mf.ManifestFile], bool],
    kinds: Collection[mf.ManifestContent],
    candidates: PathSet,
    needed: PathSet,
) -> None:
    """Read the manifests that stay until all candidates were met, those first that likely took some over."""
    total = sum(1 for manifest in _with_live_files(staying) if manifest.content in kinds)
    stage = Stage("manifests", total, search.listener)
    read = partial(_live_hashes, search.storage, departure.after.relative_to)
    engine = reader_of(search.engine, _size_of(staying))
    for first in (True, False):
        todo = (
            manifest
            for manifest in _with_live_files(staying)
            if manifest.content in kinds and likely(manifest) is first
        )
        for hashes in in_rounds(engine, read, todo):
            needed.add_hashes(hashes[candidates.contains_hashes(hashes)])
            stage.step()
            if len(needed) == len(candidates):
                return


def _likely(leaving: Spool) -> Callable[[mf.ManifestFile], bool]:
    """Whether a manifest may have been made of those that leave, by its numbers."""
    specs: set[tuple[int, int]] = set()
    smallest: list[int] = []
    for batch in leaving.batches():
        specs.update(zip(batch["content"].to_pylist(), batch["partition_spec_id"].to_pylist(), strict=True))
        smallest.append(pc.min(batch["min_sequence_number"]).as_py() or 0)
    oldest = min(smallest, default=0)

    def is_likely(manifest: mf.ManifestFile) -> bool:
        return (int(manifest.content), manifest.partition_spec_id) in specs and manifest.sequence_number >= oldest

    return is_likely


def _size_of(manifests: Spool) -> int:
    return sum(pc.sum(batch["manifest_length"]).as_py() or 0 for batch in manifests.batches())


def _with_live_files(manifests: Spool) -> Iterator[mf.ManifestFile]:
    for batch in manifests.batches():
        yield from (manifest for manifest in mf.manifests_in(batch) if manifest.has_live_files)


def live_entries(storage: Storage, table_location: str | None, manifest: mf.ManifestFile) -> mf.ManifestColumns:
    """The live files of a manifest: their paths, what they hold, and their sizes."""
    entries = mf.read_manifest(manifest, storage.read, _COLUMNS, table_location=table_location, limits=storage.limits)
    return entries.filter(entries.is_live)


def _live(storage: Storage, table_location: str | None, manifest: mf.ManifestFile) -> pa.RecordBatch:
    live = live_entries(storage, table_location, manifest)
    kinds = pc.fill_null(live.column("content"), int(mf.FileContent.DATA))
    return _rows(live.column("file_path"), kinds, live.column("file_size_in_bytes"))


def _live_if_there(storage: Storage, table_location: str | None, manifest: mf.ManifestFile) -> pa.RecordBatch:
    """The same; if the manifest is missing, its files were deleted before it."""
    try:
        return _live(storage, table_location, manifest)
    except errors.LocationNotFoundError as error:
        LOG.warning("files of an expired snapshot are deleted by others, or stay behind: %s", error)
        return _rows(pa.array([], pa.string()), 0, pa.array([], pa.int64()))


def _live_hashes(storage: Storage, table_location: str | None, manifest: mf.ManifestFile) -> Hashes:
    """The hashes of the live files of a manifest: a vector is one of many in its file."""
    return np.unique(location_hashes(_live(storage, table_location, manifest)["location"]))


def _rows(locations: pa.Array, kind: int | pa.Array, sizes: pa.Array) -> pa.RecordBatch:
    kinds = pa.array(np.full(len(locations), kind, np.int8)) if isinstance(kind, int) else kind.cast(pa.int8())
    return pa.RecordBatch.from_arrays([identities(locations), kinds, pc.fill_null(sizes, 0)], schema=FILES)


def _certain(leaving: dict[str, int], staying: Iterable[str], kind: int) -> pa.RecordBatch:
    """The files, with their sizes, that are certain to be none of those that stay."""
    kept = set(location_hashes(pa.array(list(staying), pa.string())).tolist())
    hashes = location_hashes(pa.array(list(leaving), pa.string())).tolist()
    files = {path: size for (path, size), number in zip(leaving.items(), hashes, strict=True) if number not in kept}
    return _rows(pa.array(list(files), pa.string()), kind, pa.array(list(files.values()), pa.int64()))


def _locations_of_lists(snapshots: Iterable[tuple[md.TableMetadata, md.Snapshot]]) -> Iterator[str]:
    for metadata, snapshot in snapshots:
        if snapshot.manifest_list is not None:
            yield metadata.resolve(snapshot.manifest_list)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
