"""Schemas as one line of text: `id long not null, tags list<string>, price decimal(9,2) default 1.5 comment 'net'`.

Each column is a name, a type, and any of `not null`, `default <literal>` and `comment '<text>'`; a colon may stand
between name and type. The same holds for the fields of `struct<...>`; the element of `list<...>` and the value of
`map<..., ...>` may be `not null`. Names that are not plain words are written in backquotes.

Types have Iceberg's names, so `timestamp` has no time zone and `timestamptz` has one. Spark's spellings are read too where
they mean one thing only: `bigint`, `integer`, `array<...>`, `timestamp_ntz`, `timestamp_ltz` and others. Spark's
`timestamp`, which has a zone, is written `timestamptz` or `timestamp_ltz` here.

Field ids are given anew on reading. A `default` is the write default; an initial default belongs to columns that are
added to existing rows, and has no place in a definition.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NoReturn

from icefloe.errors import InvalidInputError, InvalidSchemaError, InvalidTypeError
from icefloe.schema import types
from icefloe.schema.ids import assign_fresh_ids
from icefloe.schema.rules import check_defaults
from icefloe.schema.schema import Schema
from icefloe.schema.values import parse_text

_ALIASES = {
    "bool": "boolean",
    "byte": "int",
    "tinyint": "int",
    "short": "int",
    "smallint": "int",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": "timestamptz",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "void": "unknown",
}
_DECIMAL_NAMES = ("decimal", "dec", "numeric")
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<text>[xX]?'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]))
    |(?P<word>\w+)
    |(?P<mark>[<>()\[\]{},:])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def parse_ddl(text: str) -> Schema:
    """The schema that a text defines; errors name the offending character."""
    if not isinstance(text, str):
        raise InvalidSchemaError(f"a schema definition is a string like 'id long, name string', not {text!r:.100}")
    try:
        return _Parser(text).schema()
    except RecursionError:
        raise InvalidSchemaError("the schema definition is nested too deeply to be read") from None


def parse_type(text: str) -> types.IcebergType:
    """The type that a text defines, such as `decimal(9, 2)` or `list<string>`; errors name the offending character."""
    try:
        return _Parser(text).whole_type()
    except RecursionError:
        raise InvalidSchemaError("the type is nested too deeply to be read") from None


class _Parser:
    """A recursive descent parser over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self.scan())
        self.index = 0
        self.next_id: Callable[[], int] = count(1).__next__

    def scan(self) -> Iterator[_Token]:
        position = 0
        while position < len(self.text):
            match = _TOKEN.match(self.text, position)
            if match is None:
                self.fail_at(position, "this begins nothing that a definition may hold")
            if match.lastgroup != "space":
                yield _Token(str(match.lastgroup), match[0], position, match.end())
            position = match.end()
        yield _Token("end", "", position, position)

    def schema(self) -> Schema:
        fields = self.fields() if self.token.kind != "end" else []
        if self.token.kind != "end":
            self.fail("a comma or the end of the definition should follow here")
        return assign_fresh_ids(Schema(*fields))

    def whole_type(self) -> types.IcebergType:
        field_type = self.read_type()
        if self.token.kind != "end":
            self.fail("the end of the type should follow here")
        return field_type

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def fields(self) -> list[types.NestedField]:
        fields = [self.field()]
        while self.accept(","):
            fields.append(self.field())
        return fields

    def field(self) -> types.NestedField:
        name = self.name()
        self.accept(":")
        field_id = self.next_id()
        field_type = self.read_type()
        required, default, doc = False, None, None
        seen: set[str] = set()
        while (clause := self.clause()) is not None:
            if clause in seen:
                self.fail(f"{clause} is said twice of column {name!r}")
            seen.add(clause)
            match clause:
                case "not null":
                    required = True
                case "default":
                    default = self.default(field_type, name)
                case _:
                    doc = self.string()
        field = types.NestedField(field_id, name, field_type, required, doc, None, default)
        check_defaults(field, name)
        return field

    def name(self) -> str:
        token = self.token
        if token.kind == "quoted" and len(token.text) > 2:
            self.index += 1
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word":
            self.fail("a column name should be here; names that are not plain words go in backquotes")
        self.index += 1
        return token.text

    def clause(self) -> str | None:
        """The next `not null`, `default` or `comment`, if any; a bare `null` is ignored."""
        while self.accept("null"):
            pass
        if self.accept("not"):
            if not self.accept("null"):
                self.fail("`null` should follow `not`")
            return "not null"
        return next((word for word in ("default", "comment") if self.accept(word)), None)

    def read_type(self) -> types.IcebergType:
        start = self.token
        if start.kind != "word":
            self.fail("a type should be here")
        self.index += 1
        word = start.text.lower()
        match word:
            case "struct":
                return self.struct()
            case "list" | "array":
                self.expect("<")
                element_id = self.next_id()
                element, required = self.element()
                self.expect(">")
                return types.ListType(element_id, element, required)
            case "map":
                self.expect("<")
                key_id, value_id = self.next_id(), self.next_id()
                key, _ = self.element()
                self.expect(",")
                value, required = self.element()
                self.expect(">")
                return types.MapType(key_id, key, value_id, value, required)
            case _:
                return self.plain_type(start, word)

    def struct(self) -> types.StructType:
        self.expect("<")
        if self.accept(">"):
            return types.StructType()
        fields = self.fields()
        self.expect(">")
        return types.StructType(*fields)

    def element(self) -> tuple[types.IcebergType, bool]:
        field_type = self.read_type()
        start = self.token.start
        clause = self.clause()
        if clause not in (None, "not null"):
            self.fail_at(start, f"an element, key or value has no {clause}")
        return field_type, clause is not None

    def plain_type(self, start: _Token, word: str) -> types.IcebergType:
        arguments = self.arguments()
        try:
            if word in _DECIMAL_NAMES:
                # As in Spark, a decimal without parameters has ten digits, and one without a scale has none after the point.
                digits = arguments or ["10"]
                return types.parse_type(f"decimal({','.join(digits if len(digits) > 1 else [*digits, '0'])})")
            if word == "fixed" and arguments and len(arguments) == 1:
                return types.parse_type(f"fixed[{arguments[0]}]")
            if word in ("varchar", "char"):
                arguments = None
            name = _ALIASES.get(word, word)
            return types.parse_type(name if arguments is None else f"{name}({', '.join(arguments)})")
        except InvalidTypeError as problem:
            self.fail_at(start.start, str(problem), InvalidTypeError)

    def arguments(self) -> list[str] | None:
        """The arguments in parentheses or brackets after a type name, split at commas."""
        closing = ")" if self.accept("(") else "]" if self.accept("[") else None
        if closing is None:
            return None
        start = self.token.start
        while self.token.text != closing:
            if self.token.kind == "end":
                self.fail(f"{closing!r} is missing")
            self.index += 1
        end = self.token.start
        self.index += 1
        return [part.strip() for part in self.text[start:end].split(",")]

    def default(self, field_type: types.IcebergType, name: str) -> types.Value:
        token = self.token
        if self.accept("null"):
            return None
        if self.accept("{"):
            self.expect("}")
            if not isinstance(field_type, types.StructType):
                self.fail_at(
                    token.start, f"column {name!r} of type {field_type} is not a struct, so {{}} cannot be its default"
                )
            return ()
        if token.kind == "word" and self.tokens[self.index + 1].kind == "text":
            self.index += 1  # `date '2026-01-01'`: the column's own type says what the text is
        if self.token.kind == "text":
            if self.token.text[0] in "xX" and not isinstance(field_type, types.FixedType | types.BinaryType):
                self.fail(f"X'...' is bytes, and column {name!r} is of type {field_type}")
            value = self.string()
        elif token.kind == "number" or (
            token.kind == "word" and isinstance(field_type, types.BooleanType | types.FloatType | types.DoubleType)
        ):
            value = token.text
            self.index += 1
        else:
            self.fail("a default value should be here: a number, true, false, null, {} or a quoted string")
        try:
            return parse_text(value, field_type)
        except InvalidInputError as problem:
            self.fail_at(token.start, f"the default of column {name!r}: {problem}")

    def string(self) -> str:
        token = self.token
        if token.kind != "text":
            self.fail("a quoted string should be here")
        self.index += 1
        body = token.text[1:] if token.text[0] in "xX" else token.text
        return body[1:-1].replace(body[0] * 2, body[0])

    def accept(self, text: str) -> bool:
        if self.token.kind in ("word", "mark") and self.token.text.lower() == text:
            self.index += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"{text!r} should be here")

    def fail(self, problem: str) -> NoReturn:
        self.fail_at(self.token.start, problem)

    def fail_at(self, position: int, problem: str, error: type[InvalidInputError] = InvalidSchemaError) -> NoReturn:
        where = f"before {self.text[position : position + 20]!r}" if position < len(self.text) else "at the end"
        raise error(f"schema definition, character {position + 1}, {where}: {problem}")
