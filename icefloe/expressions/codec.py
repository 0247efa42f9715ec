"""The JSON of predicates, in the form of the expressions spec and in the older, term-based one of the REST protocol.

Both are read. Constants of types that JSON lacks carry their type; when a schema is given, a constant without one is
read as a value of its column's type. Functions of the reserved catalog `iceberg_functions` are known, also when the
catalog is left out; comparisons of two columns are not.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.expressions import terms as te, values as ex
from icefloe.expressions.conversion import limits
from icefloe.partitioning import transforms as tr
from icefloe.schema import JSON, Schema, type_from_json, type_to_json, types, value_from_json, value_to_json

Document: TypeAlias = JSON | bool | str
"""A predicate or a part of one, as JSON."""

TYPE, CHILD, LEFT, RIGHT, TERM, VALUE, VALUES = "type", "child", "left", "right", "term", "value", "values"
REFERENCE, NAME, ID, LITERAL, LITERALS, DATA_TYPE = "reference", "name", "id", "literal", "literals", "data-type"
APPLY, FUNCTION, ARGUMENTS, CATALOG, IDENTIFIER = "apply", "function", "arguments", "catalog", "identifier"
TRANSFORM = "transform"
ICEBERG_FUNCTIONS = "iceberg_functions"

_UNARY: dict[str, type[ex.UnaryPredicate]] = {
    "is-null": ex.IsNull,
    "not-null": ex.NotNull,
    "is-nan": ex.IsNaN,
    "not-nan": ex.NotNaN,
}
_COMPARISONS: dict[str, type[ex.LiteralPredicate]] = {
    "lt": ex.LessThan,
    "lt-eq": ex.LessThanOrEqual,
    "gt": ex.GreaterThan,
    "gt-eq": ex.GreaterThanOrEqual,
    "eq": ex.EqualTo,
    "not-eq": ex.NotEqualTo,
    "starts-with": ex.StartsWith,
    "not-starts-with": ex.NotStartsWith,
}
_SETS: dict[str, Callable[[str | te.Term, list[te.Literal]], ex.Expression]] = {"in": ex.is_in, "not-in": ex.not_in}


_NAMES: dict[type[ex.Predicate], str] = {
    **{predicate: name for name, predicate in _UNARY.items()},
    **{predicate: name for name, predicate in _COMPARISONS.items()},
    ex.In: "in",
    ex.NotIn: "not-in",
}
_NATURAL = (types.BooleanType, types.LongType, types.DoubleType, types.StringType)
"""Types whose constants JSON distinguishes by itself."""
_COUNTED = (
    types.DateType
    | types.TimeType
    | types.TimestampType
    | types.TimestamptzType
    | types.TimestampNanoType
    | types.TimestamptzNanoType
)


def expression_to_json(expression: ex.Expression) -> Document:
    """The predicate in the form of the expressions spec; columns of a bound one by id, of another by name."""
    return _write(expression, _predicate_to_json)


def expression_to_term_json(expression: ex.Expression) -> Document:
    """The predicate in the older, term-based form, which Java and older REST catalogs read; columns by name."""
    return _write(expression, _predicate_to_term_json)


def expression_from_json(document: object, schema: Schema | None = None, case_sensitive: bool = True) -> ex.Expression:
    """The predicate of a JSON document in either form."""
    return _Reader(schema, case_sensitive).expression(document, 0)


def _write(expression: ex.Expression, predicate: Callable[[ex.Predicate], JSON]) -> Document:
    match expression:
        case ex.AlwaysTrue():
            return True
        case ex.AlwaysFalse():
            return False
        case ex.And() | ex.Or():
            name = "and" if isinstance(expression, ex.And) else "or"
            return _balanced(name, [_write(child, predicate) for child in expression.children])
        case ex.Not():
            return {TYPE: "not", CHILD: _write(expression.child, predicate)}
        case ex.Predicate():
            try:
                return predicate(expression)
            except InvalidExpressionError:
                raise
            except InvalidInputError as error:
                raise InvalidExpressionError(f"{expression} has no JSON form: {error}") from None
        case _:
            raise InvalidExpressionError(f"{expression!r} is not a predicate")


def _balanced(name: str, parts: list[Document]) -> Document:
    """Long chains as a balanced tree, since many JSON readers are recursive."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return {TYPE: name, LEFT: _balanced(name, parts[:half]), RIGHT: _balanced(name, parts[half:])}


