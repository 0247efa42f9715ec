"""The operands of predicates: columns, transforms of columns, and typed constants.

A `Reference` names a column and an `IdReference` gives its field id; binding to a schema turns both into a
`BoundReference`. The text of a term is SQL that `parser` reads back.
"""

import datetime as dt
import re
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

import numpy as np

from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.partitioning import transforms as tr
from icefloe.schema import GeoBox, Value, coerce, to_text, types
from icefloe.variant import EXTRACTED, Path, normalized

RESERVED_WORDS = frozenset(("and", "or", "not", "in", "is", "null", "nan", "like", "between", "true", "false"))
"""Words that are no column names unless they are quoted."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: an internal value (see `schema.values`) and its type; never null or NaN."""

    value: Value
    field_type: types.IcebergType

    def __post_init__(self) -> None:
        if self.value is None:
            raise InvalidExpressionError("null cannot be compared; test with `is null` or `is not null`")
        if self.value != self.value:
            raise InvalidExpressionError("NaN cannot be compared; test with `is nan` or `is not nan`")

    def __str__(self) -> str:
        match self.field_type:
            case types.BooleanType():
                return "true" if self.value else "false"
            case types.IntegerType() | types.LongType():
                return str(self.value)
            case types.FloatType() | types.DoubleType():
                return _float_text(self.value)
            case types.DecimalType():
                digits = format(self.value, "f")
                return digits if "." in digits else f"DECIMAL '{digits}'"
            case types.StringType():
                return quote_text(self.value)
            case types.FixedType() | types.BinaryType():
                return f"X'{self.value.hex()}'"
            case _:
                return f"{str(self.field_type).upper()} {quote_text(to_text(self.value, self.field_type))}"


@dataclass(frozen=True, slots=True)
class Term:
    """The left side of a predicate."""


@dataclass(frozen=True, slots=True)
class Reference(Term):
    """A column by its full, dotted name."""

    name: str

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise InvalidExpressionError(f"{name!r} is not the name of a column; give a string such as 'a' or 'a.b'")

    def __str__(self) -> str:
        return quote_name(self.name)


@dataclass(frozen=True, slots=True)
class IdReference(Term):
    """A column by its field id, as stored expressions have it."""

    field_id: int

    def __post_init__(self) -> None:
        field_id: object = self.field_id
        if not isinstance(field_id, int) or isinstance(field_id, bool):
            raise InvalidExpressionError(f"{field_id!r} is not a field id; give a whole number")

    def __str__(self) -> str:
        return f"field_id({self.field_id})"


@dataclass(frozen=True, slots=True)
class BoundReference(Term):
    """A column of a schema: how to reach it, and what is known about it."""

    field: types.NestedField
    path: tuple[int, ...]
    """Field ids from the top-level column down to the field."""
    names: tuple[str, ...]
    """The names along the path."""
    position: int
    """Where the top-level column stands in the schema."""
    is_nullable: bool
    """Whether the field or a struct around it is optional."""

    @property
    def field_id(self) -> int:
        """The id of the field."""
        return self.field.field_id

    @property
    def field_type(self) -> types.IcebergType:
        """The type of the field."""
        return self.field.field_type

    @property
    def name(self) -> str:
        """The full, dotted name."""
        return ".".join(self.names)

    @property
    def reference(self) -> "BoundReference":
        """The column itself, as for a bound transform."""
        return self

    @property
    def null_term(self) -> "BoundReference":
        """The column itself, as for a bound transform."""
        return self

    def __str__(self) -> str:
        return quote_name(self.name)


@dataclass(frozen=True, slots=True)
class Transformed(Term):
    """A transform of a column: `bucket(16, id)`."""

    transform: tr.Transform
    reference: Reference | IdReference

    def __str__(self) -> str:
        return _call_text(self.transform, self.reference)


@dataclass(frozen=True, slots=True)
class BoundTransform(Term):
    """A transform of a column of a schema; binding keeps only buckets in this form, and turns the others into ranges."""

    transform: tr.Transform
    reference: BoundReference

    @property
    def field_type(self) -> types.IcebergType:
        """The type of the results."""
        return self.transform.result_type(self.reference.field_type)

    @property
    def is_nullable(self) -> bool:
        """Whether the column, and so the result, may be null."""
        return self.reference.is_nullable

    @property
    def null_term(self) -> BoundReference:
        """The column, which is null where the result is, and nowhere else."""
        return self.reference

    def __str__(self) -> str:
        return _call_text(self.transform, self.reference)


@dataclass(frozen=True, slots=True)
class Extract(Term):
    """What is at a path of a variant column, `doc:a.b` or `variant_get(doc, '$.a.b', 'int')`; null where nothing is, or another type.

    Without a type, that of the constants that it is compared with counts, and double for numbers.
    """

    reference: Reference | IdReference
    path: Path
    field_type: types.IcebergType | None = None

    def __post_init__(self) -> None:
        if isinstance(self.field_type, types.FloatType):
            object.__setattr__(self, "field_type", types.DoubleType())
        if self.field_type is not None and not isinstance(self.field_type, EXTRACTED):
            raise InvalidExpressionError(f"a variant has no values of type {self.field_type}")

    def __str__(self) -> str:
        return _extract_text(self.reference, self.path, self.field_type)


