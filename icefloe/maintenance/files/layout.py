"""What the files of a table take: those of the current rows, those that only history needs, metadata, and those that nothing names."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import metadata as md
from icefloe.inspect import Inspect
from icefloe.maintenance.files.reachable import manifest_lists_of, metadata_files_of, statistics_in
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.storage import FileInfo, identities

_A_BATCH = 10_000
_SIZES = pa.schema([("path", pa.string()), ("size", pa.int64())])


@dataclass(frozen=True, slots=True)
class Share:
    """Some files, and what they take."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Share") -> "Share":
        return Share(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class StorageLayout:
    """The files of a table by what they are for."""

    live: Share
    """Data and delete files of the current snapshot."""
    history: Share
    """Data and delete files that only other snapshots need: expiry frees them, once branches and tags let them go."""
    metadata: Share
    """Metadata files, manifest lists, manifests and statistics."""
    unreferenced: Share
    """Files beneath the table's location that the table does not name; those of writers at work are among them."""

    @property
    def total(self) -> Share:
        """All of them."""
        return self.live + self.history + self.metadata + self.unreferenced


def storage_layout(table: MaintainedTable) -> StorageLayout:
    """The layout of the newest state; manifests are read, and the location is listed."""
    metadata = table.refresh().metadata
    inspect = Inspect(metadata, table.storage, table.metadata_location)
    columns = ("file_path", "file_size_in_bytes")
    every = _distinct(inspect.all_files(selected_fields=columns))
    live = _distinct(inspect.files(selected_fields=columns))
    manifests = _distinct(inspect.all_manifests(selected_fields=("path", "length")))
    named = _named(metadata, table.metadata_location)
    listed = _Listed(pa.concat_arrays([every["path"], manifests["path"], named]), named)
    for batch in _batches(table.storage.list_prefix(str(metadata.location))):
        listed.add(batch)
    return StorageLayout(
        live=_share(live),
        history=_share(every.filter(pc.invert(pc.is_in(every["path"], live["path"])))),
        metadata=_share(manifests) + listed.named,
        unreferenced=listed.unreferenced,
    )


class _Listed:
    """Adds up a listing: files that metadata names without their sizes, and files that nothing names."""

    def __init__(self, needed: pa.Array, named: pa.Array) -> None:
        self._needed = needed
        self._of_named = named
        self.named = Share()
        self.unreferenced = Share()

    def add(self, batch: pa.RecordBatch) -> None:
        """Count one more part."""
        paths = identities(batch["path"])
        self.named += _share(batch.filter(pc.is_in(paths, self._of_named)))
        self.unreferenced += _share(batch.filter(pc.invert(pc.is_in(paths, self._needed))))


def _named(metadata: md.TableMetadata, location: str | None) -> pa.Array:
    """Files of the table whose sizes are known to a listing alone."""
    names = {*manifest_lists_of(metadata), *statistics_in(metadata), *metadata_files_of(metadata, location)}
    return pa.array(sorted(names), pa.string())


def _distinct(table: pa.Table) -> pa.RecordBatch:
    """Each file once, by the normal form of its path."""
    paths = [identities(chunk) for chunk in table.column(0).chunks]
    sized = pa.table({"path": pa.chunked_array(paths, pa.string()), "size": table.column(1).cast(pa.int64())})
    once = sized.group_by("path").aggregate([("size", "max")]).rename_columns(["path", "size"])
    batches = once.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], _SIZES)


def _share(files: pa.RecordBatch) -> Share:
    return Share(files.num_rows, int(pc.sum(files["size"]).as_py() or 0))


def _batches(files: Iterator[FileInfo]) -> Iterator[pa.RecordBatch]:
    while part := list(islice(files, _A_BATCH)):
        paths, sizes = [info.location for info in part], [info.size for info in part]
        yield pa.RecordBatch.from_arrays([pa.array(paths, pa.string()), pa.array(sizes, pa.int64())], schema=_SIZES)
