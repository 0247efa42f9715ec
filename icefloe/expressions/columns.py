"""Predicates written with Python's own operators: `(col("a") > 5) & col("b").is_null()`."""

from collections.abc import Iterable

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import values as ex
from icefloe.expressions.terms import Extract, IdReference, Reference, Term, Transformed, as_term
from icefloe.partitioning import transforms as tr
from icefloe.schema import GeoBox, types
from icefloe.variant import parse_path


class Column:
    """A term whose operators make predicates; comparisons are those of `values`, so null rows are not equal to 5."""

    __slots__ = ("term",)

    def __init__(self, term: str | Term) -> None:
        self.term = as_term(term)

    def __eq__(self, other: object) -> ex.Expression:  # type: ignore[override]  # it makes a predicate
        return ex.EqualTo(self.term, other)

    def __ne__(self, other: object) -> ex.Expression:  # type: ignore[override]  # it makes a predicate
        return ex.NotEqualTo(self.term, other)

    def __lt__(self, other: object) -> ex.Expression:
        return ex.LessThan(self.term, other)

    def __le__(self, other: object) -> ex.Expression:
        return ex.LessThanOrEqual(self.term, other)

    def __gt__(self, other: object) -> ex.Expression:
        return ex.GreaterThan(self.term, other)

    def __ge__(self, other: object) -> ex.Expression:
        return ex.GreaterThanOrEqual(self.term, other)

    __hash__ = None  # type: ignore[assignment]  # equality makes a predicate, so sets and keys would not work

    def __repr__(self) -> str:
        return f"col({str(self.term)!r})"

    def extract(self, path: str, field_type: str | types.IcebergType | None = None) -> "Column":
        """What is at a path of a variant column, as values of a type: `col("doc").extract("$.a.b", "int") > 5`.

        Args:
            path: fields by name, `$.a.b` or `$['a b']`.
            field_type: a type or its name; without one, that of the constants counts, and double for numbers.

        It is null where the path leads nowhere, to null, or to a value of another class.
        """
        if not isinstance(self.term, Reference | IdReference):
            raise InvalidExpressionError(f"{self.term} has no paths; give a column")
        kind = types.parse_type(field_type) if isinstance(field_type, str) else field_type
        return Column(Extract(self.term, parse_path(path), kind))

    def is_in(self, values: Iterable[object]) -> ex.Expression:
        """The value is one of these."""
        return ex.is_in(self.term, values)

    def not_in(self, values: Iterable[object]) -> ex.Expression:
        """The value is none of these; null is not."""
        return ex.not_in(self.term, values)

    def between(self, low: object, high: object) -> ex.Expression:
        """The value is at least `low` and at most `high`."""
        return ex.conjunction(ex.GreaterThanOrEqual(self.term, low), ex.LessThanOrEqual(self.term, high))

    def is_null(self) -> ex.Expression:
        """The value is null."""
        return ex.IsNull(self.term)

    def not_null(self) -> ex.Expression:
        """The value is not null."""
        return ex.NotNull(self.term)

    def is_nan(self) -> ex.Expression:
        """The value is NaN."""
        return ex.IsNaN(self.term)

    def not_nan(self) -> ex.Expression:
        """The value is not NaN; null is not."""
        return ex.NotNaN(self.term)

    def starts_with(self, prefix: str) -> ex.Expression:
        """The text starts with the prefix."""
        return ex.StartsWith(self.term, prefix)

    def not_starts_with(self, prefix: str) -> ex.Expression:
        """The text does not start with the prefix; null does not."""
        return ex.NotStartsWith(self.term, prefix)

    def st_intersects(
        self, xmin: float, ymin: float, xmax: float, ymax: float, *, crs: str | None = None
    ) -> ex.Expression:
        """The shape meets the box; in a geography, one whose `xmin` is above its `xmax` goes over the antimeridian.

        The box is in the coordinates of the column; a `crs` that is not the column's is refused.
        """
        return ex.Intersects(self.term, GeoBox(xmin, ymin, xmax, ymax, crs=crs))


def col(name: str) -> Column:
    """The column of that full, dotted name."""
    return Column(name)


def years(column: str | Column) -> Column:
    """Years since 1970 of a date or timestamp: compare with that number, or with a text such as '2024'."""
    return _transformed(tr.YearTransform(), column)


def months(column: str | Column) -> Column:
    """Months since 1970-01 of a date or timestamp: compare with that number, or with a text such as '2024-01'."""
    return _transformed(tr.MonthTransform(), column)


def days(column: str | Column) -> Column:
    """The day of a timestamp: compare with a date, or a text such as '2024-01-31'."""
    return _transformed(tr.DayTransform(), column)


def hours(column: str | Column) -> Column:
    """Hours since 1970 of a timestamp: compare with that number, or with a text such as '2024-01-31-07'."""
    return _transformed(tr.HourTransform(), column)


def bucket(number: int, column: str | Column) -> Column:
    """The bucket, out of so many, that the value falls in."""
    return _transformed(tr.BucketTransform(number), column)


def truncate(width: int, column: str | Column) -> Column:
    """The value cut to a width."""
    return _transformed(tr.TruncateTransform(width), column)


def _transformed(transform: tr.Transform, column: str | Column) -> Column:
    term = column.term if isinstance(column, Column) else as_term(column)
    if not isinstance(term, Reference | IdReference):
        raise InvalidExpressionError(f"{transform} of {term} is not a transform of a column; give a column")
    return Column(Transformed(transform, term))
