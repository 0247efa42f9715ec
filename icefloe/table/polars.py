"""Pushdown of Polars queries into scan planning: columns, the translatable part of the filter, and the limit.

Polars passes columns, filter and limit to its sources. A scan may return too many rows but never too few: Polars applies
the filter again.
"""

import io
import json
import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icefloe import errors, expressions as ex, planning
from icefloe.data import scanning
from icefloe.schema import IcebergType, schema_to_arrow, types

if TYPE_CHECKING:
    import polars as pl

_SWAPPED = {"Eq": "Eq", "Gt": "Lt", "GtEq": "LtEq", "Lt": "Gt", "LtEq": "GtEq"}


def lazy_frame(scan: planning.TableScan, polars: Any) -> "pl.LazyFrame":
    """Return a LazyFrame over the rows of a scan."""
    from polars.io.plugins import register_io_source

    empty = polars.from_arrow(schema_to_arrow(scan.projection()).empty_table())
    return register_io_source(
        partial(_rows, polars, scan), schema=empty.schema, is_pure=True, explain_name="icefloe", validate_schema=False
    )


def _rows(
    polars: Any,
    scan: planning.TableScan,
    columns: list[str] | None,
    predicate: Any,
    limit: int | None,
    batch_size: int | None,  # noqa: ARG001 - a hint by Polars
) -> Iterator[Any]:
    """Yield the rows that a query needs, as DataFrames."""
    names = _top(scan) if columns is None else columns
    needed = dict.fromkeys(names)
    if predicate is not None:
        needed |= dict.fromkeys(predicate.meta.root_names())
        if scan.limit is None:
            # With a filter, the limit would apply before it.
            scan = _Filter(polars, scan).narrowed(predicate)
    elif limit is not None:
        scan = scan.with_limit(limit if scan.limit is None else min(limit, scan.limit))
    # If only the number of rows is needed, read a single column.
    scan = scan.select(*(needed or _top(scan)[:1]))
    reader = scanning.to_arrow_batch_reader(scan)
    left = limit
    try:
        for batch in reader:
            frame = polars.from_arrow(pa.Table.from_batches([batch]))
            if predicate is not None:
                frame = frame.filter(predicate)
            if left is not None:
                frame = frame.head(left)
                left -= frame.height
            yield frame.select(names) if names else frame
            if left == 0:
                return
    finally:
        reader.close()


def _top(scan: planning.TableScan) -> list[str]:
    return [field.name for field in scan.projection().fields]


class _Filter:
    """Translates a Polars filter, as far as it has the same meaning in scan planning."""

    def __init__(self, polars: Any, scan: planning.TableScan) -> None:
        self._polars = polars
        self._scan = scan

    def narrowed(self, predicate: Any) -> planning.TableScan:
        """Return a scan that covers at least the rows that match a filter."""
        try:
            tree = json.loads(predicate.meta.serialize(format="json"))
        except (ValueError, self._polars.exceptions.PolarsError):
            return self._scan
        expression = self._expression(tree)
        return self._scan if expression is None else self._scan.filter(expression)

    def _expression(self, node: Any) -> ex.Expression | None:
        """Return the predicate of a node; None if it cannot be translated."""
        match node:
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                parts = [each for each in map(self._expression, (left, right)) if each is not None]
                return ex.conjunction(*parts) if parts else None
            case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
                one, other = self._expression(left), self._expression(right)
                return None if one is None or other is None else ex.disjunction(one, other)
            case {"BinaryExpr": {"left": {"Column": str(name)}, "op": str(operator), "right": {"Literal": _} as value}}:
                return self._compared(name, operator, value)
            case {"BinaryExpr": {"left": {"Literal": _} as value, "op": str(operator), "right": {"Column": str(name)}}}:
                return self._compared(name, _SWAPPED.get(operator, ""), value)
            case {"Function": {"input": [{"Column": str(name)}, *inputs], "function": {"Boolean": function}}}:
                return self._function(name, inputs, function)
            case _:
                return None

    def _function(self, name: str, inputs: list[Any], function: Any) -> ex.Expression | None:
        match function, inputs:
            case "IsNull", []:
                return self._checked(ex.col(name).is_null(), name)
            case "IsNotNull", []:
                return self._checked(ex.col(name).not_null(), name)
            case {"IsBetween": {"closed": str(closed)}}, [low, high]:
                lower = self._compared(name, "GtEq" if closed in ("Both", "Left") else "Gt", low)
                upper = self._compared(name, "LtEq" if closed in ("Both", "Right") else "Lt", high)
                parts = [each for each in (lower, upper) if each is not None]
                return ex.conjunction(*parts) if parts else None
            case {"IsIn": _}, [{"Literal": _} as value]:
                series = self._literal(value)
                values = [] if series is None else series.explode().to_list()
                if not values or not all(self._fits(name, each) for each in values):
                    return None
                return self._checked(ex.col(name).is_in(values), name)
            case _:
                return None

    def _compared(self, name: str, operator: str, literal: Any) -> ex.Expression | None:
        series = self._literal(literal)
        value = None if series is None or len(series) != 1 else series.to_list()[0]
        if not self._fits(name, value):
            return None
        column: Any = ex.col(name)
        match operator:
            case "Eq":
                expression = column == value
            case "Lt":
                expression = column < value
            case "LtEq":
                expression = column <= value
            case "Gt" | "GtEq":
                expression = column > value if operator == "Gt" else column >= value
                if isinstance(self._type(name), types.DoubleType):
                    # In Polars, NaN is greater than any number.
                    expression = ex.disjunction(expression, column.is_nan())
            case _:
                return None
        return self._checked(expression, name)

    def _literal(self, node: Any) -> Any:
        """Return the values of a constant, evaluated by Polars."""
        try:
            expression = self._polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
            return self._polars.select(expression).to_series(0)
        except (ValueError, TypeError, self._polars.exceptions.PolarsError):
            return None

    def _type(self, name: str) -> IcebergType | None:
        # A name with a dot would be taken for a path.
        if "." in name or all(field.name != name for field in self._scan.schema.fields):
            return None
        return self._scan.schema.find_type(name)

    def _fits(self, name: str, value: Any) -> bool:
        """Whether both libraries compare a value with a column in the same way."""
        match self._type(name):
            case types.BooleanType():
                return isinstance(value, bool)
            case types.IntegerType() | types.LongType():
                return isinstance(value, int) and not isinstance(value, bool)
            case types.DoubleType():
                # Zero may have either sign.
                return (
                    isinstance(value, float | int)
                    and not isinstance(value, bool)
                    and not math.isnan(value)
                    and value != 0
                )
            case types.StringType():
                return isinstance(value, str)
            case types.DateType():
                return type(value).__name__ == "date"
            case types.TimestampType():
                return type(value).__name__ == "datetime" and value.tzinfo is None
            case types.TimestamptzType():
                return type(value).__name__ == "datetime" and value.tzinfo is not None
            case _:
                return False

    def _checked(self, expression: ex.Expression, name: str) -> ex.Expression | None:
        """Return the expression if it can be bound to the schema."""
        if self._type(name) is None:
            return None
        try:
            ex.bind(expression, self._scan.schema)
        except errors.IcefloeError:
            return None
        return expression
