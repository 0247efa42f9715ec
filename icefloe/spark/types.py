"""How the types of a table and Spark's stand for each other, both ways, with ids, comments and defaults.

There are two sides. The *user's* side is what DataFrames show. The *file* side is how Spark's own Parquet reader and
writer see the same columns. They differ where Spark has no such type:

| Iceberg | user's side | file side |
|---|---|---|
| `uuid` | `string` | `binary` |
| `fixed[n]` | `binary` | `binary` |
| `time` | `time(6)` where `spark.sql.timeType.enabled`, else `bigint` of microseconds from midnight | the same |
| `timestamp`, `timestamptz` | `timestamp_ntz`, `timestamp` | the same |
| `timestamp_ns`, `timestamptz_ns` | `bigint` of nanoseconds from 1970-01-01T00:00:00 (UTC) | the same |
| `geometry`, `geography` | Spark's own from 4.1 on, where it knows the CRS, else `binary` of WKB | `binary` |
| `unknown` | `void` | not stored |

What a Spark type cannot say is kept in the metadata of its field under `icefloe.type`, so that a schema that came from a
table makes an equal table. Ids of list elements and of map keys and values have no place in a Spark schema.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, types as spark_types

from icefloe.errors import IcefloeError, InvalidSchemaError, InvalidTypeError
from icefloe.schema import JSON, Schema, Value, assign_fresh_ids, types
from icefloe.spark.literals import sql_literal, value_of_literal
from icefloe.spark.spark_sessions import is_on

FIELD_ID = "parquet.field.id"
COMMENT = "comment"
CURRENT_DEFAULT = "CURRENT_DEFAULT"
EXISTS_DEFAULT = "EXISTS_DEFAULT"
EXACT_TYPE = "icefloe.type"
"""Where the metadata of a Spark field names the type that it stands for, if Spark's own cannot say it."""

TIME_ENABLED = "spark.sql.timeType.enabled"
GEO_ENABLED = "spark.sql.geospatial.enabled"
_HAS_TIME = hasattr(spark_types, "TimeType")
_HAS_GEO = hasattr(spark_types, "GeometryType")

_TO_SPARK: dict[type[types.IcebergType], spark_types.DataType] = {
    types.UnknownType: spark_types.NullType(),
    types.BooleanType: spark_types.BooleanType(),
    types.IntegerType: spark_types.IntegerType(),
    types.LongType: spark_types.LongType(),
    types.FloatType: spark_types.FloatType(),
    types.DoubleType: spark_types.DoubleType(),
    types.DateType: spark_types.DateType(),
    types.TimestampType: spark_types.TimestampNTZType(),
    types.TimestamptzType: spark_types.TimestampType(),
    types.TimestampNanoType: spark_types.LongType(),
    types.TimestamptzNanoType: spark_types.LongType(),
    types.StringType: spark_types.StringType(),
    types.FixedType: spark_types.BinaryType(),
    types.BinaryType: spark_types.BinaryType(),
    types.VariantType: spark_types.VariantType(),
}

_FROM_SPARK: dict[str, types.IcebergType] = {
    "void": types.UnknownType(),
    "boolean": types.BooleanType(),
    "byte": types.IntegerType(),
    "short": types.IntegerType(),
    "integer": types.IntegerType(),
    "long": types.LongType(),
    "float": types.FloatType(),
    "double": types.DoubleType(),
    "date": types.DateType(),
    "timestamp": types.TimestamptzType(),
    "timestamp_ntz": types.TimestampType(),
    "string": types.StringType(),
    "char": types.StringType(),
    "varchar": types.StringType(),
    "binary": types.BinaryType(),
    "variant": types.VariantType(),
    "time": types.TimeType(),
}


@dataclass(frozen=True, slots=True)
class TypeMapping:
    """What a session's Spark can express."""

    time: bool = False
    geo: bool = False


_MAPPED = (types.TimeType, types.GeometryType, types.GeographyType)
PLAIN = TypeMapping()
"""What every Spark can express."""


def mapping_for(spark: SparkSession, schemas: Iterable[Schema]) -> TypeMapping:
    """The same for columns of these schemas: the session is asked only if that matters to one of them."""
    fields = (field for schema in schemas for field in schema.fields_by_id.values())
    return mapping_of(spark) if any(isinstance(field.field_type, _MAPPED) for field in fields) else PLAIN


def mapping_of(spark: SparkSession) -> TypeMapping:
    """What this session's Spark can express."""
    return TypeMapping(
        _HAS_TIME and is_on(spark, TIME_ENABLED, "false"), _HAS_GEO and is_on(spark, GEO_ENABLED, "false")
    )


# -- to Spark


