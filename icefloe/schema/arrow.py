"""The Arrow form of types and schemas, both ways.

Field ids ride in the field metadata under `PARQUET:field_id` at every level, docs under `doc`. Schema ids, identifier
fields and defaults have no Arrow form and are lost.

| type | Arrow |
|---|---|
| `uuid` | the `arrow.uuid` extension; a plain `fixed_size_binary(16)` is read as `fixed[16]` |
| `variant` | `struct<metadata: binary not null, value: binary not null>`, field metadata names `arrow.parquet.variant` |
| `geometry`, `geography` | `binary` of WKB, field metadata names `geoarrow.wkb` with its `crs` and `edges` |
| `unknown` | `null` |

The last two marks are field metadata and not Arrow extension types: every Arrow library then reads the columns as what
they are stored as, and nothing has to be registered. Extension types of those names are understood when reading.
"""

import json
from collections.abc import Callable, Mapping
from itertools import count

import pyarrow as pa

from icefloe.errors import InvalidInputError, InvalidSchemaError, InvalidTypeError
from icefloe.schema import types
from icefloe.schema.ids import assign_fresh_ids, assign_fresh_type_ids
from icefloe.schema.schema import Schema

FIELD_ID_KEY = b"PARQUET:field_id"
DOC_KEY = b"doc"
EXTENSION_NAME_KEY = b"ARROW:extension:name"
EXTENSION_METADATA_KEY = b"ARROW:extension:metadata"
WKB_EXTENSION = "geoarrow.wkb"
VARIANT_EXTENSION = "arrow.parquet.variant"

_NAMELESS = "\0"
VARIANT_STORAGE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
"""How an unshredded variant is held in Arrow."""

_TO_ARROW: dict[type[types.IcebergType], pa.DataType] = {
    types.UnknownType: pa.null(),
    types.BooleanType: pa.bool_(),
    types.IntegerType: pa.int32(),
    types.LongType: pa.int64(),
    types.FloatType: pa.float32(),
    types.DoubleType: pa.float64(),
    types.DateType: pa.date32(),
    types.TimeType: pa.time64("us"),
    types.TimestampType: pa.timestamp("us"),
    types.TimestamptzType: pa.timestamp("us", "UTC"),
    types.TimestampNanoType: pa.timestamp("ns"),
    types.TimestamptzNanoType: pa.timestamp("ns", "UTC"),
    types.StringType: pa.string(),
    types.UUIDType: pa.uuid(),
    types.BinaryType: pa.binary(),
    types.GeometryType: pa.binary(),
    types.GeographyType: pa.binary(),
    types.VariantType: VARIANT_STORAGE,
}

_FROM_ARROW: dict[pa.DataType, types.IcebergType] = {
    pa.null(): types.UnknownType(),
    pa.bool_(): types.BooleanType(),
    **{arrow_type: types.IntegerType() for arrow_type in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())},
    **{arrow_type: types.LongType() for arrow_type in (pa.int64(), pa.uint32())},
    **{arrow_type: types.FloatType() for arrow_type in (pa.float16(), pa.float32())},
    pa.float64(): types.DoubleType(),
    **{arrow_type: types.DateType() for arrow_type in (pa.date32(), pa.date64())},
    **{arrow_type: types.TimeType() for arrow_type in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))},
    **{arrow_type: types.StringType() for arrow_type in (pa.string(), pa.large_string(), pa.string_view())},
    **{arrow_type: types.BinaryType() for arrow_type in (pa.binary(), pa.large_binary(), pa.binary_view())},
}

_HINTS: dict[pa.DataType, str] = {
    pa.uint64(): "cast it to int64, or to decimal128(20, 0) to keep every value",
    pa.time64("ns"): "cast it to time64('us')",
}


def schema_to_arrow(schema: Schema, *, ids: bool = True) -> pa.Schema:
    """The columns as an Arrow schema, with field ids in the metadata of every field unless `ids` is False."""
    return pa.schema([field_to_arrow(field, ids=ids) for field in schema.fields])


def field_to_arrow(field: types.NestedField, *, ids: bool = True) -> pa.Field:
    """A field as an Arrow field, with its metadata."""
    metadata: dict[bytes, bytes] = {}
    if ids:
        metadata[FIELD_ID_KEY] = str(field.field_id).encode()
    if field.doc is not None:
        metadata[DOC_KEY] = field.doc.encode()
    metadata |= _extension_metadata(field.field_type)
    return pa.field(field.name, type_to_arrow(field.field_type, ids=ids), field.optional, metadata or None)


