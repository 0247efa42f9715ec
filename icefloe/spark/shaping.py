"""How a DataFrame becomes rows of a table: by name, types only where no value is lost, what is missing filled.

All errors that the two schemas can show are raised before a job runs. What only values can tell (a number that does not fit,
null in a required column, a text that is no uuid) fails the job with a sentence that names the column; see `error_in`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe.data import write_default
from icefloe.errors import InvalidValueError
from icefloe.schema import Schema, types
from icefloe.spark.gateway import Gateway
from icefloe.spark.literals import sql_literal
from icefloe.spark.spark_sessions import is_classic
from icefloe.spark.transforms import count_of
from icefloe.spark.types import FIELD_ID, TypeMapping, mapping_of, user_type

_MARK = re.compile(r"icefloe<<(.*?)>>", re.DOTALL)


def marked(message: str) -> str:
    """A sentence that `error_in` finds again in whatever Spark makes of it."""
    return f"icefloe<<{message}>>"


def error_in(problem: BaseException) -> InvalidValueError | None:
    """The error about the given rows in a failed job, if that is why it failed."""
    match = _MARK.search(str(problem))
    return InvalidValueError(match[1]) if match else None


def shape_frame(frame: DataFrame, schema: Schema, *, lists_as_they_are: bool = False) -> DataFrame:
    """The frame with exactly the columns of the schema, with field ids in their metadata; types as `stored_type` has them.

    Below lists and maps null is not looked for when `lists_as_they_are`: whoever writes them looks again.
    """
    spark = frame.sparkSession
    shaper = _Shaper(Gateway(spark), mapping_of(spark), is_case_sensitive(spark), is_classic(spark), lists_as_they_are)
    columns = frame_columns(frame)
    shaped = shaper.fields(schema.as_struct, [column[0] for column in columns], [column[1] for column in columns], "")
    asked = [
        column.isNull()
        for field, column in zip(schema.fields, shaped, strict=True)
        if isinstance(field.field_type, types.UnknownType)
    ]
    # Columns of no type are not stored, so that nothing would ask for their values, which may be errors; all others are null.
    rows = reduce(DataFrame.filter, asked, frame)
    return rows.select(*map(shaper.named, schema.fields, shaped))


def shaped_value(frame: DataFrame, column: Column, given: Any, field_type: types.IcebergType, path: str) -> Column:
    """A column over a frame, of a Spark type, as values of a table's type."""
    spark = frame.sparkSession
    shaper = _Shaper(Gateway(spark), mapping_of(spark), is_case_sensitive(spark), is_classic(spark), True)
    return shaper.value(column, given, field_type, path)


def frame_columns(frame: DataFrame) -> list[tuple[Any, Column]]:
    """The columns by position, so that names may hold dots or quotes, or occur twice.

    Spark Connect has columns by name only; names that are there twice are refused before they are looked at.
    """
    if not is_classic(frame.sparkSession):
        return [(field, F.col("`" + field.name.replace("`", "``") + "`")) for field in frame.schema.fields]
    gateway = Gateway(frame.sparkSession)
    output = frame._jdf.queryExecution().analyzed().output()
    return [(field, gateway.column(output.apply(index))) for index, field in enumerate(frame.schema.fields)]


def stored_type(field_type: types.IcebergType, mapping: TypeMapping) -> Any:
    """The Spark type that columns of a type are shaped to: as DataFrames show it, shapes as their bytes."""
    if isinstance(field_type, types.GeometryType | types.GeographyType):
        return spark_types.BinaryType()
    return user_type(field_type, mapping)


def is_case_sensitive(spark: Any) -> bool:
    """Whether the session's column names are case-sensitive."""
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def match_names(given: Sequence[str], known: Sequence[str], around: str, case_sensitive: bool) -> dict[str, int]:
    """For each known name, its index among the given ones; raises for names that are given twice or unknown."""
    key: Callable[[str], str] = str if case_sensitive else str.lower
    places: dict[str, int] = {}
    exact = set(known)
    by_key: dict[str, list[str]] = {}
    for name in known:
        by_key.setdefault(key(name), []).append(name)
    extra, twice = [], []
    for index, name in enumerate(given):
        same = by_key.get(key(name), [])
        match = name if name in exact else same[0] if len(same) == 1 else None
        if match is None:
            extra.append(around + name)
        elif match in places:
            twice.append(around + name)
        else:
            places[match] = index
    if twice:
        raise InvalidValueError(f"the data has more than one column named {', '.join(map(repr, twice))}")
    if extra:
        raise InvalidValueError(
            f"the data has columns that the table lacks: {', '.join(map(repr, extra))};"
            f" the table has {', '.join(repr(around + name) for name in known) or 'none'}"
        )
    return places


