"""How a DataFrame becomes rows of a table: columns match by name, are cast only where no value is lost, and are filled if missing.

All errors that the two schemas can show are raised before a job runs. What only values can tell (a number that does not fit,
null in a required column, a text that is no uuid) fails the job with a sentence that names the column; see `error_in`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, functions as F, types as spark_types  # noqa: N812  # usual name

from icefloe.data import write_default
from icefloe.errors import InvalidValueError
from icefloe.schema import Schema, Value, types
from icefloe.spark.gateway import Gateway, analyzed, items
from icefloe.spark.literals import sql_literal
from icefloe.spark.spark_sessions import is_case_sensitive, is_classic
from icefloe.spark.transforms import count_of
from icefloe.spark.types import FIELD_ID, PLAIN, TypeMapping, mapping_of, user_type
from icefloe.spark.user_side import quoted_name

_WHOLE = ("byte", "short", "integer", "long")
_UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
_DASHES = r"^(.{8})(.{4})(.{4})(.{4})(.{12})$"
_DAY_MICROS = 86_400_000_000
_NANOS_PER_MICRO = 1000
_NUMBERS: dict[type[types.IcebergType], tuple[str, ...]] = {
    types.IntegerType: _WHOLE,
    types.LongType: _WHOLE,
    types.FloatType: (*_WHOLE, "float", "double"),
    types.DoubleType: (*_WHOLE, "float", "double"),
    types.DecimalType: (*_WHOLE, "decimal"),
}
"""Spark types whose values may be numbers of a type."""
_ALWAYS_FIT = {
    "integer": ("byte", "short"),
    "long": _WHOLE,
    "float": ("byte", "short"),
    "double": ("byte", "short", "integer", "float"),
}
_STAND_INS: dict[type[types.IcebergType], spark_types.DataType] = {
    types.UUIDType: spark_types.BinaryType(),
    types.TimestampNanoType: spark_types.TimestampNTZType(),
    types.TimestamptzNanoType: spark_types.TimestampType(),
    types.GeometryType: spark_types.BinaryType(),
    types.GeographyType: spark_types.BinaryType(),
}
"""Spark types that are accepted for a type that Spark lacks, though DataFrames show that as another one."""
SIMPLE_TYPES = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.FloatType,
    types.DoubleType,
    types.DecimalType,
    types.DateType,
    types.TimestampType,
    types.TimestamptzType,
    types.StringType,
    types.BinaryType,
)
"""Types whose values have no parts and no rules."""
_MARK = re.compile(r"icefloe<<(.*?)>>", re.DOTALL)


def marked(message: str) -> str:
    """A sentence that `error_in` recognizes in Spark's error."""
    return f"icefloe<<{message}>>"


def error_in(problem: BaseException) -> InvalidValueError | None:
    """The error about the rows of the data in a failed job, if that is why it failed."""
    match = _MARK.search(str(problem))
    return InvalidValueError(match[1]) if match else None


def shape_frame(
    frame: DataFrame, schema: Schema, *, lists_as_they_are: bool = False, more: Sequence[str] = ()
) -> DataFrame:
    """The frame with exactly the columns of the schema, with field ids in their metadata; types as `stored_type` has them.

    Below lists and maps null is not looked for when `lists_as_they_are`: whoever writes them looks again. Columns that `more`
    names follow as they are.
    """
    shaper = _Shaper.of(frame.sparkSession, lists_as_they_are=lists_as_they_are)
    columns = [(field, column) for field, column in frame_columns(frame) if field.name not in more]
    shaped = shaper.fields(schema.as_struct, columns, "")
    rows = frame
    for field, column in zip(schema.fields, shaped, strict=True):
        if isinstance(field.field_type, types.UnknownType):
            # It is not stored, so nothing else would evaluate it, and its values may be errors; all others are null.
            rows = rows.filter(column.isNull())
    return rows.select(*map(shaper.named, schema.fields, shaped), *more)


