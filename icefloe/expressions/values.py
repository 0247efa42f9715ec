"""Predicates as frozen values: which rows are wanted.

Every predicate is true or false for every row, never null (expressions spec: Boolean logic). For a row whose value is
null or NaN, `=`, `<`, `<=`, `>`, `>=`, `in`, `starts with` and `st_intersects` are false; `!=`, `not in`, `not starts with`
and `not st_intersects`, as exact negations, are true. `~p` is true exactly where `p` is false, nulls included. -0.0 equals 0.0.

SQL reads `a != 5` as unknown where `a` is null; texts are SQL, so `parser` gives `NotEqualTo(a, 5) & NotNull(a)` for
it. `str(predicate)` is such a text, and means the predicate exactly.
"""

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from icefloe.errors import InvalidExpressionError
from icefloe.expressions.terms import Literal, Term, as_term, box_text, like_pattern, literal as as_literal
from icefloe.schema import GeoBox, Value, types

MAX_DEPTH = 100
"""How deep and, or and not may be nested in each other. A chain of one of them is one level, however long."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Any predicate. Combine them with `&`, `|` and `~`."""

    def __and__(self, other: "Expression") -> "Expression":
        return conjunction(self, other)

    def __or__(self, other: "Expression") -> "Expression":
        return disjunction(self, other)

    def __invert__(self) -> "Expression":
        return negation(self)

    def __bool__(self) -> bool:
        raise InvalidExpressionError(
            f"the predicate {self} has no truth value of its own; combine predicates with &, | and ~, in parentheses"
        )


@dataclass(frozen=True, slots=True)
class AlwaysTrue(Expression):
    """Every row."""

    def __str__(self) -> str:
        return "true"


@dataclass(frozen=True, slots=True)
class AlwaysFalse(Expression):
    """No row."""

    def __str__(self) -> str:
        return "false"


@dataclass(frozen=True, slots=True, init=False)
class _Chain(Expression):
    """Several predicates that are combined in one way."""

    children: tuple[Expression, ...]
    depth: int

    def __init__(self, *_children: object) -> None:
        """Everything is done in `__new__`."""


@dataclass(frozen=True, slots=True, init=False)
class And(_Chain):
    """All of the children. Calling it folds constants and nested ands, so the result may be another kind of predicate."""

    def __new__(cls, *children: Expression) -> Any:
        return conjunction(*children)

    def __reduce__(self) -> tuple[object, ...]:
        return conjunction, self.children

    def __str__(self) -> str:
        return " and ".join(_conjunct_texts(self.children))


@dataclass(frozen=True, slots=True, init=False)
class Or(_Chain):
    """Any of the children. Calling it folds constants and nested ors, so the result may be another kind of predicate."""

    def __new__(cls, *children: Expression) -> Any:
        return disjunction(*children)

    def __reduce__(self) -> tuple[object, ...]:
        return disjunction, self.children

    def __str__(self) -> str:
        return " or ".join(map(str, self.children))


@dataclass(frozen=True, slots=True, init=False)
class Not(Expression):
    """Not the child. Calling it folds constants, double negation and exact opposites."""

    child: Expression
    depth: int

    def __new__(cls, child: Expression) -> Any:
        return negation(child)

    def __init__(self, *_arguments: object) -> None:
        """Everything is done in `__new__`."""

    def __reduce__(self) -> tuple[object, ...]:
        return negation, (self.child,)

    def __str__(self) -> str:
        return f"({self.child}) is not true"


@dataclass(frozen=True, slots=True)
class Predicate(Expression):
    """A test of one term."""

    term: Term


@dataclass(frozen=True, slots=True, init=False)
class UnaryPredicate(Predicate):
    """A test without a constant."""

    words: ClassVar[str]

    def __init__(self, term: str | Term) -> None:
        object.__setattr__(self, "term", as_term(term))

    def __str__(self) -> str:
        return f"{self.term} {self.words}"