@dataclass(frozen=True)
class _Shaper:
    gateway: Gateway
    mapping: TypeMapping
    case_sensitive: bool
    is_classic: bool
    lists_as_they_are: bool

    def fields(self, struct: types.StructType, given: list[Any], columns: list[Column], around: str) -> list[Column]:
        """A column for each field of the struct, of the columns that are given."""
        places = match_names(
            [field.name for field in given], [field.name for field in struct.fields], around, self.case_sensitive
        )
        return [
            self._given(columns[places[field.name]], given[places[field.name]], field, around + field.name)
            if field.name in places
            else self._missing(field, around + field.name)
            for field in struct.fields
        ]

    def named(self, field: types.NestedField, column: Column) -> Column:
        """The column under the field's name, with its id."""
        metadata = {FIELD_ID: field.field_id}
        if self.is_classic:
            return self.gateway.alias(column, field.name, metadata)
        return column.alias(field.name, metadata=metadata)

    def _given(self, column: Column, given: Any, field: types.NestedField, path: str) -> Column:
        if field.required and isinstance(given.dataType, spark_types.NullType):
            raise InvalidValueError(f"required column {path!r} is only null in the data; it must be {field.field_type}")
        shaped = self.value(column, given.dataType, field.field_type, path)
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

    def _constant(self, value: Any, field_type: types.IcebergType) -> Column:
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

    def value(self, column: Column, given: Any, field_type: types.IcebergType, path: str) -> Column:
        """A column of values of the type."""
        if isinstance(given, spark_types.NullType):
            # Not a plain null: `raise_error` and `assert_true` are of this type, and must be asked.
            return column.cast(stored_type(field_type, self.mapping))
        match field_type:
            case types.StructType() if isinstance(given, spark_types.StructType):
                return self._struct(column, given, field_type, path)
            case types.ListType() if isinstance(given, spark_types.ArrayType):
                return self._list(column, given, field_type, path)
            case types.MapType() if isinstance(given, spark_types.MapType):
                return self._map(column, given, field_type, path)
            case types.StructType() | types.ListType() | types.MapType():
                raise refused(given, field_type, path)
            case _:
                cast = cast_column(self.gateway, column, given, field_type, self.mapping)
                if cast is None:
                    raise refused(given, field_type, path)
                if cast.is_right is None:
                    return cast.column
                message = f"column {path!r}: a value of type {given.simpleString()} is no {field_type}: {cast.rule}"
                return F.when(column.isNull() | cast.is_right, cast.column).otherwise(F.raise_error(marked(message)))

    def _struct(self, column: Column, given: Any, struct: types.StructType, path: str) -> Column:
        columns = [column.getField(field.name) for field in given.fields]
        if self.is_classic and len({field.name.lower() for field in given.fields}) < len(given.fields):
            ordinal = self.gateway.jvm.org.apache.spark.sql.catalyst.expressions.GetStructField
            inner = self.gateway.expression(column)
            none = self.gateway.jvm.scala.Option.empty()
            columns = [self.gateway.column(ordinal(inner, index, none)) for index in range(len(given.fields))]
        shaped = self.fields(struct, list(given.fields), columns, f"{path}.")
        fields = [child.alias(field.name) for field, child in zip(struct.fields, shaped, strict=True)]
        value = F.struct(*fields)
        if not self.lists_as_they_are and not _has_lists(struct):
            value = value.cast(_with_ids(struct, self.mapping))
        return F.when(column.isNotNull(), value)

    def _list(self, column: Column, given: Any, list_type: types.ListType, path: str) -> Column:
        if _is_plain(given.elementType, list_type.element_type, self.mapping):
            return column
        return F.transform(
            column, lambda element: self.value(element, given.elementType, list_type.element_type, f"{path}.element")
        )

    def _map(self, column: Column, given: Any, map_type: types.MapType, path: str) -> Column:
        entries = column
        if not _is_plain(given.keyType, map_type.key_type, self.mapping):
            entries = F.transform_keys(
                entries, lambda key, _: self.value(key, given.keyType, map_type.key_type, f"{path}.key")
            )
        if not _is_plain(given.valueType, map_type.value_type, self.mapping):
            entries = F.transform_values(
                entries, lambda _, value: self.value(value, given.valueType, map_type.value_type, f"{path}.value")
            )
        return entries

    def _not_null(self, column: Column, field: types.NestedField, path: str) -> Column:
        if not self.is_classic or (self.lists_as_they_are and "." in path):
            # Casts of structs below lists would be refused; our own writer looks for null itself.
            return column
        message = marked(f"required column {path!r} of type {field.field_type} has null in the data; it must have none")
        check = self.gateway.jvm.org.apache.spark.sql.catalyst.expressions.objects.AssertNotNull
        return self.gateway.column(check(self.gateway.expression(column), self.gateway.seq((message,))))


