"""The operands of a filter text: columns, transforms of columns, and constants like `-34`, `1.5`, `1.5e0`, `X'00ff'`, `DATE '2024-01-31'`."""

import math
from collections.abc import Callable
from decimal import Decimal, DecimalException
from typing import TypeVar

from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.expressions.terms import (
    RESERVED_WORDS,
    Extract,
    IdReference,
    Literal,
    Reference,
    Term,
    Transformed,
    literal,
)
from icefloe.expressions.tokens import Cursor, Token, TokenKind
from icefloe.partitioning import transforms as tr
from icefloe.schema import coerce, parse_text, temporal, types
from icefloe.variant import EXTRACTED, parse_path

_TRANSFORMS: dict[str, tr.Transform] = {
    "years": tr.YearTransform(),
    "months": tr.MonthTransform(),
    "days": tr.DayTransform(),
    "hours": tr.HourTransform(),
    "identity": tr.IdentityTransform(),
}
_WITH_NUMBER: dict[str, Callable[[int], tr.Transform]] = {
    "bucket": tr.BucketTransform,
    "truncate": tr.TruncateTransform,
}
_TIMESTAMPS = types.TimestampType | types.TimestamptzType | types.TimestampNanoType | types.TimestamptzNanoType
_TYPES: dict[str, types.IcebergType] = {
    str(field_type): field_type
    for field_type in (
        types.DateType(),
        types.TimeType(),
        types.TimestampType(),
        types.TimestamptzType(),
        types.TimestampNanoType(),
        types.TimestamptzNanoType(),
        types.UUIDType(),
        types.FloatType(),
        types.DoubleType(),
    )
}
_EXTRACTS = ("variant_get", "try_variant_get")
_TYPE_NAMES = {
    "bigint": "long",
    "integer": "int",
    "smallint": "int",
    "tinyint": "int",
    "bool": "boolean",
    "text": "string",
}
"""Names of types in SQL that the format has other names for."""
_MOST_DIGITS = 100
_NANOS_PER_MICRO = 1000
_SQL_FUNCTIONS = ("year", "month", "day", "hour")

Operand = TypeVar("Operand")


