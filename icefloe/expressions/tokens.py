"""The tokens of a filter text."""

import re
from dataclasses import dataclass
from enum import Enum

from icefloe.errors import InvalidExpressionError


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    NAME = "quoted name"
    TEXT = "text"
    BINARY = "bytes"
    INTEGER = "whole number"
    DECIMAL = "decimal number"
    FLOAT = "floating-point number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: `content` without quotes, `source` as it is written."""

    kind: TokenKind
    content: str
    position: int
    source: str

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, in any case."""
        return self.kind is TokenKind.WORD and self.content.lower() in words

    def is_symbol(self, *symbols: str) -> bool:
        """Whether it is one of these symbols."""
        return self.kind is TokenKind.SYMBOL and self.content in symbols


_PATTERN = re.compile(
    r"""
    (?P<space>\s+)
  | [xX]'(?P<binary>[^']*)'
  | '(?P<text>(?:[^']|'')*)'
  | "(?P<double>(?:[^"]|"")+)"
  | `(?P<back>(?:[^`]|``)+)`
  | (?P<float>(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+)
  | (?P<decimal>[0-9]+\.[0-9]*|\.[0-9]+)
  | (?P<integer>[0-9]+)
  | (?P<word>[^\W\d]\w*)
  | (?P<symbol><=>|<=|>=|<>|!=|==|::|[<>=(),.+\-\[\]:])
    """,
    re.VERBOSE,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of the text, with an end token."""
    tokens = []
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise problem_at(text, position, _stray(text[position]))
        token = _token(match)
        if token is not None:
            if token.kind in _NUMBERS and _WORD_START.match(text, match.end()):
                raise problem_at(text, match.end(), f"the number {match[0]} runs into a name")
            tokens.append(token)
        position = match.end()
    tokens.append(Token(TokenKind.END, "", len(text), "the end"))
    return tokens


def problem_at(text: str, position: int, problem: str) -> InvalidExpressionError:
    """An error with the problem, its position and the surrounding text."""
    start, end = max(0, position - 30), position + 30
    near = ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")
    return InvalidExpressionError(f"{problem}, at position {position} of the filter {near!r}")


_NUMBERS = (TokenKind.INTEGER, TokenKind.DECIMAL, TokenKind.FLOAT)
_WORD_START = re.compile(r"[^\W\d]")


def _token(match: re.Match[str]) -> Token | None:
    start, source = match.start(), match[0]
    match match.lastgroup:
        case "space":
            return None
        case "text":
            return Token(TokenKind.TEXT, match["text"].replace("''", "'"), start, source)
        case "double":
            return Token(TokenKind.NAME, match["double"].replace('""', '"'), start, source)
        case "back":
            return Token(TokenKind.NAME, match["back"].replace("``", "`"), start, source)
        case str(group):
            return Token(TokenKind[group.upper()], match[group], start, source)
        case _:
            raise AssertionError(f"{source!r} matched no group")


def _stray(character: str) -> str:
    if character == "'":
        return "a string is not closed; end it with '"
    if character in '"`':
        return f"a quoted name is empty or not closed; end it with {character}"
    return f"{character!r} has no meaning here"


class Cursor:
    """A position among the tokens of a text; readers of a grammar add its rules."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def error(self, problem: str, token: Token | None = None) -> InvalidExpressionError:
        return problem_at(self.text, (token or self.token).position, problem)

    def expected(self, what: str, token: Token | None = None) -> InvalidExpressionError:
        return self.error(f"expected {what} but found {(token or self.token).source}", token)

    def advance(self) -> Token:
        token = self.token
        if token.kind is not TokenKind.END:
            self.index += 1
        return token

    def accept_symbol(self, *symbols: str) -> bool:
        if self.token.is_symbol(*symbols):
            self.index += 1
            return True
        return False

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            raise self.expected(repr(symbol))
