"""Which delete files of a snapshot a scan needs at all: live ones whose deleted rows may match the filter, or, where files
are read as a whole, are in a partition that may.

Of position deletes only the partition is asked. Of equality deletes the metrics of the key columns are asked too, and of no
other columns: what else such a file holds is only information and need not be what the deleted rows hold.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, expressions as ex, manifests as mf
from icefloe.planning.file_values import data_files
from icefloe.planning.partitions import Numbers, PartitionGroups, group_partitions
from icefloe.planning.pruning import Pruner, sequence_numbers
from icefloe.planning.reading import PartialStatistics
from icefloe.planning.report import ScanCounts
from icefloe.planning.vector_deletes import VectorFiles
from icefloe.schema import reserved, types
from icefloe.storage.identities import identities

WANTED_OF_DELETES = mf.Wanted(
    mf.ALL_COLUMNS,
    True,
    frozenset(mf.MAP_METRICS) - {mf.Metric.COLUMN_SIZES},
    None,
)
"""What is decoded of delete manifests; which columns are keys is known only afterwards."""


@dataclass(frozen=True, slots=True, eq=False)
class DeleteFiles:
    """The delete files of one manifest that a scan needs, deletion vectors apart."""

    columns: mf.ManifestColumns
    groups: PartitionGroups
    files: tuple[mf.DataFile, ...]
    sequence_numbers: Numbers
    scopes: tuple[str | None, ...]
    """For position deletes, the one data file that all of a file's rows are about, if that is known."""
    vectors: VectorFiles | None = None
    """Deletion vectors, in columns, for there may be one for every data file."""


def choose_delete_files(
    manifest: mf.ManifestFile,
    columns: mf.ManifestColumns,
    pruner: Pruner,
    counts: ScanCounts,
    *,
    whole_files: bool = False,
) -> DeleteFiles | None:
    """The delete files of a manifest that may delete rows that match, or any rows of `whole_files`; None if there are none."""
    counts.delete_manifests_read += 1
    live = np.flatnonzero(columns.is_live.to_numpy(zero_copy_only=False))
    counts.delete_files += len(live)
    if not len(live):
        return None
    files = columns if len(live) == len(columns) else columns.take(pa.array(live))
    groups = group_partitions(files)
    if pruner.options.prune_deletes and not isinstance(pruner.bound, ex.AlwaysTrue):
        is_needed = pruner.keep_partitions(manifest, groups)[groups.of]
        if not whole_files:
            is_needed &= _equality_may_match(pruner.bound, files)
        rows = np.flatnonzero(is_needed)
        counts.delete_files_skipped += len(files) - len(rows)
        if not len(rows):
            return None
        if len(rows) != len(files):
            files, groups = files.take(pa.array(rows)), groups.at(rows)
    return _split_vectors(files, groups, scopes_of(files))


def _split_vectors(files: mf.ManifestColumns, groups: PartitionGroups, scopes: pa.Array) -> DeleteFiles:
    is_vector = _is_vector(files)
    vectors = None
    if is_vector.any():
        rows = np.flatnonzero(is_vector)
        chosen = replace(files, metrics=mf.MetricColumns(len(files))).take(pa.array(rows))
        vectors = VectorFiles(chosen, groups.at(rows), sequence_numbers(chosen), scopes.take(pa.array(rows)))
        rows = np.flatnonzero(~is_vector)
        files, groups, scopes = files.take(pa.array(rows)), groups.at(rows), scopes.take(pa.array(rows))
    values = tuple(data_files(files, groups.of, groups.tuples)) if len(files) else ()
    return DeleteFiles(files, groups, values, sequence_numbers(files), tuple(scopes.to_pylist()), vectors)


def _is_vector(files: mf.ManifestColumns) -> ex.Mask:
    """Which of the files are blobs of Puffin files, as `DataFile.is_deletion_vector` says."""
    is_puffin = pc.equal(pc.ascii_lower(files.column("file_format")), "puffin")
    is_position = pc.equal(files.column("content"), int(mf.FileContent.POSITION_DELETES))
    return np.asarray(pc.fill_null(pc.and_(is_puffin, is_position), False).to_numpy(zero_copy_only=False))


def _equality_may_match(bound: ex.Expression, files: mf.ManifestColumns) -> ex.Mask:
    may_match = np.ones(len(files), bool)
    content = files.column("content").to_numpy(zero_copy_only=False)
    of_equality = np.flatnonzero(content == int(mf.FileContent.EQUALITY_DELETES))
    rows_by_keys: dict[tuple[int, ...], list[int]] = {}
    key_lists = files.column("equality_ids").take(pa.array(of_equality)).to_pylist() if len(of_equality) else []
    for row, ids in zip(of_equality.tolist(), key_lists, strict=True):
        if not ids:
            raise errors.CorruptFileError(files.location, "an equality delete file has no key columns")
        rows_by_keys.setdefault(tuple(ids), []).append(row)
    for keys, rows in rows_by_keys.items():
        # Metrics of other columns are no more than information.
        known = PartialStatistics(files.take(pa.array(rows)), frozenset(keys).__contains__)
        may_match[rows] = ex.might_match(bound, known)
    return may_match


def scopes_of(files: mf.ManifestColumns) -> pa.Array:
    """The data file that each file is about, in the normal form of its path: the one it names, or the only one within the
    bounds of its paths."""
    named = files.column("referenced_data_file")
    if named.null_count:
        is_position = pc.equal(files.column("content"), int(mf.FileContent.POSITION_DELETES))
        lower = files.lower_bounds(reserved.DELETE_FILE_PATH.field_id, types.StringType())
        upper = files.upper_bounds(reserved.DELETE_FILE_PATH.field_id, types.StringType())
        if lower is not None and upper is not None:
            is_one = pc.fill_null(pc.and_(is_position, pc.equal(lower, upper)), False)
            named = pc.coalesce(named, pc.if_else(is_one, lower, pa.scalar(None, pa.string())))
    return identities(named)