def type_to_arrow(field_type: types.IcebergType, *, ids: bool = True) -> pa.DataType:
    """A type as an Arrow type; types that need field metadata (geo types, variant) become their storage type."""
    match field_type:
        case types.DecimalType():
            return pa.decimal128(field_type.precision, field_type.scale)
        case types.FixedType():
            return pa.binary(field_type.length)
        case types.StructType():
            return pa.struct([field_to_arrow(field, ids=ids) for field in field_type])
        case types.ListType():
            return pa.list_(field_to_arrow(field_type.element_field, ids=ids))
        case types.MapType():
            return pa.map_(
                field_to_arrow(field_type.key_field, ids=ids), field_to_arrow(field_type.value_field, ids=ids)
            )
        case _:
            return _TO_ARROW[type(field_type)]


def schema_from_arrow(schema: pa.Schema, *, downcast_ns_timestamp_to_us: bool = False) -> Schema:
    """The columns of a user's Arrow schema, with the field ids of its metadata, or all fresh ids if any is missing.

    Nanosecond timestamps need a v3 table; for older ones `downcast_ns_timestamp_to_us` reads them as microseconds.
    """
    reader = _Reader(downcast_ns_timestamp_to_us)
    columns = reader.schema(schema)
    return assign_fresh_ids(columns) if reader.missing_ids else columns


def file_schema_from_arrow(schema: pa.Schema) -> Schema:
    """The columns of a data file; those without a field id get negative ids, which no table column has."""
    return _Reader(False, is_file=True).schema(schema)


def type_from_arrow(arrow_type: pa.DataType, *, downcast_ns_timestamp_to_us: bool = False) -> types.IcebergType:
    """The Iceberg type of an Arrow type; nested fields get ids as in `schema_from_arrow`."""
    reader = _Reader(downcast_ns_timestamp_to_us)
    field_type = reader.type(arrow_type, "type")
    return assign_fresh_type_ids(field_type, count(1).__next__) if reader.missing_ids else field_type


def _extension_metadata(field_type: types.IcebergType) -> dict[bytes, bytes]:
    match field_type:
        case types.VariantType():
            return {EXTENSION_NAME_KEY: VARIANT_EXTENSION.encode(), EXTENSION_METADATA_KEY: b""}
        case types.GeometryType():
            return _wkb_metadata({"crs": field_type.crs})
        case types.GeographyType():
            return _wkb_metadata({"crs": field_type.crs, "edges": field_type.algorithm})
        case _:
            return {}


def _wkb_metadata(content: dict[str, str]) -> dict[bytes, bytes]:
    return {EXTENSION_NAME_KEY: WKB_EXTENSION.encode(), EXTENSION_METADATA_KEY: json.dumps(content).encode()}


