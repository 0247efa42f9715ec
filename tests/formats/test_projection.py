"""Files of an old schema, read under any later one, hold what the definition of projection says."""

import io
from typing import Any

import pyarrow as pa
from hypothesis import given, strategies as st

from icefloe.errors import IcefloeError, InvalidSchemaError
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.formats.projection import arrow_object
from icefloe.schema import Schema, SchemaUpdate
from icefloe.schema.types import UnknownType
from tests.formats.rows import arrow_table, contents
from tests.schema.test_projection import evolve, has_variant, naive
from tests.strategies import schemas, values_of


def as_table(schema: Schema, rows: list[Any]) -> Any:
    return arrow_table(schema, [arrow_object(row, schema.as_struct) for row in rows])


def is_storable(schema: Schema) -> bool:
    """Without variants, whose values the definition does not speak of, and without unknown inside of lists."""
    kinds = [field.field_type for field in schema.fields_by_id.values()]
    return not has_variant(schema.as_struct) and not any(isinstance(kind, UnknownType) for kind in kinds)


@given(st.data())
def test_old_parquet_files_under_a_later_schema(data: st.DataObject) -> None:
    old = data.draw(schemas().filter(is_storable))
    new, last = old, old.highest_field_id
    for _ in range(data.draw(st.integers(1, 5))):
        change = SchemaUpdate(new, last, 4)
        try:
            evolve(data, change, new)
            new = change.apply()
        except IcefloeError:
            continue
        last = change.last_column_id
    rows = data.draw(st.lists(values_of(old.as_struct), min_size=1, max_size=6))
    try:
        expected = as_table(new, [naive(new.as_struct, old.as_struct, row) for row in rows])
    except IcefloeError:
        return  # a date out of the range of timestamps
    except pa.ArrowInvalid as problem:
        assert "array invalid" in str(problem) or "Null" in str(problem)  # noqa: PT017  # pyarrow's trouble with nulls of type null
        return
    sink = io.BytesIO()
    try:
        writer = ParquetFileWriter(sink, old)
    except InvalidSchemaError:
        return
    writer.write(as_table(old, rows))
    writer.close()
    found = pa.Table.from_batches(list(ParquetFileReader(sink, "x", new).batches()))
    assert found.schema.equals(expected.schema, check_metadata=True)
    found.validate(full=True)
    assert contents(found) == contents(expected)
