"""Which variant columns of a Parquet file are shredded as it is written, and in which form: by its first rows, if the table wants it.

Columns at the top and in structs are; those in lists and maps are not (as in Spark).
"""

from collections.abc import Mapping
from itertools import islice

import pyarrow as pa

from icefloe import properties as props
from icefloe.formats.variant.inference import infer_form
from icefloe.formats.variant.splitting import ShreddedForm, shred
from icefloe.schema import Schema, types
from icefloe.variant import Variant

Path = tuple[int, ...]
FIELD_ID = b"PARQUET:field_id"

_ROWS_AT_ONCE = 65536


class VariantShredder:
    """Shreds the variants of one file; the first rows that it sees decide the form of each column."""

    def __init__(self, schema: Schema, properties: Mapping[str, str]) -> None:
        wanted = props.PARQUET_SHRED_VARIANTS.of(properties)
        self._paths = _variant_paths(schema.fields) if wanted else []
        self._sample = props.PARQUET_VARIANT_BUFFER_SIZE.of(properties)
        self._forms: dict[Path, ShreddedForm] | None = None

    def shredded(self, rows: pa.Table) -> pa.Table:
        """The rows of a table, which may have a chunk each, in the form of the file."""
        if not self._paths:
            return rows
        if self._forms is None:
            forms = {path: self._infer(rows, path) for path in self._paths}
            self._forms = {path: form for path, form in forms.items() if not form.is_empty}
        for position, field in enumerate(self.file_schema(rows.schema)):
            if inner := _below(self._forms, position):
                chunks = [
                    _shred(chunk.slice(start, _ROWS_AT_ONCE), inner)
                    for chunk in rows.column(position).chunks
                    for start in range(0, len(chunk), _ROWS_AT_ONCE)
                ]
                rows = rows.set_column(position, field, pa.chunked_array(chunks, field.type))
        return rows

    def file_schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema of the rows as the file has it."""
        for position, field in enumerate(schema):
            if inner := _below(self._forms or {}, position):
                schema = schema.set(position, _field(field, inner))
        return schema

    def _infer(self, rows: pa.Table, path: Path) -> ShreddedForm:
        column = rows.slice(0, self._sample).column(path[0]).combine_chunks()
        for position in path[1:]:
            column = column.flatten()[position]
        there = (row for row in column.to_pylist() if row is not None)
        return infer_form(Variant(row["metadata"], row["value"]) for row in islice(there, self._sample))


def _shred(array: pa.StructArray, forms: dict[Path, ShreddedForm]) -> pa.StructArray:
    """The array with the variants at these paths shredded."""
    if () in forms:
        return shred(array, forms[()])
    children = [
        _shred(array.field(position), inner) if (inner := _below(forms, position)) else array.field(position)
        for position in range(array.type.num_fields)
    ]
    fields = list(_type(array.type, forms))
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)


def _field(field: pa.Field, forms: dict[Path, ShreddedForm]) -> pa.Field:
    """The field as the file has it; with its id alone, as the mark of plain variants does not fit a shredded one."""
    metadata = {FIELD_ID: field.metadata[FIELD_ID]} if field.metadata and FIELD_ID in field.metadata else None
    return pa.field(field.name, _type(field.type, forms), field.nullable, metadata)


def _type(kind: pa.DataType, forms: dict[Path, ShreddedForm]) -> pa.DataType:
    if () in forms:
        return forms[()].column_type
    return pa.struct([_field(field, inner) if (inner := _below(forms, at)) else field for at, field in enumerate(kind)])


def _below(forms: dict[Path, ShreddedForm], position: int) -> dict[Path, ShreddedForm]:
    return {path[1:]: form for path, form in forms.items() if path and path[0] == position}


def _variant_paths(fields: tuple[types.NestedField, ...]) -> list[Path]:
    paths: list[Path] = []
    for position, field in enumerate(fields):
        match field.field_type:
            case types.VariantType():
                paths.append((position,))
            case types.StructType():
                paths += [(position, *path) for path in _variant_paths(field.field_type.fields)]
    return paths