def is_shaped(data: spark_types.StructType, schema: Schema, mapping: TypeMapping) -> bool:
    """Whether rows of these columns are those of the table as they are, which only is said of tables without nested columns."""
    return data.names == [field.name for field in schema.fields] and all(
        type(field.field_type) in SIMPLE_TYPES
        and _is_plain(column.dataType, field.field_type, mapping)
        and (field.optional or not column.nullable)
        for column, field in zip(data.fields, schema.fields, strict=True)
    )


def shaped_value(
    frame: DataFrame, column: Column, data_type: spark_types.DataType, field_type: types.IcebergType, path: str
) -> Column:
    """A column over a frame, of a Spark type, as values of a table's type."""
    return _Shaper.of(frame.sparkSession, lists_as_they_are=True).value(column, data_type, field_type, path)


def frame_columns(frame: DataFrame) -> list[tuple[spark_types.StructField, Column]]:
    """The columns by position, so that names may hold dots or quotes, or occur twice.

    Spark Connect has columns by name only; names that are there twice are refused before they are looked at.
    """
    if not is_classic(frame.sparkSession):
        return [(field, F.col(quoted_name(field.name))) for field in frame.schema.fields]
    columns = map(Gateway(frame.sparkSession).column, items(analyzed(frame).output()))
    return list(zip(frame.schema.fields, columns, strict=True))


def stored_type(field_type: types.IcebergType, mapping: TypeMapping) -> spark_types.DataType:
    """The Spark type that columns of a type are shaped to: as DataFrames show it, shapes as their bytes."""
    if isinstance(field_type, types.GeometryType | types.GeographyType):
        return spark_types.BinaryType()
    return user_type(field_type, mapping)


def match_names(names: Sequence[str], known: Sequence[str], around: str, case_sensitive: bool) -> dict[str, int]:
    """For each known name, its index in the data's names; raises for duplicate or unknown names."""
    key: Callable[[str], str] = str if case_sensitive else str.lower
    indexes: dict[str, int] = {}
    by_key: dict[str, list[str]] = {}
    for name in known:
        by_key.setdefault(key(name), []).append(name)
    extra, twice = [], []
    for index, name in enumerate(names):
        same = by_key.get(key(name), [])
        match = name if name in same else same[0] if len(same) == 1 else None
        if match is None:
            extra.append(around + name)
        elif match in indexes:
            twice.append(around + name)
        else:
            indexes[match] = index
    if twice:
        raise InvalidValueError(f"the data has more than one column named {', '.join(map(repr, twice))}")
    if extra:
        raise InvalidValueError(
            f"the data has columns that the table lacks: {', '.join(map(repr, extra))};"
            f" the table has {', '.join(repr(around + name) for name in known) or 'none'}"
        )
    return indexes


