"""How the columns of a table lie in the Arrow batches that file writers take and file readers give.

Columns of type `unknown` are not stored (spec: Appendix A). Geometry and geography are the `geoarrow.wkb` extension type
towards pyarrow's Parquet writer, which then annotates them and keeps their boxes.
"""

import json
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from icefloe.errors import InvalidSchemaError, InvalidValueError
from icefloe.formats.file_schema import with_fields
from icefloe.schema import EXTENSION_METADATA_KEY, EXTENSION_NAME_KEY, WKB_EXTENSION, Schema, schema_to_arrow, types

Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)


class WkbType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A geometry or geography for pyarrow's Parquet writer."""

    def __init__(self, kind: types.GeometryType | types.GeographyType) -> None:
        self._kind = kind
        super().__init__(pa.binary(), WKB_EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        content = {"crs": self._kind.crs}
        if isinstance(self._kind, types.GeographyType):
            content["edges"] = self._kind.algorithm
        return json.dumps(content).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, content: bytes) -> "WkbType":
        about = json.loads(content)
        return cls(
            types.GeographyType(about["crs"], about["edges"]) if "edges" in about else types.GeometryType(about["crs"])
        )


def stored_schema(schema: Schema) -> Schema:
    """The columns that a data file holds: all but those of type unknown."""
    return Schema(
        *_stored(schema.fields, "the schema"),
        schema_id=schema.schema_id,
        identifier_field_ids=schema.identifier_field_ids,
    )


def _stored(fields: tuple[types.NestedField, ...], around: str) -> list[types.NestedField]:
    stored = [
        replace(field, field_type=_stored_type(field.field_type, field.name))
        for field in fields
        if not isinstance(field.field_type, types.UnknownType)
    ]
    if not stored:
        raise InvalidSchemaError(
            f"{around} has no columns, or only columns of type unknown, which are not stored; a file needs at least one other"
        )
    return stored


def _stored_type(kind: types.IcebergType, name: str) -> types.IcebergType:
    if isinstance(kind, types.StructType):
        return types.StructType(*_stored(kind.fields, f"struct {name!r}"))
    if not isinstance(kind, types.NestedType):
        return kind
    if any(isinstance(field.field_type, types.UnknownType) for field in kind.fields):
        raise InvalidSchemaError(
            f"column {name!r} is a list or map of unknown, which cannot be stored; give it a type first"
        )
    return with_fields(kind, [replace(field, field_type=_stored_type(field.field_type, name)) for field in kind.fields])


def is_plain_geography(kind: types.IcebergType) -> bool:
    """Whether pyarrow takes the geography for mere bytes: it knows spherical edges only."""
    return isinstance(kind, types.GeographyType) and kind.algorithm != types.DEFAULT_EDGE_ALGORITHM


def has_geo(schema: Schema) -> bool:
    """Whether any column is a geometry or geography."""
    return any(
        isinstance(field.field_type, types.GeometryType | types.GeographyType) for field in schema.fields_by_id.values()
    )


def conform(batch: Batch, schema: Schema) -> Batch:
    """A batch with exactly the Arrow schema of the table's stored columns, matched by name; for writers.

    Columns of other Arrow types are cast where no value is lost. Null in a required column is an error.
    """
    target = schema_to_arrow(schema)
    names = batch.schema.names
    missing = [field.name for field in schema.fields if field.name not in names]
    if missing:
        raise InvalidValueError(
            f"the data lacks the columns {', '.join(map(repr, missing))}; a file holds every column of its table"
        )
    if len(set(names)) < len(names):
        raise InvalidValueError(f"the data has a column name twice: {', '.join(names)}")
    columns = []
    for field, arrow_field in zip(schema.fields, target, strict=True):
        column = batch.column(field.name)
        if not column.type.equals(arrow_field.type, check_metadata=True):
            column = _cast(column, arrow_field.type, field.name)
        if field.required and column.null_count:
            raise InvalidValueError(f"required column {field.name!r} has {column.null_count} nulls")
        columns.append(column)
    return type(batch).from_arrays(columns, schema=target)


def _cast(column: pa.Array | pa.ChunkedArray, arrow_type: pa.DataType, name: str) -> pa.Array | pa.ChunkedArray:
    try:
        if isinstance(column.type, pa.BaseExtensionType) and not isinstance(arrow_type, pa.BaseExtensionType):
            column = column.cast(column.type.storage_type)
        return column.cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as problem:
        raise InvalidValueError(
            f"column {name!r} is {column.type}, which cannot be stored as {arrow_type}: {problem}"
        ) from None


def geo_schema(schema: Schema, arrow_schema: pa.Schema) -> pa.Schema:
    """The Arrow schema with extension types for its geo columns."""
    return pa.schema(
        [_geo_field(field, arrow_field) for field, arrow_field in zip(schema.fields, arrow_schema, strict=True)],
        arrow_schema.metadata,
    )


def _geo_field(field: types.NestedField, arrow_field: pa.Field) -> pa.Field:
    arrow_type = _geo_type(field.field_type, arrow_field.type)
    metadata = {
        key: value
        for key, value in (arrow_field.metadata or {}).items()
        if key not in (EXTENSION_NAME_KEY, EXTENSION_METADATA_KEY)
    }
    return arrow_field.with_type(arrow_type).with_metadata(metadata)


def _geo_type(kind: types.IcebergType, arrow_type: pa.DataType) -> pa.DataType:
    match kind:
        case types.GeometryType() | types.GeographyType() if not is_plain_geography(kind):
            return WkbType(kind)
        case types.StructType():
            return pa.struct([_geo_field(field, inner) for field, inner in zip(kind.fields, arrow_type, strict=True)])
        case types.ListType():
            return pa.list_(_geo_field(kind.element_field, arrow_type.value_field))
        case types.MapType():
            return pa.map_(
                _geo_field(kind.key_field, arrow_type.key_field), _geo_field(kind.value_field, arrow_type.item_field)
            )
        case _:
            return arrow_type
