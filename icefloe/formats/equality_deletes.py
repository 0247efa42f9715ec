"""Equality delete files: key columns whose values say which rows are deleted (spec: Equality Delete Files).

Columns are matched by field id, and null equals null.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pyarrow as pa

from icefloe.avro import Source
from icefloe.errors import CorruptFileError, InvalidSchemaError
from icefloe.formats.equality_keys import key_columns
from icefloe.formats.file_formats import PARQUET, delete_file_properties, reader_of, writer_of
from icefloe.formats.file_writing import FileWriter, Sink
from icefloe.schema import Schema, schema_to_arrow, select_ids, types
from icefloe.versions import Feature, require


def check_equality_ids(schema: Schema, field_ids: Iterable[int]) -> tuple[int, ...]:
    """The ids, ascending and once each, if rows can be deleted by these columns of the schema.

    The rules are those of identifier fields, but for nulls: optional columns and columns of optional structs are fine.
    """
    ids = tuple(sorted(set(field_ids)))
    if not ids:
        raise InvalidSchemaError("an equality delete needs at least one column to compare rows by")
    for field_id in ids:
        schema.key_field(field_id, "equality")
    return ids


def equality_delete_writer(
    sink: Sink,
    schema: Schema,
    field_ids: Iterable[int],
    version: int,
    file_format: str = PARQUET,
    properties: Mapping[str, str] | None = None,
) -> FileWriter:
    """A writer of rows of key columns to a delete file; its `schema` has the columns that batches must have."""
    require(version, Feature.DELETE_FILES, "an equality delete file")
    ids = check_equality_ids(schema, field_ids)
    return writer_of(file_format)(
        sink,
        select_ids(schema, ids),
        delete_file_properties(properties),
        # For the information of people, as the Java library has it.
        metadata={"delete-type": "equality", "delete-field-ids": ", ".join(map(str, ids))},
    )


def read_equality_deletes(
    source: Source, location: str, schema: Schema, field_ids: Iterable[int], file_format: str = PARQUET
) -> pa.Table:
    """The keys of a delete file as an Arrow table of one column per field id, ascending, named by the id.

    `schema` must have the columns, those that the table dropped since among them.
    """
    ids = check_equality_ids(schema, field_ids)
    wanted = Schema(*(_optional(field) for field in select_ids(schema, ids).fields))
    reader = reader_of(file_format)(source, location, wanted)
    present = reader.file_schema.fields_by_id
    if missing := [
        i for i in ids if i not in present and not isinstance(schema.fields_by_id[i].field_type, types.UnknownType)
    ]:
        raise CorruptFileError(
            location, f"it lacks the columns of its equality field ids {', '.join(map(str, missing))}"
        )
    empty = schema_to_arrow(wanted).empty_table()
    return pa.concat_tables([key_columns(empty, ids), *(key_columns(batch, ids) for batch in reader.batches())])


def _optional(field: types.NestedField) -> types.NestedField:
    """The field as one that may be null at every level."""
    kind = field.field_type
    if isinstance(kind, types.StructType):
        kind = types.StructType(*map(_optional, kind.fields))
    return replace(field, field_type=kind, required=False)
