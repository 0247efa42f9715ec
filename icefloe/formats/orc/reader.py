"""How rows come out of an ORC file: only the wanted columns, by field id, from the stripes of a split."""

import zlib
from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
import pyarrow.orc as orc
import zstandard

from icefloe.errors import CorruptFileError, IncompatibleChangeError, InvalidInputError
from icefloe.formats.file_reading import DEFAULT_BATCH_ROWS, FileReader, Split
from icefloe.formats.file_schema import known_columns
from icefloe.formats.orc.arrays import child_numbers, from_orc, type_count
from icefloe.formats.orc.footer import Stripe, parse_tail
from icefloe.formats.orc.schema_codec import columns_of_orc, with_wanted_types
from icefloe.formats.orc.timestamps import FarTimestamps, far_types
from icefloe.schema import NameMapping, Schema, Value, schema_to_arrow, types


class OrcFileReader(FileReader):
    """An open ORC file.

    Columns are read whole, even where only some of their nested fields are wanted, and a stripe at a time.
    """

    _format = "ORC"
    _damage = (pa.ArrowException, IndexError, KeyError, ValueError, zlib.error, zstandard.ZstdError)

    def _open(self, mapping: NameMapping | None, constants: Mapping[int, Value] | None) -> Schema:
        with self._corrupt():
            self._file = orc.ORCFile(self._source)
            self._arrow_schema = self._file.schema
            self._tail = parse_tail(self._file.reader.serialized_file_tail(), self._location)
        if sum(stripe.rows for stripe in self._tail.stripes) != self._file.nrows:
            raise CorruptFileError(self._location, f"its stripes do not hold the {self._file.nrows} rows it speaks of")
        try:
            columns = columns_of_orc(self._arrow_schema)
        except (InvalidInputError, RecursionError) as problem:
            raise CorruptFileError(self._location, f"its ORC schema is not one of a table: {problem}") from None
        known = known_columns(columns.schema, self._wanted, mapping, constants)
        file_schema = with_wanted_types(known, columns.vague, self._wanted)
        self._refuse_unknown(file_schema)
        return file_schema

    def _columns_to_read(self, needed: Schema) -> Schema:
        ids = {field.field_id for field in needed.fields}
        self._indices = [i for i, field in enumerate(self.file_schema.fields) if field.field_id in ids]
        schema = Schema(*(self.file_schema.fields[i] for i in self._indices))
        self._target = schema_to_arrow(schema)
        self._numbers = child_numbers(pa.struct(list(self._arrow_schema)), 0)
        self._far = self._far_timestamps()
        return schema

    def batches(self, split: Split | None = None, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Record batches of the wanted columns, in the order of the file.

        `split` is (start, length) in bytes: the stripes that begin in it.
        """
        for number, stripe in enumerate(self._tail.stripes):
            if split is None or split[0] <= stripe.offset < split[0] + split[1]:
                yield from self._pieces(self._read(number, stripe), stripe.first_row, stripe.rows, batch_rows)

    def _refuse_unknown(self, file_schema: Schema) -> None:
        """A column of a type that Iceberg lacks is not missing; to read it as null would hide its values."""
        for field_id, field in file_schema.fields_by_id.items():
            if isinstance(field.field_type, types.UnknownType) and field_id in self._wanted.fields_by_id:
                raise IncompatibleChangeError(
                    f"{self._location}: column {field.name!r} is of an ORC type that no table has"
                )

    def _read(self, number: int, stripe: Stripe) -> pa.RecordBatch:
        if not self._indices:
            return pa.record_batch([])
        names = self._arrow_schema.names
        chosen = [names[i] for i in self._indices]
        # pyarrow takes a dot for a step into a struct, and one name for all columns that have it.
        plain = all("." not in name for name in names) and len(set(names)) == len(names)
        with self._corrupt():
            file = self._file if self._far is None else self._far.file
            rows = file.read_stripe(number, columns=chosen if plain else None)
            if rows.num_rows != stripe.rows:
                raise CorruptFileError(
                    self._location, f"stripe {number} has {rows.num_rows} rows and not {stripe.rows}"
                )
            columns = [
                from_orc(
                    rows.column(i if plain else index),
                    field.field_type,
                    self._target.field(i).type,
                    self._numbers[index],
                    None if self._far is None else partial(self._far.ticks, number),
                )
                for i, (index, field) in enumerate(zip(self._indices, self._read_schema.fields, strict=True))
            ]
        return pa.RecordBatch.from_arrays(columns, schema=self._target)

    def _far_timestamps(self) -> FarTimestamps | None:
        """The other way to read the file, if it holds timestamps in the columns to read that pyarrow cannot hold."""
        with self._corrupt():
            far = far_types(self._tail)
            read = {
                number
                for index in self._indices
                for number in range(
                    self._numbers[index], self._numbers[index] + type_count(self._arrow_schema.field(index).type)
                )
            }
            return FarTimestamps(self._source, self._location, self._tail, far & read) if far & read else None
