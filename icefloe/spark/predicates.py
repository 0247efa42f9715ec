"""Which files a Spark filter can rule out: Catalyst predicates become predicates of tables, as far as they are understood.

The result may keep more rows than Spark's filter does, never fewer, and Spark applies its own filter to the rows that are
left. Spark orders NaN above all numbers and takes it for equal to itself; predicates of tables do not, so that is said.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError

from icefloe import errors, expressions as ex
from icefloe.schema import Value, coerce, parse_text, types
from icefloe.spark import catalyst
from icefloe.spark.spatial import box_of
from icefloe.spark.transform_calls import transform_of
from icefloe.spark.variant_extractions import extraction, without_extracts

T = TypeVar("T")
Columns: TypeAlias = Mapping[str, types.NestedField]
_MOST_VALUES = 10_000
"""How many values of an IN are considered; more would rarely rule out a file."""

_MOST_KEYS = 2_000
"""How many keys of a join are considered one by one: files are planned while a query waits."""

_LEAST_INT, _GREATEST_INT = -(1 << 31), (1 << 31) - 1
_UUID_TEXT_PARTS = 9
"""Five groups of digits, and the dashes between them."""

_MIRRORED = {
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
}
_PREDICATES = {
    "EqualTo": ex.EqualTo,
    "NotEqualTo": ex.NotEqualTo,
    "LessThan": ex.LessThan,
    "LessThanOrEqual": ex.LessThanOrEqual,
    "GreaterThan": ex.GreaterThan,
    "GreaterThanOrEqual": ex.GreaterThanOrEqual,
}
_TESTS = {
    "IsNull": (ex.IsNull, ex.NotNull),
    "IsNotNull": (ex.NotNull, ex.IsNull),
    "IsNaN": (ex.IsNaN, ex.NotNaN),
}
_FUNCTIONS = ("Year", "TruncDate", "TruncTimestamp", "Cast")
_OPPOSITE = {
    "EqualTo": "NotEqualTo",
    "LessThan": "GreaterThanOrEqual",
    "LessThanOrEqual": "GreaterThan",
    "GreaterThan": "LessThanOrEqual",
    "GreaterThanOrEqual": "LessThan",
}


_EXACT_TESTS = (*_OPPOSITE, "In", "InSet", "IsNull", "IsNotNull")
_COUNTED_TYPES = (types.LongType, types.DateType, types.TimestampType, types.TimestamptzType)
"""Types whose values are whole numbers of 64 bits at most, in Spark as in tables."""
_EXACT_TYPES = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.DateType,
    types.TimestampType,
    types.TimestamptzType,
    types.DecimalType,
    types.StringType,
)
"""Types whose values Spark and predicates of tables compare alike."""

_NOT_USABLE = (
    catalyst.NotUnderstood,
    errors.IcefloeError,
    Py4JError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
)
"""Errors from reading an unknown predicate, which is then ignored, since it only makes a query faster."""


def table_filter(
    filters: Iterable[JavaObject | catalyst.SentExpression], columns: Columns, *, for_files_only: bool = False
) -> ex.Expression:
    """A predicate that is true wherever all of these Catalyst filters are; `columns` are those of the relation, by name.

    One that is for files only, and is never asked of rows, may be about what is in variants: Spark casts by rules of its own.
    """
    trees = (_usable(partial(catalyst.tree, expression), None) for expression in filters)
    nodes = [part for node in trees if node is not None for part in _conjuncts(node)]
    months: list[ex.Expression] = _usable(lambda: list(_months(nodes, columns)), [])
    predicate = ex.conjunction(*(_or_true(node, columns, False) for node in nodes), *months)
    return predicate if for_files_only else without_extracts(predicate)


def exact_filter(filters: Iterable[JavaObject], columns: Columns) -> ex.Expression | None:
    """A predicate that is true exactly where all of these Catalyst filters are; None if there is none that is understood."""
    trees = [_usable(partial(catalyst.tree, expression), None) for expression in filters]
    try:
        return ex.conjunction(*(_exactly(node, columns) for node in trees))
    except _NOT_USABLE:
        return None


def _exactly(node: catalyst.Node | None, columns: Columns) -> ex.Expression:
    if node is None:
        raise catalyst.NotUnderstood
    match node.name:
        case "And":
            return ex.conjunction(*(_exactly(side, columns) for side in node.children))
        case "Or":
            return ex.disjunction(*(_exactly(side, columns) for side in node.children))
    negated = node.name == "Not"
    test = node.children[0] if negated else node
    if test.name not in _EXACT_TESTS:
        raise catalyst.NotUnderstood
    subjects = [child for child in test.children if child.name != "Literal"]
    for subject in subjects:
        # What is computed is a range at best, and Spark has its own order of NaN.
        if subject.name != "AttributeReference" or not isinstance(_field(subject, columns).field_type, _EXACT_TYPES):
            raise catalyst.NotUnderstood
    return _truth(test, columns, negated)


def values_filter(field: types.NestedField, texts: Sequence[str]) -> ex.Expression | None:
    """A column that has one of these values, or is between the least and the greatest of very many; None if not understood."""
    term, kind = ex.IdReference(field.field_id), field.field_type
    try:
        values = _keys(texts, kind)
        if values is None:
            return None
        if len(values) <= _MOST_KEYS:
            predicate: ex.Expression = ex.In(term, [ex.Literal(value, kind) for value in values])
            return predicate
        least, greatest = ex.Literal(min(values), kind), ex.Literal(max(values), kind)
        return ex.conjunction(ex.GreaterThanOrEqual(term, least), ex.LessThanOrEqual(term, greatest))
    except _NOT_USABLE:
        return None


def ranges_filter(field: types.NestedField, ends: Sequence[str]) -> ex.Expression | None:
    """A column that is in one of some ranges of whole numbers, given by the least and the greatest of each; None if not understood."""
    kind = field.field_type
    if not isinstance(kind, (types.IntegerType, *_COUNTED_TYPES)):
        return None
    term = ex.Column(ex.IdReference(field.field_id))
    ranges = list(zip(map(int, ends[::2]), map(int, ends[1::2]), strict=True))
    if isinstance(kind, types.IntegerType):
        # Keys of the other side may be of 64 bits.
        within = ((max(low, _LEAST_INT), min(high, _GREATEST_INT)) for low, high in ranges)
        ranges = [(low, high) for low, high in within if low <= high]
    try:
        return ex.disjunction(*(term.between(ex.Literal(low, kind), ex.Literal(high, kind)) for low, high in ranges))
    except _NOT_USABLE:
        return None


def _keys(texts: Sequence[str], kind: types.IcebergType) -> list[Any] | None:
    """The values of keys, which are numbers or texts: there can be a million, so each takes one step."""
    if isinstance(kind, types.StringType):
        return list(texts)
    if isinstance(kind, types.IntegerType):
        return [value for value in map(int, texts) if _LEAST_INT <= value <= _GREATEST_INT]
    return list(map(int, texts)) if isinstance(kind, _COUNTED_TYPES) else None


def _usable(translate: Callable[[], T], otherwise: T) -> T:
    try:
        return translate()
    except _NOT_USABLE:
        return otherwise


def _conjuncts(node: catalyst.Node) -> list[catalyst.Node]:
    pending, parts = [node], []
    while pending:
        node = pending.pop(0)
        if node.name == "And":
            pending[:0] = node.children
        else:
            parts.append(node)
    return parts


def _or_true(node: catalyst.Node, columns: Columns, negated: bool) -> ex.Expression:
    unknown: ex.Expression = ex.AlwaysTrue()
    return _usable(partial(_truth, node, columns, negated), unknown)


def _truth(node: catalyst.Node, columns: Columns, negated: bool) -> ex.Expression:
    """Where the node is true, or false if negated; more rows are allowed, fewer are not."""
    if not negated and (spatial := box_of(node, partial(_field, columns=columns))) is not None:
        return ex.Intersects(ex.IdReference(spatial[0].field_id), spatial[1])
    match node.name:
        case "And" | "Or" if (node.name == "And") is not negated:
            return ex.conjunction(*(_or_true(side, columns, negated) for side in node.children))
        case "And" | "Or":
            return ex.disjunction(*(_truth(side, columns, negated) for side in node.children))
        case "Not":
            return _truth(node.children[0], columns, not negated)
        case "Literal":
            value = node.facts.get("value")
            return ex.AlwaysTrue() if (value == "true") is not negated and value is not None else ex.AlwaysFalse()
        case "AttributeReference" | "GetStructField":
            field = _field(node, columns)
            return ex.EqualTo(ex.IdReference(field.field_id), ex.Literal(not negated, field.field_type))
        case "IsNull" | "IsNotNull" | "IsNaN":
            positive, negative = _TESTS[node.name]
            return (negative if negated else positive)(ex.IdReference(_field(node.children[0], columns).field_id))
        case "StartsWith":
            term, field_type = _operand(node.children[0], columns, negated)
            literal = _literal(node.children[1], field_type)
            if literal is None or not isinstance(field_type, types.StringType):
                raise catalyst.NotUnderstood
            return (ex.NotStartsWith if negated else ex.StartsWith)(term, literal)
        case "In" | "InSet":
            return _in(node, columns, negated)
        case _ if node.name in _MIRRORED:
            return _comparison(node, columns, negated)
        case _:
            raise catalyst.NotUnderstood


def _comparison(node: catalyst.Node, columns: Columns, negated: bool) -> ex.Expression:
    left, right = node.children
    name = node.name
    if left.name == "Literal":
        left, right, name = right, left, _MIRRORED[name]
    if right.name != "Literal":
        raise catalyst.NotUnderstood
    if left.name in _FUNCTIONS and extraction(left, _shape) is None:
        return _function(_OPPOSITE[name] if negated else name, left, right, columns)
    term, field_type = _operand(left, columns, negated)
    if name == "EqualNullSafe":
        if right.facts.get("value") is None:
            return (ex.NotNull if negated else ex.IsNull)(term)
        if negated:
            raise catalyst.NotUnderstood
        name = "EqualTo"
    if right.facts.get("value") is None:
        return ex.AlwaysFalse()
    literal = _literal(right, field_type)
    name = _OPPOSITE[name] if negated else name
    if literal is None:
        return _with_nan(name, term)
    if isinstance(field_type, types.UUIDType) and name not in ("EqualTo", "NotEqualTo"):
        raise catalyst.NotUnderstood
    predicate = _PREDICATES[name](term, literal)
    if name == "NotEqualTo":
        return ex.conjunction(predicate, ex.NotNull(term))
    has_nan = isinstance(field_type, types.FloatType | types.DoubleType)
    return ex.disjunction(predicate, ex.IsNaN(term)) if has_nan and name.startswith("Greater") else predicate


def _with_nan(name: str, term: ex.Term) -> ex.Expression:
    """Comparisons with NaN, which Spark orders above everything else."""
    match name:
        case "EqualTo" | "GreaterThanOrEqual":
            return ex.IsNaN(term)
        case "GreaterThan":
            return ex.AlwaysFalse()
        case "NotEqualTo" | "LessThan":
            return ex.conjunction(ex.NotNaN(term), ex.NotNull(term))
        case _:
            return ex.NotNull(term)


def _function(name: str, node: catalyst.Node, literal: catalyst.Node, columns: Columns) -> ex.Expression:
    """A comparison of a function of time with a constant, as a range of the column that it is a function of."""
    if literal.facts.get("value") is None:
        raise catalyst.NotUnderstood
    field_of = partial(_field, columns=columns)
    constant = _literal(literal, catalyst.function_type(node, field_of))
    if constant is None or not isinstance(constant.value, int):
        raise catalyst.NotUnderstood
    at, after = constant.value, constant.value + 1
    results = {
        "EqualTo": catalyst.Range(at, after),
        "EqualNullSafe": catalyst.Range(at, after),
        "LessThan": catalyst.Range(None, at),
        "LessThanOrEqual": catalyst.Range(None, after),
        "GreaterThan": catalyst.Range(after, None),
        "GreaterThanOrEqual": catalyst.Range(at, None),
    }
    if name not in results:
        raise catalyst.NotUnderstood
    return catalyst.range_filter(*catalyst.source_range(node, results[name], field_of))


def _months(nodes: Sequence[catalyst.Node], columns: Columns) -> Iterator[ex.Expression]:
    """The months and days that equalities of parts of one date name together; a month alone is no range."""
    parts: dict[str, list[tuple[catalyst.Node, int]]] = {"Year": [], "Month": [], "DayOfMonth": []}
    for node in nodes:
        if node.name == "EqualTo" and node.children[0].name in parts and node.children[1].name == "Literal":
            value = node.children[1].facts.get("value")
            if value is not None:
                parts[node.children[0].name].append((node.children[0].children[0], int(value)))
    field_of = partial(_field, columns=columns)
    for date, year in parts["Year"]:
        for other, month in parts["Month"]:
            if not catalyst.is_same(date, other) or not isinstance(
                catalyst.function_type(date, field_of), types.DateType
            ):
                continue
            first = catalyst.days_of(year, month)
            days = [day for other, day in parts["DayOfMonth"] if catalyst.is_same(date, other)]
            ranges = [catalyst.Range(first + day - 1, first + day) for day in days]
            for days_named in ranges or [catalyst.Range(first, catalyst.days_of(year, month + 1))]:
                yield catalyst.range_filter(*catalyst.source_range(date, days_named, field_of))


def _in(node: catalyst.Node, columns: Columns, negated: bool) -> ex.Expression:
    is_function = node.children[0].name in _FUNCTIONS and extraction(node.children[0], _shape) is None
    if is_function and node.name == "In" and not negated:
        values = [
            child for child in node.children[1:] if child.name != "Literal" or child.facts.get("value") is not None
        ]
        return ex.disjunction(*(_function("EqualTo", node.children[0], value, columns) for value in values))
    term, field_type = _operand(node.children[0], columns, negated)
    if node.name == "In":
        if any(child.name != "Literal" for child in node.children[1:]):
            raise catalyst.NotUnderstood
        values = [child for child in node.children[1:] if child.facts.get("value") is not None]
        has_null = len(values) < len(node.children) - 1
        literals = [_literal(value, field_type) for value in values]
    else:
        literals, has_null = _set(node, field_type)
    plain = [literal for literal in literals if literal is not None]
    if negated:
        if has_null:
            return ex.AlwaysFalse()
        predicate = ex.conjunction(ex.NotIn(term, plain), ex.NotNull(term))
        return predicate if len(plain) == len(literals) else ex.conjunction(predicate, ex.NotNaN(term))
    predicate = ex.In(term, plain)
    return predicate if len(plain) == len(literals) else ex.disjunction(predicate, ex.IsNaN(term))


def _set(node: catalyst.Node, field_type: types.IcebergType) -> tuple[list[ex.Literal | None], bool]:
    """The values of an InSet, which its JSON leaves out, and whether null is among them."""
    values = node.real().hset()
    if values.size() > _MOST_VALUES:
        raise catalyst.NotUnderstood
    texts = values.mkString("\0").split("\0")
    if len(texts) != values.size() or isinstance(field_type, types.BinaryType | types.FixedType):
        raise catalyst.NotUnderstood
    has_null = bool(values.contains(None))
    if has_null:
        # Only one of them is no value: the text 'null' may be in the set, too.
        texts.remove("null")
    return [_value(text, field_type, partial(int, text)) for text in texts], has_null


def _operand(node: catalyst.Node, columns: Columns, negated: bool) -> tuple[ex.Term, types.IcebergType]:
    """What a test is about, and its type: a column, a field of a struct, a transform of them, or what is in a variant."""
    if (call := transform_of(node, partial(_field, columns=columns))) is not None:
        return call
    if (place := extraction(node, _shape)) is not None:
        column = _path(place.variant, columns)
        # Of what is negated nothing is known: any row may lack the path.
        if negated or not all(
            isinstance(kind, types.VariantType) is is_whole
            for kind, is_whole in ((column.field_type, True), (place.field_type, False))
        ):
            raise catalyst.NotUnderstood
        return ex.Extract(ex.IdReference(column.field_id), place.path, place.field_type), place.field_type
    field = _field(node, columns)
    return ex.IdReference(field.field_id), field.field_type


def _field(node: catalyst.Node, columns: Columns) -> types.NestedField:
    """The column, or the field of a struct, that a node stands for."""
    field = _path(node, columns)
    if not isinstance(field.field_type, types.PrimitiveType):
        raise catalyst.NotUnderstood
    return field


def _path(node: catalyst.Node, columns: Columns) -> types.NestedField:
    if node.name == "AttributeReference":
        column = columns.get(str(node.facts["name"]))
        if column is None:
            raise catalyst.NotUnderstood
        return column
    if node.name == "GetStructField":
        around = _path(node.children[0], columns)
        name = _shape(node.children[0])["fields"][node.facts["ordinal"]]["name"]
        if isinstance(around.field_type, types.StructType) and isinstance(name, str):
            for field in around.field_type:
                if field.name == name:
                    return field
    if node.name == "KnownNullable":
        return _path(node.children[0], columns)
    if node.name == "Lower" and (inner := _of_uuid(node)) is not None:
        column = _path(inner, columns)
        if isinstance(column.field_type, types.UUIDType):
            return column
    raise catalyst.NotUnderstood


def _shape(node: catalyst.Node) -> Any:
    """Spark's type of a column or of a field, in its JSON; fields of structs have positions there, and not always names."""
    match node.name:
        case "AttributeReference":
            return node.facts["dataType"]
        case "GetStructField":
            return _shape(node.children[0])["fields"][node.facts["ordinal"]]["type"]
        case "KnownNullable":
            return _shape(node.children[0])
        case _:
            raise catalyst.NotUnderstood


