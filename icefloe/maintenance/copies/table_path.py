"""A copy of a table beneath another location: which files it needs, which of them are written again, and where they go.

What a copy needs is what its metadata file leads to, and an incremental copy what its start does not lead to, whichever
snapshot added it: files of expired snapshots that are still live are part of it. Nothing is committed, and nothing is copied:
files with other paths in them are staged, and a list says what is to be copied where. The list is written last.
"""

import csv
import io
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md
from icefloe.maintenance.copies.moved_files import (
    DeleteFile,
    FilesOfManifest,
    ListOfManifests,
    MovedFile,
    Relocation,
)
from icefloe.maintenance.copies.prefixes import Prefixes
from icefloe.maintenance.copies.versions import Known, Versions
from icefloe.maintenance.engines import Item, MaintenanceEngine, Result
from icefloe.maintenance.files.reachable import manifest_lists_of, manifests_of, statistics_in
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.progress import Listener, Stage, listener_or_bar
from icefloe.storage import absolute_location, identity
from icefloe.versions import Feature, allows

NO_LIST = "N/A"
"""Where the list is if none was asked for."""
_LIST_NAME = "file-list"


@dataclass(frozen=True, slots=True)
class RewrittenTablePath:
    """What a copy of a table is made of: the columns of Java's procedure, and more."""

    latest_version: str
    """The name of the metadata file that the copy ends with."""
    file_list_location: str
    rewritten_manifest_file_paths_count: int
    rewritten_delete_file_paths_count: int
    staging_location: str = field(kw_only=True)
    metadata_location: str = field(kw_only=True)
    """The metadata file at the target: what is registered there, once all files are copied."""
    listed_files_count: int = field(kw_only=True)
    missing_metadata_files: tuple[str, ...] = field(default=(), kw_only=True)
    """Earlier metadata files that the log names and that are gone; the copy does without them."""


@dataclass(frozen=True, slots=True)
class PathRequest:
    """What a caller asks for."""

    source_prefix: str
    target_prefix: str
    start_version: str | None = None
    end_version: str | None = None
    staging_location: str | None = None
    create_file_list: bool = True


def rewrite_table_path(
    table: MaintainedTable, request: PathRequest, engine: MaintenanceEngine, progress: Listener | None = None
) -> RewrittenTablePath:
    """Stage what changes, and list what is to be copied."""
    return _Copy(table, request, engine, listener_or_bar(progress)).run()


def _check_vouched(versions: Versions, current: md.TableMetadata) -> None:
    """The catalog vouches for the current metadata of an encrypted table alone, so that a copy ends with that."""
    if mf.is_encrypted(current) and versions.end is not current:
        raise errors.EncryptionError(
            "the table is encrypted, and its catalog vouches for its current metadata file alone; leave end_version out"
        )


