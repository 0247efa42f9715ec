"""Partition transforms as Spark columns: expressions in generated code, no UDF, with the values of `partitioning`.

A column comes as DataFrames show its type (`spark/types.py`): uuid as string, nanoseconds as bigint, time as time or bigint.
Nothing here depends on settings of the session: neither on its time zone nor on ANSI mode; what `partitioning` refuses, a
number too small to be rounded down, an hour that does not fit in an int, fails the job.
"""

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe.errors import InvalidTransformError
from icefloe.partitioning import transforms as tr
from icefloe.schema import types
from icefloe.spark.gateway import Gateway
from icefloe.spark.types import TypeMapping, mapping_of, user_type

_MURMUR = "org.apache.spark.unsafe.hash.Murmur3_x86_32"
_MATH = "java.lang.Math"
_INTEGER = "java.lang.Integer"
_LONG_CLASS = "java.lang.Long"
_BIG_DECIMAL = "java.math.BigDecimal"
_NANOS_PER_MICRO = 1000
_EPOCH_YEAR = 1970
_INT, _LONG = spark_types.IntegerType(), spark_types.LongType()


def transform_column(
    gateway: Gateway, transform: tr.Transform, column: Column, field_type: types.IcebergType
) -> Column:
    """The partition values of a column that holds values of the type; null for null."""
    if isinstance(transform, tr.UnknownTransform):
        raise InvalidTransformError(f"transform {transform.text!r} is unknown, so it cannot be applied")
    if not transform.can_transform(field_type):
        raise InvalidTransformError(f"transform {transform} does not support columns of type {field_type}")
    mapping = mapping_of(gateway.spark)
    if isinstance(transform, tr.VoidTransform) or isinstance(field_type, types.UnknownType):
        return F.lit(None).cast(user_type(transform.result_type(field_type), mapping))
    match transform:
        case tr.IdentityTransform():
            return column
        case tr.BucketTransform():
            hashed = _hash(gateway, column, field_type, mapping)
            return hashed.bitwiseAND(F.lit(tr.MAX_INT)) % F.lit(transform.num_buckets)
        case tr.TruncateTransform():
            return _truncated(gateway, transform.width, column, field_type)
        case tr.TimeTransform():
            return _units(gateway, transform, column, field_type)
        case _:
            raise AssertionError(f"transform {transform!r} has no form for Spark columns")


def count_of(gateway: Gateway, column: Column, field_type: types.IcebergType, mapping: TypeMapping) -> Column:
    """Dates, times and timestamps as the number of days, microseconds or nanoseconds that the spec stores."""
    match field_type:
        case types.DateType():
            return F.unix_date(column)
        case types.TimeType() if mapping.time:
            nanos = _reinterpreted(gateway, column, spark_types.TimeType(6))
            return _floor_div(gateway, nanos, _NANOS_PER_MICRO)
        case types.TimestampType():
            return _reinterpreted(gateway, column, spark_types.TimestampNTZType())
        case types.TimestamptzType():
            return _reinterpreted(gateway, column, spark_types.TimestampType())
        case _:
            return column


# -- bucket


def _hash(gateway: Gateway, column: Column, field_type: types.IcebergType, mapping: TypeMapping) -> Column:
    match field_type:
        case types.StringType():
            return _hash_bytes(gateway, column.cast(spark_types.BinaryType()))
        case types.UUIDType():
            return _hash_bytes(gateway, F.unhex(F.replace(column, F.lit("-"), F.lit(""))))
        case types.BinaryType() | types.FixedType():
            return _hash_bytes(gateway, column)
        case types.DecimalType():
            return _hash_bytes(gateway, _unscaled_bytes(gateway, column))
        case _ if isinstance(field_type, tr.NANOSECOND_TYPES):
            # As microseconds, so that both widths share buckets (spec: Appendix B).
            return _hash_long(gateway, _floor_div(gateway, column, _NANOS_PER_MICRO))
        case _:
            return _hash_long(gateway, count_of(gateway, column, field_type, mapping))


def _hash_long(gateway: Gateway, column: Column) -> Column:
    return gateway.static_invoke(_MURMUR, "hashLong", _INT, column.cast(_LONG), F.lit(0))


def _hash_bytes(gateway: Gateway, column: Column) -> Column:
    """The hash of all bytes; the method with the 2 in its name, as the other one hashes the tail differently."""
    start = F.lit(int(gateway.jvm.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET)).cast(_LONG)
    return gateway.static_invoke(_MURMUR, "hashUnsafeBytes2", _INT, column, start, F.octet_length(column), F.lit(0))


def _unscaled_bytes(gateway: Gateway, column: Column) -> Column:
    """The unscaled number of a decimal as two's complement in the fewest bytes, as `BigInteger` gives it."""
    integer = _object_type(gateway, "java.math.BigInteger")
    number = _invoke(gateway, _big_decimal(gateway, column), "unscaledValue", integer)
    return gateway.column(_invoke(gateway, number, "toByteArray", gateway.type(spark_types.BinaryType())))