def _check_form(predicate: ex.Predicate) -> None:
    if isinstance(predicate, ex.SpatialPredicate):
        raise InvalidExpressionError(f"{predicate} has no JSON form: the expressions spec has no spatial predicates")


def _predicate_to_json(predicate: ex.Predicate) -> JSON:
    _check_form(predicate)
    name, term = _NAMES[type(predicate)], _term_to_json(predicate.term)
    match predicate:
        case ex.LiteralPredicate():
            return {TYPE: name, LEFT: term, RIGHT: _literal_to_json(predicate.literal)}
        case ex.SetPredicate():
            return {TYPE: name, CHILD: term, VALUES: _literals_to_json(predicate.literals)}
        case _:
            return {TYPE: name, CHILD: term}


def _predicate_to_term_json(predicate: ex.Predicate) -> JSON:
    _check_form(predicate)
    name, term = _NAMES[type(predicate)], _old_term_to_json(predicate.term)
    match predicate:
        case ex.LiteralPredicate(literal=constant):
            return {TYPE: name, TERM: term, VALUE: value_to_json(constant.value, constant.field_type)}
        case ex.SetPredicate(literals=constants):
            return {
                TYPE: name,
                TERM: term,
                VALUES: [value_to_json(constant.value, constant.field_type) for constant in constants],
            }
        case _:
            return {TYPE: name, TERM: term}


def _term_to_json(term: te.Term) -> JSON:
    match term:
        case te.Reference():
            return {TYPE: REFERENCE, NAME: term.name}
        case te.IdReference() | te.BoundReference():
            return {TYPE: REFERENCE, ID: term.field_id}
        case te.Transformed() | te.BoundTransform():
            name, _, _ = str(term.transform).partition("[")
            return {
                TYPE: APPLY,
                FUNCTION: {CATALOG: ICEBERG_FUNCTIONS, IDENTIFIER: [name]},
                ARGUMENTS: [*_parameters(term.transform), _term_to_json(term.reference)],
            }
        case _:
            raise InvalidExpressionError(f"{term!r} has no JSON form")


def _old_term_to_json(term: te.Term) -> Document:
    match term:
        case te.Reference() | te.BoundReference():
            return term.name
        case te.Transformed() | te.BoundTransform():
            return {TYPE: TRANSFORM, TRANSFORM: str(term.transform), TERM: _old_term_to_json(term.reference)}
        case _:
            raise InvalidExpressionError(f"{term} has no form in the older JSON, which names columns")


def _parameters(transform: tr.Transform) -> list[int]:
    match transform:
        case tr.BucketTransform(num_buckets=number) | tr.TruncateTransform(width=number):
            return [number]
        case tr.VoidTransform() | tr.UnknownTransform():
            raise InvalidExpressionError(f"transform {transform} cannot be used in a predicate")
        case _:
            return []


def _literal_to_json(constant: te.Literal) -> object:
    value = value_to_json(constant.value, constant.field_type)
    if isinstance(constant.field_type, _NATURAL):
        return value
    return {TYPE: LITERAL, VALUE: value, DATA_TYPE: type_to_json(constant.field_type)}


def _literals_to_json(constants: tuple[te.Literal, ...]) -> object:
    field_type = constants[0].field_type
    if isinstance(field_type, _NATURAL) or any(constant.field_type != field_type for constant in constants):
        return [_literal_to_json(constant) for constant in constants]
    values = [value_to_json(constant.value, field_type) for constant in constants]
    return {TYPE: LITERALS, VALUES: values, DATA_TYPE: type_to_json(field_type)}


class _Constant:
    """A constant whose type depends on the column that it is compared with."""

    def __init__(self, value: object, data_type: object = None) -> None:
        self.value = value
        self.data_type = data_type