def _of_manifest(part: FilesOfManifest, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a manifest's own delete files."""
    return {path: sizes[path] for path in (identity(file.path) for file in part.deletes)}


@dataclass
class _Lines:
    """What is to be copied, and where to: columns of paths, each file once."""

    sources: list[pa.Array] = field(default_factory=list)
    targets: list[pa.Array] = field(default_factory=list)

    def add(self, source: str, target: str) -> None:
        """One file."""
        self.sources.append(pa.array([source]))
        self.targets.append(pa.array([target]))

    def __len__(self) -> int:
        return sum(map(len, self.sources))

    def batches(self) -> Iterator[bytes]:
        """The lines of the list; paths with commas, quotes or line ends are quoted as in CSV."""
        for sources, targets in zip(self.sources, self.targets, strict=True):
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(zip(sources.to_pylist(), targets.to_pylist(), strict=True))
            yield text.getvalue().encode()


class _Copy:
    """One run."""

    def __init__(
        self, table: MaintainedTable, request: PathRequest, engine: MaintenanceEngine, listener: Listener
    ) -> None:
        self._storage = table.storage
        self._request = request
        self._engine = engine
        self._listener = listener
        self._versions = Versions.of(table, request.start_version, request.end_version)
        self._end, self._start = self._versions.end, self._versions.start
        _check_vouched(self._versions, table.metadata)
        keeps_relative = allows(self._end.format_version, Feature.RELATIVE_PATHS)
        prefixes = Prefixes.of(request.source_prefix, request.target_prefix, keeps_relative=keeps_relative)
        staging = request.staging_location or f"{md.metadata_folder(self._end)}/copy-table-staging-{uuid.uuid4()}"
        self._relocation = Relocation(
            self._storage,
            prefixes,
            absolute_location(staging).rstrip("/"),
            self._end.schema(),
            dict(self._end.properties),
            self._end.relative_to,
        )
        self._lines = _Lines()
        self._deletes_written = 0

    def run(self) -> RewrittenTablePath:
        """All steps, those first on which others depend."""
        self._check_prefix()
        moved = self._manifests_and_content()
        lengths = {identity(file.path): file.size for file in moved}
        keys = self._lists(lengths)
        known = statistics_in(self._start) if self._start else {}
        for path in statistics_in(self._end).keys() - known.keys():
            self._copy(path)
        metadata = [(path, keys) for path in self._versions.files]
        for file in self._map("metadata", self._relocation.moved_metadata, metadata):
            self._note(file)
        return RewrittenTablePath(
            self._versions.end_location.rpartition("/")[2],
            self._write_list(),
            sum(file.is_staged for file in moved),
            self._deletes_written,
            staging_location=self._relocation.staging,
            metadata_location=self._relocation.prefixes.moved(self._versions.end_location),
            listed_files_count=len(self._lines),
            missing_metadata_files=self._versions.missing,
        )

    def _check_prefix(self) -> None:
        """What can be said at once: the table, its metadata and its lists are beneath the prefix."""
        rest = self._relocation.prefixes.rest
        for path in (*self._versions.files, *sorted(manifest_lists_of(self._end)), *statistics_in(self._end)):
            rest(path)
        if self._end.location is not None:
            rest(self._end.location)

    # Manifests and what they name

    def _manifests_and_content(self) -> list[MovedFile]:
        """Manifests that the copy lacks, written again after the delete files whose sizes they hold; with all their files."""
        new, old = self._manifests()
        parts = list(self._map("manifests", self._relocation.files_of, new))
        deletes = {identity(file.path): file for part in parts for file in part.deletes}
        sizes = self._delete_files(deletes)
        moved = [part.moved for part in parts if part.moved is not None]
        tasks = [(part.manifest, _of_manifest(part, sizes)) for part in parts if part.moved is None]
        moved += self._map("manifests", self._relocation.moved_manifest, tasks)
        for file in moved:
            self._note(file)
        self._content(parts)
        return [*moved, *self._map("manifests", self._relocation.manifest_at_target, old)]

    def _manifests(self) -> tuple[list[mf.ManifestFile], list[mf.ManifestFile]]:
        """The manifests that the start does not lead to, and of the others those that new lists name."""
        needed = manifests_of(self._end, self._end.snapshots, self._storage)
        listed = manifests_of(self._end, self._listing_snapshots, self._storage)
        new = [manifest for path, manifest in needed.items() if not self._known.has_manifest(path, manifest)]
        return new, [manifest for path, manifest in listed.items() if self._known.has_manifest(path, manifest)]

    def _delete_files(self, deletes: Mapping[str, DeleteFile]) -> dict[str, int]:
        """The sizes that delete files have at the target; those that are not there yet are written."""
        relocation = self._relocation
        old = [file for path, file in deletes.items() if self._known.has_file(path, file.added_by)]
        new = [file for path, file in deletes.items() if not self._known.has_file(path, file.added_by)]
        written = list(self._map("deletes", relocation.moved_deletes, new))
        for file in written:
            self._note(file)
        self._deletes_written = sum(file.is_staged for file in written)
        sizes = [*written, *self._map("deletes", relocation.deletes_at_target, old)]
        return {identity(file.path): file.size for file in sizes}

    def _content(self, parts: Iterable[FilesOfManifest]) -> None:
        """The data files, each once; delete files are on the list already."""
        of_data = [part for part in parts if part.manifest.content is mf.ManifestContent.DATA]
        files = pa.table(
            {
                "path": pa.chunked_array([part.paths for part in of_data], pa.string()),
                "added_by": pa.chunked_array([part.added_by for part in of_data], pa.int64()),
            }
        )
        fresh = pc.unique(self._known.without(files))
        if len(fresh):
            self._lines.sources.append(fresh)
            self._lines.targets.append(self._relocation.prefixes.moved_column(fresh))

    @cached_property
    def _known(self) -> Known:
        return Known.of(self._start, self._end, self._storage)

    # Lists

    @cached_property
    def _new_snapshots(self) -> list[md.Snapshot]:
        known = self._start.snapshots_by_id if self._start else {}
        return [snapshot for snapshot in self._end.snapshots if snapshot.snapshot_id not in known]

    @cached_property
    def _listing_snapshots(self) -> Sequence[md.Snapshot]:
        """Those whose lists have to be looked into: keys of lists hold their lengths, so that all of encrypted tables are."""
        return self._end.snapshots if mf.is_encrypted(self._end) else self._new_snapshots

    def _lists(self, lengths: Mapping[str, int]) -> Mapping[str, bytes]:
        """The lists that the copy lacks, written again; what is in the entries of keys whose lists have other lengths there."""
        source = mf.SnapshotManifests(
            self._end, self._storage.read, self._storage.limits, keyring=self._storage.keyring
        )
        tasks: dict[int, ListOfManifests] = {}
        for snapshot in self._listing_snapshots:
            location = source.list_location(snapshot)
            if location is not None:
                own = (identity(manifest.manifest_path) for manifest in source.of(snapshot))
                key = mf.list_key(self._end, snapshot, self._storage.keyring)
                tasks[snapshot.snapshot_id] = ListOfManifests(location, {path: lengths[path] for path in own}, key)
        new = {snapshot.snapshot_id for snapshot in self._new_snapshots}
        lists = list(self._map("lists", self._relocation.moved_list, [tasks[i] for i in tasks if i in new]))
        for file in lists:
            self._note(file)
        if len(tasks) > len(lists):
            old = [task for snapshot_id, task in tasks.items() if snapshot_id not in new]
            lists += self._map("lists", self._relocation.list_at_target, old)
        return self._keys_of({file.path: file.size for file in lists}, tasks)

    def _keys_of(self, sizes: Mapping[str, int], tasks: Mapping[int, ListOfManifests]) -> Mapping[str, bytes]:
        found = {}
        for snapshot_id, task in tasks.items():
            key, key_id = task.key, self._end.snapshots_by_id[snapshot_id].key_id
            if key is not None and key_id is not None and key.file_length not in (None, sizes[task.path]):
                assert self._storage.keyring is not None, "it opened the list"
                found[key_id] = self._storage.keyring.resealed(self._end, key_id, key.of_length(sizes[task.path]))
        return found

    def _map(self, stage: str, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        counter = Stage(stage, len(items), self._listener)
        for result in self._engine.map(function, items):
            counter.step()
            yield result

    # What is copied

    def _note(self, file: MovedFile) -> None:
        if file.is_staged:
            self._lines.add(self._relocation.staged(file.path), self._relocation.prefixes.moved(file.path))
        else:
            self._copy(file.path)

    def _copy(self, path: str) -> None:
        self._lines.add(path, self._relocation.prefixes.moved(path))

    def _write_list(self) -> str:
        if not self._request.create_file_list:
            return NO_LIST
        location = f"{self._relocation.staging}/{_LIST_NAME}"
        with self._storage.open_output(location) as output:
            for batch in self._lines.batches():
                output.write(batch)
        return location