# -- truncate


def _truncated(gateway: Gateway, width: int, column: Column, field_type: types.IcebergType) -> Column:
    match field_type:
        case types.StringType() | types.BinaryType():
            return F.substring(column, 1, width)
        case types.IntegerType():
            return _rounded_down(gateway, column, F.lit(width), _INT)
        case types.LongType():
            return _rounded_down(gateway, column, F.lit(width).cast(_LONG), _LONG)
        case types.DecimalType():
            return _truncated_decimal(gateway, width, column, field_type)
        case _:
            raise AssertionError(f"columns of type {field_type} cannot be truncated")


def _rounded_down(gateway: Gateway, column: Column, width: Column, data_type: spark_types.DataType) -> Column:
    """By a sum that wraps around below the least value, as Spark's own arithmetic may not."""
    rest = gateway.static_invoke(_MATH, "floorMod", data_type, column, width)
    less = gateway.static_invoke(_MATH, "negateExact", data_type, rest)
    return gateway.static_invoke(_INTEGER if data_type == _INT else _LONG_CLASS, "sum", data_type, column, less)


def _truncated_decimal(gateway: Gateway, width: int, column: Column, field_type: types.DecimalType) -> Column:
    """By way of `BigDecimal`, which neither rounds nor overflows as Spark's arithmetic may at 38 digits."""
    big = _object_type(gateway, _BIG_DECIMAL)
    step = gateway.expressions.Literal(
        gateway.jvm.java.math.BigDecimal(gateway.jvm.java.math.BigInteger(str(width)), field_type.scale), big
    )
    value = _big_decimal(gateway, column)
    rest = _invoke(gateway, value, "remainder", big, step)
    rest = _invoke(gateway, _invoke(gateway, rest, "add", big, step), "remainder", big, step)
    difference = gateway.column(_invoke(gateway, value, "subtract", big, rest))
    result = spark_types.DecimalType(field_type.precision, field_type.scale)
    digits, scale = F.lit(field_type.precision), F.lit(field_type.scale)
    return gateway.static_invoke("org.apache.spark.sql.types.Decimal", "apply", result, difference, digits, scale)


# -- units of time


def _units(gateway: Gateway, transform: tr.TimeTransform, column: Column, field_type: types.IcebergType) -> Column:
    if isinstance(field_type, types.DateType):
        days = column
    else:
        per_hour = tr.NANOS_PER_HOUR if isinstance(field_type, tr.NANOSECOND_TYPES) else tr.MICROS_PER_HOUR
        units = count_of(gateway, column, field_type, TypeMapping())
        if isinstance(transform, tr.HourTransform):
            return gateway.static_invoke(_MATH, "toIntExact", _INT, _floor_div(gateway, units, per_hour))
        number = _floor_div(gateway, units, per_hour * tr.HOURS_PER_DAY)
        days = F.date_from_unix_date(gateway.static_invoke(_MATH, "toIntExact", _INT, number))
    match transform:
        case tr.DayTransform():
            return days
        case tr.MonthTransform():
            return (F.year(days) - F.lit(_EPOCH_YEAR)) * F.lit(12) + F.month(days) - F.lit(1)
        case tr.YearTransform():
            return F.year(days) - F.lit(_EPOCH_YEAR)
        case _:
            raise AssertionError(f"{transform!r} is not counted in days")


# -- parts


def _floor_div(gateway: Gateway, column: Column, divisor: int) -> Column:
    return gateway.static_invoke(_MATH, "floorDiv", _LONG, column, F.lit(divisor).cast(_LONG))


def _reinterpreted(gateway: Gateway, column: Column, data_type: spark_types.DataType) -> Column:
    """The number inside of a time or timestamp, whatever the session's time zone."""
    conversion = gateway.expressions.PreciseTimestampConversion
    return gateway.column(conversion(gateway.expression(column), gateway.type(data_type), gateway.type(_LONG)))


def _big_decimal(gateway: Gateway, column: Column) -> JavaObject:
    return _invoke(gateway, gateway.expression(column), "toJavaBigDecimal", _object_type(gateway, _BIG_DECIMAL))


def _object_type(gateway: Gateway, class_name: str) -> JavaObject:
    return gateway.jvm.org.apache.spark.sql.types.ObjectType(gateway.load_class(class_name))


def _invoke(
    gateway: Gateway, target: JavaObject, method: str, result: JavaObject, *arguments: JavaObject
) -> JavaObject:
    """A call of a method of a Java object in generated code; null where the object is."""
    return gateway.expressions.objects.Invoke(
        target, method, result, gateway.seq(arguments), gateway.seq(()), True, True, True
    )
