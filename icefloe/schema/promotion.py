"""Which type changes keep old data readable, and what old values become (spec: Schema Evolution, Type promotion)."""

from icefloe.errors import IncompatibleChangeError, InvalidValueError
from icefloe.schema import types
from icefloe.schema.temporal import MICROS_PER_DAY, NANOS_PER_DAY, format_date
from icefloe.versions import ALL_VERSIONS, Feature, allows

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def can_promote(old: types.IcebergType, new: types.IcebergType, version: int) -> bool:
    """Whether a column of type `old` may become one of type `new`; a type may always stay as it is.

    Partition fields may still forbid it: date to a timestamp changes what transforms give.
    """
    if old == new:
        return True
    match old, new:
        case types.UnknownType(), _:
            return allows(version, Feature.UNKNOWN_PROMOTION)
        case (types.IntegerType(), types.LongType()) | (types.FloatType(), types.DoubleType()):
            return True
        case types.DecimalType(), types.DecimalType():
            return old.scale == new.scale and old.precision <= new.precision
        case types.DateType(), types.TimestampType() | types.TimestampNanoType():
            return allows(version, Feature.DATE_TO_TIMESTAMP_PROMOTION)
        case _:
            return False


def is_promotion(old: types.IcebergType, new: types.IcebergType) -> bool:
    """Whether some version of the format lets a column of type `old` become one of type `new`, or they are the same."""
    return any(can_promote(old, new, version) for version in ALL_VERSIONS)


def promote_value(value: types.Value, old: types.IcebergType, new: types.IcebergType) -> types.Value:
    """What a value of the old type is in the new one; a date that the timestamp type cannot hold is an error."""
    if not is_promotion(old, new):
        raise IncompatibleChangeError(f"{old} cannot be promoted to {new}, so the value {value!r} has no new form")
    if value is None or old == new:
        return value
    match old, new:
        case types.UnknownType(), _:
            raise InvalidValueError(f"{value!r} is not a value of type unknown, which holds only null")
        case types.DateType(), types.TimestampType():
            return days_to_ticks(value, MICROS_PER_DAY, new)
        case types.DateType(), types.TimestampNanoType():
            return days_to_ticks(value, NANOS_PER_DAY, new)
        case _:
            return value


def days_to_ticks(days: int, per_day: int, field_type: types.IcebergType) -> int:
    """The midnight of a day as ticks of a timestamp type, or an error if it is out of the type's range."""
    ticks = days * per_day
    if not _INT64_MIN <= ticks <= _INT64_MAX:
        raise InvalidValueError(
            f"date {format_date(days)} ({days} days from 1970-01-01) is outside the range of {field_type}"
        )
    return ticks