def user_schema(schema: Schema, mapping: TypeMapping = PLAIN) -> spark_types.StructType:
    """The columns as a DataFrame shows them: a `StructType` with ids, comments and defaults in the fields' metadata."""
    return _type(schema.as_struct, mapping, of_file=False)


def file_schema(schema: Schema, mapping: TypeMapping = PLAIN) -> spark_types.StructType:
    """The columns as Spark's Parquet reader and writer see them; those of type unknown are left out."""
    return _type(schema.as_struct, mapping, of_file=True)


def user_type(field_type: types.IcebergType, mapping: TypeMapping = PLAIN) -> spark_types.DataType:
    """A type as a DataFrame shows it."""
    return _type(field_type, mapping, of_file=False)


def file_type(field_type: types.IcebergType, mapping: TypeMapping = PLAIN) -> spark_types.DataType:
    """A type as Spark's Parquet reader and writer see it."""
    return _type(field_type, mapping, of_file=True)


def _field(field: types.NestedField, mapping: TypeMapping, of_file: bool) -> spark_types.StructField:
    data_type = _type(field.field_type, mapping, of_file=of_file)
    metadata: dict[str, object] = {FIELD_ID: field.field_id}
    if field.doc is not None:
        metadata[COMMENT] = field.doc
    for key, value in ((CURRENT_DEFAULT, field.write_default), (EXISTS_DEFAULT, field.initial_default)):
        text = None if value is None else sql_literal(value, field.field_type, data_type)
        if text is not None:
            metadata[key] = text
    if not of_file and _needs_mark(field.field_type, data_type):
        metadata[EXACT_TYPE] = str(field.field_type)
    return spark_types.StructField(field.name, data_type, field.optional, metadata)


def _type(field_type: types.IcebergType, mapping: TypeMapping, *, of_file: bool) -> spark_types.DataType:
    match field_type:
        case types.StructType():
            stored = [field for field in field_type if not isinstance(field.field_type, types.UnknownType)]
            fields = stored if of_file else field_type.fields
            return spark_types.StructType([_field(field, mapping, of_file) for field in fields])
        case types.ListType():
            element = _type(field_type.element_type, mapping, of_file=of_file)
            return spark_types.ArrayType(element, not field_type.element_required)
        case types.MapType():
            key = _type(field_type.key_type, mapping, of_file=of_file)
            value = _type(field_type.value_type, mapping, of_file=of_file)
            return spark_types.MapType(key, value, not field_type.value_required)
        case types.DecimalType():
            return spark_types.DecimalType(field_type.precision, field_type.scale)
        case types.UUIDType():
            return spark_types.BinaryType() if of_file else spark_types.StringType()
        case types.TimeType():
            return spark_types.TimeType(6) if mapping.time else spark_types.LongType()
        case types.GeometryType() | types.GeographyType():
            return spark_types.BinaryType() if of_file or not mapping.geo else _geo(field_type)
        case _:
            return _TO_SPARK[type(field_type)]


def _geo(field_type: types.GeometryType | types.GeographyType) -> spark_types.DataType:
    """Spark's own type, or binary if Spark does not know the coordinate system."""
    try:
        if isinstance(field_type, types.GeometryType):
            return spark_types.GeometryType._from_crs(field_type.crs)
        if field_type.algorithm == types.DEFAULT_EDGE_ALGORITHM:
            return spark_types.GeographyType._from_crs(field_type.crs, field_type.algorithm.upper())
    except PySparkException:
        pass
    return spark_types.BinaryType()


def _needs_mark(field_type: types.IcebergType, shown: spark_types.DataType) -> bool:
    """Whether reading the Spark type back would give another one."""
    if isinstance(field_type, types.NestedType):
        return False
    try:
        return _plain_from_spark(shown, "") != field_type
    except InvalidTypeError:
        return True


# -- from Spark


def schema_from_spark(struct: spark_types.StructType) -> Schema:
    """The columns of a Spark `StructType`; ids as the metadata of its fields has them, or all fresh.

    They are fresh if any is missing, or if two fields have the same, as columns of a query may that come from one field.
    """
    if not isinstance(struct, spark_types.StructType):
        raise InvalidSchemaError(f"{struct!r:.100} is not a Spark StructType")
    reader = _Reader()
    schema = Schema(*(reader.field(field, "") for field in struct.fields))
    return assign_fresh_ids(schema) if reader.missing_ids else schema


def schema_of_query(struct: spark_types.StructType) -> Schema:
    """The columns of a query as a new table or view has them: fresh ids, nothing required, and no defaults.

    What the tables behind the query say of their fields is theirs; two columns may be of the same field.
    """
    return schema_from_spark(of_query(struct))


