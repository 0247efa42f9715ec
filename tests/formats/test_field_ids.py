"""Files are written with the ids of their schema at every level, or they are not written."""

import io
from typing import Any

import pyarrow as pa
import pytest

from icefloe.avro import avro_schema_of
from icefloe.errors import CorruptFileError
from icefloe.formats import avro_writer
from icefloe.formats.field_ids import check_written_ids, foreign_ids, misplaced_ids, missing_ids, variant_ids
from icefloe.formats.file_formats import DATA_FORMATS, writer_of
from icefloe.formats.orc import writer as orc_writer
from icefloe.formats.parquet import writer as parquet_writer
from icefloe.schema import Schema, schema_to_arrow, types

SCHEMA = Schema(
    types.NestedField(1, "id", types.IntegerType()),
    types.NestedField(2, "s", types.StructType(types.NestedField(3, "a", types.IntegerType()))),
    types.NestedField(4, "l", types.ListType(5, types.StructType(types.NestedField(6, "a", types.IntegerType())))),
    types.NestedField(7, "m", types.MapType(8, types.StringType(), 9, types.StringType())),
    types.NestedField(10, "v", types.VariantType()),
)
PARTS = types.StructType(
    types.NestedField(-1, "metadata", types.StringType()), types.NestedField(-2, "value", types.StringType())
)


def changed(**columns: Any) -> Schema:
    """The schema as a file may have it, with other types or ids of some columns."""
    fields = []
    for field in SCHEMA.fields:
        given = columns.get(field.name, field.field_type if field.name != "v" else PARTS)
        fields.append(
            types.NestedField(*given)
            if isinstance(given, tuple)
            else types.NestedField(field.field_id, field.name, given)
        )
    return Schema(*fields)


def test_the_ids_of_the_schema_are_right() -> None:
    check_written_ids(changed(), SCHEMA, "f")
    check_written_ids(SCHEMA, SCHEMA, "f")
    assert missing_ids(changed(), variant_ids([SCHEMA])) == []


@pytest.mark.parametrize(
    "file",
    [
        changed(v=(-3, "v", PARTS)),
        changed(id=(11, "id", types.IntegerType())),
        changed(s=types.StructType(types.NestedField(-3, "a", types.IntegerType()))),
        changed(
            s=types.StructType(
                types.NestedField(3, "a", types.IntegerType()), types.NestedField(12, "b", types.IntegerType())
            )
        ),
        changed(s=types.IntegerType()),
        changed(v=types.IntegerType()),
        changed(l=types.ListType(-3, types.StructType(types.NestedField(6, "a", types.IntegerType())))),
        changed(l=types.ListType(5, types.StructType(types.NestedField(-3, "a", types.IntegerType())))),
        changed(m=types.MapType(-3, types.StringType(), 9, types.StringType())),
        changed(m=types.MapType(8, types.StringType(), -3, types.StringType())),
        Schema(*SCHEMA.fields[:-1]),
        Schema(*SCHEMA.fields, types.NestedField(11, "more", types.IntegerType())),
    ],
    ids=str,
)
def test_any_other_id_is_an_error(file: Schema) -> None:
    with pytest.raises(CorruptFileError, match="other field ids than the schema's"):
        check_written_ids(file, SCHEMA, "f")


def test_fields_without_ids_and_with_those_of_others_are_named() -> None:
    variants = variant_ids([SCHEMA])
    assert missing_ids(changed(v=(-3, "v", PARTS)), variants) == ["v", "v.metadata", "v.value"]
    assert missing_ids(
        changed(l=types.ListType(-3, types.StructType(types.NestedField(6, "a", types.IntegerType())))), variants
    ) == ["l.element"]
    moved = changed(
        id=(3, "id", types.IntegerType()), s=types.StructType(types.NestedField(1, "a", types.IntegerType()))
    )
    assert misplaced_ids(moved, [SCHEMA], variants) == [
        "'id' has the field id 3, that of 's.a'",
        "'s.a' has the field id 1, that of 'id'",
    ]
    assert misplaced_ids(SCHEMA, [SCHEMA], variants) == foreign_ids(SCHEMA, [SCHEMA], variants) == []
    assert foreign_ids(changed(id=(77, "id", types.IntegerType())), [SCHEMA], variants) == ["'id' has the field id 77"]


def _without_ids(schema: Any) -> Any:
    return pa.schema([each.remove_metadata() if each.name == "s" else each for each in schema])


@pytest.mark.parametrize("file_format", DATA_FORMATS)
def test_a_writer_that_loses_an_id_fails_before_its_file_is_whole(
    file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema(*SCHEMA.fields[:3])
    rows = pa.table({"id": pa.array([1], pa.int32()), "s": [{"a": 1}], "l": [[{"a": 1}]]})
    rows = rows.cast(schema_to_arrow(schema))

    def write() -> None:
        writer = writer_of(file_format)(io.BytesIO(), schema)
        writer.write(rows)
        writer.close()

    write()
    for module, name in ((parquet_writer, "schema_to_arrow"), (orc_writer, "orc_schema")):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda each, real=real: _without_ids(real(each)))
    documents = avro_schema_of

    def without_id(each: Schema) -> Any:
        made = documents(each)
        del made["fields"][1]["field-id"]
        return made

    monkeypatch.setattr(avro_writer, "avro_schema_of", without_id)
    with pytest.raises(CorruptFileError, match="none is 2, that of column 's'"):
        write()
