"""Storage used by the files of a table: current rows, history alone, metadata, and unreferenced files."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import metadata as md
from icefloe.inspect import Inspect, MetadataScan
from icefloe.maintenance.files.path_hashes import location_hashes
from icefloe.maintenance.files.path_set import PathSet
from icefloe.maintenance.files.reachable import manifest_lists_of, metadata_files_of, statistics_in
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.progress import Listener, Stage, listener_or_bar
from icefloe.storage import FileInfo, identities

_A_BATCH = 10_000
_PATH_AND_SIZE = ("file_path", "file_size_in_bytes")
_PARTITION = "partition."
_SIZES = pa.schema([("path", pa.string()), ("size", pa.int64())])


@dataclass(frozen=True, slots=True)
class Share:
    """Number and size of files."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Share") -> "Share":
        return Share(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class StorageLayout:
    """Files of a table by purpose."""

    live: Share
    """Data and delete files of the current snapshot."""
    history: Share
    """Data and delete files that only other snapshots reference; freed by expiry, unless branches and tags retain them."""
    metadata: Share
    """Metadata files, manifest lists, manifests and statistics."""
    unreferenced: Share
    """Files under the table's location that the table does not reference, including those of running writers."""

    @property
    def total(self) -> Share:
        """All files."""
        return self.live + self.history + self.metadata + self.unreferenced


def storage_layout(table: MaintainedTable, progress: Listener | None = None) -> StorageLayout:
    """Return the layout of the latest state; manifests and the listing of the location are streamed."""
    metadata = table.refresh().metadata
    inspect = Inspect(metadata, table.storage, table.metadata_location)
    stage = Stage("storage", 3, listener_or_bar(progress))
    with PathSet() as needed:
        live = _new(inspect.scan("files", selected_fields=_PATH_AND_SIZE), needed)
        stage.step()
        current = frozenset(inspect.manifests(selected_fields=("path",)).column("path").to_pylist())
        others = inspect.scan("all_files", selected_fields=_PATH_AND_SIZE, skipped_manifests=current)
        history = _new(others, needed)
        manifests = _new(inspect.scan("all_manifests", selected_fields=("path", "length")), needed)
        stage.step()
        named = _named(metadata, table.metadata_location)
        needed.add(named)
        listed = _Listed(needed, named)
        for batch in _batches(table.storage.list_prefix(str(metadata.location))):
            listed.add(batch)
        stage.step()
    return StorageLayout(live, history, manifests + listed.named, listed.unreferenced)


def _new(files: MetadataScan, known: PathSet) -> Share:
    """Return the share of files that were not seen before, and record them."""
    share = Share()
    for batch in files.to_arrow_batch_reader():
        is_new = known.add_new(location_hashes(batch.column(0)))
        sizes = batch.column(1).to_numpy()
        share += Share(int(is_new.sum()), int(sizes[is_new].sum()))
    return share


@dataclass(frozen=True, slots=True)
class PartitionShare:
    """Storage used by the files of a partition."""

    partition: dict[str, object]
    live: Share
    history: Share


@dataclass(frozen=True, slots=True)
class RefShare:
    """Storage used by the files of a branch or tag."""

    ref: str
    all: Share
    """Data and delete files of its snapshot."""
    alone: Share
    """Files that no other branch or tag has."""


def storage_by_partition(table: MaintainedTable) -> list[PartitionShare]:
    """Return data and delete files by partition, largest first."""
    metadata = table.refresh().metadata
    inspect = Inspect(metadata, table.storage, table.metadata_location)
    columns = ("file_path", "file_size_in_bytes", "partition") if _has_partitions(metadata) else _PATH_AND_SIZE
    every = _once(inspect.all_files(selected_fields=columns))
    live = _distinct(inspect.files(selected_fields=_PATH_AND_SIZE))
    is_live = pc.is_in(every["path"], pa.chunked_array([live["path"]]))
    keys = [name for name in every.column_names if name.startswith(_PARTITION)]
    shares: dict[tuple[object, ...], list[Share]] = {}
    for number, part in enumerate((every.filter(is_live), every.filter(pc.invert(is_live)))):
        summed = part.group_by(keys).aggregate([("size", "sum"), ("size", "count")])
        for row in summed.to_pylist():
            if not row["size_count"]:
                # An unpartitioned table has a group even without files.
                continue
            known = shares.setdefault(tuple(row[key] for key in keys), [Share(), Share()])
            known[number] = Share(row["size_count"], row["size_sum"])
    names = [key.removeprefix(_PARTITION) for key in keys]
    listed = [PartitionShare(dict(zip(names, key, strict=True)), *both) for key, both in shares.items()]
    return sorted(listed, key=lambda each: -(each.live.bytes + each.history.bytes))


def storage_by_ref(table: MaintainedTable) -> list[RefShare]:
    """Return data and delete files by branch and tag, largest first."""
    metadata = table.refresh().metadata
    inspect = Inspect(metadata, table.storage, table.metadata_location)
    files = {
        name: _distinct(inspect.files(ref.snapshot_id, selected_fields=_PATH_AND_SIZE))
        for name, ref in metadata.refs.items()
    }
    if not files:
        return []
    counts = pa.chunked_array([each["path"] for each in files.values()], pa.string()).value_counts()
    single = counts.field("values").filter(pc.equal(counts.field("counts"), 1))
    listed = [
        RefShare(name, _share(each), _share(each.filter(pc.is_in(each["path"], single))))
        for name, each in files.items()
    ]
    return sorted(listed, key=lambda each: -each.all.bytes)


def _has_partitions(metadata: md.TableMetadata) -> bool:
    """Whether any spec of the table has fields."""
    return any(spec.fields for spec in metadata.partition_specs)


def _once(files: pa.Table) -> pa.Table:
    """Return each file once, with its partition fields as columns."""
    sized = pa.table(
        {
            "path": pa.chunked_array([identities(chunk) for chunk in files["file_path"].chunks], pa.string()),
            "size": files["file_size_in_bytes"].cast(pa.int64()),
        }
    )
    if "partition" in files.column_names:
        flat = files.select(["partition"]).flatten()
        for name in flat.column_names:
            sized = sized.append_column(name, flat[name])
    first = sized.append_column("row", pa.array(range(sized.num_rows), pa.int64()))
    rows = first.group_by("path").aggregate([("row", "min")])["row_min"]
    return sized.take(rows)


class _Listed:
    """Totals of a listing: files that metadata references without their sizes, and unreferenced files."""

    def __init__(self, needed: PathSet, named: pa.Array) -> None:
        self._needed = needed
        self._of_named = named
        self.named = Share()
        self.unreferenced = Share()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self.named += _share(batch.filter(pc.is_in(identities(batch["path"]), self._of_named)))
        self.unreferenced += _share(batch.filter(pa.array(~self._needed.contains(batch["path"]))))


def _named(metadata: md.TableMetadata, location: str | None) -> pa.Array:
    """Return files of the table whose sizes only a listing provides."""
    names = {*manifest_lists_of(metadata), *statistics_in(metadata), *metadata_files_of(metadata, location)}
    return pa.array(sorted(names), pa.string())


def _distinct(table: pa.Table) -> pa.RecordBatch:
    """Return each file once, by its normalized path."""
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