def _has_lists(struct: types.StructType) -> bool:
    """Whether lists or maps are in it, of which Spark has no cast that would keep required fields."""
    return any(
        isinstance(field.field_type, types.ListType | types.MapType) for field in types.walk_fields(struct.fields)
    )


def _with_ids(struct: types.StructType, mapping: TypeMapping) -> Any:
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


def _is_plain(given: Any, field_type: types.IcebergType, mapping: TypeMapping) -> bool:
    """Whether values of the Spark type are those of the column as they are."""
    if isinstance(field_type, types.StructType | types.ListType | types.MapType):
        checked = (*types.walk_fields(field_type.fields),)
        if any(isinstance(field.field_type, types.FixedType | types.UnknownType) for field in checked):
            return False
    elif isinstance(field_type, types.FixedType):
        return False
    return bare_type(given) == bare_type(stored_type(field_type, mapping)) and not _has_text_forms(field_type)


def _has_text_forms(field_type: types.IcebergType) -> bool:
    """Whether it has a uuid, whose text must be checked."""
    fields = field_type.fields if isinstance(field_type, types.StructType | types.ListType | types.MapType) else ()
    return str(field_type) == "uuid" or any(str(field.field_type) == "uuid" for field in types.walk_fields(fields))


def bare_type(data_type: Any) -> Any:
    """The Spark type without nullability and metadata."""
    match data_type:
        case spark_types.StructType():
            return ("struct", tuple((field.name, bare_type(field.dataType)) for field in data_type.fields))
        case spark_types.ArrayType():
            return ("array", bare_type(data_type.elementType))
        case spark_types.MapType():
            return ("map", bare_type(data_type.keyType), bare_type(data_type.valueType))
        case _:
            return data_type.simpleString()


def refused(given: Any, field_type: types.IcebergType, path: str) -> InvalidValueError:
    """The error for a column of a type that the table's column cannot take."""
    expected = stored_type(field_type, TypeMapping()).simpleString()
    return InvalidValueError(
        f"column {path!r} is {given.simpleString()} in the data; the table has {field_type}, which is {expected} in Spark"
    )


_WHOLE = ("byte", "short", "integer", "long")
_UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
_DASHES = r"^(.{8})(.{4})(.{4})(.{4})(.{12})$"
_DAY_MICROS = 86_400_000_000
_NANOS_PER_MICRO = 1000


@dataclass(frozen=True)
class Cast:
    """A column in its new type; where `is_right` is false, a value breaks `rule`, which is a sentence for the error."""

    column: Column
    is_right: Column | None = None
    rule: str = ""


def cast_column(
    gateway: Gateway, column: Column, given: spark_types.DataType, field_type: types.IcebergType, mapping: TypeMapping
) -> Cast | None:
    """The column as values of the type, and whether each is right; None if the Spark type holds no such values."""
    name = given.typeName().split("(")[0]
    text = name in ("string", "char", "varchar")
    target = user_type(field_type, mapping)
    match field_type:
        case (
            types.BooleanType() | types.DateType() | types.TimestamptzType() | types.VariantType() | types.BinaryType()
        ):
            return Cast(column) if given == target else None
        case types.StringType():
            return Cast(column.cast(target)) if text else None
        case types.IntegerType() | types.LongType():
            return _number(column, given, target) if name in _WHOLE else None
        case types.FloatType() | types.DoubleType():
            return _number(column, given, target) if name in (*_WHOLE, "float", "double") else None
        case types.DecimalType():
            return _number(column, given, target) if name in (*_WHOLE, "decimal") else None
        case types.TimestampType() if name == "date":
            return Cast(column.cast(target))
        case types.TimestampType():
            return Cast(column) if given == target else None
        case types.TimestampNanoType() | types.TimestamptzNanoType():
            return _nanos(gateway, column, given, field_type)
        case types.TimeType():
            return _time(column, given, mapping)
        case types.UUIDType():
            return _uuid(column, text, given)
        case types.FixedType():
            is_right = F.octet_length(column) == F.lit(field_type.length)
            return Cast(column, is_right, f"it must have {field_type.length} bytes") if name == "binary" else None
        case types.GeometryType() | types.GeographyType():
            if name == "binary":
                return Cast(column)
            is_same = (
                name.startswith(field_type.name) and user_type(field_type, TypeMapping(mapping.time, geo=True)) == given
            )
            return Cast(F.call_function("st_asbinary", column)) if is_same else None
        case _:
            return None