class _Reader:
    """Reads documents against a schema, if there is one."""

    def __init__(self, schema: Schema | None, case_sensitive: bool) -> None:
        self.schema = schema
        self.case_sensitive = case_sensitive

    def expression(self, document: object, depth: int) -> ex.Expression:
        if isinstance(document, bool):
            return ex.AlwaysTrue() if document else ex.AlwaysFalse()
        if depth > ex.MAX_DEPTH:
            raise InvalidExpressionError(f"the predicate nests and, or and not more than {ex.MAX_DEPTH} levels deep")
        node = _object(document, "a predicate")
        name = _type_of(node)
        match name:
            case "true" | "false":
                return self.expression(name == "true", depth)
            case "literal":
                return self.expression(_boolean(_get(node, VALUE)), depth)
            case "not":
                return ex.negation(self.expression(_get(node, CHILD), depth + 1))
            case "and" | "or":
                parts = [self.expression(part, depth + 1) for part in _chain(node, name)]
                return ex.conjunction(*parts) if name == "and" else ex.disjunction(*parts)
            case _:
                return self.predicate(name, node)

    def predicate(self, name: str, node: Mapping[str, object]) -> ex.Expression:
        if unary := _UNARY.get(name):
            return unary(self.term(node, CHILD))
        if comparison := _COMPARISONS.get(name):
            return self.comparison(comparison, node)
        if make := _SETS.get(name):
            term = self.term(node, CHILD)
            return make(term, [self.literal(constant, term) for constant in _constants(_get(node, VALUES))])
        known = ", ".join(("and", "or", "not", *_UNARY, *_COMPARISONS, *_SETS))
        raise InvalidExpressionError(f"{name!r} is not a type of predicates; those are {known}")

    def comparison(self, comparison: type[ex.LiteralPredicate], node: Mapping[str, object]) -> ex.Expression:
        if TERM in node:
            left: te.Term | _Constant = _old_term(node[TERM])
            right: te.Term | _Constant = _operand(_get(node, VALUE))
        else:
            left, right = _operand(_get(node, LEFT)), _operand(_get(node, RIGHT))
        match left, right:
            case te.Term(), _Constant():
                return comparison(left, self.literal(right, left))
            case _Constant(), te.Term() if comparison in ex.FLIPPED:
                return ex.FLIPPED[comparison](right, self.literal(left, right))
            case _:
                raise InvalidExpressionError(f"{_shown(node)} does not compare a column with a constant")

    def term(self, node: Mapping[str, object], key: str) -> te.Term:
        if TERM in node:
            return _old_term(node[TERM])
        operand = _operand(_get(node, key))
        if isinstance(operand, te.Term):
            return operand
        raise InvalidExpressionError(f"{_shown(node)} does not test a column")

    def literal(self, constant: _Constant, term: te.Term) -> te.Literal:
        try:
            if constant.data_type is not None:
                field_type = type_from_json(constant.data_type)
                return te.Literal(value_from_json(constant.value, field_type), field_type)
            natural = te.literal(constant.value)
            column = self.type_of(term)
            return natural if column is None else _typed(natural, constant.value, column)
        except InvalidExpressionError:
            raise
        except InvalidInputError as error:
            raise InvalidExpressionError(f"the constant {_shown(constant.value)} cannot be read: {error}") from None

    def type_of(self, term: te.Term) -> types.IcebergType | None:
        if self.schema is None:
            return None
        match term:
            case te.Reference():
                return self.schema.find_field(term.name, self.case_sensitive).field_type
            case te.IdReference():
                return self.schema.find_field(term.field_id).field_type
            case te.Transformed():
                source = self.type_of(term.reference)
                return None if source is None else term.transform.result_type(source)
            case _:
                return None


def _typed(natural: te.Literal, value: object, column: types.IcebergType) -> te.Literal:
    """The constant as a value of its column's type if it has that form, else in its natural type for binding to convert."""
    if isinstance(value, int) and not isinstance(value, bool) and isinstance(column, _COUNTED):
        # Java's engines write dates and times so: as days or microseconds, whatever the precision of the column.
        is_nanos = isinstance(column, types.TimestampNanoType | types.TimestamptzNanoType)
        count, bounds = value * 1000 if is_nanos else value, limits(column)
        if bounds is not None and bounds[0] <= count <= bounds[1]:
            return te.Literal(count, column)
    try:
        return te.Literal(value_from_json(value, column), column)
    except InvalidInputError:
        return natural


def _chain(node: Mapping[str, object], name: str) -> list[object]:
    """The parts of nested nodes of one type, however deep; others nest chains as deep as they are long."""
    parts: list[object] = []
    waiting: list[object] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping) and _type_of(part) == name:
            waiting += [_get(part, RIGHT), _get(part, LEFT)]
        else:
            parts.append(part)
    return parts


