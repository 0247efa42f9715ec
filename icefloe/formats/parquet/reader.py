"""How rows come out of a Parquet file: only the wanted columns, by field id, from the row groups of a split."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe.avro import Source
from icefloe.errors import CorruptFileError
from icefloe.formats.file_reading import DEFAULT_BATCH_ROWS, FileReader, Split
from icefloe.formats.file_schema import file_columns, with_types
from icefloe.formats.parquet.dictionary_reads import read_as_dictionaries
from icefloe.formats.parquet.encryption import keyed_source
from icefloe.formats.parquet.metrics import first_page, leaf_fields
from icefloe.formats.parquet.variant_bounds import has_only_nulls
from icefloe.formats.projection import null_array
from icefloe.formats.variant.extraction import Extraction, extract, needed_leaves
from icefloe.schema import VARIANT_STORAGE, NameMapping, Schema, Value, types
from icefloe.storage import prefetch

_NANOS = (types.TimestampNanoType, types.TimestamptzNanoType)
_TEXTS = (types.StringType, types.BinaryType)
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
    """An open Parquet file; `footer` is its metadata.

    `extractions` of variants, at the top or in structs, stand behind the wanted columns. Of variants in `extracted_only` nothing else
    is wanted: only what their extractions need is read, and they are null themselves. Texts at the top may come as dictionaries
    if they `may_be_encoded`.
    """

    _format = "Parquet"
    _damage = (pa.ArrowException, UnicodeDecodeError, MemoryError, OverflowError)

    def __init__(
        self,
        source: Source,
        location: str,
        wanted: Schema,
        *,
        mapping: NameMapping | None = None,
        constants: Mapping[int, Value] | None = None,
        extractions: Sequence[Extraction] = (),
        extracted_only: Collection[int] = (),
        may_be_encoded: bool = False,
    ) -> None:
        self._may_be_encoded = may_be_encoded
        self._extractions = extractions
        self._extracted_only = extracted_only
        super().__init__(source, location, wanted, mapping=mapping, constants=constants)

    def _open(self, mapping: NameMapping | None, constants: Mapping[int, Value] | None) -> Schema:
        wanted = self._wanted.fields_by_id.values()
        self._source, self._keyed = keyed_source(self._source)
        with self._corrupt():
            # The oldest timestamps of Parquet are of nanoseconds, in which years from 1677 to 2262 fit; tables mean microseconds.
            self._unit = None if any(isinstance(field.field_type, _NANOS) for field in wanted) else "us"
            self._file = self._parquet_file()
            self.footer = self._file.metadata
            arrow_schema = self._file.schema_arrow
        return self._with_zones(file_columns(arrow_schema, self._wanted, mapping, constants))

    def _parquet_file(self, **options: Any) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._source, pre_buffer=True, coerce_int96_timestamp_unit=self._unit, **self._keyed, **options
        )

    def _columns_to_read(self, needed: Schema) -> Schema:
        leaves = leaf_fields(self.file_schema, self._file.schema_arrow)
        unneeded = self._unneeded_leaves(leaves)
        self._columns = [
            i for i, field_id in enumerate(leaves) if field_id in needed.fields_by_id and i not in unneeded
        ]
        texts = {field.field_id for field in needed.fields if isinstance(field.field_type, _TEXTS)}
        encoded = read_as_dictionaries(self.footer, [i for i in self._columns if leaves[i] in texts])
        if encoded:
            with self._corrupt():
                self._file = self._parquet_file(metadata=self.footer, read_dictionary=encoded)
        return needed

    def _unneeded_leaves(self, leaves: list[int]) -> set[int]:
        """The columns of variants that no extraction needs."""
        unneeded: set[int] = set()
        for field_id in self.file_schema.fields_by_id.keys() & set(self._extracted_only):
            first, size = leaves.index(field_id), leaves.count(field_id)
            top, *inner = _steps(self.file_schema, field_id)
            kind = self._file.schema_arrow.field(top).type
            for step in inner:
                kind = kind.field(step).type
            is_empty = partial(has_only_nulls, self.footer, first)
            needed = [
                needed_leaves(kind, extraction, is_empty, self._location)
                for extraction in self._extractions
                if extraction.field_id == field_id
            ]
            unneeded |= set(range(first, first + size)) - {first + leaf for leaf in set().union(*needed)}
        return unneeded

    def _projected(self, batch: pa.RecordBatch, first_row: int, rows: int) -> pa.RecordBatch:
        extracted = [
            self._extracted(batch, extraction)
            if extraction.field_id in self._read_schema.fields_by_id
            else pa.nulls(rows, extraction.arrow_type)
            for extraction in self._extractions
        ]
        for field_id in self._read_schema.fields_by_id.keys() & set(self._extracted_only):
            top, *inner = _steps(self._read_schema, field_id)
            column = _emptied(batch.column(top), inner)
            batch = batch.set_column(top, pa.field(batch.schema.names[top], column.type), column)
        projected = super()._projected(batch, first_row, rows)
        for number, values in enumerate(extracted):
            projected = projected.append_column(f"extraction {number}", values)
        return projected

    def _extracted(self, batch: pa.RecordBatch, extraction: Extraction) -> pa.Array:
        top, *inner = _steps(self._read_schema, extraction.field_id)
        column = batch.column(top)
        return extract(pc.struct_field(column, inner) if inner else column, extraction, self._location)

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


def _steps(schema: Schema, field_id: int) -> list[int]:
    """Where a field is: the position of its column, and those in the structs that it is in."""
    around = [*reversed(schema.ancestors(field_id)), schema.find_field(field_id)]
    fields, steps = schema.fields, []
    for each in around:
        steps.append(next(at for at, field in enumerate(fields) if field.field_id == each.field_id))
        fields = each.field_type.fields if isinstance(each.field_type, types.StructType) else ()
    return steps


def _emptied(column: pa.Array, steps: Sequence[int]) -> pa.Array:
    """The column with null in place of the variant at these positions of its structs."""
    if not steps:
        return null_array(len(column), VARIANT_STORAGE)
    parts = [column.field(at) for at in range(column.type.num_fields)]
    parts[steps[0]] = _emptied(parts[steps[0]], steps[1:])
    fields = [pa.field(field.name, part.type) for field, part in zip(column.type, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=column.is_null() if column.null_count else None)
