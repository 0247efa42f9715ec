"""The predicate of a SQL filter text: `ts >= '2026-01-01' and region in ('eu', 'us')`.

    condition  = conjunct { or conjunct } ;  conjunct = negated { and negated }
    negated    = [ not ] tested [ is [not] true | false | unknown ]
    tested     = '(' condition ')' | true | false | operand [ test ]
    test       = ( = == != <> < <= > >= <=> ) operand | [not] in ( literal, ... ) | [not] between literal and literal
               | [not] like text | is [not] null | is [not] nan | is [not] distinct from literal
               -- and starts_with(column, text), st_intersects(column, xmin, ymin, xmax, ymax [, crs])
    operand    = column | transform(column) | column:path[::type] | variant_get(column, 'path' [, 'type']) | literal ;  one side is a literal, a bare column means `column = true`
    literal    = text | [-] number | true | false | X'00ff' | DATE 'text', TIMESTAMP 'text' and so on

It follows SQL, with unknown for null: `a != 5` and `not a = 5` leave out rows where `a` is null. Write
`a is distinct from 5` or `(a = 5) is not true` to keep them. `1.5` is a decimal and `1.5e0` a double.

A comparison with null is unknown, and `not unknown` is unknown too: a `Truth` keeps apart where a condition is true and where
it is false. WHERE wants the rows of `is_true`, a CHECK constraint refuses those of `is_false` (expressions spec: Boolean logic).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from icefloe.errors import InvalidExpressionError
from icefloe.expressions import values as ex
from icefloe.expressions.extracts import typed_extract
from icefloe.expressions.operands import OperandReader
from icefloe.expressions.terms import Extract, Literal, Term, Transformed, literal
from icefloe.expressions.tokens import Token, TokenKind
from icefloe.schema import GeoBox, types

_COMPARISONS: dict[str, type[ex.LiteralPredicate]] = {
    "=": ex.EqualTo,
    "==": ex.EqualTo,
    "!=": ex.NotEqualTo,
    "<>": ex.NotEqualTo,
    "<": ex.LessThan,
    "<=": ex.LessThanOrEqual,
    ">": ex.GreaterThan,
    ">=": ex.GreaterThanOrEqual,
}
_NUMBERS = types.IntegerType | types.LongType | types.FloatType | types.DoubleType | types.DecimalType
_WILDCARD = re.compile(r"\\(.)|([%_])|([^\\%_]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Truth:
    """Where a SQL condition is true and where it is false; `~` exchanges the two."""

    is_true: ex.Expression
    is_false: ex.Expression

    def __invert__(self) -> "Truth":
        return Truth(self.is_false, self.is_true)


def all_of(conditions: Iterable[Truth]) -> Truth:
    """SQL's AND."""
    parts = list(conditions)
    return Truth(ex.conjunction(*(part.is_true for part in parts)), ex.disjunction(*(part.is_false for part in parts)))


def any_of(conditions: Iterable[Truth]) -> Truth:
    """SQL's OR."""
    parts = list(conditions)
    return Truth(ex.disjunction(*(part.is_true for part in parts)), ex.conjunction(*(part.is_false for part in parts)))


def truth(predicate: ex.Expression) -> Truth:
    """SQL's reading of a single test: unknown for null, unless it tests for null or NaN, or is a constant."""
    match predicate:
        case ex.AlwaysTrue() | ex.AlwaysFalse() | ex.IsNull() | ex.NotNull() | ex.IsNaN() | ex.NotNaN():
            return certain(predicate)
        case ex.Predicate():
            test = typed_extract(predicate)
            return Truth(_for_known(test, test), _for_known(ex.negation(test), test))
        case _:
            raise AssertionError(f"{predicate} is not a single test; combine the truths of its parts")


def certain(predicate: ex.Expression) -> Truth:
    """A condition that is never unknown: `a <=> 5`, `(...) is true`."""
    return Truth(predicate, ex.negation(predicate))


def _for_known(test: ex.Expression, predicate: ex.Predicate) -> ex.Expression:
    """The test, false for null."""
    if isinstance(test, ex.NotEqualTo | ex.NotIn | ex.NotStartsWith | ex.NotIntersects | ex.Not):
        return ex.conjunction(test, ex.NotNull(predicate.term))
    return test


def parse_expression(text: str) -> ex.Expression:
    """The predicate that is true for exactly the rows that SQL's WHERE would keep."""
    if not isinstance(text, str):
        raise InvalidExpressionError(f"{text!r} is not a filter text such as \"a > 5 and b in ('x', 'y')\"")
    parser = _Parser(text)
    condition = parser.condition()
    parser.expect_end()
    return condition.is_true


