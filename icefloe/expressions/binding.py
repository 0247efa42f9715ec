"""Binding a predicate to a schema: columns are resolved, constants converted to the columns' types.

A bound predicate has negations only in its tests, and no test that the schema already decides: `a < 3000000000` of an
int column is `a is not null`, and that is true if `a` is required. A test of a transform that preserves order is turned
into a range of the column. What cannot be compared is refused, as the expressions spec demands.
"""

from icefloe.errors import InvalidExpressionError, InvalidValueError
from icefloe.expressions import terms as te, values as ex
from icefloe.expressions.conversion import Exact, Position, compare, locate, not_null
from icefloe.expressions.extracts import typed_extract
from icefloe.expressions.normal import rewrite_not, simplify
from icefloe.expressions.preimage import unit_count, without_transform
from icefloe.expressions.terms import BoundExtract, BoundReference, BoundTerm, BoundTransform, Literal
from icefloe.expressions.walks import predicates, rewrite
from icefloe.partitioning import transforms as tr
from icefloe.schema import Schema, types

_LONGEST_SHOWN = 200


def bind(expression: ex.Expression, schema: Schema | types.StructType, case_sensitive: bool = True) -> ex.Expression:
    """The predicate over the columns of a schema or a struct, in normal form; an already bound one is bound again."""
    over = schema if isinstance(schema, Schema) else Schema(*schema.fields)
    return simplify(rewrite_not(rewrite(expression, lambda predicate: _bind(predicate, over, case_sensitive))))


def bound_references(expression: ex.Expression) -> frozenset[BoundReference]:
    """Every column that a bound predicate uses."""
    return frozenset(bound_term(predicate).reference for predicate in predicates(expression))


def bound_terms(expression: ex.Expression) -> frozenset[BoundTerm]:
    """Every term that a bound predicate tests."""
    return frozenset(bound_term(predicate) for predicate in predicates(expression))


def bind_extract(term: te.Extract, schema: Schema, case_sensitive: bool = True) -> BoundExtract:
    """What is at a path of a variant column of the schema; without a type, of type `variant`."""
    bound = _bind_term(term, schema, case_sensitive)
    assert isinstance(bound, BoundExtract), f"{term} was bound as {bound!r}"
    return bound


def bound_term(predicate: ex.Predicate) -> BoundTerm:
    """The term of a bound predicate; an error if it is not bound."""
    if isinstance(predicate.term, BoundTerm):
        return predicate.term
    raise InvalidExpressionError(f"the predicate {predicate} is not bound to a schema; bind it first")


def geo_type(predicate: ex.SpatialPredicate) -> types.GeometryType | types.GeographyType:
    """The type of the shapes that a bound spatial test is about."""
    field_type = bound_term(predicate).field_type
    assert isinstance(field_type, types.GeometryType | types.GeographyType), f"{predicate} was bound to {field_type}"
    return field_type


def bind_reference(name_or_id: str | int, schema: Schema, case_sensitive: bool = True) -> BoundReference:
    """A column of the schema, at the top or nested in structs."""
    field = schema.find_field(name_or_id, case_sensitive)
    ancestors = schema.ancestors(field.field_id)
    for around in ancestors:
        if isinstance(around.field_type, types.ListType | types.MapType):
            raise InvalidExpressionError(
                f"column {schema.names_by_id[field.field_id]!r} is inside the list or map {around.name!r}, which has many "
                "values per row; predicates are on columns with one"
            )
    path = (*reversed(ancestors), field)
    return BoundReference(
        field,
        tuple(step.field_id for step in path),
        tuple(step.name for step in path),
        [column.field_id for column in schema.fields].index(path[0].field_id),
        any(step.optional for step in path),
    )


def _bind(predicate: ex.Predicate, schema: Schema, case_sensitive: bool) -> ex.Expression:
    predicate = typed_extract(predicate)
    term = _bind_term(predicate.term, schema, case_sensitive)
    match predicate:
        case ex.IsNull():
            return ex.negation(_not_null(term))
        case ex.NotNull():
            return _not_null(term)
        case ex.IsNaN() | ex.NotNaN():
            if not isinstance(term.field_type, types.FloatType | types.DoubleType):
                raise InvalidExpressionError(
                    f"{predicate}: {term} is of type {term.field_type}; only float and double have NaN"
                )
            return ex.with_term(predicate, term)
        case ex.SpatialPredicate():
            return _bind_spatial(predicate, term)
        case ex.SetPredicate():
            _check_comparable(predicate, term)
            return _bind_set(predicate, term)
        case ex.LiteralPredicate():
            _check_comparable(predicate, term)
            return _bind_literal(predicate, predicate.literal, term)
        case _:
            raise AssertionError(f"no rule binds {predicate!r}")


