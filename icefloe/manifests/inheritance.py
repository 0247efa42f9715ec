"""What entries take over from their manifest, and manifests from their snapshot (spec: Sequence Number Inheritance, First Row ID Inheritance)."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError, InvalidInputError
from icefloe.manifests.columns import ManifestColumns
from icefloe.manifests.values import EntryStatus, ManifestContent, ManifestFile


def inherit(columns: ManifestColumns, manifest: ManifestFile, *, committed: bool = True) -> ManifestColumns:
    """The entries with snapshot ids, sequence numbers and first row ids filled in.

    `committed` is off for manifests that are written but not part of a snapshot yet: theirs keep what they have.
    """
    may_inherit = columns.column("status").to_numpy() == int(EntryStatus.ADDED)
    if manifest.sequence_number == 0:
        # In v1 tables all numbers are 0, whatever the status; from v2 on only new files wait for theirs.
        may_inherit[:] = True
    numbers = {}
    for name in ("sequence_number", "file_sequence_number"):
        column = columns.column(name)
        if column.null_count and manifest.sequence_number >= 0:
            numbers[name] = _filled(column, manifest.sequence_number, may_inherit)
    return columns.with_columns(
        snapshot_id=_filled(columns.column("snapshot_id"), manifest.added_snapshot_id),
        first_row_id=_first_row_ids(columns, manifest, committed),
        **numbers,
    )


def _filled(column: pa.Array, number: int, where: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """The column with this number for what is null, or for what is null and chosen."""
    if not column.null_count:
        return column
    if column.null_count == len(column) and (where is None or where.all()):
        # So it is in most manifests that one commit wrote.
        return pa.array(np.full(len(column), number, np.int64))
    if where is None:
        return pc.fill_null(column, number)
    return pc.if_else(pc.and_(pc.is_null(column), pa.array(where)), pa.scalar(number, pa.int64()), column)


def _first_row_ids(columns: ManifestColumns, manifest: ManifestFile, committed: bool) -> pa.Array:
    stored = columns.column("first_row_id")
    if manifest.content is ManifestContent.DELETES:
        return pa.nulls(len(columns), pa.int64())
    if manifest.first_row_id is None:
        # A committed manifest without an id is from before v3: what its entries say was never assigned.
        return pa.nulls(len(columns), pa.int64()) if committed else stored
    is_deleted = pc.equal(columns.column("status"), int(EntryStatus.DELETED))
    waits = pc.and_(pc.is_null(stored), pc.invert(is_deleted)).to_numpy(zero_copy_only=False)
    counts = columns.column("record_count")
    if counts.null_count:
        raise CorruptFileError(columns.location, f"{counts.null_count} entries have no record count")
    rows = np.where(waits, counts.to_numpy(), 0)
    starts = manifest.first_row_id + np.cumsum(rows) - rows
    return pc.if_else(pa.array(waits), pa.array(starts), stored)


def assign_first_row_ids(manifests: Iterable[ManifestFile], first_row_id: int) -> tuple[tuple[ManifestFile, ...], int]:
    """The manifests of a new snapshot with their first row ids, and the table's next row id (spec: First Row ID Assignment).

    Room is left for existing rows too, since their files may lack an id when they come from before v3.
    """
    assigned = []
    for manifest in manifests:
        if manifest.content is ManifestContent.DELETES:
            manifest = replace(manifest, first_row_id=None)
        elif manifest.first_row_id is None:
            added, existing = manifest.added_rows_count, manifest.existing_rows_count
            if added is None or existing is None:
                raise InvalidInputError(
                    f"manifest {manifest.manifest_path!r} does not say how many rows it has, so no row ids can be given; "
                    "count its entries first"
                )
            manifest = replace(manifest, first_row_id=first_row_id)
            first_row_id += added + existing
        assigned.append(manifest)
    return tuple(assigned), first_row_id


def assign_sequence_numbers(
    manifests: Iterable[ManifestFile], snapshot_id: int, sequence_number: int
) -> tuple[ManifestFile, ...]:
    """The manifests of a new snapshot, those that it wrote itself with its sequence number."""
    assigned = []
    for manifest in manifests:
        if manifest.sequence_number < 0 or manifest.min_sequence_number < 0:
            if manifest.added_snapshot_id != snapshot_id:
                raise InvalidInputError(
                    f"manifest {manifest.manifest_path!r} of snapshot {manifest.added_snapshot_id} has no sequence number; "
                    f"only those of the snapshot that is committed, {snapshot_id}, may wait for one"
                )
            manifest = replace(
                manifest,
                sequence_number=sequence_number if manifest.sequence_number < 0 else manifest.sequence_number,
                min_sequence_number=sequence_number
                if manifest.min_sequence_number < 0
                else manifest.min_sequence_number,
            )
        assigned.append(manifest)
    return tuple(assigned)
