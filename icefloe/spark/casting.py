"""Which Spark types may be given for a column of a primitive type, and how values are cast to the column's type.

Only what keeps every value is done, as for Arrow data (`data/casting.py`): numbers that fit, exact fractions, finer units of
time. Text is parsed only for a uuid, and timestamps with and without a zone are never taken for each other. None of it depends
on ANSI mode or the time zone of the session.
"""

from dataclasses import dataclass

from pyspark.sql import (
    Column,
    functions as F,  # noqa: N812  # its usual name
    types as spark_types,
)

from icefloe.schema import types
from icefloe.spark.gateway import Gateway
from icefloe.spark.transforms import count_of
from icefloe.spark.types import TypeMapping, user_type

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
