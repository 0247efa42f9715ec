"""A predicate of a table as a Spark column: true or false for every row, nulls and NaN included, never null."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundReference,
    BoundTransform,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Literal,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
    Term,
)
from icefloe.schema.types import DoubleType, FloatType, IcebergType, IntegerType, LongType
from icefloe.spark.gateway import Gateway, lit
from icefloe.spark.literals import sql_literal
from icefloe.spark.transforms import transform_column
from icefloe.spark.types import TypeMapping, user_type

ColumnOf = Callable[[int], Column]
"""From a field's id to the column as users see it."""


def filter_column(gateway: Gateway, predicate: Expression, column_of: ColumnOf, mapping: TypeMapping) -> Column:
    """A bound predicate as a column."""
    return _Translation(gateway, column_of, mapping).column(predicate)


class _Translation:
    def __init__(self, gateway: Gateway, column_of: ColumnOf, mapping: TypeMapping) -> None:
        self._gateway = gateway
        self._column_of = column_of
        self._mapping = mapping

    def column(self, predicate: Expression) -> Column:
        match predicate:
            case AlwaysTrue() | AlwaysFalse():
                return F.lit(isinstance(predicate, AlwaysTrue))
            case And():
                return reduce(Column.__and__, map(self.column, predicate.children))
            case Or():
                return reduce(Column.__or__, map(self.column, predicate.children))
            case Not():
                return ~self.column(predicate.child)
            case IsNull():
                return self._term(predicate.term)[0].isNull()
            case NotNull():
                return self._term(predicate.term)[0].isNotNull()
            case IsNaN() | NotNaN():
                column, kind = self._term(predicate.term)
                found = F.isnan(column) if _has_nan(kind) else F.lit(False)
                return found if isinstance(predicate, IsNaN) else ~found
            case NotEqualTo() | NotIn() | NotStartsWith():
                return ~self.column(~predicate)
            case _:
                return self._known(predicate)

    def _known(self, predicate: Any) -> Column:
        """Tests that are false for null and NaN."""
        column, kind = self._term(predicate.term)
        match predicate:
            case StartsWith():
                found = column.startswith(F.lit(predicate.literal.value))
            case In():
                found = column.isin(*(self._literal(each, kind) for each in predicate.literals))
            case EqualTo():
                found = column == self._literal(predicate.literal, kind)
            case LessThan():
                found = column < self._literal(predicate.literal, kind)
            case LessThanOrEqual():
                found = column <= self._literal(predicate.literal, kind)
            case GreaterThan():
                found = column > self._literal(predicate.literal, kind)
            case GreaterThanOrEqual():
                found = column >= self._literal(predicate.literal, kind)
            case _:
                raise AssertionError(f"{predicate} is not a predicate")
        if _has_nan(kind):
            found = found & ~F.isnan(column)
        return F.coalesce(found, F.lit(False))

    def _term(self, term: Term) -> tuple[Column, IcebergType]:
        match term:
            case BoundReference():
                return self._column_of(term.field_id), term.field.field_type
            case BoundTransform():
                source = term.reference
                column = self._column_of(source.field_id)
                kind = source.field.field_type
                return transform_column(self._gateway, term.transform, column, kind), term.transform.result_type(kind)
            case _:
                raise InvalidExpressionError(f"{term} is not bound to a schema")

    def _literal(self, literal: Literal, kind: IcebergType) -> Column:
        if isinstance(kind, IntegerType | LongType):
            return lit(literal.value)
        text = sql_literal(literal.value, kind, user_type(kind, self._mapping))
        if text is None:
            raise InvalidExpressionError(f"Spark has no constant for {literal}")
        return F.expr(text)


def _has_nan(kind: IcebergType) -> bool:
    return isinstance(kind, FloatType | DoubleType)
