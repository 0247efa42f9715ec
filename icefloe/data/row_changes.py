"""How rows leave a table: marked as deleted beside their files, or left out when their files are written anew.

Deletion vectors where the table's version has them, each with all that was deleted in its file before; position delete files
in v2 (spec: Row-level Deletes). Rows that stay keep their ids (spec: Row Lineage).
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icefloe import properties as props
from icefloe.data.file_rolling import data_file_of
from icefloe.data.in_order import read_in_order
from icefloe.data.locations import NewLocations
from icefloe.data.matching import MatchedRows, positions_mask
from icefloe.data.pieces import in_pieces
from icefloe.data.scanning import READ_AHEAD_BYTES, default_workers
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.data.writing import write_data_files
from icefloe.errors import StateError
from icefloe.expressions import AlwaysTrue
from icefloe.formats.deletion_vector_codec import stream_vectors
from icefloe.formats.position_deletes import write_position_deletes
from icefloe.manifests import DataFile, FileContent
from icefloe.metadata import TableMetadata
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, reserved
from icefloe.storage import Storage, is_same_file
from icefloe.versions import Feature, allows, require

_PUFFIN = "puffin"


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What a commit has to add and to remove so that rows are gone."""

    added_data: tuple[DataFile, ...] = ()
    added_deletes: tuple[DataFile, ...] = ()
    removed_data: tuple[DataFile, ...] = ()
    removed_deletes: tuple[DataFile, ...] = ()
    """Delete files that reach nothing any more, or that others stand for now."""


def write_deletes(
    matches: Iterable[MatchedRows],
    metadata: TableMetadata,
    storage: Storage,
    *,
    written: list[DataFile] | None = None,
) -> RowChanges:
    """Delete the matched rows without a change to their files; a file without any row left is removed instead.

    Delete files that are whole when an error comes are in `written`, for the caller to delete.
    """
    require(metadata.format_version, Feature.DELETE_FILES, "deleting rows without rewriting their files")
    if props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None:
        raise StateError("the table is encrypted; delete files of encrypted tables cannot be written yet")
    kept = list(matches)
    whole = [match for match in kept if match.is_whole_file]
    partly = [match for match in kept if not match.is_whole_file]
    sink = [] if written is None else written
    if allows(metadata.format_version, Feature.DELETION_VECTORS):
        added = _write_vectors(partly, metadata, storage, sink)
        replaced = [file for match in partly for file in _of_one_file(match)]
    else:
        added = _write_positions(partly, metadata, storage, sink)
        replaced = []
    dangling = [file for match in whole for file in _of_one_file(match)]
    return RowChanges(
        added_deletes=tuple(added),
        removed_data=tuple(match.task.file for match in whole),
        removed_deletes=tuple(replaced + dangling),
    )


def rewrite_without(
    matches: Iterable[MatchedRows],
    context: ReadContext,
    *,
    workers: int | None = None,
    written: list[DataFile] | None = None,
) -> RowChanges:
    """Write the files of the matched rows anew without them, under the table's spec and order of today.

    Rows keep their ids where they have any. A file without any row left is only removed.
    """
    removed: dict[str, MatchedRows] = {}
    metadata = context.metadata
    lineage = allows(metadata.format_version, Feature.ROW_LINEAGE)
    wanted = Schema(*metadata.schema().fields, *(reserved.ROW_LINEAGE_COLUMNS if lineage else ()), reserved.POS)
    count = default_workers() if workers is None else workers

    def partly_left() -> Iterator[FileScanTask]:
        for match in matches:
            removed[match.task.file.file_path] = match
            if not match.is_whole_file:
                yield replace(match.task, residual=AlwaysTrue())

    def rest(task: FileScanTask) -> Iterator[Any]:
        gone = removed[task.file.file_path].positions
        for batch in read_task(task, wanted, context):
            kept = batch.filter(pa.array(~positions_mask(gone, batch)))
            if kept.num_rows:
                yield kept.drop_columns([reserved.POS.name])

    with closing(read_in_order(in_pieces(partly_left(), count), rest, count, READ_AHEAD_BYTES)) as batches:
        added = write_data_files(batches, metadata, context.storage, lineage=lineage, workers=workers, written=written)
    return RowChanges(
        added_data=tuple(added),
        removed_data=tuple(match.task.file for match in removed.values()),
        removed_deletes=tuple(file for match in removed.values() for file in _of_one_file(match)),
    )


def _of_one_file(match: MatchedRows) -> list[DataFile]:
    """The deletes that are about the match's file alone."""
    vector = match.task.deletion_vector
    path = match.task.file.file_path
    positions = [file for file in match.task.position_deletes if is_same_file(file.referenced_data_file, path)]
    return positions if vector is None else [vector, *positions]


def _write_vectors(
    matches: list[MatchedRows], metadata: TableMetadata, storage: Storage, written: list[DataFile]
) -> list[DataFile]:
    """One Puffin file with a vector for each data file, with all that was deleted before."""
    if not matches:
        return []
    first = matches[0].task
    locations = NewLocations(metadata, str(uuid.uuid4()))
    location = locations.next(metadata.spec(first.spec_id), first.partition, _PUFFIN, "-deletes")
    vectors = ((match.task.file.file_path, match.positions | match.before) for match in matches)
    with storage.open_output(location) as sink:
        stored = stream_vectors(sink.write, vectors)
        size = sink.tell()
    files = [
        DataFile(
            location,
            _PUFFIN,
            vector.cardinality,
            size,
            FileContent.POSITION_DELETES,
            match.task.spec_id,
            match.task.partition,
            referenced_data_file=vector.referenced_data_file,
            content_offset=vector.offset,
            content_size_in_bytes=vector.length,
        )
        for match, vector in zip(matches, stored, strict=True)
    ]
    written += files
    return files


def _write_positions(
    matches: list[MatchedRows], metadata: TableMetadata, storage: Storage, written: list[DataFile]
) -> list[DataFile]:
    """Position delete files: one for each partition, or one for each data file."""
    per_file = props.DELETE_GRANULARITY.of(metadata.properties) == "file"
    groups: dict[Any, list[MatchedRows]] = {}
    for match in matches:
        task = match.task
        groups.setdefault((task.spec_id, task.partition, task.file.file_path if per_file else ""), []).append(match)
    locations = NewLocations(metadata, str(uuid.uuid4()))
    file_format = props.WRITE_DELETE_FORMAT.of(metadata.properties) or props.WRITE_FORMAT.of(metadata.properties)
    found = []
    for (spec_id, partition, _), group in groups.items():
        location = locations.next(metadata.spec(spec_id), partition, file_format, "-deletes")
        positions = {match.task.file.file_path: match.positions for match in group}
        with storage.open_output(location) as sink:
            done = write_position_deletes(sink, positions, metadata.format_version, file_format, metadata.properties)
        file = data_file_of(
            done.file,
            location,
            file_format,
            content=FileContent.POSITION_DELETES,
            spec_id=spec_id,
            partition=partition,
            referenced_data_file=done.referenced_data_file,
        )
        written.append(file)
        found.append(file)
    return found
