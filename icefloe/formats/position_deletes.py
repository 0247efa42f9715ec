"""Position delete files: rows of (data file, position), sorted, and what they say of each data file (spec: Position Delete Files)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.avro import Source
from icefloe.errors import CorruptFileError, InvalidLocationError, InvalidValueError
from icefloe.formats.deletion_vectors import DeletionVector, Positions
from icefloe.formats.file_formats import PARQUET, delete_file_properties, reader_of, writer_of
from icefloe.formats.file_writing import Sink, WrittenFile
from icefloe.formats.metrics import POSITION_DELETE_MODES
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.schema import Schema, reserved, schema_to_arrow
from icefloe.storage import identity, parse_location
from icefloe.versions import Feature, require

POSITION_DELETE_SCHEMA = Schema(reserved.DELETE_FILE_PATH, reserved.DELETE_FILE_POS)
"""The columns of a position delete file. The deleted row itself is never written, and not read where others wrote it."""

_BATCH_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class WrittenPositionDeletes:
    """A finished position delete file and the data files whose rows it deletes, in order."""

    file: WrittenFile
    data_files: tuple[str, ...]

    @property
    def referenced_data_file(self) -> str | None:
        """The one data file of all deletes, if there is but one."""
        return self.data_files[0] if len(self.data_files) == 1 else None


def write_position_deletes(
    sink: Sink,
    deletes: Mapping[str, Positions | DeletionVector],
    version: int,
    file_format: str = PARQUET,
    properties: Mapping[str, str] | None = None,
) -> WrittenPositionDeletes:
    """Write the deleted positions of data files, by the location that their manifests have, byte for byte.

    Positions may come in any order and repeated. Tables of versions that no longer take new files of this kind are refused.
    """
    require(version, Feature.NEW_POSITION_DELETE_FILES, "a new position delete file")
    vectors = {path: _vector(path, deletes[path]) for path in sorted(deletes, key=str.encode)}
    vectors = {path: vector for path, vector in vectors.items() if vector}
    if not vectors:
        raise InvalidValueError("no positions to delete; a delete file must have at least one")
    writer = writer_of(file_format)(
        sink,
        POSITION_DELETE_SCHEMA,
        delete_file_properties(properties),
        modes=POSITION_DELETE_MODES,
        metadata={"delete-type": "position"},
    )
    for path, vector in vectors.items():
        for batch in _rows(path, vector.positions()):
            writer.write(batch)
    return WrittenPositionDeletes(writer.close(), tuple(vectors))


def read_position_deletes(
    source: Source, location: str, file_format: str = PARQUET, data_file: str | None = None
) -> dict[str, DeletionVector]:
    """The deleted positions by data file, in the normal form of its path; with `data_file`, only those of that one."""
    reader = reader_of(file_format)(source, location, POSITION_DELETE_SCHEMA)
    if isinstance(reader, ParquetFileReader) and data_file is not None:
        batches = reader.batches(row_groups=lambda footer, _: _groups_with(footer, data_file))
    else:
        batches = reader.batches()
    wanted = None if data_file is None else identity(data_file)
    parts: dict[str, list[npt.NDArray[np.int64]]] = {}
    for batch in batches:
        _check(batch, location)
        for path, positions in _grouped(batch.column(0), batch.column(1)):
            if (name := identity(path)) == wanted or wanted is None:
                parts.setdefault(name, []).append(positions)
    try:
        return {path: DeletionVector.from_positions(np.concatenate(positions)) for path, positions in parts.items()}
    except InvalidValueError as problem:
        raise CorruptFileError(location, f"it does not hold positions of rows: {problem}") from None


def relocate_position_deletes(
    source: Source,
    location: str,
    file_format: str,
    sink: Sink,
    change: Callable[[pa.Array], pa.Array],
    properties: Mapping[str, str] | None = None,
) -> None:
    """Write a position delete file again with other paths of data files; the deleted rows stay, if it has them."""
    reader_type = reader_of(file_format)
    row = reader_type(source, location, POSITION_DELETE_SCHEMA).file_schema.fields_by_id.get(
        reserved.DELETE_FILE_ROW_ID
    )
    schema = POSITION_DELETE_SCHEMA if row is None else Schema(*POSITION_DELETE_SCHEMA.fields, row)
    writer = writer_of(file_format)(
        sink,
        schema,
        delete_file_properties(properties),
        modes=POSITION_DELETE_MODES,
        metadata={"delete-type": "position"},
    )
    source.seek(0)
    for batch in reader_type(source, location, schema).batches():
        _check(batch.select([0, 1]), location)
        writer.write(batch.set_column(0, batch.schema.field(0), change(batch.column(0))))
    writer.close()


def _vector(path: str, positions: Positions | DeletionVector) -> DeletionVector:
    if isinstance(positions, DeletionVector):
        return positions
    try:
        return DeletionVector.from_positions(positions)
    except InvalidValueError as problem:
        raise InvalidValueError(f"deletes of {path}: {problem}") from None


def _rows(path: str, positions: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    target = schema_to_arrow(POSITION_DELETE_SCHEMA)
    for start in range(0, len(positions), _BATCH_ROWS):
        part = positions[start : start + _BATCH_ROWS]
        paths = pa.array([path]).take(pa.array(np.zeros(len(part), np.int32)))
        yield pa.RecordBatch.from_arrays([paths, pa.array(part)], schema=target)


def _check(batch: pa.RecordBatch, location: str) -> None:
    for field, column in zip(POSITION_DELETE_SCHEMA.fields, batch.columns, strict=True):
        if column.null_count:
            raise CorruptFileError(location, f"{column.null_count} of its rows have no {field.name}")


def _grouped(paths: pa.StringArray, positions: pa.Int64Array) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Positions by path; a path comes more than once only if the rows are not sorted."""
    if not len(paths):
        return
    encoded = paths.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    ticks = positions.to_numpy(zero_copy_only=False)
    changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    if len(changes) >= 2 * len(encoded.dictionary):
        order = np.argsort(codes, kind="stable")
        codes, ticks = codes[order], ticks[order]
        changes = np.flatnonzero(codes[1:] != codes[:-1]) + 1
    starts = np.concatenate(([0], changes))
    names = encoded.dictionary.take(pa.array(codes[starts])).to_pylist()
    yield from zip(names, np.split(ticks, changes), strict=True)


def _groups_with(footer: pq.FileMetaData, data_file: str) -> list[bool]:
    """Whether each row group of a Parquet file may hold deletes of the data file."""
    columns = [i for i in range(footer.num_columns) if footer.schema.column(i).path == reserved.DELETE_FILE_PATH.name]
    if not columns:
        return [True] * footer.num_row_groups
    chunks = (footer.row_group(group).column(columns[0]) for group in range(footer.num_row_groups))
    return [_may_name(data_file, chunk.statistics) for chunk in chunks]


def _may_name(data_file: str, statistics: pq.Statistics | None) -> bool:
    if statistics is None or not statistics.has_min_max:
        return True
    least, most = _bytes(statistics.min), _bytes(statistics.max)
    # Bounds of another spelling say nothing of this one.
    root = _root(data_file)
    is_alike = root is not None and root == _root(least.decode()) == _root(most.decode())
    return not is_alike or least <= data_file.encode() <= most


def _root(path: str) -> str | None:
    """What the path begins with before its first name; None if it is spelled in a way that is not plain."""
    try:
        location = parse_location(path)
    except InvalidLocationError:
        return None
    return location.root if str(location) == path else None


def _bytes(bound: str | bytes) -> bytes:
    return bound.encode() if isinstance(bound, str) else bound
