"""A predicate of a table as a Spark column: true or false for every row, nulls and NaN included, never null."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import (
    Column,
    functions as F,  # noqa: N812  # its usual name
)

from icefloe import expressions as ex
from icefloe.errors import InvalidExpressionError
from icefloe.schema import types
from icefloe.spark.gateway import Gateway, lit
from icefloe.spark.literals import sql_literal
from icefloe.spark.transforms import transform_column
from icefloe.spark.types import TypeMapping, user_type

ColumnOf = Callable[[int], Column]
"""From a field's id to the column as users see it."""


def filter_column(gateway: Gateway, predicate: ex.Expression, column_of: ColumnOf, mapping: TypeMapping) -> Column:
    """A bound predicate as a column."""
    return _Translation(gateway, column_of, mapping).column(predicate)


class _Translation:
    def __init__(self, gateway: Gateway, column_of: ColumnOf, mapping: TypeMapping) -> None:
        self._gateway = gateway
        self._column_of = column_of
        self._mapping = mapping

    def column(self, predicate: ex.Expression) -> Column:
        match predicate:
            case ex.AlwaysTrue() | ex.AlwaysFalse():
                return F.lit(isinstance(predicate, ex.AlwaysTrue))
            case ex.And():
                return reduce(Column.__and__, map(self.column, predicate.children))
            case ex.Or():
                return reduce(Column.__or__, map(self.column, predicate.children))
            case ex.Not():
                return ~self.column(predicate.child)
            case ex.IsNull():
                return self._term(predicate.term)[0].isNull()
            case ex.NotNull():
                return self._term(predicate.term)[0].isNotNull()
            case ex.IsNaN() | ex.NotNaN():
                column, field_type = self._term(predicate.term)
                is_nan = F.isnan(column) if _has_nan(field_type) else F.lit(False)
                return is_nan if isinstance(predicate, ex.IsNaN) else ~is_nan
            case ex.NotEqualTo() | ex.NotIn() | ex.NotStartsWith():
                return ~self.column(~predicate)
            case _:
                return self._known(predicate)

    def _known(self, predicate: Any) -> Column:
        """Tests that are false for null and NaN."""
        column, field_type = self._term(predicate.term)
        match predicate:
            case ex.StartsWith():
                test = column.startswith(F.lit(predicate.literal.value))
            case ex.In():
                test = column.isin(*(self._literal(literal, field_type) for literal in predicate.literals))
            case ex.EqualTo():
                test = column == self._literal(predicate.literal, field_type)
            case ex.LessThan():
                test = column < self._literal(predicate.literal, field_type)
            case ex.LessThanOrEqual():
                test = column <= self._literal(predicate.literal, field_type)
            case ex.GreaterThan():
                test = column > self._literal(predicate.literal, field_type)
            case ex.GreaterThanOrEqual():
                test = column >= self._literal(predicate.literal, field_type)
            case _:
                raise AssertionError(f"{predicate} is not a predicate")
        if _has_nan(field_type):
            test = test & ~F.isnan(column)
        return F.coalesce(test, F.lit(False))

    def _term(self, term: ex.Term) -> tuple[Column, types.IcebergType]:
        match term:
            case ex.BoundReference():
                return self._column_of(term.field_id), term.field.field_type
            case ex.BoundTransform():
                source = term.reference
                column = self._column_of(source.field_id)
                field_type = source.field.field_type
                return transform_column(self._gateway, term.transform, column, field_type), term.transform.result_type(
                    field_type
                )
            case _:
                raise InvalidExpressionError(f"{term} is not bound to a schema")

    def _literal(self, literal: ex.Literal, field_type: types.IcebergType) -> Column:
        if isinstance(field_type, types.IntegerType | types.LongType):
            return lit(literal.value)
        text = sql_literal(literal.value, field_type, user_type(field_type, self._mapping))
        if text is None:
            raise InvalidExpressionError(f"Spark has no constant for {literal}")
        return F.expr(text)


def _has_nan(field_type: types.IcebergType) -> bool:
    return isinstance(field_type, types.FloatType | types.DoubleType)