@dataclass(frozen=True, slots=True, init=False)
class IsNull(UnaryPredicate):
    """The value is null."""

    words = "is null"


@dataclass(frozen=True, slots=True, init=False)
class NotNull(UnaryPredicate):
    """The value is not null."""

    words = "is not null"


@dataclass(frozen=True, slots=True, init=False)
class IsNaN(UnaryPredicate):
    """The value is NaN."""

    words = "is nan"


@dataclass(frozen=True, slots=True, init=False)
class NotNaN(UnaryPredicate):
    """The value is not NaN; null is not."""

    words = "is not nan"


@dataclass(frozen=True, slots=True, init=False)
class LiteralPredicate(Predicate):
    """A test against one constant."""

    literal: Literal
    symbol: ClassVar[str]

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The constant alone."""
        return (self.literal,)

    def __init__(self, term: str | Term, literal: object) -> None:
        object.__setattr__(self, "term", as_term(term))
        object.__setattr__(self, "literal", as_literal(literal))

    def __str__(self) -> str:
        return f"{self.term} {self.symbol} {self.literal}"


@dataclass(frozen=True, slots=True, init=False)
class EqualTo(LiteralPredicate):
    """The value equals the constant."""

    symbol = "="


@dataclass(frozen=True, slots=True, init=False)
class NotEqualTo(LiteralPredicate):
    """The value does not equal the constant; null and NaN do not."""

    symbol = "is distinct from"


@dataclass(frozen=True, slots=True, init=False)
class LessThan(LiteralPredicate):
    """The value is less than the constant; null and NaN are not."""

    symbol = "<"


@dataclass(frozen=True, slots=True, init=False)
class LessThanOrEqual(LiteralPredicate):
    """The value is at most the constant; null and NaN are not."""

    symbol = "<="


@dataclass(frozen=True, slots=True, init=False)
class GreaterThan(LiteralPredicate):
    """The value is greater than the constant; null and NaN are not."""

    symbol = ">"


@dataclass(frozen=True, slots=True, init=False)
class GreaterThanOrEqual(LiteralPredicate):
    """The value is at least the constant; null and NaN are not."""

    symbol = ">="


@dataclass(frozen=True, slots=True, init=False)
class PrefixPredicate(LiteralPredicate):
    """A test against the beginning of a text."""

    def __init__(self, term: str | Term, literal: object) -> None:
        LiteralPredicate.__init__(self, term, literal)
        if not isinstance(self.literal.field_type, types.StringType):
            raise InvalidExpressionError(f"{literal!r} is not a prefix to test {self.term} for; give a string")


@dataclass(frozen=True, slots=True, init=False)
class StartsWith(PrefixPredicate):
    """The text starts with the constant."""

    def __str__(self) -> str:
        return f"{self.term} like {like_pattern(self.literal)}"


@dataclass(frozen=True, slots=True, init=False)
class NotStartsWith(PrefixPredicate):
    """The text does not start with the constant; null does not."""

    def __str__(self) -> str:
        return f"({self.term} like {like_pattern(self.literal)}) is not true"


@dataclass(frozen=True, slots=True, init=False)
class SetPredicate(Predicate):
    """A test against two or more constants, without duplicates."""

    literals: tuple[Literal, ...]

    def __init__(self, *_arguments: object) -> None:
        """Everything is done in `__new__`."""

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.term, self.literals)


@dataclass(frozen=True, slots=True, init=False)
class In(SetPredicate):
    """The value equals one of the constants. With no constants it is AlwaysFalse, with one EqualTo."""

    def __new__(cls, term: str | Term, literals: Iterable[object]) -> Any:
        return is_in(term, literals)

    def __str__(self) -> str:
        return f"{self.term} in {_list_text(self)}"


@dataclass(frozen=True, slots=True, init=False)
class NotIn(SetPredicate):
    """The value equals none of the constants; null and NaN do not. With no constants it is AlwaysTrue, with one NotEqualTo."""

    def __new__(cls, term: str | Term, literals: Iterable[object]) -> Any:
        return not_in(term, literals)

    def __str__(self) -> str:
        return f"({self.term} in {_list_text(self)}) is not true"


@dataclass(frozen=True, slots=True, init=False)
class SpatialPredicate(Predicate):
    """A test of a geometry or geography against a box, as `schema.geo_intersection` defines it."""

    box: GeoBox

    def __init__(self, term: str | Term, box: GeoBox) -> None:
        object.__setattr__(self, "term", as_term(term))
        object.__setattr__(self, "box", box)


@dataclass(frozen=True, slots=True, init=False)
class Intersects(SpatialPredicate):
    """The shape meets the box."""

    def __str__(self) -> str:
        return f"st_intersects({self.term}, {box_text(self.box)})"


@dataclass(frozen=True, slots=True, init=False)
class NotIntersects(SpatialPredicate):
    """The shape does not meet the box; null does not."""

    def __str__(self) -> str:
        return f"({~self}) is not true"


OPPOSITES: dict[type[Predicate], type[Predicate]] = {
    one: other
    for pair in (
        (EqualTo, NotEqualTo),
        (In, NotIn),
        (IsNull, NotNull),
        (IsNaN, NotNaN),
        (StartsWith, NotStartsWith),
        (Intersects, NotIntersects),
    )
    for one, other in (pair, pair[::-1])
}
"""Predicates of which one is true exactly where the other is false; the inequalities have none, because of null and NaN."""

FLIPPED: dict[type[LiteralPredicate], type[LiteralPredicate]] = {
    EqualTo: EqualTo,
    NotEqualTo: NotEqualTo,
    LessThan: GreaterThan,
    LessThanOrEqual: GreaterThanOrEqual,
    GreaterThan: LessThan,
    GreaterThanOrEqual: LessThanOrEqual,
}
"""The comparison that holds when the two sides are exchanged."""


COMPARE: dict[type[LiteralPredicate], Callable[[Value, Value], bool]] = {
    EqualTo: operator.eq,
    NotEqualTo: operator.eq,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    StartsWith: str.startswith,
    NotStartsWith: str.startswith,
}
"""The comparison of an ordinary value with the constant; of a negated test, the one that it negates."""


def conjunction(*children: Expression) -> Expression:
    """All of the children: nested ands are flattened, constants folded; true if there are none."""
    return _chain(children, And, AlwaysTrue(), AlwaysFalse())


def disjunction(*children: Expression) -> Expression:
    """Any of the children: nested ors are flattened, constants folded; false if there are none."""
    return _chain(children, Or, AlwaysFalse(), AlwaysTrue())


def negation(child: Expression) -> Expression:
    """Not the child, as its exact opposite where there is one."""
    match child:
        case AlwaysTrue():
            return AlwaysFalse()
        case AlwaysFalse():
            return AlwaysTrue()
        case Not():
            return child.child
        case In() | NotIn():
            return _set_predicate(NotIn if isinstance(child, In) else In, child.term, child.literals)
        case Predicate() if opposite := OPPOSITES.get(type(child)):
            return with_term(child, child.term, opposite)
        case Expression():
            predicate = object.__new__(Not)
            object.__setattr__(predicate, "child", child)
            object.__setattr__(predicate, "depth", _checked_depth(child))
            return predicate
        case _:
            raise not_a_predicate(child)


def is_in(term: str | Term, literals: Iterable[object]) -> Expression:
    """The value equals one of the constants."""
    constants = _literals(literals)
    if len(constants) < 2:
        return EqualTo(term, constants[0]) if constants else AlwaysFalse()
    return _set_predicate(In, as_term(term), constants)


def not_in(term: str | Term, literals: Iterable[object]) -> Expression:
    """The value equals none of the constants; null and NaN do not."""
    constants = _literals(literals)
    if len(constants) < 2:
        return NotEqualTo(term, constants[0]) if constants else AlwaysTrue()
    return _set_predicate(NotIn, as_term(term), constants)


def with_term(predicate: Predicate, term: Term, other: type[Predicate] | None = None) -> Predicate:
    """The same test (or one of that other class) of another term."""
    predicate_class: Any = other or type(predicate)
    match predicate:
        case SetPredicate():
            return _set_predicate(predicate_class, term, predicate.literals)
        case SpatialPredicate():
            return predicate_class(term, predicate.box)  # type: ignore[no-any-return]  # as below
        case LiteralPredicate():
            return predicate_class(term, predicate.literal)  # type: ignore[no-any-return]  # the table above pairs like with like
        case _:
            return predicate_class(term)  # type: ignore[no-any-return]  # as above


def _literals(values: Iterable[object]) -> tuple[Literal, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidExpressionError(f"{values!r} is not a collection of constants; give a list such as [1, 2]")
    return tuple(dict.fromkeys(map(as_literal, values)))


def _set_predicate(predicate_class: type[SetPredicate], term: Term, literals: tuple[Literal, ...]) -> SetPredicate:
    predicate = object.__new__(predicate_class)
    object.__setattr__(predicate, "term", term)
    object.__setattr__(predicate, "literals", literals)
    return predicate


def _chain(
    children: tuple[Expression, ...], chain: type[And] | type[Or], neutral: Expression, final: Expression
) -> Expression:
    flat: list[Expression] = []
    for child in children:
        if not isinstance(child, Expression):
            raise not_a_predicate(child)
        if type(child) is type(final):
            return final
        if isinstance(child, And | Or) and type(child) is chain:
            flat.extend(child.children)
        elif type(child) is not type(neutral):
            flat.append(child)
    if len(flat) < 2:
        return flat[0] if flat else neutral
    predicate: And | Or = object.__new__(chain)
    object.__setattr__(predicate, "children", tuple(flat))
    object.__setattr__(predicate, "depth", _checked_depth(*flat))
    return predicate


def _checked_depth(*children: Expression) -> int:
    depth = 1 + max(child.depth if isinstance(child, And | Or | Not) else 0 for child in children)
    if depth > MAX_DEPTH:
        raise InvalidExpressionError(f"the predicate nests and, or and not more than {MAX_DEPTH} levels deep")
    return depth


def not_a_predicate(value: object) -> InvalidExpressionError:
    """The error for a value that is no predicate."""
    return InvalidExpressionError(f"{value!r} is not a predicate; give one such as EqualTo('a', 5)")


def _list_text(predicate: SetPredicate) -> str:
    return f"({', '.join(map(str, predicate.literals))})"


def _conjunct_texts(children: tuple[Expression, ...]) -> list[str]:
    """SQL's own operators leave out nulls, so a negation and the null test after it are one of them."""
    texts = []
    position = 0
    while position < len(children):
        child = children[position]
        text = _sql_negation(child, children[position + 1]) if position + 1 < len(children) else None
        texts.append(text or (f"({child})" if isinstance(child, Or) else str(child)))
        position += 1 if text is None else 2
    return texts


def _sql_negation(child: Expression, following: Expression) -> str | None:
    if not isinstance(following, NotNull):
        return None
    tested = child.child if isinstance(child, Not) else child
    if not isinstance(tested, Predicate) or tested.term != following.term:
        return None
    match child:
        case Not(child=LiteralPredicate()):
            return f"not {child.child}"
        case NotEqualTo():
            return f"{child.term} != {child.literal}"
        case NotIn():
            return f"{child.term} not in {_list_text(child)}"
        case NotIntersects():
            return f"not {~child}"
        case NotStartsWith():
            return f"{child.term} not like {like_pattern(child.literal)}"
        case _:
            return None
