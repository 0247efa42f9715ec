"""Which delete files of a snapshot a scan needs at all: live ones whose deleted rows may match the filter.

Of position deletes only the partition is asked. Of equality deletes the metrics of the key columns are asked too, and of no
other columns: what else such a file holds is only information and need not be what the deleted rows hold.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError
from icefloe.expressions import AlwaysTrue, Expression, might_match
from icefloe.manifests import (
    ALWAYS,
    DataFile,
    FileContent,
    ManifestColumns,
    ManifestFile,
    Metric,
    MetricColumns,
    Wanted,
)
from icefloe.planning.file_values import data_files
from icefloe.planning.partitions import Numbers, PartitionGroups, group_partitions
from icefloe.planning.pruning import Pruner, sequence_numbers
from icefloe.planning.report import ScanCounts
from icefloe.planning.vector_deletes import VectorFiles
from icefloe.schema import IcebergType, StringType, reserved
from icefloe.storage.identities import identities

WANTED_OF_DELETES = Wanted(
    ALWAYS
    | {
        "file_path",
        "file_format",
        "file_size_in_bytes",
        "key_metadata",
        "split_offsets",
        "equality_ids",
        "sort_order_id",
        "referenced_data_file",
        "content_offset",
        "content_size_in_bytes",
    },
    True,
    frozenset(Metric) - {Metric.COLUMN_SIZES},
    None,
)
"""What is decoded of delete manifests; which columns are keys is known only afterwards."""


@dataclass(frozen=True, slots=True, eq=False)
class DeleteFiles:
    """The delete files of one manifest that a scan needs, deletion vectors apart."""

    columns: ManifestColumns
    groups: PartitionGroups
    files: tuple[DataFile, ...]
    sequence_numbers: Numbers
    scopes: tuple[str | None, ...]
    """For position deletes, the one data file that all of a file's rows are about, if that is known."""
    vectors: VectorFiles | None = None
    """Deletion vectors, in columns, for there may be one for every data file."""


def choose_delete_files(
    manifest: ManifestFile, columns: ManifestColumns, pruner: Pruner, counts: ScanCounts
) -> DeleteFiles | None:
    """The delete files of a manifest that may delete rows that match; None if there are none."""
    counts.delete_manifests_read += 1
    live = np.flatnonzero(columns.is_live.to_numpy(zero_copy_only=False))
    counts.delete_files += len(live)
    if not len(live):
        return None
    files = columns if len(live) == len(columns) else columns.take(pa.array(live))
    groups = group_partitions(files)
    if pruner.options.prune_deletes and not isinstance(pruner.bound, AlwaysTrue):
        kept = pruner.keep_partitions(manifest, groups)[groups.of] & _equality_may_match(pruner.bound, files)
        rows = np.flatnonzero(kept)
        counts.delete_files_skipped += len(files) - len(rows)
        if not len(rows):
            return None
        if len(rows) != len(files):
            files, groups = files.take(pa.array(rows)), groups.at(rows)
    return _sorted_out(files, groups, _scopes(files))


def _sorted_out(files: ManifestColumns, groups: PartitionGroups, scopes: Any) -> DeleteFiles:
    is_vector = _is_vector(files)
    vectors = None
    if is_vector.any():
        rows = np.flatnonzero(is_vector)
        chosen = replace(files, metrics=MetricColumns(len(files))).take(pa.array(rows))
        vectors = VectorFiles(chosen, groups.at(rows), sequence_numbers(chosen), scopes.take(pa.array(rows)))
        rows = np.flatnonzero(~is_vector)
        files, groups, scopes = files.take(pa.array(rows)), groups.at(rows), scopes.take(pa.array(rows))
    made = tuple(data_files(files, groups.of, groups.tuples)) if len(files) else ()
    return DeleteFiles(files, groups, made, sequence_numbers(files), tuple(scopes.to_pylist()), vectors)


def _is_vector(files: ManifestColumns) -> npt.NDArray[np.bool_]:
    """Which of the files are blobs of Puffin files, as `DataFile.is_deletion_vector` says."""
    is_puffin = pc.equal(pc.ascii_lower(files.column("file_format")), "puffin")
    is_position = pc.equal(files.column("content"), int(FileContent.POSITION_DELETES))
    found: npt.NDArray[np.bool_] = pc.fill_null(pc.and_(is_puffin, is_position), False).to_numpy(zero_copy_only=False)
    return found


def _equality_may_match(bound: Expression, files: ManifestColumns) -> npt.NDArray[np.bool_]:
    found = np.ones(len(files), bool)
    content = files.column("content").to_numpy(zero_copy_only=False)
    places = np.flatnonzero(content == int(FileContent.EQUALITY_DELETES))
    by_keys: dict[tuple[int, ...], list[int]] = {}
    key_lists = files.column("equality_ids").take(pa.array(places)).to_pylist() if len(places) else []
    for place, ids in zip(places.tolist(), key_lists, strict=True):
        by_keys.setdefault(_key_ids(ids, files), []).append(place)
    for keys, rows in by_keys.items():
        found[rows] = might_match(bound, _KeyStatistics(files.take(pa.array(rows)), frozenset(keys)))
    return found


def _key_ids(ids: list[int] | None, files: ManifestColumns) -> tuple[int, ...]:
    if not ids:
        raise CorruptFileError(files.location, "an equality delete file has no key columns")
    return tuple(ids)


@dataclass(frozen=True, slots=True, eq=False)
class _KeyStatistics:
    """The metrics of equality delete files, as far as they are of key columns."""

    files: ManifestColumns
    keys: frozenset[int]

    @property
    def size(self) -> int:
        return len(self.files)

    @property
    def record_counts(self) -> Any:
        return self.files.record_counts

    def value_counts(self, field_id: int) -> Any | None:
        return self.files.value_counts(field_id) if field_id in self.keys else None

    def null_counts(self, field_id: int) -> Any | None:
        return self.files.null_counts(field_id) if field_id in self.keys else None

    def nan_counts(self, field_id: int) -> Any | None:
        return self.files.nan_counts(field_id) if field_id in self.keys else None

    def lower_bounds(self, field_id: int, kind: IcebergType) -> Any | None:
        return self.files.lower_bounds(field_id, kind) if field_id in self.keys else None

    def upper_bounds(self, field_id: int, kind: IcebergType) -> Any | None:
        return self.files.upper_bounds(field_id, kind) if field_id in self.keys else None


def _scopes(files: ManifestColumns) -> Any:
    """The data file that each file is about, in the normal form of its path: the one it names, or the only one within the
    bounds of its paths."""
    named = files.column("referenced_data_file")
    if named.null_count:
        is_position = pc.equal(files.column("content"), int(FileContent.POSITION_DELETES))
        lower = files.lower_bounds(reserved.DELETE_FILE_PATH.field_id, StringType())
        upper = files.upper_bounds(reserved.DELETE_FILE_PATH.field_id, StringType())
        if lower is not None and upper is not None:
            is_one = pc.fill_null(pc.and_(is_position, pc.equal(lower, upper)), False)
            named = pc.coalesce(named, pc.if_else(is_one, lower, pa.scalar(None, pa.string())))
    return identities(named)
