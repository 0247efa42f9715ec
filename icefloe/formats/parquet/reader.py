"""How rows come out of a Parquet file: only the wanted columns, by field id, from the row groups of a split."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.errors import CorruptFileError
from icefloe.formats.file_schema import columns_to_read, file_columns, with_types, without_positions
from icefloe.formats.parquet.metrics import leaf_fields
from icefloe.formats.projection import position_array, project_batch, with_positions
from icefloe.formats.written_file import DEFAULT_BATCH_ROWS
from icefloe.schema import (
    NameMapping,
    Schema,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    plan_projection,
    reserved,
)
from icefloe.storage import prefetch

_NANOS = (TimestampNanoType, TimestamptzNanoType)
_DIFFERENT_ZONES: tuple[set[type], ...] = (
    {TimestampType, TimestamptzType},
    {TimestampNanoType, TimestamptzNanoType},
    # INT96 is read in nanoseconds where any column is.
    {TimestampNanoType, TimestamptzType},
)
_MOST_ROWS = (1 << 31) - 1
"""What one row group may hold: more would only be a claim, as pages count their values in 32 bits."""
RowGroupFilter = Callable[[Any, Schema], Any]
"""From a footer and the file's schema to one boolean per row group: whether it may hold wanted rows."""


class ParquetFileReader:
    """An open Parquet file, read as rows of the wanted schema. `_pos` among the wanted columns gives row positions.

    `constants` are values by field id for columns that the file lacks. Files without field ids need a name mapping.
    """

    def __init__(
        self,
        source: Any,
        location: str,
        wanted: Schema,
        *,
        mapping: NameMapping | None = None,
        constants: Mapping[int, Any] | None = None,
        footer: Any = None,
    ) -> None:
        self._source = source
        self._location = location
        self._wanted = wanted
        with _corrupt(location):
            # The oldest timestamps of Parquet are of nanoseconds, in which years from 1677 to 2262 fit; tables mean microseconds.
            unit = None if any(isinstance(each.field_type, _NANOS) for each in wanted.fields_by_id.values()) else "us"
            self._file = pq.ParquetFile(source, metadata=footer, pre_buffer=True, coerce_int96_timestamp_unit=unit)
            self.footer = self._file.metadata
            self._arrow_schema = self._file.schema_arrow
        self.file_schema = self._with_zones(file_columns(self._arrow_schema, wanted, mapping, constants))
        self._read_schema = columns_to_read(wanted, self.file_schema, constants)
        self._plan = plan_projection(without_positions(wanted), self._read_schema, constants)
        self._columns = self._column_indices()

    def batches(
        self,
        split: tuple[int, int] | None = None,
        row_groups: RowGroupFilter | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        use_threads: bool = True,
    ) -> Iterator[Any]:
        """Record batches of the wanted columns, in the order of the file.

        `split` is (start, length) in bytes: the row groups that begin in it. `row_groups` leaves out what cannot match.
        """
        mask = None if row_groups is None else row_groups(self.footer, self.file_schema)
        position = 0
        for group in range(self.footer.num_row_groups):
            rows = self.footer.row_group(group).num_rows
            if not 0 <= rows <= _MOST_ROWS:
                raise CorruptFileError(self._location, f"row group {group} claims {rows} rows")
            if (split is None or self._starts_in(group, *split)) and (mask is None or mask[group]):
                yield from self._group(group, rows, position, batch_rows, use_threads)
            position += rows

    def _group(self, group: int, rows: int, position: int, batch_rows: int, use_threads: bool) -> Iterator[Any]:
        if not self._columns:
            for start in range(0, rows, batch_rows):
                yield self._finish(pa.record_batch([]), position + start, min(batch_rows, rows - start))
            return
        prefetch(self._source, self._ranges(group))
        with _corrupt(self._location):
            found = self._file.reader.iter_batches(
                batch_rows, row_groups=[group], column_indices=self._columns, use_threads=use_threads
            )
        while True:
            with _corrupt(self._location):
                batch = next(found, None)
            if batch is None:
                return
            yield self._finish(batch, position, batch.num_rows)
            position += batch.num_rows

    def _ranges(self, group: int) -> Iterator[tuple[int, int]]:
        """Where the columns to read of a row group are, as (offset, length)."""
        described = self.footer.row_group(group)
        for place in self._columns:
            column = described.column(place)
            if pages := [at for at in (column.dictionary_page_offset, column.data_page_offset) if at]:
                yield min(pages), column.total_compressed_size

    def _finish(self, batch: Any, position: int, rows: int) -> Any:
        projected = project_batch(batch, self._plan, without_positions(self._wanted), self._location, rows)
        return with_positions(projected, self._wanted, position_array(position, rows), reserved.POS.field_id)

    def _starts_in(self, group: int, start: int, length: int) -> bool:
        column = self.footer.row_group(group).column(0)
        offset = min((each for each in (column.dictionary_page_offset, column.data_page_offset) if each), default=0)
        return bool(start <= offset < start + length)

    def _with_zones(self, found: Schema) -> Schema:
        """The columns with the table's word on zones: INT96 says nothing of them, and ClickHouse writes all as instants.

        The numbers in the file are the same either way.
        """
        other = {
            field_id: field.field_type
            for field_id, field in self._wanted.fields_by_id.items()
            if field_id in found.fields_by_id
            and {type(field.field_type), type(found.fields_by_id[field_id].field_type)} in _DIFFERENT_ZONES
        }
        return with_types(found, other) if other else found

    def _column_indices(self) -> list[int]:
        """The columns of the file, as Parquet counts them, that belong to the fields to read."""
        wanted = self._read_schema.fields_by_id
        leaves = leaf_fields(self.file_schema, self._arrow_schema)
        return [position for position, field_id in enumerate(leaves) if field_id in wanted]


class _corrupt:  # noqa: N801  # reads as a word of the language: `with _corrupt(location):`
    """Errors of pyarrow about the bytes of a file, as ours."""

    def __init__(self, location: str) -> None:
        self._location = location

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        is_library = isinstance(problem, (pa.ArrowException, UnicodeDecodeError, MemoryError, OverflowError))
        if is_library or (isinstance(problem, OSError) and problem.errno is None):
            raise CorruptFileError(self._location, f"it cannot be read as Parquet: {problem}") from problem