def parse_extract(text: str) -> Extract | None:
    """What is at a path of a variant column, `doc:a.b::int` or `variant_get(doc, '$.a.b', 'int')`; None if the text is no such."""
    if ":" not in text and "(" not in text:
        return None
    parser = _Parser(text)
    operand = parser.operand()
    parser.expect_end()
    return operand if isinstance(operand, Extract) else None


def as_expression(row_filter: str | ex.Expression | None) -> ex.Expression:
    """A row filter as a predicate: a SQL text is parsed, None means every row."""
    match row_filter:
        case None:
            return ex.AlwaysTrue()
        case ex.Expression():
            return row_filter
        case str():
            return parse_expression(row_filter)
        case _:
            raise InvalidExpressionError(f"{row_filter!r} is not a row filter; give a SQL text or a predicate")


class _Parser(OperandReader):
    """Every method parses one rule of the grammar above."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    def condition(self) -> Truth:
        conjuncts = [self.conjunct()]
        while self.accept_word("or"):
            conjuncts.append(self.conjunct())
        return any_of(conjuncts)

    def conjunct(self) -> Truth:
        conditions = [self.negated()]
        while self.accept_word("and"):
            conditions.append(self.negated())
        return all_of(conditions)

    def negated(self) -> Truth:
        negations = 0
        while self.accept_word("not"):
            negations += 1
        condition = self.truth_test(self.tested())
        return ~condition if negations % 2 else condition

    def truth_test(self, condition: Truth) -> Truth:
        while self.accept_word("is"):
            negated = self.accept_word("not")
            if self.accept_word("true"):
                condition = certain(condition.is_true)
            elif self.accept_word("false"):
                condition = certain(condition.is_false)
            elif self.accept_word("unknown"):
                condition = ~certain(condition.is_true | condition.is_false)
            else:
                raise self.expected("TRUE, FALSE or UNKNOWN")
            condition = ~condition if negated else condition
        return condition

    def tested(self) -> Truth:
        if self.token.is_symbol("("):
            return self.parenthesized()
        if self.token.is_word("true", "false") and not self.tokens[self.index + 1].is_symbol(*_COMPARISONS, "<=>"):
            return truth(ex.AlwaysTrue() if self.advance().is_word("true") else ex.AlwaysFalse())
        if self.token.is_word("starts_with", "startswith") and self.tokens[self.index + 1].is_symbol("("):
            return self.starts_with()
        if self.token.is_word("st_intersects") and self.tokens[self.index + 1].is_symbol("("):
            return self.st_intersects()
        start = self.token
        left = self.operand()
        if isinstance(left, Literal):
            return self.flipped(left, start)
        return self.test(left)

    def parenthesized(self) -> Truth:
        self.depth += 1
        if self.depth > ex.MAX_DEPTH:
            raise self.error(f"parentheses are nested more than {ex.MAX_DEPTH} levels deep")
        self.expect_symbol("(")
        condition = self.condition()
        self.expect_symbol(")")
        self.depth -= 1
        return condition

    # --- tests ---

    def test(self, term: Term) -> Truth:
        token = self.token
        if token.kind is TokenKind.SYMBOL and token.content in _COMPARISONS:
            self.advance()
            return truth(_COMPARISONS[token.content](term, self.literal_operand()))
        if self.accept_symbol("<=>"):
            if self.accept_word("null"):
                return truth(ex.IsNull(term))
            return certain(ex.EqualTo(term, self.literal_operand()))
        if token.is_word("is"):
            return self.is_test(term)
        negated = self.accept_word("not")
        if self.accept_word("in"):
            condition = self.in_list(term)
        elif self.accept_word("like"):
            condition = self.like(term)
        elif self.accept_word("between"):
            condition = self.between(term)
        elif negated:
            raise self.expected("IN, LIKE or BETWEEN after NOT")
        elif isinstance(term, Transformed | Extract):
            raise self.expected(f"a comparison of {term}")
        else:
            return truth(ex.EqualTo(term, literal(True)))
        return ~condition if negated else condition

    def is_test(self, term: Term) -> Truth:
        following = self.tokens[self.index + 1]
        after_not = self.tokens[self.index + 2] if following.is_word("not") else following
        if after_not.is_word("true", "false", "unknown"):
            return truth(ex.EqualTo(term, literal(True)))  # A boolean column; truth_test reads the rest.
        self.advance()
        negated = self.accept_word("not")
        if self.accept_word("null"):
            return truth(ex.NotNull(term) if negated else ex.IsNull(term))
        if self.accept_word("nan"):
            return truth(ex.NotNaN(term) if negated else ex.IsNaN(term))
        if self.accept_word("distinct"):
            self.expect_word("from")
            if self.accept_word("null"):
                return truth(ex.IsNull(term) if negated else ex.NotNull(term))
            constant = self.literal_operand()
            return certain(ex.EqualTo(term, constant) if negated else ex.NotEqualTo(term, constant))
        raise self.expected("NULL, NAN, TRUE, FALSE or DISTINCT FROM")

    def in_list(self, term: Term) -> Truth:
        self.expect_symbol("(")
        constants = [self.literal_operand()]
        while self.accept_symbol(","):
            constants.append(self.literal_operand())
        self.expect_symbol(")")
        return truth(ex.is_in(term, constants))

    def between(self, term: Term) -> Truth:
        low = self.literal_operand()
        self.expect_word("and")
        high = self.literal_operand()
        return all_of((truth(ex.GreaterThanOrEqual(term, low)), truth(ex.LessThanOrEqual(term, high))))

    def like(self, term: Term) -> Truth:
        token = self.advance()
        if token.kind is not TokenKind.TEXT:
            raise self.expected("a pattern such as 'abc%'", token)
        prefix, is_open = self.prefix(token)
        return truth(ex.StartsWith(term, prefix) if is_open else ex.EqualTo(term, prefix))

    def starts_with(self) -> Truth:
        self.advance()
        self.expect_symbol("(")
        term = self.operand()
        self.expect_symbol(",")
        prefix = self.advance()
        self.expect_symbol(")")
        if not isinstance(term, Term) or prefix.kind is not TokenKind.TEXT:
            raise self.error("STARTS_WITH takes a column and a string", prefix)
        return truth(ex.StartsWith(term, prefix.content))

    def st_intersects(self) -> Truth:
        name = self.advance()
        self.expect_symbol("(")
        term = self.operand()
        constants = []
        while self.accept_symbol(","):
            constants.append(self.literal_operand())
        self.expect_symbol(")")
        return truth(self.guarded(name, _spatial_test, term, constants))

    def prefix(self, token: Token) -> tuple[str, bool]:
        """The fixed text that a pattern begins with, and whether anything may follow."""
        prefix, position = "", 0
        while position < len(token.content):
            piece = _WILDCARD.match(token.content, position)
            if piece is None:
                raise self.error(f"the pattern {token.source} ends in a lone backslash", token)
            position = piece.end()
            if piece[2]:
                if piece[2] == "%" and position == len(token.content):
                    return prefix, True
                raise self.error(
                    f"the pattern {token.source} has the wildcard {piece[2]}; only a % at the end can be used, and "
                    f"\\{piece[2]} for the character itself",
                    token,
                )
            prefix += piece[1] or piece[3]
        return prefix, False

    def flipped(self, left: Literal, start: Token) -> Truth:
        token = self.advance()
        if token.kind is TokenKind.SYMBOL and (token.content in _COMPARISONS or token.content == "<=>"):
            right = self.operand()
            if isinstance(right, Literal):
                raise self.error("both sides of the comparison are constants; one must be a column", start)
            assert isinstance(right, Term)
            if token.content == "<=>":
                return certain(ex.EqualTo(right, left))
            return truth(ex.FLIPPED[_COMPARISONS[token.content]](right, left))
        raise self.expected(f"a comparison of {start.source} with a column", token)


def _spatial_test(term: Term | Literal, constants: list[Literal]) -> ex.Intersects:
    sides = [float(constant.value) for constant in constants[:4] if isinstance(constant.field_type, _NUMBERS)]
    names = [constant.value for constant in constants[4:] if isinstance(constant.field_type, types.StringType)]
    if not isinstance(term, Term) or len(sides) < 4 or len(names) != len(constants) - 4 or len(names) > 1:
        raise InvalidExpressionError(
            "ST_INTERSECTS takes a column, four numbers and perhaps a CRS: st_intersects(g, xmin, ymin, xmax, ymax, 'OGC:CRS84')"
        )
    xmin, ymin, xmax, ymax = sides
    return ex.Intersects(term, GeoBox(xmin, ymin, xmax, ymax, crs=names[0] if names else None))