class OperandReader(Cursor):
    """The rules for operands."""

    def accept_word(self, *words: str) -> bool:
        if self.token.is_word(*words):
            self.index += 1
            return True
        return False

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            raise self.expected(word.upper())

    def expect_end(self) -> None:
        if self.token.kind is not TokenKind.END:
            raise self.expected("AND, OR or the end")

    def literal_operand(self) -> Literal:
        start = self.token
        if start.is_word("null", "nan") and not self.tokens[self.index + 1].is_symbol("."):
            raise self.error(f"{start.source} is not a constant; test with IS {start.source.upper()}")
        operand = self.operand()
        if isinstance(operand, Term):
            raise self.error(
                f"expected a constant but found the column {operand}; columns cannot be compared with each other", start
            )
        return operand

    def operand(self) -> Term | Literal:
        token = self.token
        following = self.tokens[self.index + 1] if token.kind is not TokenKind.END else token
        match token.kind:
            case TokenKind.TEXT | TokenKind.BINARY | TokenKind.INTEGER | TokenKind.DECIMAL | TokenKind.FLOAT:
                return self.constant()
            case TokenKind.SYMBOL if token.content in "+-":
                return self.constant()
            case TokenKind.WORD if token.is_word("true", "false"):
                return literal(self.advance().is_word("true"))
            case TokenKind.WORD if following.kind is TokenKind.TEXT:
                return self.guarded(token, _typed_literal, self.advance().content, self.advance().content)
            case TokenKind.WORD if following.is_symbol("("):
                return self.call()
            case TokenKind.NAME | TokenKind.WORD if not token.is_word(*RESERVED_WORDS):
                return self.extracted(self.column())
            case _:
                raise self.expected("a column or a constant")

    def constant(self) -> Literal:
        start = self.token
        sign = self.advance().content if start.kind is TokenKind.SYMBOL else ""
        token = self.advance()
        match token.kind:
            case TokenKind.TEXT if not sign:
                return self.guarded(start, literal, token.content)
            case TokenKind.BINARY if not sign:
                return self.guarded(start, _binary_literal, token.content)
            case TokenKind.INTEGER:
                return self.guarded(start, _integer_literal, sign + token.content)
            case TokenKind.DECIMAL:
                return self.guarded(start, _decimal_literal, sign + token.content)
            case TokenKind.FLOAT:
                return self.guarded(start, _float_literal, sign + token.content)
            case _:
                raise self.expected(f"a number after {sign}", token)

    def guarded(self, start: Token, make: Callable[..., Operand], *arguments: object) -> Operand:
        """The constant or term for a piece of the text; errors name its position."""
        try:
            return make(*arguments)
        except InvalidInputError as error:
            raise self.error(str(error), start) from None

    def call(self) -> Term:
        name = self.advance()
        word = name.content.lower()
        self.expect_symbol("(")
        if word == "field_id":
            number = self.advance()
            self.expect_symbol(")")
            return self.guarded(number, _id_reference, number)
        if word in _EXTRACTS:
            return self.variant_get()
        if word in _WITH_NUMBER:
            return self.call_with_number(name, _WITH_NUMBER[word])
        if word not in _TRANSFORMS:
            raise self.error(_unknown_function(name.source), name)
        reference = self.argument()
        self.expect_symbol(")")
        return Transformed(_TRANSFORMS[word], reference)

    def call_with_number(self, name: Token, make: Callable[[int], tr.Transform]) -> Term:
        number = self.advance() if self.token.kind is TokenKind.INTEGER else None
        if number is not None:
            self.expect_symbol(",")
        reference = self.argument()
        if number is None:
            self.expect_symbol(",")
            number = self.advance()
        self.expect_symbol(")")
        if number.kind is not TokenKind.INTEGER:
            raise self.error(f"{name.source} takes a whole number and a column, not {number.source}", number)
        return Transformed(self.guarded(name, make, self.guarded(number, _whole_number, number.content)), reference)

    def extracted(self, column: Reference) -> Term:
        """The column itself, or what is at a path of it: `doc:a.b`, `doc:a['b c']::int`."""
        if not self.accept_symbol(":"):
            return column
        names: list[str] = []
        while not names or self.token.is_symbol(".", "["):
            if self.accept_symbol("["):
                quoted = self.advance()
                if quoted.kind is not TokenKind.TEXT:
                    raise self.expected("the name of a field in quotes; elements of arrays cannot be named", quoted)
                names.append(quoted.content)
                self.expect_symbol("]")
                continue
            if names:
                self.expect_symbol(".")
            part = self.advance()
            if part.kind not in (TokenKind.WORD, TokenKind.NAME):
                raise self.expected("the name of a field", part)
            names.append(part.content)
        return Extract(column, tuple(names), self.cast_type() if self.accept_symbol("::") else None)

    def cast_type(self) -> types.IcebergType:
        """The type behind `::`."""
        start = self.advance()
        text = start.source
        if self.accept_symbol("("):
            text += "("
            while not self.token.is_symbol(")") and self.token.kind is not TokenKind.END:
                text += self.advance().source
            self.expect_symbol(")")
            text += ")"
        return self.guarded(start, _extracted_type, text)

    def variant_get(self) -> Term:
        """`variant_get(doc, '$.a', 'int')`, behind the parenthesis."""
        column = self.argument()
        self.expect_symbol(",")
        path = self.advance()
        if path.kind is not TokenKind.TEXT:
            raise self.expected("a path such as '$.a.b'", path)
        field_type = None
        if self.accept_symbol(","):
            name = self.advance()
            if name.kind is not TokenKind.TEXT:
                raise self.expected("the name of a type, such as 'int'", name)
            field_type = self.guarded(name, _extracted_type, name.content)
        self.expect_symbol(")")
        return self.guarded(path, Extract, column, self.guarded(path, parse_path, path.content), field_type)

    def argument(self) -> Reference | IdReference:
        start = self.token
        operand = self.operand()
        if not isinstance(operand, Reference | IdReference):
            raise self.expected("a column", start)
        return operand

    def column(self) -> Reference:
        names = [self.advance().content]
        while self.accept_symbol("."):
            part = self.advance()
            if part.kind not in (TokenKind.WORD, TokenKind.NAME):
                raise self.expected("the name of a nested column", part)
            names.append(part.content)
        return Reference(".".join(names))


