"""How rows come out of an Avro file: only the wanted columns, by field id, from the blocks of a split."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from icefloe.avro import AvroFile, Container, nodes as av
from icefloe.errors import IncompatibleChangeError
from icefloe.formats.avro_columns import file_record, iceberg_schema, nodes_below, with_wanted_zones
from icefloe.formats.avro_decoding import RowDecoder
from icefloe.formats.file_schema import columns_to_read, known_columns, without_positions
from icefloe.formats.projection import position_array, project_batch, with_positions
from icefloe.formats.written_file import DEFAULT_BATCH_ROWS
from icefloe.schema import NameMapping, NestedField, NestedType, Schema, plan_projection, reserved

_BATCH_BYTES = 1 << 26


class AvroFileReader:
    """An open Avro file, read as rows of the wanted schema. `_pos` among the wanted columns gives row positions.

    `source` is a seekable file. `constants` are values by field id for columns that the file lacks. Files without field ids
    need a name mapping.
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
        self._file = AvroFile(source, location)
        record = file_record(self._file.header.schema, location)
        found = known_columns(iceberg_schema(record, location), wanted, mapping, constants)
        self.file_schema = Schema(*with_wanted_zones(found.fields, nodes_below(record), wanted))
        for field, inner in zip(self.file_schema.fields, record.fields, strict=True):
            _check_unions(field, inner.node, wanted, location)
        self._read_schema = columns_to_read(wanted, self.file_schema, constants)
        self._plan = plan_projection(without_positions(wanted), self._read_schema, constants)
        self._with_rows = any(field.field_id == reserved.POS.field_id for field in wanted.fields)
        self._decoder = RowDecoder(record, self.file_schema, self._read_schema, location)

    @property
    def metadata(self) -> dict[str, str]:
        """The key-value metadata of the file."""
        return dict(self._file.header.metadata)

    def batches(self, split: tuple[int, int] | None = None, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[Any]:
        """Record batches of the wanted columns, in the order of the file.

        `split` is (start, length) in bytes: the blocks that begin in it.
        """
        waiting: list[Any] = []
        rows = size = 0
        for first_row, part in self._file.parts(split, self._with_rows):
            for batch in self._batches(first_row, part, batch_rows):
                if waiting and (rows + batch.num_rows > batch_rows or size + batch.nbytes > _BATCH_BYTES):
                    yield _together(waiting)
                    waiting, rows, size = [], 0, 0
                waiting.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
        if waiting:
            yield _together(waiting)

    def _batches(self, first_row: int, part: Container, batch_rows: int) -> Iterator[Any]:
        decoded = self._decoder.batch(part)
        for start in range(0, part.rows, batch_rows):
            rows = min(batch_rows, part.rows - start)
            piece = decoded.slice(start, rows) if self._read_schema.fields else decoded
            projected = project_batch(piece, self._plan, without_positions(self._wanted), self._location, rows)
            positions = position_array(first_row + start, rows)
            yield with_positions(projected, self._wanted, positions, reserved.POS.field_id)


def _together(batches: list[Any]) -> Any:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _check_unions(field: NestedField, node: av.AvroNode, wanted: Schema, location: str) -> None:
    """A union of several types is not a column; to read it as missing would hide its values."""
    if isinstance(av.option_of(node) or node, av.AvroUnion):
        if field.field_id in wanted.fields_by_id:
            raise IncompatibleChangeError(
                f"{location}: column {field.name!r} is a union of several Avro types;"
                " a column is one type, or that and null (spec: Appendix A)"
            )
    elif isinstance(field.field_type, NestedType):
        for child, inner in zip(field.field_type.fields, nodes_below(node), strict=True):
            _check_unions(child, inner, wanted, location)
