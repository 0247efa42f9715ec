"""How rows come out of a Parquet file: only the wanted columns, by field id, from the row groups of a split."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.errors import CorruptFileError
from icefloe.formats.file_reading import DEFAULT_BATCH_ROWS, FileReader, Split
from icefloe.formats.file_schema import file_columns, with_types
from icefloe.formats.parquet.encryption import keyed_source
from icefloe.formats.parquet.metrics import first_page, leaf_fields
from icefloe.schema import NameMapping, Schema, Value, types
from icefloe.storage import prefetch

_NANOS = (types.TimestampNanoType, types.TimestamptzNanoType)
_DIFFERENT_ZONES: tuple[set[type], ...] = (
    {types.TimestampType, types.TimestamptzType},
    {types.TimestampNanoType, types.TimestamptzNanoType},
    # INT96 is read in nanoseconds where any column is.
    {types.TimestampNanoType, types.TimestamptzType},
)
_MOST_ROWS = (1 << 31) - 1
"""What one row group may hold: more would only be a claim, as pages count their values in 32 bits."""
RowGroupFilter = Callable[[pq.FileMetaData, Schema], Sequence[bool] | npt.NDArray[np.bool_]]
"""From a footer and the file's schema to one boolean per row group: whether it may hold wanted rows."""


class ParquetFileReader(FileReader):
    """An open Parquet file; `footer` is its metadata."""

    _format = "Parquet"
    _damage = (pa.ArrowException, UnicodeDecodeError, MemoryError, OverflowError)

    def _open(self, mapping: NameMapping | None, constants: Mapping[int, Value] | None) -> Schema:
        wanted = self._wanted.fields_by_id.values()
        self._source, keyed = keyed_source(self._source)
        with self._corrupt():
            # The oldest timestamps of Parquet are of nanoseconds, in which years from 1677 to 2262 fit; tables mean microseconds.
            unit = None if any(isinstance(field.field_type, _NANOS) for field in wanted) else "us"
            self._file = pq.ParquetFile(self._source, pre_buffer=True, coerce_int96_timestamp_unit=unit, **keyed)
            self.footer = self._file.metadata
            arrow_schema = self._file.schema_arrow
        return self._with_zones(file_columns(arrow_schema, self._wanted, mapping, constants))

    def _columns_to_read(self, needed: Schema) -> Schema:
        leaves = leaf_fields(self.file_schema, self._file.schema_arrow)
        self._columns = [i for i, field_id in enumerate(leaves) if field_id in needed.fields_by_id]
        return needed

    def batches(
        self,
        split: Split | None = None,
        row_groups: RowGroupFilter | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
    ) -> Iterator[pa.RecordBatch]:
        """Record batches of the wanted columns, in the order of the file.

        `split` is (start, length) in bytes: the row groups that begin in it. `row_groups` leaves out what cannot match.
        """
        mask = None if row_groups is None else row_groups(self.footer, self.file_schema)
        first_row = 0
        for number in range(self.footer.num_row_groups):
            group = self.footer.row_group(number)
            if not 0 <= group.num_rows <= _MOST_ROWS:
                raise CorruptFileError(self._location, f"row group {number} claims {group.num_rows} rows")
            is_in_split = split is None or split[0] <= first_page(group.column(0)) < split[0] + split[1]
            if is_in_split and (mask is None or mask[number]):
                yield from self._group(number, first_row, batch_rows)
            first_row += group.num_rows

    def _group(self, number: int, first_row: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
        group = self.footer.row_group(number)
        if not self._columns:
            yield from self._pieces(pa.record_batch([]), first_row, group.num_rows, batch_rows)
            return
        chunks = [group.column(i) for i in self._columns]
        # Where the columns to read are, as (offset, length).
        prefetch(self._source, [(at, chunk.total_compressed_size) for chunk in chunks if (at := first_page(chunk))])
        with self._corrupt():
            batches = self._file.reader.iter_batches(
                batch_rows, row_groups=[number], column_indices=self._columns, use_threads=True
            )
        while True:
            with self._corrupt():
                batch = next(batches, None)
            if batch is None:
                return
            yield self._projected(batch, first_row, batch.num_rows)
            first_row += batch.num_rows

    def _with_zones(self, file: Schema) -> Schema:
        """The columns with the table's word on zones: INT96 says nothing of them, and ClickHouse writes all as instants.

        The numbers in the file are the same either way.
        """
        other = {
            field_id: field.field_type
            for field_id, field in self._wanted.fields_by_id.items()
            if field_id in file.fields_by_id
            and {type(field.field_type), type(file.fields_by_id[field_id].field_type)} in _DIFFERENT_ZONES
        }
        return with_types(file, other) if other else file