@dataclass(frozen=True)
class _Shaper:
    gateway: Gateway
    mapping: TypeMapping
    case_sensitive: bool
    is_classic: bool
    lists_as_they_are: bool

    @staticmethod
    def of(spark: SparkSession, *, lists_as_they_are: bool) -> "_Shaper":
        classic = is_classic(spark)
        return _Shaper(Gateway(spark), mapping_of(spark), is_case_sensitive(spark), classic, lists_as_they_are)

    def fields(
        self, struct: types.StructType, data: Sequence[tuple[spark_types.StructField, Column]], around: str
    ) -> list[Column]:
        """A column for each field of the struct, from the columns of the data."""
        names, known = [field.name for field, _ in data], [field.name for field in struct.fields]
        indexes = match_names(names, known, around, self.case_sensitive)
        return [
            self._present(*data[indexes[field.name]], field, around + field.name)
            if field.name in indexes
            else self._missing(field, around + field.name)
            for field in struct.fields
        ]

    def named(self, field: types.NestedField, column: Column) -> Column:
        """The column under the field's name, with its id."""
        metadata = {FIELD_ID: field.field_id}
        if self.is_classic:
            return self.gateway.alias(column, field.name, metadata)
        return column.alias(field.name, metadata=metadata)

    def _present(
        self, data_field: spark_types.StructField, column: Column, field: types.NestedField, path: str
    ) -> Column:
        if field.required and isinstance(data_field.dataType, spark_types.NullType):
            raise InvalidValueError(f"required column {path!r} is only null in the data; it must be {field.field_type}")
        shaped = self.value(column, data_field.dataType, field.field_type, path)
        return self._not_null(shaped, field, path) if field.required else shaped

    def _missing(self, field: types.NestedField, path: str) -> Column:
        value = write_default(field)
        if value is None and field.required:
            raise InvalidValueError(
                f"the data lacks the required column {path!r} of type {field.field_type}, which has no write default;"
                " give it values"
            )
        filled = self._constant(value, field.field_type)
        return self._not_null(filled, field, path) if field.required else filled

    def _constant(self, value: Value | None, field_type: types.IcebergType) -> Column:
        target = stored_type(field_type, self.mapping)
        if value is None:
            return F.lit(None).cast(target)
        if isinstance(field_type, types.StructType):
            inner = dict(value)
            fields = (
                self._constant(inner[field.field_id], field.field_type).alias(field.name) for field in field_type.fields
            )
            return F.struct(*fields).cast(target)
        shown = types.BinaryType() if isinstance(field_type, types.GeometryType | types.GeographyType) else field_type
        return F.expr(str(sql_literal(value, shown, target))).cast(target)

    def value(
        self, column: Column, data_type: spark_types.DataType, field_type: types.IcebergType, path: str
    ) -> Column:
        """A column of values of the type."""
        if isinstance(data_type, spark_types.NullType):
            # Not a plain null: `raise_error` and `assert_true` are of this type, and must be evaluated.
            return column.cast(stored_type(field_type, self.mapping))
        match field_type:
            case types.StructType() if isinstance(data_type, spark_types.StructType):
                return self._struct(column, data_type, field_type, path)
            case types.ListType() if isinstance(data_type, spark_types.ArrayType):
                return self._list(column, data_type, field_type, path)
            case types.MapType() if isinstance(data_type, spark_types.MapType):
                return self._map(column, data_type, field_type, path)
            case types.NestedType():
                raise _refused(data_type, field_type, path)
            case _:
                cast = cast_column(self.gateway, column, data_type, field_type, self.mapping)
                if cast is None:
                    raise _refused(data_type, field_type, path)
                if cast.is_right is None:
                    return cast.column
                message = f"column {path!r}: a value of type {data_type.simpleString()} is no {field_type}: {cast.rule}"
                return F.when(column.isNull() | cast.is_right, cast.column).otherwise(F.raise_error(marked(message)))

    def _struct(self, column: Column, data_type: spark_types.StructType, struct: types.StructType, path: str) -> Column:
        inner = data_type.fields
        columns = [column.getField(field.name) for field in inner]
        if self.is_classic and len({field.name.lower() for field in inner}) < len(inner):
            by_ordinal, expression = self.gateway.expressions.GetStructField, self.gateway.expression(column)
            none = self.gateway.none()
            columns = [self.gateway.column(by_ordinal(expression, index, none)) for index in range(len(inner))]
        shaped = self.fields(struct, list(zip(inner, columns, strict=True)), f"{path}.")
        value = F.struct(*(child.alias(field.name) for field, child in zip(struct.fields, shaped, strict=True)))
        inner_types = (field.field_type for field in types.walk_fields(struct.fields))
        # Spark has no cast of lists and maps that would keep required fields in them.
        if not self.lists_as_they_are and not any(
            isinstance(one, types.ListType | types.MapType) for one in inner_types
        ):
            value = value.cast(_with_ids(struct, self.mapping))
        return F.when(column.isNotNull(), value)

    def _list(self, column: Column, array: spark_types.ArrayType, list_type: types.ListType, path: str) -> Column:
        if _is_plain(array.elementType, list_type.element_type, self.mapping):
            return column
        return F.transform(
            column, lambda element: self.value(element, array.elementType, list_type.element_type, f"{path}.element")
        )

    def _map(self, column: Column, data_type: spark_types.MapType, map_type: types.MapType, path: str) -> Column:
        entries = column
        if not _is_plain(data_type.keyType, map_type.key_type, self.mapping):
            entries = F.transform_keys(
                entries, lambda key, _: self.value(key, data_type.keyType, map_type.key_type, f"{path}.key")
            )
        if not _is_plain(data_type.valueType, map_type.value_type, self.mapping):
            entries = F.transform_values(
                entries, lambda _, value: self.value(value, data_type.valueType, map_type.value_type, f"{path}.value")
            )
        return entries

    def _not_null(self, column: Column, field: types.NestedField, path: str) -> Column:
        if not self.is_classic or (self.lists_as_they_are and "." in path):
            # Casts of structs below lists would be refused; our own writer looks for null itself.
            return column
        message = marked(f"required column {path!r} of type {field.field_type} has null in the data; it must have none")
        check = self.gateway.expressions.objects.AssertNotNull
        return self.gateway.column(check(self.gateway.expression(column), self.gateway.seq((message,))))


