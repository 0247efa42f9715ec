"""How a column value becomes a partition value or a sort key (spec: Partition Transforms).

`str(transform)` is the text that metadata stores; `parse_transform` reads it. Values are in the form of
`schema.values`. Every transform gives null for null.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from operator import index
from typing import ClassVar

from icefloe.errors import InvalidTransformError, InvalidValueError
from icefloe.partitioning.hashing import hash_value, unscaled
from icefloe.partitioning.human import EPOCH_YEAR, NULL_TEXT, human_day, human_value
from icefloe.schema import Value, temporal, types

MAX_INT = 2**31 - 1
MICROS_PER_HOUR = 3_600_000_000
NANOS_PER_HOUR = 1000 * MICROS_PER_HOUR
HOURS_PER_DAY = 24

TIMESTAMP_TYPES = (types.TimestampType, types.TimestamptzType, types.TimestampNanoType, types.TimestamptzNanoType)
NANOSECOND_TYPES = (types.TimestampNanoType, types.TimestamptzNanoType)
_TEXT_TYPES = (types.StringType, types.BinaryType)
BUCKET_TYPES = (
    types.IntegerType,
    types.LongType,
    types.DecimalType,
    types.DateType,
    types.TimeType,
    *TIMESTAMP_TYPES,
    types.StringType,
    types.UUIDType,
    types.FixedType,
    types.BinaryType,
)


@dataclass(frozen=True, slots=True)
class Transform:
    """A function from column values to partition values."""

    preserves_order: ClassVar[bool] = False
    """Whether a < b gives apply(a) <= apply(b); `wrapped_range` says where that does not hold."""
    source_types: ClassVar[tuple[type[types.IcebergType], ...]] = (types.IcebergType,)
    """What the source may be; an unknown transform is assumed to accept anything."""
    own_type: ClassVar[types.IcebergType | None] = None
    """The type of the results if it does not depend on the source."""

    def can_transform(self, source_type: types.IcebergType) -> bool:
        """Whether columns of that type may be the source."""
        return isinstance(source_type, self.source_types)

    def result_type(self, source_type: types.IcebergType) -> types.IcebergType:
        """The type of the results; a source of type `unknown` stands for a column that was dropped."""
        return source_type if self.own_type is None else self.own_type

    def apply(self, value: Value, source_type: types.IcebergType) -> Value:
        """The partition value of a column value."""
        if not self.can_transform(source_type):
            raise InvalidTransformError(f"transform {self} does not support columns of type {source_type}")
        if isinstance(self, UnknownTransform):
            raise InvalidTransformError(f"transform {self.text!r} is unknown, so it cannot be applied")
        if value is None or isinstance(self, VoidTransform):
            return None
        try:
            return self._apply(value, source_type)
        except (TypeError, AttributeError) as error:
            raise InvalidValueError(f"{value!r} is not a value of type {source_type}: {error}") from None

    def _apply(self, value: Value, source_type: types.IcebergType) -> Value:
        raise AssertionError(f"transform {self!r} is not applied to {value!r} of type {source_type}")

    def to_human(self, value: Value, source_type: types.IcebergType) -> str:
        """A partition value as text for people and paths; `source_type` is the type of the source column."""
        return human_value(value, self.result_type(source_type))


@dataclass(frozen=True, slots=True)
class IdentityTransform(Transform):
    """The value itself."""

    preserves_order = True
    source_types = (*BUCKET_TYPES, types.UnknownType, types.BooleanType, types.FloatType, types.DoubleType)

    def _apply(self, value: Value, source_type: types.IcebergType) -> Value:  # noqa: ARG002 - of any type
        return value

    def __str__(self) -> str:
        return "identity"


@dataclass(frozen=True, slots=True)
class BucketTransform(Transform):
    """The hash of the value, modulo a number of buckets."""

    num_buckets: int
    source_types = BUCKET_TYPES
    own_type = types.IntegerType()

    def __post_init__(self) -> None:
        _check_parameter(self.num_buckets, "number of buckets")

    def _apply(self, value: Value, source_type: types.IcebergType) -> int:
        return (hash_value(value, source_type) & MAX_INT) % self.num_buckets

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"


@dataclass(frozen=True, slots=True)
class TruncateTransform(Transform):
    """Numbers rounded down to a multiple of the width; the first `width` code points of text or bytes of binary.

    Below the least value of an int or long the result comes round to the greatest ones, as in Java (see `wrapped_range`);
    a decimal whose result would not fit is refused.
    """

    width: int
    preserves_order = True
    source_types = (types.IntegerType, types.LongType, types.DecimalType, *_TEXT_TYPES)

    def __post_init__(self) -> None:
        _check_parameter(self.width, "truncate width")

    def _apply(self, value: Value, source_type: types.IcebergType) -> Value:
        match source_type:
            case types.StringType() | types.BinaryType():
                return value[: self.width]
            case types.DecimalType():
                return self._truncate_decimal(value, source_type)
            case _:
                result = value - value % self.width
                least = _least(source_type)
                return result if result >= least else result - 2 * least

    def _truncate_decimal(self, value: Decimal, source_type: types.DecimalType) -> Decimal:
        number, least = unscaled(value, source_type), 1 - 10**source_type.precision
        result = number - number % self.width
        if result < least:
            raise InvalidValueError(
                f"{self} of {value} gives {result}, below the least value of type {source_type}, {least}"
            )
        return Decimal((int(result < 0), tuple(map(int, str(abs(result)))), -source_type.scale))

    def __str__(self) -> str:
        return f"truncate[{self.width}]"


@dataclass(frozen=True, slots=True)
class TimeTransform(Transform):
    """A count of calendar units since 1970, rounded down."""

    preserves_order = True
    source_types: ClassVar[tuple[type[types.IcebergType], ...]] = (types.DateType, *TIMESTAMP_TYPES)
    own_type: ClassVar[types.IcebergType | None] = types.IntegerType()
    unit: ClassVar[str]

    def _apply(self, value: int, source_type: types.IcebergType) -> int:
        is_date = isinstance(source_type, types.DateType)
        return self._of_days(value if is_date else value // (per_hour(source_type) * HOURS_PER_DAY))

    def _of_days(self, days: int) -> int:
        raise AssertionError(f"{self!r} is not counted in days, {days}")

    def __str__(self) -> str:
        return self.unit


@dataclass(frozen=True, slots=True)
class YearTransform(TimeTransform):
    """Years since 1970."""

    unit = "year"

    def _of_days(self, days: int) -> int:
        return temporal.civil_from_days(days)[0] - EPOCH_YEAR

    def to_human(self, value: int | None, source_type: types.IcebergType) -> str:  # noqa: ARG002 - a count
        return NULL_TEXT if value is None else f"{EPOCH_YEAR + value:04d}"


@dataclass(frozen=True, slots=True)
class MonthTransform(TimeTransform):
    """Months since 1970-01."""

    unit = "month"

    def _of_days(self, days: int) -> int:
        year, month, _ = temporal.civil_from_days(days)
        return (year - EPOCH_YEAR) * 12 + month - 1

    def to_human(self, value: int | None, source_type: types.IcebergType) -> str:  # noqa: ARG002 - a count
        return NULL_TEXT if value is None else f"{EPOCH_YEAR + value // 12:04d}-{value % 12 + 1:02d}"


@dataclass(frozen=True, slots=True)
class DayTransform(TimeTransform):
    """Days since 1970-01-01: a date, though manifests of other writers may hold it as a plain int."""

    own_type = types.DateType()
    unit = "day"

    def _of_days(self, days: int) -> int:
        return index(days)


@dataclass(frozen=True, slots=True)
class HourTransform(TimeTransform):
    """Hours since 1970-01-01T00; what does not fit in an int, 245,000 years from then, is refused."""

    source_types = TIMESTAMP_TYPES
    unit = "hour"

    def _apply(self, value: int, source_type: types.IcebergType) -> int:
        hours = value // per_hour(source_type)
        if not -MAX_INT - 1 <= hours <= MAX_INT:
            raise InvalidValueError(
                f"a value of type {source_type} is {hours} hours from 1970, which does not fit in an int"
            )
        return hours

    def to_human(self, value: int | None, source_type: types.IcebergType) -> str:  # noqa: ARG002 - a count
        return NULL_TEXT if value is None else f"{human_day(value // 24)}-{value % 24:02d}"


@dataclass(frozen=True, slots=True)
class VoidTransform(Transform):
    """Null for every value: what remains of a dropped partition field of a v1 table."""

    def __str__(self) -> str:
        return "void"


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform of another implementation: kept as written, ignored when filtering, refused when writing."""

    text: str
    own_type = types.StringType()
    """Instead of the true type, which only the files know."""

    def __str__(self) -> str:
        return self.text


