"""The part of a predicate that rows must still be checked for when their partition is known.

A test that the partition guarantees becomes true, one that it rules out becomes false; the rest stay.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from icefloe.expressions import values as ex
from icefloe.expressions.binding import bind
from icefloe.expressions.evaluate import evaluate
from icefloe.expressions.normal import simplify
from icefloe.expressions.projection import project, project_inclusive, project_strict
from icefloe.partitioning import PartitionSpec
from icefloe.schema import Schema


class Residuals:
    """The residuals of one predicate under one spec, each computed once per partition tuple.

    Without a schema, the predicate is bound already.
    """

    def __init__(
        self, expression: ex.Expression, spec: PartitionSpec, schema: Schema | None = None, case_sensitive: bool = True
    ) -> None:
        self.expression = expression if schema is None else bind(expression, schema, case_sensitive)
        self._projections = {
            predicate: (project_strict(predicate, spec), project_inclusive(predicate, spec))
            for predicate in _predicates(self.expression)
        }
        self._is_constant = all(
            isinstance(strict, ex.AlwaysFalse) and isinstance(inclusive, ex.AlwaysTrue)
            for strict, inclusive in self._projections.values()
        )
        self._found: dict[tuple[Any, ...], ex.Expression] = {}

    def inclusive(self) -> ex.Expression:
        """The inclusive projection of the whole predicate."""
        return project(self.expression, lambda test: self._projections[test][1])

    def strict(self) -> ex.Expression:
        """The strict projection of the whole predicate."""
        return project(self.expression, lambda test: self._projections[test][0])

    def of(self, partition: Sequence[Any]) -> ex.Expression:
        """The remaining predicate for the rows of a partition, given its values in the order of the spec."""
        if self._is_constant:
            return self.expression
        key = tuple(partition)
        if key not in self._found:
            self._found[key] = simplify(self._left(self.expression, key))
        return self._found[key]

    def _left(self, expression: ex.Expression, partition: tuple[Any, ...]) -> ex.Expression:
        match expression:
            case ex.And():
                return ex.conjunction(*(self._left(child, partition) for child in expression.children))
            case ex.Or():
                return ex.disjunction(*(self._left(child, partition) for child in expression.children))
            case ex.Predicate():
                strict, inclusive = self._projections[expression]
                if evaluate(strict, partition):
                    return ex.AlwaysTrue()
                return expression if evaluate(inclusive, partition) else ex.AlwaysFalse()
            case _:
                return expression


def residual(expression: ex.Expression, spec: PartitionSpec, schema: Schema, partition: Sequence[Any]) -> ex.Expression:
    """The remaining predicate for the rows of one partition; for many partitions, keep a `Residuals`."""
    return Residuals(expression, spec, schema).of(partition)


def _predicates(expression: ex.Expression) -> Iterator[ex.Predicate]:
    match expression:
        case ex.And() | ex.Or():
            for child in expression.children:
                yield from _predicates(child)
        case ex.Predicate():
            yield expression
