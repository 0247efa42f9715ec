"""The JSON of predicates, in the form of the expressions spec and in the older, term-based one of the REST protocol.

Both are read. Constants of types that JSON lacks carry their type; when a schema is given, a constant without one is
read as a value of its column's type. Functions of the reserved catalog `iceberg_functions` are known, also when the
catalog is left out; comparisons of two columns are not.
"""

from collections.abc import Callable
from typing import Any

from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.expressions import values as ex
from icefloe.expressions.reader_codec import (
    APPLY,
    ARGUMENTS,
    CATALOG,
    CHILD,
    COMPARISONS,
    DATA_TYPE,
    FUNCTION,
    ICEBERG_FUNCTIONS,
    ID,
    IDENTIFIER,
    LEFT,
    LITERAL,
    LITERALS,
    NAME,
    REFERENCE,
    RIGHT,
    TERM,
    TRANSFORM,
    TYPE,
    UNARY,
    VALUE,
    VALUES,
    ExpressionReader,
)
from icefloe.expressions.terms import (
    BoundReference,
    BoundTransform,
    IdReference,
    Literal,
    Reference,
    Term,
    Transformed,
)
from icefloe.partitioning import transforms as tr
from icefloe.schema import BooleanType, DoubleType, LongType, Schema, StringType, type_to_json, value_to_json

_NAMES: dict[type[ex.Predicate], str] = {
    **{predicate: name for name, predicate in UNARY.items()},
    **{predicate: name for name, predicate in COMPARISONS.items()},
    ex.In: "in",
    ex.NotIn: "not-in",
}
_NATURAL = (BooleanType, LongType, DoubleType, StringType)
"""Types whose constants JSON distinguishes by itself."""


def expression_to_json(expression: ex.Expression) -> Any:
    """The predicate in the form of the expressions spec; columns of a bound one by id, of another by name."""
    return _write(expression, _predicate_to_json)


def expression_to_term_json(expression: ex.Expression) -> Any:
    """The predicate in the older, term-based form, which Java and older REST catalogs read; columns by name."""
    return _write(expression, _predicate_to_term_json)


def expression_from_json(document: object, schema: Schema | None = None, case_sensitive: bool = True) -> ex.Expression:
    """The predicate of a JSON document in either form."""
    return ExpressionReader(schema, case_sensitive).expression(document, 0)


def _write(expression: ex.Expression, predicate: Callable[[ex.Predicate], Any]) -> Any:
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


def _balanced(name: str, parts: list[Any]) -> Any:
    """Long chains as a balanced tree, since many JSON readers are recursive."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return {TYPE: name, LEFT: _balanced(name, parts[:half]), RIGHT: _balanced(name, parts[half:])}


def _predicate_to_json(predicate: ex.Predicate) -> Any:
    name, term = _NAMES[type(predicate)], _term_to_json(predicate.term)
    match predicate:
        case ex.LiteralPredicate():
            return {TYPE: name, LEFT: term, RIGHT: _literal_to_json(predicate.literal)}
        case ex.SetPredicate():
            return {TYPE: name, CHILD: term, VALUES: _literals_to_json(predicate.literals)}
        case _:
            return {TYPE: name, CHILD: term}


def _predicate_to_term_json(predicate: ex.Predicate) -> Any:
    name, term = _NAMES[type(predicate)], _old_term_to_json(predicate.term)
    match predicate:
        case ex.LiteralPredicate(literal=constant):
            return {TYPE: name, TERM: term, VALUE: value_to_json(constant.value, constant.kind)}
        case ex.SetPredicate(literals=constants):
            return {TYPE: name, TERM: term, VALUES: [value_to_json(one.value, one.kind) for one in constants]}
        case _:
            return {TYPE: name, TERM: term}


def _term_to_json(term: Term) -> Any:
    match term:
        case Reference():
            return {TYPE: REFERENCE, NAME: term.name}
        case IdReference() | BoundReference():
            return {TYPE: REFERENCE, ID: term.field_id}
        case Transformed() | BoundTransform():
            name, _, _ = str(term.transform).partition("[")
            return {
                TYPE: APPLY,
                FUNCTION: {CATALOG: ICEBERG_FUNCTIONS, IDENTIFIER: [name]},
                ARGUMENTS: [*_parameters(term.transform), _term_to_json(term.reference)],
            }
        case _:
            raise InvalidExpressionError(f"{term!r} has no JSON form")


def _old_term_to_json(term: Term) -> Any:
    match term:
        case Reference() | BoundReference():
            return term.name
        case Transformed() | BoundTransform():
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


def _literal_to_json(constant: Literal) -> Any:
    value = value_to_json(constant.value, constant.kind)
    if isinstance(constant.kind, _NATURAL):
        return value
    return {TYPE: LITERAL, VALUE: value, DATA_TYPE: type_to_json(constant.kind)}


def _literals_to_json(constants: tuple[Literal, ...]) -> Any:
    field_type = constants[0].kind
    if isinstance(field_type, _NATURAL) or any(one.kind != field_type for one in constants):
        return [_literal_to_json(one) for one in constants]
    values = [value_to_json(one.value, field_type) for one in constants]
    return {TYPE: LITERALS, VALUES: values, DATA_TYPE: type_to_json(field_type)}