def _id_reference(number: Token) -> IdReference:
    if number.kind is not TokenKind.INTEGER:
        raise InvalidExpressionError(f"{number.source} is not a field id; give a whole number")
    return IdReference(_whole_number(number.content))


def _extracted_type(name: str) -> types.IcebergType:
    field_type = types.parse_type(_TYPE_NAMES.get(name.strip().lower(), name.strip().lower()))
    if not isinstance(field_type, (types.FloatType, *EXTRACTED)):
        raise InvalidExpressionError(f"a variant has no values of type {field_type}")
    return field_type


def _unknown_function(name: str) -> str:
    if name.lower() in _SQL_FUNCTIONS:
        return (
            f"{name}(...) is SQL's part of a date, which predicates do not have; write a range, or {name.lower()}s(...) "
            f"for the count of {name.lower()}s since 1970 that partitions have"
        )
    return f"the function {name} is not known; known are {', '.join((*_TRANSFORMS, *_WITH_NUMBER, *_EXTRACTS))} and starts_with"


def _integer_literal(digits: str) -> Literal:
    """A whole number: a long, or a decimal when it is too large for one."""
    return literal(_whole_number(digits))


def _whole_number(digits: str) -> int:
    """A whole number of any sane length; Python itself refuses thousands of digits."""
    if len(digits) > _MOST_DIGITS:
        raise InvalidExpressionError(f"a number of {len(digits)} digits is larger than any type holds")
    return int(digits)


def _decimal_literal(text: str) -> Literal:
    """A decimal with exactly the digits written."""
    try:
        return literal(Decimal(text))
    except DecimalException:
        raise InvalidExpressionError(f"{text!r} is not a decimal number; write it like 14.20") from None


def _float_literal(text: str) -> Literal:
    """A double."""
    number = float(text)
    if math.isinf(number):
        raise InvalidExpressionError(f"{text} is beyond the largest double; write DOUBLE 'Infinity' if that is meant")
    return literal(number)


def _binary_literal(digits: str) -> Literal:
    """Bytes from pairs of hexadecimal digits."""
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data = None
    if data is None or 2 * len(data) != len(digits):
        raise InvalidExpressionError(f"X'{digits}' is not pairs of hexadecimal digits; write it like X'00ff'")
    return literal(data)


def _typed_literal(type_name: str, text: str) -> Literal:
    """A constant with an explicit type. A timestamp with an offset is zoned; TIMESTAMPTZ without one is UTC."""
    name = type_name.lower()
    if name == "decimal":
        return _decimal_literal(text)
    field_type = _TYPES.get(name)
    if field_type is None:
        known = ", ".join(("DECIMAL", *(name.upper() for name in _TYPES)))
        raise InvalidExpressionError(f"{type_name} is not a type of constants; those are {known}")
    if isinstance(field_type, _TIMESTAMPS):
        return _timestamp_literal(text, field_type)
    return Literal(parse_text(text, field_type), field_type)


def _timestamp_literal(text: str, field_type: types.IcebergType) -> Literal:
    nanos, offset = temporal.parse_timestamp(text)
    nanos -= (offset or 0) * temporal.NANOS_PER_SECOND
    is_zoned = offset is not None or isinstance(field_type, types.TimestamptzType | types.TimestamptzNanoType)
    if isinstance(field_type, types.TimestampNanoType | types.TimestamptzNanoType) or nanos % _NANOS_PER_MICRO:
        fine = types.TimestamptzNanoType() if is_zoned else types.TimestampNanoType()
        return Literal(coerce(nanos, fine), fine)
    coarse = types.TimestamptzType() if is_zoned else types.TimestampType()
    return Literal(coerce(nanos // _NANOS_PER_MICRO, coarse), coarse)
