"""How rows come out of an ORC file: only the wanted columns, by field id, from the stripes of a split."""

import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import zstandard

from icefloe.errors import CorruptFileError, IcefloeError, IncompatibleChangeError, InvalidInputError
from icefloe.formats.file_schema import columns_to_read, known_columns, without_positions
from icefloe.formats.orc.arrays import child_numbers, from_orc, type_count
from icefloe.formats.orc.footer import Stripe, parse_tail
from icefloe.formats.orc.schema_codec import columns_of_orc, with_wanted_types
from icefloe.formats.orc.timestamps import FarTimestamps, far_types
from icefloe.formats.projection import position_array, project_batch, with_positions
from icefloe.formats.written_file import DEFAULT_BATCH_ROWS
from icefloe.schema import NameMapping, Schema, UnknownType, plan_projection, reserved, schema_to_arrow

_DAMAGE = (pa.ArrowException, IndexError, KeyError, ValueError, zlib.error, zstandard.ZstdError)


class OrcFileReader:
    """An open ORC file, read as rows of the wanted schema. `_pos` among the wanted columns gives row positions.

    `constants` are values by field id for columns that the file lacks. Files without ids need a name mapping. Columns are
    read whole, even where only some of their nested fields are wanted, and a stripe at a time.
    """

    def __init__(
        self,
        source: Any,
        location: str,
        wanted: Schema,
        *,
        mapping: NameMapping | None = None,
        constants: Mapping[int, Any] | None = None,
    ) -> None:
        self._location = location
        self._wanted = wanted
        with _corrupt(location):
            self._file = orc.ORCFile(source)
            self._arrow_schema = self._file.schema
            self._tail = parse_tail(self._file.reader.serialized_file_tail(), location)
        if sum(stripe.rows for stripe in self._tail.stripes) != self._file.nrows:
            raise CorruptFileError(location, f"its stripes do not hold the {self._file.nrows} rows it speaks of")
        self.file_schema = self._columns(mapping, constants)
        self._refuse_unknown()
        needed = columns_to_read(wanted, self.file_schema, constants)
        top = {field.field_id for field in needed.fields}
        self._places = [i for i, field in enumerate(self.file_schema.fields) if field.field_id in top]
        self._read_schema = Schema(*(self.file_schema.fields[i] for i in self._places))
        self._target = schema_to_arrow(self._read_schema)
        self._numbers = child_numbers(pa.struct(list(self._arrow_schema)), 0)
        self._far = self._far_timestamps(source)
        self._plan = plan_projection(without_positions(wanted), self._read_schema, constants)

    @property
    def metadata(self) -> dict[str, str]:
        """The key-value metadata of the file."""
        found = self._file.metadata or {}
        return {key.decode("utf-8", "replace"): value.decode("utf-8", "replace") for key, value in found.items()}

    def batches(self, split: tuple[int, int] | None = None, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[Any]:
        """Record batches of the wanted columns, in the order of the file.

        `split` is (start, length) in bytes: the stripes that begin in it.
        """
        for number, stripe in enumerate(self._tail.stripes):
            if split is None or split[0] <= stripe.offset < split[0] + split[1]:
                yield from self._stripe(number, stripe, batch_rows)

    def _columns(self, mapping: NameMapping | None, constants: Mapping[int, Any] | None) -> Schema:
        try:
            found = columns_of_orc(self._arrow_schema)
        except (InvalidInputError, RecursionError) as problem:
            raise CorruptFileError(self._location, f"its ORC schema is not one of a table: {problem}") from None
        known = known_columns(found.schema, self._wanted, mapping, constants)
        return with_wanted_types(known, found.vague, self._wanted)

    def _refuse_unknown(self) -> None:
        """A column of a type that Iceberg lacks is not missing; to read it as null would hide its values."""
        for field_id, field in self.file_schema.fields_by_id.items():
            if isinstance(field.field_type, UnknownType) and field_id in self._wanted.fields_by_id:
                raise IncompatibleChangeError(
                    f"{self._location}: column {field.name!r} is of an ORC type that no table has"
                )

    def _stripe(self, number: int, stripe: Stripe, batch_rows: int) -> Iterator[Any]:
        batch = self._read(number, stripe)
        for start in range(0, stripe.rows, batch_rows):
            rows = min(batch_rows, stripe.rows - start)
            part = batch.slice(start, rows) if self._places else batch
            projected = project_batch(part, self._plan, without_positions(self._wanted), self._location, rows)
            positions = position_array(stripe.first_row + start, rows)
            yield with_positions(projected, self._wanted, positions, reserved.POS.field_id)

    def _read(self, number: int, stripe: Stripe) -> Any:
        if not self._places:
            return pa.record_batch([])
        names = self._arrow_schema.names
        chosen = [names[i] for i in self._places]
        # pyarrow takes a dot for a step into a struct, and one name for all columns that have it.
        plain = all("." not in name for name in names) and len(set(names)) == len(names)
        with _corrupt(self._location):
            file = self._file if self._far is None else self._far.file
            found = file.read_stripe(number, columns=chosen if plain else None)
            if found.num_rows != stripe.rows:
                raise CorruptFileError(
                    self._location, f"stripe {number} has {found.num_rows} rows and not {stripe.rows}"
                )
            columns = [
                from_orc(
                    found.column(i if plain else place),
                    field.field_type,
                    self._target.field(i).type,
                    self._numbers[place],
                    None if self._far is None else partial(self._far.ticks, number),
                )
                for i, (place, field) in enumerate(zip(self._places, self._read_schema.fields, strict=True))
            ]
        return pa.RecordBatch.from_arrays(columns, schema=self._target)

    def _far_timestamps(self, source: Any) -> FarTimestamps | None:
        """The other way to read the file, if it holds timestamps in the columns to read that pyarrow cannot hold."""
        with _corrupt(self._location):
            far = far_types(self._tail)
            read = {
                number
                for place in self._places
                for number in range(
                    self._numbers[place], self._numbers[place] + type_count(self._arrow_schema.field(place).type)
                )
            }
            return FarTimestamps(source, self._location, self._tail, far & read) if far & read else None


class _corrupt:  # noqa: N801  # reads as a word of the language: `with _corrupt(location):`
    """Errors of pyarrow about the bytes of a file, as ours."""

    def __init__(self, location: str) -> None:
        self._location = location

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        damage = isinstance(problem, _DAMAGE) and not isinstance(problem, IcefloeError)
        if damage or (isinstance(problem, OSError) and problem.errno is None and not isinstance(problem, IcefloeError)):
            raise CorruptFileError(self._location, f"it cannot be read as ORC: {problem}") from problem
