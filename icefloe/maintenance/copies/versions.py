"""Between which versions of a table a copy is made, and what of it the copy has already."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md
from icefloe.maintenance.files.reachable import live_content, manifests_of
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.storage import Storage, identities

_SHOWN = 5
"""How many names of versions an error shows."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The metadata files that a copy begins after and ends with."""

    end: md.TableMetadata
    end_location: str
    start: md.TableMetadata | None
    files: tuple[str, ...]
    """Those after the start and up to the end, which the copy has."""
    missing: tuple[str, ...]

    @staticmethod
    def of(table: MaintainedTable, start_version: str | None, end_version: str | None) -> "Versions":
        """What a caller asks for, by names of files in the log or by their locations."""
        current, location, storage = table.metadata, table.metadata_location, table.storage
        if location is None:
            raise errors.StateError(
                "the table is not committed yet, so it has no metadata file that a copy could end with"
            )
        log = [*(current.resolve(entry.metadata_file) for entry in current.metadata_log), location]
        end_at = len(log) - 1 if end_version is None else _index(log, end_version, "end_version")
        start_at = -1 if start_version is None else _index(log, start_version, "start_version")
        if start_at >= end_at:
            raise errors.InvalidInputError(
                f"start_version {start_version!r} is not before the end, {log[end_at].rpartition('/')[2]!r}"
            )
        earlier = log[start_at + 1 : end_at]
        missing = tuple(path for path in earlier if not storage.exists(path))
        files = (*(path for path in earlier if path not in missing), log[end_at])
        start = None if start_at < 0 else _read(storage, log[start_at])
        end = current if log[end_at] == location else _read(storage, log[end_at])
        return Versions(end, log[end_at], start, files, missing)


def _index(log: Sequence[str], version: str, parameter: str) -> int:
    for index, path in enumerate(log):
        if version in (path, path.rpartition("/")[2]):
            return index
    names = ", ".join(path.rpartition("/")[2] for path in log[-_SHOWN:])
    raise errors.InvalidInputError(
        f"{parameter} {version!r} is no metadata file in the table's log; the last ones are {names}"
    )


def _read(storage: Storage, location: str) -> md.TableMetadata:
    try:
        return md.decode_metadata_file(storage.read(location), storage.limits).located(location)
    except errors.LocationNotFoundError:
        raise errors.StateError(
            f"{location} is in the table's log, but the file is gone; choose another version"
        ) from None


@dataclass(frozen=True, slots=True)
class Known:
    """What the start leads to, as far as it can be told: snapshots that expired since may have lost their lists.

    What a snapshot of the start added is known for that. In doubt a file is copied again, which does no harm.
    """

    snapshot_ids: frozenset[int] = frozenset()
    manifests: frozenset[str] = frozenset()
    content: frozenset[str] = frozenset()

    @staticmethod
    def of(start: md.TableMetadata | None, end: md.TableMetadata, storage: Storage) -> "Known":
        """What can be read of the start; nothing without one."""
        if start is None:
            return Known()
        both = [snapshot for snapshot in start.snapshots if snapshot.snapshot_id in end.snapshots_by_id]
        manifests = manifests_of(start, both, storage)
        content = {path for paths, _ in live_content(start, manifests.values(), storage) for path in paths}
        for snapshot in start.snapshots:
            if snapshot.snapshot_id not in end.snapshots_by_id:
                with suppress(errors.LocationNotFoundError):
                    expired = manifests_of(start, [snapshot], storage)
                    new = [manifest for path, manifest in expired.items() if path not in manifests]
                    content.update(path for paths, _ in live_content(start, new, storage) for path in paths)
                    manifests |= expired
        return Known(frozenset(start.snapshots_by_id), frozenset(manifests), frozenset(content))

    def has_manifest(self, path: str, manifest: mf.ManifestFile) -> bool:
        """Whether the copy of the start has a manifest."""
        return path in self.manifests or manifest.added_snapshot_id in self.snapshot_ids

    def has_file(self, path: str, added_by: int) -> bool:
        """Whether the copy of the start has a file, by its normal path and the snapshot that added it."""
        return path in self.content or added_by in self.snapshot_ids

    def without(self, files: pa.Table) -> pa.ChunkedArray:
        """The paths of files that the copy of the start does not have."""
        ids = pa.array(sorted(self.snapshot_ids), pa.int64())
        left = files.filter(pc.invert(pc.is_in(files.column("added_by"), value_set=ids))).column("path")
        if not self.content:
            return left
        normal = identities(pa.concat_arrays(left.chunks) if left.num_chunks else pa.array([], pa.string()))
        return left.filter(pc.invert(pc.is_in(normal, value_set=pa.array(sorted(self.content)))))
