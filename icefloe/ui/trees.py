"""The metadata tree below a snapshot, one level at a time: its manifests, and entries of one manifest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, manifests as mf, metadata as md, planning
from icefloe.catalog import At
from icefloe.partitioning import PartitionField
from icefloe.table import Table
from icefloe.ui.partitions import shown_partition

_OF_FILES = mf.wanted("file_path", "file_format", "content", "file_size_in_bytes", "record_count")
_STATUSES = {status.value: status.name.lower() for status in mf.EntryStatus}
_COUNTS = ("added", "existing", "deleted")


@dataclass(frozen=True)
class ManifestEntries:
    """A range of the entries of a manifest."""

    total: int
    rows: Sequence[Mapping[str, Any]]


def manifests_of(table: Table, at: At) -> pa.Table:
    """Return the manifests of a snapshot in manifest list order, as in the metadata table."""
    return table.inspect.scan("manifests", **at).to_arrow()


def manifest_rows(manifests: pa.Table, first: int, most: int) -> list[dict[str, Any]]:
    """Return a range of the manifests, with total counts and readable partition ranges."""
    rows: list[dict[str, Any]] = manifests.slice(first, most).to_pylist()
    for number, row in enumerate(rows, first):
        row["number"] = number
        row["kind"] = "deletes" if row["content"] else "data"
        row["folder"], _, row["name"] = row["path"].rpartition("/")
        for state in _COUNTS:
            row[state] = sum(row[f"{state}_{kind}_files_count"] or 0 for kind in ("data", "delete"))
        row["ranges"] = ", ".join(_range(summary) for summary in row["partition_summaries"] or ())
    return rows


def _range(summary: Mapping[str, Any]) -> str:
    low, high = summary["lower_bound"], summary["upper_bound"]
    text = "only null" if low is None else low if low == high else f"{low} to {high}"
    return f"{text} or null" if low is not None and summary["contains_null"] else text


def files_in(manifests: pa.Table) -> int:
    """Return the number of live files in the manifests."""
    names = [f"{state}_{kind}_files_count" for state in ("added", "existing") for kind in ("data", "delete")]
    return sum(int(pc.sum(manifests.column(name)).as_py() or 0) for name in names)


def entries_of(
    table: Table,
    snapshot: md.Snapshot,
    path: str,
    first: int,
    most: int,
    counted: Mapping[str, PartitionField],
) -> ManifestEntries:
    """Return a range of the entries of a manifest, reading only the fields that are shown."""
    source = planning.ManifestSource(table.metadata, table.storage, snapshot.snapshot_id, table.schema())
    named = [manifest for manifest in source.manifests(snapshot) if manifest.manifest_path == path]
    if not named:
        raise errors.NoSuchObjectError(f"snapshot {snapshot.snapshot_id} has no manifest {path!r:.200}")
    columns = source.read(named[0], _OF_FILES)
    some = pa.array(range(first, min(first + most, len(columns))), pa.int64())
    values = {
        name: columns.column(name).take(some).to_pylist()
        for name in ("status", "sequence_number", "content", "file_path", "file_format", "record_count")
    }
    values["size"] = columns.column("file_size_in_bytes").take(some).to_pylist()
    tuples = columns.partition_table.take(some).to_pylist() if columns.partition_type.fields else [{}] * len(some)
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    for row, partition in zip(rows, tuples, strict=True):
        row["status"] = _STATUSES.get(row["status"], "unknown")
        row["partition"] = shown_partition(partition, counted)
        row["folder"], _, row["name"] = row["file_path"].rpartition("/")
    return ManifestEntries(len(columns), rows)