@dataclass(frozen=True, slots=True)
class BoundExtract(Term):
    """What is at a path of a variant column of a schema, as values of a type; `variant`, if it is only tested for null."""

    reference: BoundReference
    path: Path
    field_type: types.IcebergType

    @property
    def is_nullable(self) -> bool:
        """Whether it may be null: any variant may lack the path."""
        return True

    @property
    def null_term(self) -> "BoundExtract":
        """The term that is null where this one is."""
        return self

    def __str__(self) -> str:
        return _extract_text(self.reference, self.path, self.field_type)


BoundTerm = BoundReference | BoundTransform | BoundExtract


def as_term(term: object) -> Term:
    """The term itself, or a reference to the column of that name."""
    if isinstance(term, Term):
        return term
    if isinstance(term, str):
        return Reference(term)
    raise InvalidExpressionError(f"{term!r} is not a column; give its name, or a term such as Reference('a')")


def literal(value: object) -> Literal:
    """The constant for a Python value, of its natural type: 5 is a long, 'x' a string."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    natural_type = _natural_type(value)
    try:
        return Literal(coerce(value, natural_type), natural_type)
    except InvalidExpressionError:
        raise
    except InvalidInputError as error:
        raise InvalidExpressionError(str(error)) from None


def quote_text(text: str) -> str:
    """The text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


def box_text(box: GeoBox) -> str:
    """The sides of a box, and its CRS if it has one, as SQL."""
    sides = [str(literal(side)) for side in (box.xmin, box.ymin, box.xmax, box.ymax)]
    return ", ".join(sides if box.crs is None else [*sides, quote_text(box.crs)])


def like_pattern(prefix: Literal) -> str:
    """The pattern of LIKE for texts that start with the constant, as SQL."""
    escaped = str(prefix.value)
    for special in "\\%_":
        escaped = escaped.replace(special, f"\\{special}")
    return quote_text(f"{escaped}%")


def quote_name(name: str) -> str:
    """The name as SQL, in double quotes unless it is plain."""
    if _PLAIN_NAME.fullmatch(name) and RESERVED_WORDS.isdisjoint(name.lower().split(".")):
        return name
    return '"' + name.replace('"', '""') + '"'


def _natural_type(value: object) -> types.IcebergType:
    match value:
        case None:
            raise InvalidExpressionError("null cannot be compared; test with `is null` or `is not null`")
        case bool():
            return types.BooleanType()
        case int():
            return types.LongType() if _INT64_MIN <= value <= _INT64_MAX else _decimal_type(Decimal(value))
        case float():
            return types.DoubleType()
        case Decimal():
            return _decimal_type(value)
        case str():
            return types.StringType()
        case bytes() | bytearray() | memoryview():
            return types.BinaryType()
        case UUID():
            return types.UUIDType()
        case dt.datetime() | np.datetime64():
            return _timestamp_type(value)
        case dt.date():
            return types.DateType()
        case dt.time():
            return types.TimeType()
        case _:
            raise InvalidExpressionError(
                f"{value!r} is not a constant for a predicate; give a bool, int, float, Decimal, str, bytes, UUID, date, time "
                "or datetime"
            )


def _decimal_type(value: Decimal) -> types.DecimalType:
    if not value.is_finite():
        raise InvalidExpressionError(f"{value} is not a finite decimal number")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > types.MAX_DECIMAL_PRECISION:
        raise InvalidExpressionError(
            f"the number {value} has {precision} digits; {types.MAX_DECIMAL_PRECISION} are the most"
        )
    return types.DecimalType(precision, scale)


def _timestamp_type(value: dt.datetime | np.datetime64) -> types.IcebergType:
    if isinstance(value, np.datetime64):
        return (
            types.TimestampNanoType()
            if np.datetime_data(value)[0] in ("ns", "ps", "fs", "as")
            else types.TimestampType()
        )
    is_zoned = value.utcoffset() is not None
    if getattr(value, "nanosecond", 0):  # A pandas Timestamp counts them.
        return types.TimestamptzNanoType() if is_zoned else types.TimestampNanoType()
    return types.TimestamptzType() if is_zoned else types.TimestampType()


def _float_text(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return f"DOUBLE '{'-' if value < 0 else ''}Infinity'"
    text = repr(value)
    # Without an exponent it would be read as a decimal.
    return text if "e" in text else f"{text}e0"


def _extract_text(column: Term, path: Path, field_type: types.IcebergType | None) -> str:
    place = f"{column}, {quote_text(normalized(path))}"
    return f"variant_get({place})" if field_type is None else f"variant_get({place}, '{field_type}')"


def _call_text(transform: tr.Transform, column: Term) -> str:
    match transform:
        case tr.BucketTransform(num_buckets=number):
            return f"bucket({number}, {column})"
        case tr.TruncateTransform(width=number):
            return f"truncate({number}, {column})"
        case tr.TimeTransform():
            return f"{transform.unit}s({column})"
        case tr.IdentityTransform():
            return f"identity({column})"
        case _:
            raise InvalidExpressionError(f"transform {transform} cannot be used in a predicate")