def of_query(data_type: spark_types.DataType) -> spark_types.DataType:
    """A Spark type whose fields have only what a query can say: comments, and the types they stand for."""
    match data_type:
        case spark_types.StructType():
            return spark_types.StructType(
                [
                    spark_types.StructField(
                        field.name,
                        of_query(field.dataType),
                        True,
                        {key: value for key, value in (field.metadata or {}).items() if key in (COMMENT, EXACT_TYPE)},
                    )
                    for field in data_type.fields
                ]
            )
        case spark_types.ArrayType():
            return spark_types.ArrayType(of_query(data_type.elementType), True)
        case spark_types.MapType():
            return spark_types.MapType(of_query(data_type.keyType), of_query(data_type.valueType), True)
        case _:
            return data_type


def type_from_spark(data_type: spark_types.DataType) -> types.IcebergType:
    """The type of a Spark type; fields nested in it have ids only where its metadata says so, else negative ones."""
    return _Reader().type(data_type, "type")


class _Reader:
    """One pass over a Spark schema: assigns negative ids where fields have none, and remembers that it did."""

    def __init__(self) -> None:
        self.missing_ids = False
        self._seen: set[int] = set()
        self._negative = count(-1, -1)

    def field(self, field: spark_types.StructField, around: str) -> types.NestedField:
        path = f"{around}.{field.name}" if around else field.name
        metadata = field.metadata or {}
        field_type = self._exact(metadata.get(EXACT_TYPE), field.dataType) or self.type(field.dataType, path)
        return types.NestedField(
            self.field_id(metadata, path),
            field.name,
            field_type,
            not field.nullable,
            metadata.get(COMMENT),
            _default(metadata.get(EXISTS_DEFAULT), field_type, path),
            _default(metadata.get(CURRENT_DEFAULT), field_type, path),
        )

    def field_id(self, metadata: JSON, path: str) -> int:
        field_id = metadata.get(FIELD_ID)
        if field_id is None:
            return self._missing()
        if isinstance(field_id, bool) or not isinstance(field_id, int) or field_id < 0:
            raise InvalidSchemaError(f"column {path!r}: the field id {field_id!r} is not a whole number from 0")
        if field_id in self._seen:
            return self._missing()
        self._seen.add(field_id)
        return field_id

    def _missing(self) -> int:
        self.missing_ids = True
        return next(self._negative)

    def _exact(self, name: object, data_type: spark_types.DataType) -> types.IcebergType | None:
        """The type that a mark names, if the Spark type is still the one that stands for it."""
        if not isinstance(name, str):
            return None
        try:
            exact = types.parse_type(name)
        except InvalidTypeError:
            return None
        mappings = {TypeMapping(time, geo) for time in (False, _HAS_TIME) for geo in (False, _HAS_GEO)}
        return exact if any(user_type(exact, mapping) == data_type for mapping in mappings) else None

    def type(self, data_type: spark_types.DataType, path: str) -> types.IcebergType:
        match data_type:
            case spark_types.StructType():
                return types.StructType(*(self.field(field, path) for field in data_type.fields))
            case spark_types.ArrayType():
                element = self.type(data_type.elementType, f"{path}.element")
                return types.ListType(self._missing(), element, not data_type.containsNull)
            case spark_types.MapType():
                key = self.type(data_type.keyType, f"{path}.key")
                value = self.type(data_type.valueType, f"{path}.value")
                return types.MapType(self._missing(), key, self._missing(), value, not data_type.valueContainsNull)
            case _:
                return _plain_from_spark(data_type, path)


def _plain_from_spark(data_type: spark_types.DataType, path: str) -> types.IcebergType:
    if isinstance(data_type, spark_types.DecimalType):
        return types.DecimalType(data_type.precision, data_type.scale)
    name = data_type.typeName()
    if name.startswith(("geometry", "geography")):
        # The JSON form is the one that names the coordinate system.
        geo_type = types.parse_type(data_type.jsonValue())
        if "SRID:ANY" not in data_type.jsonValue():
            return geo_type
    elif (plain := _FROM_SPARK.get(name.split("(")[0])) is not None:
        return plain
    raise InvalidTypeError(
        f"column {path!r}: no Iceberg type holds Spark's {data_type.simpleString()}; cast the column to one that has"
    )


def _default(text: object, field_type: types.IcebergType, path: str) -> Value | None:
    if text is None:
        return None
    try:
        return value_of_literal(str(text), field_type)
    except IcefloeError as problem:
        raise InvalidSchemaError(
            f"column {path!r}: its default {text!r} is not a literal of {field_type}: {problem}"
        ) from None