def _operand(document: object) -> te.Term | _Constant:
    if not isinstance(document, Mapping):
        return _Constant(document)
    match _type_of(document):
        case "literal":
            return _Constant(_get(document, VALUE), document.get(DATA_TYPE))
        case "apply":
            return _function(document)
        case _:
            return _old_term(document)


def _old_term(document: object) -> te.Term:
    if isinstance(document, str):
        return te.Reference(document)
    node = _object(document, "a column")
    match _type_of(node):
        case "reference" if ID in node:
            return te.IdReference(_get(node, ID))
        case "reference":
            return te.Reference(_get(node, NAME if NAME in node else TERM))
        case "transform":
            column = _old_term(_get(node, TERM))
            if not isinstance(column, te.Reference | te.IdReference):
                raise InvalidExpressionError(f"{_shown(node)} is not a transform of a column")
            return te.Transformed(_known_transform(_get(node, TRANSFORM)), column)
        case other:
            raise InvalidExpressionError(f"{other!r} is not a column; its type is reference, apply or transform")


def _function(node: Mapping[str, object]) -> te.Transformed:
    name = _function_name(_get(node, FUNCTION))
    arguments = _get(node, ARGUMENTS)
    if not isinstance(arguments, list) or not arguments:
        raise InvalidExpressionError(f"{_shown(node)} has no list of arguments")
    *numbers, last = arguments
    column = _operand(last)
    if not isinstance(column, te.Reference | te.IdReference) or not all(_is_whole(number) for number in numbers):
        raise InvalidExpressionError(f"{_shown(node)} is not a transform of a column, which is its last argument")
    text = f"{name}[{numbers[0]}]" if numbers else name
    if len(numbers) > 1:
        raise InvalidExpressionError(f"{_shown(node)} has too many arguments")
    return te.Transformed(_known_transform(text), column)


def _function_name(function: object) -> str:
    catalog, identifier = None, function
    if isinstance(function, Mapping):
        catalog, identifier = function.get(CATALOG), function.get(IDENTIFIER)
    parts = [identifier] if isinstance(identifier, str) else identifier
    if catalog not in (None, ICEBERG_FUNCTIONS) or not isinstance(parts, list) or len(parts) != 1:
        raise InvalidExpressionError(f"unknown function {_shown(function)}; only Iceberg transforms are supported")
    return str(parts[0])


def _known_transform(text: object) -> tr.Transform:
    try:
        transform = tr.parse_transform(text) if isinstance(text, str) else None
    except InvalidInputError as error:
        raise InvalidExpressionError(str(error)) from None
    if transform is None or isinstance(transform, tr.VoidTransform | tr.UnknownTransform):
        raise InvalidExpressionError(f"{_shown(text)} is not a transform such as day or bucket[16]")
    return transform


def _constants(document: object) -> list[_Constant]:
    data_type = None
    if isinstance(document, Mapping) and _type_of(document) == LITERALS:
        data_type = document.get(DATA_TYPE)
        document = _get(document, VALUES)
    if not isinstance(document, list):
        raise InvalidExpressionError(f"{_shown(document)} is not a list of constants")
    if data_type is not None:
        return [_Constant(value, data_type) for value in document]
    operands = [_operand(part) for part in document]
    if not all(isinstance(operand, _Constant) for operand in operands):
        raise InvalidExpressionError(f"{_shown(document)} has a column among its constants")
    return [operand for operand in operands if isinstance(operand, _Constant)]


def _object(document: object, what: str) -> Mapping[str, object]:
    if not isinstance(document, Mapping):
        raise InvalidExpressionError(f"{_shown(document)} is not {what}; its JSON is an object")
    return document


def _type_of(node: Mapping[str, object]) -> str:
    name = node.get(TYPE)
    if not isinstance(name, str):
        raise InvalidExpressionError(f"{_shown(node)} has no {TYPE!r}, which says what it is")
    return name.lower().replace("_", "-")


def _get(node: Mapping[str, Any], key: str) -> Any:
    if key not in node:
        raise InvalidExpressionError(f"{_shown(node)} has no {key!r}")
    return node[key]


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidExpressionError(f"the constant {_shown(value)} is not a predicate; only true and false are")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}..."