def stands_for(given: spark_types.DataType, field_type: types.IcebergType) -> bool:
    """Whether a Spark type is accepted for a type that Spark lacks, though DataFrames show that as another one."""
    match field_type:
        case types.UUIDType():
            return isinstance(given, spark_types.BinaryType)
        case types.TimestampNanoType():
            return bool(given == user_type(types.TimestampType()))
        case types.TimestamptzNanoType():
            return bool(given == user_type(types.TimestamptzType()))
        case types.GeometryType() | types.GeographyType():
            return isinstance(given, spark_types.BinaryType)
        case _:
            return False


def _number(column: Column, given: spark_types.DataType, target: spark_types.DataType) -> Cast:
    if given == target:
        return Cast(column)
    if _always_fits(given, target):
        return Cast(column.cast(target))
    # Not `cast`, whose treatment of overflow depends on the session.
    value = column.try_cast(target)
    is_right = value.isNotNull() & value.try_cast(given).eqNullSafe(column)
    return Cast(value, is_right, "it does not fit without loss")


def _always_fits(given: spark_types.DataType, target: spark_types.DataType) -> bool:
    name = given.typeName()
    match target:
        case spark_types.IntegerType():
            return name in ("byte", "short")
        case spark_types.LongType():
            return name in _WHOLE
        case spark_types.FloatType():
            return name in ("byte", "short")
        case spark_types.DoubleType():
            return name in ("byte", "short", "integer", "float")
        case spark_types.DecimalType() if isinstance(given, spark_types.DecimalType):
            whole = given.precision - given.scale <= target.precision - target.scale
            return bool(whole and given.scale <= target.scale)
        case _:
            return False


def _nanos(gateway: Gateway, column: Column, given: spark_types.DataType, field_type: types.IcebergType) -> Cast | None:
    """Nanoseconds as a number, or timestamps of Spark, which have microseconds."""
    if isinstance(given, spark_types.LongType):
        return Cast(column)
    plain: types.IcebergType = (
        types.TimestampType() if isinstance(field_type, types.TimestampNanoType) else types.TimestamptzType()
    )
    if given != user_type(plain):
        return None
    micros = count_of(gateway, column, plain, TypeMapping())
    product = F.try_multiply(micros, F.lit(_NANOS_PER_MICRO).cast("bigint"))
    return Cast(product, product.isNotNull(), "it is before 1677 or after 2262")


def _time(column: Column, given: spark_types.DataType, mapping: TypeMapping) -> Cast | None:
    if mapping.time:
        if not isinstance(given, spark_types.TimeType):
            return None
        value = column.cast(spark_types.TimeType(6))
        return Cast(value, value.cast(given).eqNullSafe(column), "it has parts of a microsecond")
    if not isinstance(given, spark_types.LongType):
        return None
    is_right = (column >= F.lit(0)) & (column < F.lit(_DAY_MICROS))
    return Cast(column, is_right, f"microseconds of a day are from 0 to {_DAY_MICROS - 1}")


def _uuid(column: Column, text: bool, given: spark_types.DataType) -> Cast | None:
    if text:
        return Cast(F.lower(column), column.rlike(_UUID), "it must look like f79c3e09-677c-4bbd-a479-3f349cb785e7")
    if isinstance(given, spark_types.BinaryType):
        dashed = F.regexp_replace(F.lower(F.hex(column)), _DASHES, "$1-$2-$3-$4-$5")
        return Cast(dashed, F.octet_length(column) == F.lit(16), "it must have 16 bytes")
    return None
