"""Of which type the values are that a test extracts from variants without saying it: of that of its constants."""

from dataclasses import replace

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import values as ex
from icefloe.expressions.terms import Extract
from icefloe.schema import types
from icefloe.variant import EXTRACTED

_WHOLE: set[type[types.IcebergType]] = {types.IntegerType, types.LongType}
_NUMBERS = _WHOLE | {types.FloatType, types.DoubleType, types.DecimalType}
_EXACT_DOUBLE = 2**53
"""Up to here, double holds every whole number."""


def typed_extract(predicate: ex.Predicate) -> ex.Predicate:
    """The same test, with the type of what it extracts; a test of null has none, and is left as it is."""
    term = predicate.term
    if not isinstance(term, Extract) or term.field_type is not None:
        return predicate
    match predicate:
        case ex.IsNaN() | ex.NotNaN():
            return ex.with_term(predicate, replace(term, field_type=types.DoubleType()))
        case ex.LiteralPredicate() | ex.SetPredicate():
            return ex.with_term(predicate, replace(term, field_type=_type_of_constants(predicate)))
        case _:
            return predicate


def _type_of_constants(predicate: ex.LiteralPredicate | ex.SetPredicate) -> types.IcebergType:
    kinds = {type(constant.field_type) for constant in predicate.literals}
    if kinds <= _NUMBERS:
        is_exact = all(abs(constant.value) <= _EXACT_DOUBLE for constant in predicate.literals)
        return types.LongType() if kinds <= _WHOLE and not is_exact else types.DoubleType()
    first = predicate.literals[0].field_type
    if len(kinds) == 1 and isinstance(first, EXTRACTED):
        return first
    raise InvalidExpressionError(
        f"{predicate!s:.200}: say of which type the values are, such as doc:name::string, or the third argument of variant_get"
    )