class _Reader:
    """One pass over an Arrow schema: assigns negative ids where there are none, and remembers that it did."""

    def __init__(self, downcast_nanos: bool, *, is_file: bool = False) -> None:
        self.downcast_nanos = downcast_nanos
        self.is_file = is_file
        self.missing_ids = False
        self._negative: Callable[[], int] = count(-1, -1).__next__

    def schema(self, schema: pa.Schema) -> Schema:
        if not isinstance(schema, pa.Schema):
            raise InvalidSchemaError(f"{schema!r:.100} is not a pyarrow.Schema")
        try:
            return Schema(*(self.field(field, "") for field in schema))
        except RecursionError:
            raise InvalidSchemaError("the Arrow schema is nested too deeply to be read") from None

    def field(self, field: pa.Field, around: str) -> types.NestedField:
        path = f"{around}.{field.name}" if around else field.name
        doc = (field.metadata or {}).get(DOC_KEY)
        # Variants may be shredded into a field whose name is empty; no table has such a column.
        name = field.name or (_NAMELESS if self.is_file else "")
        return types.NestedField(
            self.field_id(field, path),
            name,
            self.field_type(field, path),
            not field.nullable,
            None if doc is None else doc.decode("utf-8", "replace"),
        )

    def field_id(self, field: pa.Field, path: str) -> int:
        text = (field.metadata or {}).get(FIELD_ID_KEY)
        try:
            field_id = -1 if text is None else int(text)
        except ValueError:
            raise InvalidSchemaError(f"column {path!r}: the field id {text!r} is not an integer") from None
        if field_id >= 0:
            return field_id
        self.missing_ids = True
        return self._negative()

    def field_type(self, field: pa.Field, path: str) -> types.IcebergType:
        metadata = field.metadata or {}
        if name := metadata.get(EXTENSION_NAME_KEY):
            content = metadata.get(EXTENSION_METADATA_KEY, b"")
            marked = _marked_type(name.decode("utf-8", "replace"), content, field.type, path)
            if marked is not None:
                return marked
        return self.type(field.type, path)

    def type(self, arrow_type: pa.DataType, path: str) -> types.IcebergType:
        if isinstance(arrow_type, pa.BaseExtensionType):
            return self.extension(arrow_type, path)
        if (plain := _FROM_ARROW.get(arrow_type)) is not None:
            return plain
        is_a = pa.types
        if is_a.is_decimal(arrow_type) and arrow_type.precision <= types.MAX_DECIMAL_PRECISION:
            try:
                return types.DecimalType(arrow_type.precision, arrow_type.scale)
            except InvalidTypeError as problem:
                raise InvalidTypeError(f"column {path!r}: {problem}") from None
        if is_a.is_timestamp(arrow_type):
            return self.timestamp(arrow_type)
        if is_a.is_fixed_size_binary(arrow_type) and arrow_type.byte_width:
            return types.FixedType(arrow_type.byte_width)
        if is_a.is_dictionary(arrow_type) or is_a.is_run_end_encoded(arrow_type):
            return self.type(arrow_type.value_type, path)
        return self.nested(arrow_type, path)

    def nested(self, arrow_type: pa.DataType, path: str) -> types.IcebergType:
        is_a = pa.types
        if is_a.is_struct(arrow_type):
            return types.StructType(*(self.field(field, path) for field in arrow_type))
        if is_a.is_map(arrow_type):
            key, value = arrow_type.key_field, arrow_type.item_field
            return types.MapType(
                self.field_id(key, f"{path}.key"),
                self.field_type(key, f"{path}.key"),
                self.field_id(value, f"{path}.value"),
                self.field_type(value, f"{path}.value"),
                not value.nullable,
            )
        lists = (is_a.is_list, is_a.is_large_list, is_a.is_fixed_size_list, is_a.is_list_view, is_a.is_large_list_view)
        if any(test(arrow_type) for test in lists):
            element, inside = arrow_type.value_field, f"{path}.element"
            return types.ListType(
                self.field_id(element, inside), self.field_type(element, inside), not element.nullable
            )
        hint = _HINTS.get(arrow_type, "cast the column to one that has")
        raise InvalidTypeError(f"column {path!r}: no Iceberg type holds Arrow's {arrow_type}; {hint}")

    def timestamp(self, arrow_type: pa.TimestampType) -> types.IcebergType:
        """The time zone of an Arrow timestamp only says how to display it; the value is always UTC."""
        if arrow_type.unit == "ns" and not self.downcast_nanos:
            return types.TimestampNanoType() if arrow_type.tz is None else types.TimestamptzNanoType()
        return types.TimestampType() if arrow_type.tz is None else types.TimestamptzType()

    def extension(self, arrow_type: pa.BaseExtensionType, path: str) -> types.IcebergType:
        name = arrow_type.extension_name
        if name == "arrow.uuid":
            return types.UUIDType()
        if name == "arrow.json":
            return self.type(arrow_type.storage_type, path)
        serialize = getattr(arrow_type, "__arrow_ext_serialize__", None)
        content = serialize() if serialize is not None else b""
        if (marked := _marked_type(name, content, arrow_type.storage_type, path)) is not None:
            return marked
        raise InvalidTypeError(
            f"column {path!r}: the Arrow extension type {name!r} is unknown; cast it to its storage type, {arrow_type.storage_type}"
        )


def _marked_type(name: str, content: bytes, storage: pa.DataType, path: str) -> types.IcebergType | None:
    """The type for an extension name, if it is one of those kept as field metadata."""
    if name == VARIANT_EXTENSION:
        names = {field.name for field in storage} if pa.types.is_struct(storage) else set()
        if "metadata" not in names:
            raise InvalidTypeError(f"column {path!r}: a variant is a struct of metadata and value, not {storage}")
        return types.VariantType()
    if name == WKB_EXTENSION:
        if storage not in (pa.binary(), pa.large_binary(), pa.binary_view()):
            raise InvalidTypeError(f"column {path!r}: WKB is binary, not {storage}")
        try:
            return _geo_type(json.loads(content or b"{}"))
        except (InvalidInputError, ValueError) as problem:
            raise InvalidTypeError(
                f"column {path!r}: {content!r:.200} is not {WKB_EXTENSION} metadata: {problem}"
            ) from None
    return None


def _geo_type(content: object) -> types.GeometryType | types.GeographyType:
    if not isinstance(content, Mapping):
        raise InvalidTypeError("it must be a JSON object")
    crs = _crs(content.get("crs"))
    match content.get("edges"):
        case None | "planar":
            return types.GeometryType(crs)
        case str(edges) if edges in types.EDGE_ALGORITHMS:
            return types.GeographyType(crs, edges)
        case edges:
            raise InvalidTypeError(
                f"edges are {edges!r}; they must be planar or one of {', '.join(types.EDGE_ALGORITHMS)}"
            )


def _crs(crs: object) -> str:
    """A CRS as Iceberg writes it; a PROJJSON object only by its id, since inline PROJJSON is not allowed (spec: CRS)."""
    match crs:
        case None:
            return types.DEFAULT_CRS
        case str():
            return crs
        case {"id": {"authority": str(authority), "code": str() | int() as code}}:
            return f"{authority}:{code}"
        case _:
            raise InvalidTypeError("its CRS is neither a string nor PROJJSON with an authority and a code")
