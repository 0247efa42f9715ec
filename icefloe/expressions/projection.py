"""What a predicate on rows says about partitions, for every transform (spec: Scan Planning).

A row that matches a predicate lies in a partition that matches the inclusive projection: it picks files. All rows of a
partition that matches the strict projection match the predicate: it decides which rows need no check. Both are
predicates bound to the partition type of the spec. What is left to check in the rows of one partition is the residual.

Java releases up to 0.10 rounded years, months, days and hours before 1970 toward zero, so the partition value may be one
too large there; the projections allow for that, as Java's do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from icefloe.errors import InvalidInputError
from icefloe.expressions import values as ex
from icefloe.expressions.binding import bind, bound_term
from icefloe.expressions.conversion import from_steps, limits, steps
from icefloe.expressions.evaluate import evaluate
from icefloe.expressions.normal import simplify
from icefloe.expressions.terms import BoundExtract, BoundReference, BoundTransform, Literal
from icefloe.expressions.walks import predicates, rewrite
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.schema import IcebergType, NestedField, Schema, Value, types

_OPEN_EDGES: dict[type[ex.LiteralPredicate], int] = {ex.LessThan: -1, ex.GreaterThan: 1}
_CLOSED_EDGES: dict[type[ex.LiteralPredicate], int] = {ex.LessThanOrEqual: 1, ex.GreaterThanOrEqual: -1}


def inclusive_projection(expression: ex.Expression, spec: PartitionSpec, schema: Schema) -> ex.Expression:
    """A predicate on the partition tuple that holds for the partition of every row that matches."""
    return project(bind(expression, schema), lambda test: project_inclusive(test, spec))


def strict_projection(expression: ex.Expression, spec: PartitionSpec, schema: Schema) -> ex.Expression:
    """A predicate on the partition tuple that holds only where every row matches."""
    return project(bind(expression, schema), lambda test: project_strict(test, spec))


def project_inclusive(predicate: ex.Predicate, spec: PartitionSpec) -> ex.Expression:
    """The inclusive projection of one bound test: what every partition field of the column implies must hold."""
    return ex.conjunction(*(_inclusive(predicate, part) for part in _parts(predicate, spec)))


def project_strict(predicate: ex.Predicate, spec: PartitionSpec) -> ex.Expression:
    """The strict projection of one bound test: one partition field of the column that is sure is enough."""
    return ex.disjunction(*(_strict(predicate, part) for part in _parts(predicate, spec)))


def project(bound: ex.Expression, of: Callable[[ex.Predicate], ex.Expression]) -> ex.Expression:
    """A bound predicate with each of its tests replaced by a projection."""
    return simplify(rewrite(bound, of))


class Residuals:
    """The part of one predicate that rows must still be checked for when their partition is known, once per partition tuple.

    A test that the partition guarantees becomes true, one that it rules out becomes false; the rest stay. Without a schema, the predicate is bound already.
    """

    def __init__(self, expression: ex.Expression, spec: PartitionSpec, schema: Schema | None = None) -> None:
        self.expression = expression if schema is None else bind(expression, schema)
        self._projections = {
            predicate: (project_strict(predicate, spec), project_inclusive(predicate, spec))
            for predicate in predicates(self.expression)
        }
        self._is_constant = all(
            isinstance(strict, ex.AlwaysFalse) and isinstance(inclusive, ex.AlwaysTrue)
            for strict, inclusive in self._projections.values()
        )
        self._residuals: dict[tuple[Value, ...], ex.Expression] = {}

    def inclusive(self) -> ex.Expression:
        """The inclusive projection of the whole predicate."""
        return project(self.expression, lambda test: self._projections[test][1])

    def strict(self) -> ex.Expression:
        """The strict projection of the whole predicate."""
        return project(self.expression, lambda test: self._projections[test][0])

    def of(self, partition: Sequence[Value]) -> ex.Expression:
        """The remaining predicate for the rows of a partition, given its values in the order of the spec."""
        if self._is_constant:
            return self.expression
        key = tuple(partition)
        if key not in self._residuals:
            self._residuals[key] = project(self.expression, lambda test: self._left(test, key))
        return self._residuals[key]

    def _left(self, test: ex.Predicate, partition: tuple[Value, ...]) -> ex.Expression:
        strict, inclusive = self._projections[test]
        if evaluate(strict, partition):
            return ex.AlwaysTrue()
        return test if evaluate(inclusive, partition) else ex.AlwaysFalse()


def residual(
    expression: ex.Expression, spec: PartitionSpec, schema: Schema, partition: Sequence[Value]
) -> ex.Expression:
    """The remaining predicate for the rows of one partition; for many partitions, keep a `Residuals`."""
    return Residuals(expression, spec, schema).of(partition)


@dataclass(frozen=True, slots=True)
class _Part:
    """A partition field whose source is the column of a predicate."""

    transform: tr.Transform
    partition: BoundReference
    source: IcebergType

    def result(self, value: Value) -> Value:
        """The partition value of a column value; None if it has none because it is too close to the end of its type."""
        try:
            return self.transform.apply(value, self.source)
        except InvalidInputError:
            return None

    def results(self, predicate: ex.LiteralPredicate | ex.SetPredicate) -> list[Value] | None:
        """The partition values of all constants; None if one has none."""
        results = [self.result(constant.value) for constant in predicate.literals]
        return None if None in results else results

    @property
    def wrapped(self) -> tr.WrappedRange | None:
        """The lowest column values, if their results are not the lowest ones."""
        return tr.wrapped_range(self.transform, self.source)

    def literal(self, value: Value) -> Literal:
        return Literal(value, self.partition.field_type)

    def literals(self, values: list[Value]) -> list[Literal]:
        return [self.literal(value) for value in values]


def _parts(predicate: ex.Predicate, spec: PartitionSpec) -> Iterator[_Part]:
    if isinstance(predicate.term, BoundExtract):
        return  # No transform takes variants.
    column = bound_term(predicate).reference
    for position, field in enumerate(spec.fields):
        transform = field.transform
        # Nothing is known of what a transform makes from several columns.
        if field.source_ids != (column.field_id,) or not transform.can_transform(column.field_type):
            continue
        if isinstance(transform, tr.DayTransform) and isinstance(column.field_type, types.DateType):
            transform = tr.IdentityTransform()
        if not isinstance(transform, tr.VoidTransform | tr.UnknownTransform):
            result = NestedField(field.field_id, field.name, field.transform.result_type(column.field_type))
            yield _Part(
                transform, BoundReference(result, (result.field_id,), (result.name,), position, True), column.field_type
            )


def _exact(predicate: ex.Predicate, part: _Part) -> ex.Expression | None:
    """The test that the partition value answers as well as the column value does, if there is one."""
    term = bound_term(predicate)
    if isinstance(part.transform, tr.IdentityTransform):
        if isinstance(term, BoundTransform):
            return ex.with_term(predicate, BoundTransform(term.transform, part.partition))
        return ex.with_term(predicate, part.partition)
    is_same = isinstance(term, BoundTransform) and term.transform == part.transform
    if is_same or isinstance(predicate, ex.IsNull | ex.NotNull):
        return ex.with_term(predicate, part.partition)
    if isinstance(predicate, ex.StartsWith | ex.NotStartsWith) and isinstance(part.transform, tr.TruncateTransform):
        length = len(predicate.literal.value)
        if length < part.transform.width:
            return ex.with_term(predicate, part.partition)
        if length == part.transform.width:
            equality = ex.EqualTo if isinstance(predicate, ex.StartsWith) else ex.NotEqualTo
            return equality(part.partition, predicate.literal)
    return None


def _inclusive(predicate: ex.Predicate, part: _Part) -> ex.Expression:
    exact = _exact(predicate, part)
    if exact is not None:
        return exact
    if isinstance(predicate.term, BoundTransform):
        return ex.AlwaysTrue()
    match predicate:
        case ex.EqualTo() | ex.In() | ex.StartsWith():
            results = part.results(predicate)
            return (
                ex.AlwaysTrue()
                if results is None
                else ex.is_in(part.partition, part.literals(_one_larger(results, part)))
            )
        case ex.LessThan() | ex.LessThanOrEqual() | ex.GreaterThan() | ex.GreaterThanOrEqual() if (
            part.transform.preserves_order
        ):
            if limits(part.source) is None:
                return _inclusive_text_range(predicate, part)
            return _inclusive_range(predicate, part)
        case _:
            return ex.AlwaysTrue()


def _inclusive_range(predicate: ex.LiteralPredicate, part: _Part) -> ex.Expression:
    """Over a type that counts in steps, `a < 5` is `a <= 4`."""
    is_upper = isinstance(predicate, ex.LessThan | ex.LessThanOrEqual)
    edge = steps(predicate.literal.value, part.source) + _OPEN_EDGES.get(type(predicate), 0)
    if not _is_within(edge, part.source):
        return ex.AlwaysFalse()
    result = part.result(from_steps(edge, part.source))
    if result is None:
        return ex.AlwaysTrue()
    wrapped = part.wrapped
    if wrapped is not None and edge < wrapped.end:
        return ex.EqualTo(part.partition, part.literal(wrapped.result)) if is_upper else ex.NotNull(part.partition)
    if is_upper:
        below = ex.LessThanOrEqual(part.partition, part.literal(max(_one_larger([result], part))))
        return (
            below
            if wrapped is None
            else ex.disjunction(below, ex.EqualTo(part.partition, part.literal(wrapped.result)))
        )
    return ex.GreaterThanOrEqual(part.partition, part.literal(result))


def _inclusive_text_range(predicate: ex.LiteralPredicate, part: _Part) -> ex.Expression:
    value = predicate.literal.value
    beginning = part.literal(part.result(value))
    if isinstance(predicate, ex.GreaterThan | ex.GreaterThanOrEqual):
        return ex.GreaterThanOrEqual(part.partition, beginning)
    if isinstance(predicate, ex.LessThan) and beginning.value == value:
        return ex.LessThan(part.partition, beginning)
    return ex.LessThanOrEqual(part.partition, beginning)


def _strict(predicate: ex.Predicate, part: _Part) -> ex.Expression:
    exact = _exact(predicate, part)
    if exact is not None:
        return exact
    if isinstance(predicate.term, BoundTransform):
        return ex.AlwaysFalse()
    match predicate:
        case ex.NotEqualTo() | ex.NotIn() | ex.NotStartsWith():
            results = part.results(predicate)
            return (
                ex.AlwaysFalse()
                if results is None
                else ex.not_in(part.partition, part.literals(_one_larger(results, part)))
            )
        case ex.LessThan() | ex.LessThanOrEqual() | ex.GreaterThan() | ex.GreaterThanOrEqual() if (
            part.transform.preserves_order
        ):
            if limits(part.source) is None:
                return _strict_text_range(predicate, part)
            return _strict_range(predicate, part)
        case ex.EqualTo() | ex.In() if isinstance(part.transform, tr.TruncateTransform) and limits(part.source) is None:
            return ex.is_in(part.partition, [one for one in predicate.literals if _is_whole(one.value, part)])
        case _:
            return ex.AlwaysFalse()


def _strict_range(predicate: ex.LiteralPredicate, part: _Part) -> ex.Expression:
    """`a <= 5` is sure where the result is less than that of 6: whatever is not below 6 has no smaller result."""
    edge = steps(predicate.literal.value, part.source) + _CLOSED_EDGES.get(type(predicate), 0)
    if not _is_within(edge, part.source):
        return ex.NotNull(part.partition)
    result = part.result(from_steps(edge, part.source))
    if result is None:
        return ex.AlwaysFalse()
    wrapped, is_upper = part.wrapped, isinstance(predicate, ex.LessThan | ex.LessThanOrEqual)
    is_low = wrapped is not None and edge < wrapped.end
    if is_upper:
        return ex.AlwaysFalse() if is_low else ex.LessThan(part.partition, part.literal(result))
    above = ex.GreaterThan(part.partition, part.literal(max(_one_larger([result], part))))
    if wrapped is None:
        return above
    # The lowest values of all have a great result.
    return ex.conjunction(
        ex.NotNull(part.partition) if is_low else above, ex.NotEqualTo(part.partition, part.literal(wrapped.result))
    )


def _strict_text_range(predicate: ex.LiteralPredicate, part: _Part) -> ex.Expression:
    value = predicate.literal.value
    beginning = part.literal(part.result(value))
    match predicate:
        case ex.LessThanOrEqual() if _is_whole(value, part):
            return ex.LessThanOrEqual(part.partition, beginning)
        case ex.LessThan() | ex.LessThanOrEqual():
            return ex.LessThan(part.partition, beginning)
        case ex.GreaterThanOrEqual() if beginning.value == value:
            return ex.GreaterThanOrEqual(part.partition, beginning)
        case _:
            return ex.GreaterThan(part.partition, beginning)


def _is_whole(value: str | bytes, part: _Part) -> bool:
    """Whether a result like this text can only come from this text."""
    return isinstance(part.transform, tr.TruncateTransform) and len(value) < part.transform.width


def _is_within(count: int, field_type: IcebergType) -> bool:
    bounds = limits(field_type)
    assert bounds is not None, f"{field_type} has no steps"
    return bounds[0] <= count <= bounds[1]


def _one_larger(results: list[Value], part: _Part) -> list[Value]:
    """The results and, for units of time before 1970, those that old Java writers computed."""
    if not isinstance(part.transform, tr.TimeTransform):
        return results
    return [*results, *(result + 1 for result in results if result < 0)]
