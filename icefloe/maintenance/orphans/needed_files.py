"""The files that a table needs, kept up with its catalog while they are asked for: what new snapshots reach is added, nothing leaves."""

from collections.abc import Iterable, Iterator
from functools import partial
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, parallel
from icefloe.maintenance.engines import MaintenanceEngine, in_rounds, reader_of
from icefloe.maintenance.expiry.unneeded import list_of, live_entries
from icefloe.maintenance.files.path_hashes import location_hashes
from icefloe.maintenance.files.path_set import Mask, PathSet
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.maintenance.orphans.keys import NeededPaths, Prefix, Prefixes
from icefloe.storage import Storage

_ATTEMPTS = 3
_LISTS_AT_ONCE = 4


class NeededFiles:
    """All that some snapshot, statistics entry or log of a table leads to."""

    def __init__(self, table: MaintainedTable, prefixes: Prefixes, engine: MaintenanceEngine) -> None:
        self._table = table
        self._engine = engine
        self._paths = NeededPaths(prefixes)
        self._manifests = PathSet()
        self._snapshots: set[int] = set()
        self._at: str | None = None

    def catch_up(self) -> None:
        """Add what the table needs by now; one small request if it is where it was."""
        surroundings = self._table.surroundings
        if surroundings is not None and self._at is not None:
            now = surroundings.metadata_location()
            if now is None:
                raise errors.NoSuchTableError(
                    f"table {'.'.join(self._table.name())} is gone; no more files are deleted"
                )
            if now == self._at:
                return
        for attempt in range(_ATTEMPTS):
            try:
                self._take(self._table.refresh().metadata, self._table.metadata_location)
                return
            except errors.LocationNotFoundError:
                # What is missing may have expired since the table was read.
                if attempt + 1 == _ATTEMPTS:
                    raise

    def compare(self, locations: pa.Array) -> tuple[Mask, Mask]:
        """Which of the listed files are needed, and which are in conflict with one that is."""
        return self._paths.compare(locations)

    def conflicts(self, locations: Iterable[str]) -> set[tuple[Prefix, Prefix]]:
        """The prefixes of listed files that are in conflict, each with those that the metadata has."""
        listed = {self._paths.prefix_of(location) for location in locations}
        return {(one, other) for one in listed for other in self._paths.seen if one != other}

    def _take(self, metadata: md.TableMetadata, location: str | None) -> None:
        storage = self._table.storage
        new = [each for each in metadata.snapshots if each.snapshot_id not in self._snapshots]
        lists = parallel.in_order(partial(list_of, storage), [(metadata, snapshot) for snapshot in new], _LISTS_AT_ONCE)
        for manifests, _ in lists:
            paths = manifests["manifest_path"].combine_chunks()
            hashes = location_hashes(paths)
            unread = manifests.filter(~self._manifests.contains_hashes(hashes))
            todo = (manifest for manifest in mf.manifests_in(unread) if manifest.has_live_files)
            engine = reader_of(self._engine, pc.sum(unread["manifest_length"]).as_py() or 0)
            for files in in_rounds(engine, partial(_live_paths, storage, metadata.relative_to), todo):
                self._paths.add(files)
            # Only now, so that one that could not be read is read again.
            self._paths.add(paths)
            self._manifests.add_hashes(hashes)
        self._paths.add(pa.array(list(_described(metadata, location)), pa.string()))
        self._snapshots.update(snapshot.snapshot_id for snapshot in new)
        self._at = location

    def close(self) -> None:
        """Give the disk back."""
        self._paths.close()
        self._manifests.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_class: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _live_paths(storage: Storage, table_location: str | None, manifest: mf.ManifestFile) -> pa.Array:
    """The paths of live files, as they are spelled: what they leave out is any."""
    return live_entries(storage, table_location, manifest).column("file_path")


def _described(metadata: md.TableMetadata, location: str | None) -> Iterator[str]:
    """The files that metadata itself names: lists, statistics, and metadata files."""
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list is not None:
            yield metadata.resolve(snapshot.manifest_list)
    for file in metadata.statistics:
        yield metadata.resolve(file.statistics_path)
    for partition_file in metadata.partition_statistics:
        yield metadata.resolve(partition_file.statistics_path)
    for entry in metadata.metadata_log:
        yield metadata.resolve(entry.metadata_file)
    yield f"{md.metadata_folder(metadata)}/version-hint.text"
    if location is not None:
        yield location
