"""Conditions over a table's frame as predicates of ours, for pruning and for narrow conflict detection."""

from collections.abc import Iterable, Iterator, Mapping

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions as F  # noqa: N812  # its usual name

from icefloe import errors, expressions as ex
from icefloe.schema import Schema, coerce, types
from icefloe.spark.predicates import table_filter

_RANGED = (types.IntegerType, types.LongType, types.DateType, types.StringType, types.TimestampType)
"""Types whose least and greatest value Spark and we understand alike."""


def implied_filter(frame: DataFrame, condition: Column | None, schema: Schema) -> ex.Expression:
    """A predicate that every row of the frame matches for which the condition is true; it may be wider."""
    if condition is None:
        return ex.AlwaysTrue()
    columns: Mapping[str, types.NestedField] = {field.name: field for field in schema.fields}
    try:
        plan: JavaObject = frame.filter(condition)._jdf.queryExecution().analyzed()
    except PySparkException:
        return ex.AlwaysTrue()
    rules = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.optimizer
    try:
        # Literals come with casts around them until these rules take them away.
        plan = rules.UnwrapCastInBinaryComparison.apply(rules.ConstantFolding.apply(plan))
    except Py4JJavaError:
        # Spark 4.0 cannot fold a condition that looks at the clock.
        return ex.AlwaysTrue()
    if plan.getClass().getSimpleName() != "Filter":
        return ex.AlwaysTrue()
    return table_filter([plan.condition()], columns)


def check_deterministic(frame: DataFrame, conditions: Iterable[Column | None], statement: str) -> None:
    """Raise if a condition over the frame, or a query in it, is not deterministic."""
    for condition in conditions:
        if condition is not None and not _analyzed(frame, condition).deterministic():
            raise _not_deterministic(condition, statement)


def check_deterministic_join(joined: DataFrame, condition: Column, statement: str) -> None:
    """Raise if the condition of this join is not deterministic."""
    if not all(conjunct.deterministic() for conjunct in _conjuncts(joined)):
        raise _not_deterministic(condition, statement)


def _not_deterministic(condition: Column, statement: str) -> errors.InvalidInputError:
    return errors.InvalidInputError(
        f"{statement}: the condition {condition} is not deterministic, so it chooses other rows each time it is"
        " asked; choose the rows beforehand, into a table, and name that in the condition"
    )


def is_lasting(frame: DataFrame, condition: Column) -> bool:
    """Whether the condition chooses the same rows in every query: it has no queries in it, and does not look at the clock."""
    pattern = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    analyzed = _analyzed(frame, condition)
    return not any(analyzed.containsPattern(one) for one in (pattern.PLAN_EXPRESSION(), pattern.CURRENT_LIKE()))


def asks_python(frame: DataFrame, columns: Iterable[Column]) -> bool:
    """Whether a column over the frame calls a Python function, which Spark calls for every row, whatever `CASE` is around."""
    pattern = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    expressions: JavaObject = frame.select(*columns)._jdf.queryExecution().analyzed().expressions()
    return any(expressions.apply(index).containsPattern(pattern) for index in range(expressions.size()))


def _analyzed(frame: DataFrame, condition: Column) -> JavaObject:
    """The condition as Catalyst understands it."""
    plan: JavaObject = frame.filter(condition)._jdf.queryExecution().analyzed()
    # Hidden columns are dropped again above the filter.
    while plan.getClass().getSimpleName() != "Filter":
        plan = plan.children().head()
    return plan.condition()


def key_filter(joined: DataFrame, target: DataFrame, source: DataFrame, schema: Schema) -> ex.Expression:
    """A predicate that all target rows match that some source row can match in the join of both: what its condition says of
    the target alone, and ranges of keys."""
    columns: Mapping[str, types.NestedField] = {field.name: field for field in schema.fields}
    of_target: JavaObject = target._jdf.queryExecution().analyzed().outputSet()
    pairs = []
    own = []
    for part in _conjuncts(joined):
        pair = _equality(part, target, source, columns)
        if pair is not None:
            pairs.append(pair)
        elif part.references().subsetOf(of_target):
            # Columns of the source may have the same names.
            own.append(part)
    return ex.conjunction(table_filter(own, columns), *_ranges(source, pairs))


def _conjuncts(joined: DataFrame) -> Iterator[JavaObject]:
    plan: JavaObject = joined._jdf.queryExecution().analyzed()
    condition = plan.condition()
    pending = [condition.get()] if condition.isDefined() else []
    while pending:
        expression = pending.pop()
        if expression.getClass().getSimpleName() == "And":
            pending += [expression.left(), expression.right()]
        else:
            yield expression


def _equality(
    part: JavaObject, target: DataFrame, source: DataFrame, columns: Mapping[str, types.NestedField]
) -> tuple[types.NestedField, JavaObject] | None:
    """A column of the target that must equal an expression over the source."""
    if part.getClass().getSimpleName() != "EqualTo":
        return None
    of_target = target._jdf.queryExecution().analyzed().outputSet()
    of_source = source._jdf.queryExecution().analyzed().outputSet()
    for one, other in ((part.left(), part.right()), (part.right(), part.left())):
        if one.getClass().getSimpleName() != "AttributeReference" or not of_target.contains(one):
            continue
        field = columns.get(one.name())
        if field is None or not isinstance(field.field_type, _RANGED):
            continue
        if other.references().subsetOf(of_source) and not other.references().isEmpty():
            return field, other
    return None


def _ranges(source: DataFrame, pairs: list[tuple[types.NestedField, JavaObject]]) -> list[ex.Expression]:
    if not pairs:
        return []
    make = source.sparkSession._jvm.org.apache.spark.sql.classic.ExpressionUtils
    asked = []
    for index, (_, expression) in enumerate(pairs):
        value = Column(make.column(expression))
        asked += [F.min(value).alias(f"low_{index}"), F.max(value).alias(f"high_{index}")]
    try:
        [row] = source.select(*asked).collect()
    except PySparkException:
        return []
    ranges = []
    for index, (field, _) in enumerate(pairs):
        low, high = (row[f"{end}_{index}"] for end in ("low", "high"))
        if low is None:
            # No row of the source has a key, so none matches.
            return [ex.AlwaysFalse()]
        try:
            field_type = field.field_type
            bounds = [ex.Literal(coerce(end, field_type), field_type) for end in (low, high)]
        except errors.IcefloeError:
            continue
        ranges.append(ex.Column(ex.IdReference(field.field_id)).between(*bounds))
    return ranges