def _with_ids(struct: types.StructType, mapping: TypeMapping) -> spark_types.StructType:
    """The Spark type of a struct, with ids in its fields' metadata, where Spark's writer of shredded variants looks for them.

    Spark has no cast to a required variant with other metadata; that there is none missing was looked at before.
    """
    return spark_types.StructType(
        [
            spark_types.StructField(
                field.name,
                _with_ids(field.field_type, mapping)
                if isinstance(field.field_type, types.StructType)
                else stored_type(field.field_type, mapping),
                field.optional or isinstance(field.field_type, types.VariantType),
                {FIELD_ID: field.field_id},
            )
            for field in struct.fields
        ]
    )


def _is_plain(data_type: spark_types.DataType, field_type: types.IcebergType, mapping: TypeMapping) -> bool:
    """Whether values of the Spark type are those of the column as they are: no length, text or value must be checked."""
    if isinstance(field_type, types.FixedType | types.UUIDType):
        return False
    if isinstance(field_type, types.NestedType) and any(
        isinstance(field.field_type, types.FixedType | types.UUIDType | types.UnknownType)
        for field in types.walk_fields(field_type.fields)
    ):
        return False
    return bare_type(data_type) == bare_type(stored_type(field_type, mapping))


def bare_type(data_type: spark_types.DataType) -> str | tuple[object, ...]:
    """The Spark type without nullability and metadata."""
    match data_type:
        case spark_types.StructType():
            return ("struct", tuple((field.name, bare_type(field.dataType)) for field in data_type.fields))
        case spark_types.ArrayType():
            return ("array", bare_type(data_type.elementType))
        case spark_types.MapType():
            return ("map", bare_type(data_type.keyType), bare_type(data_type.valueType))
        case _:
            return str(data_type.simpleString())


def _refused(data_type: spark_types.DataType, field_type: types.IcebergType, path: str) -> InvalidValueError:
    """The error for a column of a type that the table's column cannot take."""
    expected = stored_type(field_type, PLAIN).simpleString()
    return InvalidValueError(
        f"column {path!r} is {data_type.simpleString()} in the data; the table has {field_type}, which is {expected} in Spark"
    )


# -- casts


@dataclass(frozen=True)
class Cast:
    """A column in its new type; where `is_right` is false, a value breaks `rule`, which is a sentence for the error."""

    column: Column
    is_right: Column | None = None
    rule: str = ""