_WITH_PARAMETER = re.compile(r"(\w+)\[(\d+)\]", re.ASCII)
_PLAIN: dict[str, Transform] = {
    str(transform): transform
    for transform in (
        IdentityTransform(),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
}


def parse_transform(text: str) -> Transform:
    """The transform of that text as metadata stores it, in any case: `day`, `bucket[16]`; others are kept as unknown."""
    if not isinstance(text, str):
        raise InvalidTransformError(f"transform {text!r} is not a string such as 'day' or 'bucket[16]'")
    lower = text.lower()
    if plain := _PLAIN.get(lower):
        return plain
    if match := _WITH_PARAMETER.fullmatch(lower):
        if match[1] == "bucket":
            return BucketTransform(_parameter(match[2]))
        if match[1] == "truncate":
            return TruncateTransform(_parameter(match[2]))
    return UnknownTransform(text)


def _parameter(digits: str) -> int:
    # More digits than an int has are too many in any case, and Python refuses to read thousands of them.
    return int(digits) if len(digits.lstrip("0")) <= len(str(MAX_INT)) else MAX_INT + 1


def _check_parameter(number: object, what: str) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= MAX_INT:
        raise InvalidTransformError(f"{what} {number!r} is not a whole number between 1 and {MAX_INT}")


@dataclass(frozen=True, slots=True)
class WrappedRange:
    """The lowest values of a column, all below `end`, whose truncated value lies below the least of the type: it is `result`,
    a great one, and no other value gives it."""

    end: int
    result: int


def wrapped_range(transform: Transform, source_type: types.IcebergType) -> WrappedRange | None:
    """The range where an otherwise order-preserving transform does not preserve order; None if there is none."""
    if not isinstance(transform, TruncateTransform) or not isinstance(source_type, types.IntegerType | types.LongType):
        return None
    least = _least(source_type)
    if least % transform.width == 0:
        return None
    return WrappedRange(least - least % transform.width + transform.width, transform.apply(least, source_type))


def per_hour(source_type: types.IcebergType) -> int:
    """How many ticks of a timestamp type make an hour."""
    return NANOS_PER_HOUR if isinstance(source_type, NANOSECOND_TYPES) else MICROS_PER_HOUR


def _least(source_type: types.IcebergType) -> int:
    return -(2**31) if isinstance(source_type, types.IntegerType) else -(2**63)