def _bind_term(term: te.Term, schema: Schema, case_sensitive: bool) -> BoundTerm:
    match term:
        case te.Reference():
            return bind_reference(term.name, schema, case_sensitive)
        case te.IdReference() | BoundReference():
            return bind_reference(term.field_id, schema)
        case te.Transformed() | BoundTransform():
            column = _bind_term(term.reference, schema, case_sensitive).reference
            return _bind_transform(term.transform, column)
        case te.Extract() | BoundExtract():
            column = _bind_term(term.reference, schema, case_sensitive).reference
            if not isinstance(column.field_type, types.VariantType):
                raise InvalidExpressionError(
                    f"{term}: {column} is of type {column.field_type}; only a variant has paths"
                )
            return BoundExtract(column, term.path, term.field_type or types.VariantType())
        case _:
            raise InvalidExpressionError(f"{term!r} is not a column or a transform of one")


def _bind_transform(transform: tr.Transform, column: BoundReference) -> BoundTerm:
    if isinstance(transform, tr.VoidTransform | tr.UnknownTransform):
        raise InvalidExpressionError(f"transform {transform} of {column} cannot be used in a predicate")
    if not transform.can_transform(column.field_type):
        raise InvalidExpressionError(
            f"{transform} does not support columns of type {column.field_type}, such as {column}"
        )
    return column if isinstance(transform, tr.IdentityTransform) else BoundTransform(transform, column)


def _not_null(term: BoundTerm) -> ex.Expression:
    # Every transform gives null for null and for nothing else.
    return ex.AlwaysFalse() if isinstance(term.reference.field_type, types.UnknownType) else not_null(term.null_term)


def _check_comparable(predicate: ex.Predicate, term: BoundTerm) -> None:
    field_type = term.field_type
    if not isinstance(field_type, types.PrimitiveType) or isinstance(
        field_type, types.GeometryType | types.GeographyType | types.UnknownType
    ):
        is_geo = isinstance(field_type, types.GeometryType | types.GeographyType)
        tests = "for null and by st_intersects" if is_geo else "for null"
        raise InvalidExpressionError(f"{predicate}: {term} is of type {field_type}; it can only be tested {tests}")
    if isinstance(predicate, ex.StartsWith | ex.NotStartsWith) and not isinstance(field_type, types.StringType):
        raise InvalidExpressionError(f"{predicate}: {term} is of type {field_type}; only strings have prefixes")


def _bind_spatial(predicate: ex.SpatialPredicate, term: BoundTerm) -> ex.Expression:
    field_type = term.field_type
    if not isinstance(field_type, types.GeometryType | types.GeographyType):
        raise InvalidExpressionError(
            f"{predicate}: {term} is of type {field_type}; only geometry and geography have shapes"
        )
    try:
        predicate.box.check(field_type)
    except InvalidValueError as error:
        raise InvalidExpressionError(f"{predicate}: {error}") from None
    return ex.with_term(predicate, term)


def _bind_set(predicate: ex.SetPredicate, term: BoundTerm) -> ex.Expression:
    positions = (_locate(predicate, constant, term) for constant in predicate.literals)
    constants = [Literal(position.value, term.field_type) for position in positions if isinstance(position, Exact)]
    if isinstance(term, BoundTransform) and term.transform.preserves_order:
        equal: list[ex.LiteralPredicate] = [ex.EqualTo(term, constant) for constant in dict.fromkeys(constants)]
        matches = ex.disjunction(*(without_transform(test, term.transform, term.reference) for test in equal))
        return matches if isinstance(predicate, ex.In) else ex.negation(matches)
    return ex.is_in(term, constants) if isinstance(predicate, ex.In) else ex.not_in(term, constants)


def _bind_literal(predicate: ex.LiteralPredicate, constant: Literal, term: BoundTerm) -> ex.Expression:
    position = _locate(predicate, constant, term)
    if isinstance(term, BoundTransform) and term.transform.preserves_order:
        test = compare(type(predicate), term, position)
        if isinstance(test, ex.LiteralPredicate):
            return without_transform(test, term.transform, term.reference)
        return test
    return compare(type(predicate), term, position)


def _locate(predicate: ex.Predicate, constant: Literal, term: BoundTerm) -> Position:
    try:
        if (
            isinstance(term, BoundTransform)
            and isinstance(term.transform, tr.TimeTransform)
            and not isinstance(term.transform, tr.DayTransform)
            and isinstance(constant.field_type, types.StringType)
        ):
            constant = Literal(unit_count(term.transform, constant.value), types.LongType())
        return locate(constant, term.field_type)
    except InvalidExpressionError as error:
        raise InvalidExpressionError(f"{_shown(predicate)}: {error}") from None


def _shown(predicate: ex.Predicate) -> str:
    text = str(predicate)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