def cast_column(
    gateway: Gateway,
    column: Column,
    data_type: spark_types.DataType,
    field_type: types.IcebergType,
    mapping: TypeMapping,
) -> Cast | None:
    """The column as values of the type, and whether each is right; None if the Spark type holds no such values."""
    name = data_type.typeName().split("(")[0]
    text = name in ("string", "char", "varchar")
    target = user_type(field_type, mapping)
    match field_type:
        case _ if type(field_type) in _NUMBERS:
            return _number(column, data_type, target) if name in _NUMBERS[type(field_type)] else None
        case types.StringType():
            return Cast(column if data_type == target else column.cast(target)) if text else None
        case types.TimestampType() if name == "date":
            return Cast(column.cast(target))
        case types.TimestampNanoType() | types.TimestamptzNanoType():
            return _nanos(gateway, column, data_type, field_type)
        case types.TimeType():
            return _time(column, data_type, mapping)
        case types.UUIDType():
            return _uuid(column, text, data_type)
        case types.FixedType():
            is_right = F.octet_length(column) == F.lit(field_type.length)
            return Cast(column, is_right, f"it must have {field_type.length} bytes") if name == "binary" else None
        case types.GeometryType() | types.GeographyType():
            if name == "binary":
                return Cast(column)
            is_same = (
                name.startswith(field_type.name)
                and user_type(field_type, TypeMapping(mapping.time, geo=True)) == data_type
            )
            return Cast(F.call_function("st_asbinary", column)) if is_same else None
        case types.UnknownType():
            return None
        case _:
            return Cast(column) if data_type == target else None


def stands_for(data_type: spark_types.DataType, field_type: types.IcebergType) -> bool:
    """Whether a Spark type is accepted for a type that Spark lacks."""
    return bool(data_type == _STAND_INS.get(type(field_type)))


def _number(column: Column, data_type: spark_types.DataType, target: spark_types.DataType) -> Cast:
    if data_type == target:
        return Cast(column)
    if data_type.typeName() in _ALWAYS_FIT.get(target.typeName(), ()) or _is_wider(data_type, target):
        return Cast(column.cast(target))
    # Not `cast`, whose treatment of overflow depends on the session.
    value = column.try_cast(target)
    is_right = value.isNotNull() & value.try_cast(data_type).eqNullSafe(column)
    return Cast(value, is_right, "it does not fit without loss")


def _is_wider(data_type: spark_types.DataType, target: spark_types.DataType) -> bool:
    """Whether both are decimals, and the target has room for all digits of the other."""
    if not isinstance(data_type, spark_types.DecimalType) or not isinstance(target, spark_types.DecimalType):
        return False
    whole = data_type.precision - data_type.scale <= target.precision - target.scale
    return bool(whole and data_type.scale <= target.scale)


def _nanos(
    gateway: Gateway, column: Column, data_type: spark_types.DataType, field_type: types.IcebergType
) -> Cast | None:
    """Nanoseconds as a number, or timestamps of Spark, which have microseconds."""
    if isinstance(data_type, spark_types.LongType):
        return Cast(column)
    if not stands_for(data_type, field_type):
        return None
    is_local = isinstance(field_type, types.TimestampNanoType)
    micros = count_of(gateway, column, types.TimestampType() if is_local else types.TimestamptzType(), PLAIN)
    product = F.try_multiply(micros, F.lit(_NANOS_PER_MICRO).cast("bigint"))
    return Cast(product, product.isNotNull(), "it is before 1677 or after 2262")


def _time(column: Column, data_type: spark_types.DataType, mapping: TypeMapping) -> Cast | None:
    if mapping.time:
        if not isinstance(data_type, spark_types.TimeType):
            return None
        value = column.cast(spark_types.TimeType(6))
        return Cast(value, value.cast(data_type).eqNullSafe(column), "it has parts of a microsecond")
    if not isinstance(data_type, spark_types.LongType):
        return None
    is_right = (column >= F.lit(0)) & (column < F.lit(_DAY_MICROS))
    return Cast(column, is_right, f"microseconds of a day are from 0 to {_DAY_MICROS - 1}")


def _uuid(column: Column, text: bool, data_type: spark_types.DataType) -> Cast | None:
    if text:
        return Cast(F.lower(column), column.rlike(_UUID), "it must look like f79c3e09-677c-4bbd-a479-3f349cb785e7")
    if isinstance(data_type, spark_types.BinaryType):
        dashed = F.regexp_replace(F.lower(F.hex(column)), _DASHES, "$1-$2-$3-$4-$5")
        return Cast(dashed, F.octet_length(column) == F.lit(16), "it must have 16 bytes")
    return None