def _of_uuid(node: catalyst.Node) -> catalyst.Node | None:
    """The binary column whose bytes `user_side` shows as the text of a UUID, if the node is that text."""
    [joined] = node.children
    if joined.name != "Concat" or len(joined.children) != _UUID_TEXT_PARTS:
        return None
    column: catalyst.Node | None = None
    for part in joined.children[::2]:
        if part.name != "Hex" or part.children[0].name != "Substring":
            return None
        source = part.children[0].children[0]
        if column is not None and not catalyst.is_same(source, column):
            return None
        column = source
    return column


def _literal(node: catalyst.Node, field_type: types.IcebergType) -> ex.Literal | None:
    """The constant of a node as one of the column's type; None is NaN."""
    if node.name != "Literal":
        raise catalyst.NotUnderstood
    return _value(str(node.facts["value"]), field_type, lambda: node.real().value())


def _value(text: str, field_type: types.IcebergType, raw: Callable[[], Value]) -> ex.Literal | None:
    match field_type:
        case types.FloatType() | types.DoubleType():
            number = float(text)
            return ex.Literal(coerce(number, field_type), field_type) if number == number else None
        case types.DateType():
            return ex.Literal(parse_text(text, field_type) if "-" in text[1:] else int(text), field_type)
        case types.TimestamptzType():
            return ex.Literal(int(raw()), field_type)
        case types.TimestampType() | types.TimestampNanoType() | types.TimestamptzNanoType():
            return ex.Literal(int(text), field_type)
        case types.TimeType():
            return _time(int(raw()), text, field_type)
        case types.UUIDType():
            value = UUID(text)
            if str(value) != text:
                raise catalyst.NotUnderstood
            return ex.Literal(value, field_type)
        case types.BinaryType() | types.FixedType():
            return ex.Literal(coerce(bytes(raw()), field_type), field_type)
        case types.StringType():
            return ex.Literal(text, field_type)
        case types.PrimitiveType():
            return ex.Literal(parse_text(text, field_type), field_type)
        case _:
            raise catalyst.NotUnderstood


def _time(ticks: int, text: str, field_type: types.TimeType) -> ex.Literal:
    """Spark counts nanoseconds from midnight where it has the type, and microseconds where it is shown as a number."""
    if text == str(ticks):
        return ex.Literal(ticks, field_type)
    if ticks % 1000:
        raise catalyst.NotUnderstood
    return ex.Literal(ticks // 1000, field_type)
