"""Which of Iceberg's extension statements a text is, if any.

    statement  = ALTER TABLE name clause [;]
    clause     = ADD PARTITION FIELD term [AS name] | DROP PARTITION FIELD term
               | REPLACE PARTITION FIELD term WITH term [AS name]
               | WRITE { DISTRIBUTED BY PARTITION | [LOCALLY] ORDERED BY keys | UNORDERED }
               | (SET | DROP) IDENTIFIER FIELDS column, ...
               | (CREATE [OR REPLACE] | REPLACE) (BRANCH | TAG) [IF NOT EXISTS] name [AS OF VERSION id]
                 [RETAIN number unit] [WITH SNAPSHOT RETENTION [number SNAPSHOTS] [number unit]]
               | DROP (BRANCH | TAG) [IF EXISTS] name
    unit       = DAYS | HOURS | MINUTES

Everything else is Spark's: `parse_extension` says None, and Spark's parser says what it thinks of it.
"""

import re

from icefloe.errors import InvalidExpressionError, InvalidInputError
from icefloe.expressions import Token, TokenKind, tokenize
from icefloe.metadata import SnapshotRefType
from icefloe.partitioning import NullOrder, SortDirection
from icefloe.sql.statements import (
    AddPartitionField,
    CreateRef,
    DropIdentifierFields,
    DropPartitionField,
    DropRef,
    Parts,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteOrder,
    SortKey,
    Statement,
    WhenRefExists,
)

_COMMENT = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_OURS = re.compile(
    r"\s*alter\s+table\s.*?\s(?:(?:add|drop|replace)\s+partition\s+field\b|write\s+(?:ordered|locally|distributed|unordered)\b"
    r"|(?:set|drop)\s+identifier\s+fields\b|(?:create|replace|drop)\s+(?:branch|tag)\b)",
    re.IGNORECASE | re.DOTALL,
)
_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000}
_KINDS = {"branch": SnapshotRefType.BRANCH, "tag": SnapshotRefType.TAG}


def parse_extension(text: str) -> Statement | None:
    """The statement, or None if it is not one of Iceberg's extensions; a malformed one is an error."""
    plain = _COMMENT.sub(lambda found: found[1] or " ", text).strip().removesuffix(";")
    if _OURS.match(plain) is None:
        return None
    try:
        return _Reader(plain).statement()
    except InvalidExpressionError as error:
        raise InvalidInputError(str(error).replace("of the filter", "of the statement")) from None


class _Reader:
    """A cursor over the tokens; every method reads one rule of the grammar above."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.index = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def error(self, expected: str) -> InvalidInputError:
        return InvalidInputError(
            f"expected {expected} but found {self.token.source}, at position {self.token.position} of {self.text!r}"
        )

    def accept(self, *words: str) -> bool:
        """Whether these words come next, which are then behind the cursor."""
        following = self.tokens[self.index : self.index + len(words)]
        if len(following) == len(words) and all(
            token.is_word(word) for token, word in zip(following, words, strict=True)
        ):
            self.index += len(words)
            return True
        return False

    def accept_symbol(self, symbol: str) -> bool:
        if self.token.is_symbol(symbol):
            self.index += 1
            return True
        return False

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.error(" ".join(words).upper())

    def statement(self) -> Statement:
        self.expect("alter", "table")
        table = self.name()
        made = self.clause(table)
        if self.token.kind is not TokenKind.END:
            raise self.error("the end of the statement")
        return made

    def clause(self, table: Parts) -> Statement:
        if self.accept("add", "partition", "field"):
            return AddPartitionField(table, self.term(), self.alias())
        if self.accept("drop", "partition", "field"):
            return DropPartitionField(table, self.term())
        if self.accept("replace", "partition", "field"):
            old = self.term()
            self.expect("with")
            return ReplacePartitionField(table, old, self.term(), self.alias())
        if self.accept("write"):
            return self.write_order(table)
        if self.accept("set", "identifier", "fields"):
            return SetIdentifierFields(table, self.columns())
        if self.accept("drop", "identifier", "fields"):
            return DropIdentifierFields(table, self.columns())
        if self.accept("drop"):
            return self.drop_ref(table)
        return self.create_ref(table)

    def write_order(self, table: Parts) -> Statement:
        distributed, ordering = False, ""
        order: tuple[SortKey, ...] = ()
        while self.token.kind is not TokenKind.END:
            if not distributed and self.accept("distributed", "by", "partition"):
                distributed = True
            elif not ordering and self.accept("unordered"):
                ordering = "unordered"
            elif not ordering and self.accept("locally", "ordered", "by"):
                ordering, order = "local", self.sort_keys()
            elif not ordering and self.accept("ordered", "by"):
                ordering, order = "global", self.sort_keys()
            else:
                raise self.error("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED, each at most once")
        if not distributed and not ordering:
            raise self.error("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED")
        mode = "hash" if distributed else {"unordered": "none", "local": None, "global": "range"}[ordering]
        return SetWriteOrder(table, order, mode)

    def sort_keys(self) -> tuple[SortKey, ...]:
        wrapped = self.token.is_symbol("(") and self.accept_symbol("(")
        keys = [self.sort_key()]
        while self.accept_symbol(","):
            keys.append(self.sort_key())
        if wrapped and not self.accept_symbol(")"):
            raise self.error("',' or ')'")
        return tuple(keys)

    def sort_key(self) -> SortKey:
        term = self.term()
        descending = not self.accept("asc") and self.accept("desc")
        direction = SortDirection.DESC if descending else SortDirection.ASC
        if not self.accept("nulls"):
            return SortKey(term, direction)
        if self.accept("first"):
            return SortKey(term, direction, NullOrder.NULLS_FIRST)
        self.expect("last")
        return SortKey(term, direction, NullOrder.NULLS_LAST)

    def create_ref(self, table: Parts) -> Statement:
        if self.accept("create", "or", "replace"):
            when = WhenRefExists.CREATE_OR_REPLACE
        elif self.accept("replace"):
            when = WhenRefExists.REPLACE
        else:
            self.expect("create")
            when = WhenRefExists.FAIL
        kind = self.ref_kind()
        if when is WhenRefExists.FAIL and self.accept("if", "not", "exists"):
            when = WhenRefExists.KEEP
        name = self.identifier("the name of the branch or tag")
        snapshot_id = self.number("a snapshot id") if self.accept("as", "of", "version") else None
        kept_ms = self.duration() if self.accept("retain") else None
        count, age = (
            self.retention()
            if kind is SnapshotRefType.BRANCH and self.accept("with", "snapshot", "retention")
            else (None, None)
        )
        return CreateRef(table, kind, name, when, snapshot_id, kept_ms, count, age)

    def retention(self) -> tuple[int | None, int | None]:
        first = self.number("a number of snapshots, or an age")
        if not self.accept("snapshots"):
            return None, first * self.unit()
        return first, self.duration() if self.token.kind is TokenKind.INTEGER else None

    def drop_ref(self, table: Parts) -> Statement:
        kind = self.ref_kind()
        if_exists = self.accept("if", "exists")
        return DropRef(table, kind, self.identifier("the name of the branch or tag"), if_exists)

    def ref_kind(self) -> SnapshotRefType:
        for word, kind in _KINDS.items():
            if self.accept(word):
                return kind
        raise self.error("BRANCH or TAG")

    def duration(self) -> int:
        return self.number("a number of days, hours or minutes") * self.unit()

    def unit(self) -> int:
        for word, length in _UNITS_MS.items():
            if self.accept(word):
                return length
        raise self.error("DAYS, HOURS or MINUTES")

    def number(self, what: str) -> int:
        if self.token.kind is not TokenKind.INTEGER:
            raise self.error(what)
        value = int(self.token.content)
        self.index += 1
        return value

    def term(self) -> str:
        """A column or a transform of one, as its text."""
        start = self.token
        self.name()
        if self.accept_symbol("("):
            while not self.accept_symbol(")"):
                if self.token.kind is TokenKind.END:
                    raise self.error("')'")
                self.index += 1
        last = self.tokens[self.index - 1]
        return self.text[start.position : last.position + len(last.source)]

    def alias(self) -> str | None:
        return self.identifier("a name") if self.accept("as") else None

    def columns(self) -> tuple[str, ...]:
        found = [".".join(self.name())]
        while self.accept_symbol(","):
            found.append(".".join(self.name()))
        return tuple(found)

    def name(self) -> Parts:
        parts = [self.identifier("a name")]
        while self.accept_symbol("."):
            parts.append(self.identifier("the rest of the name"))
        return tuple(parts)

    def identifier(self, what: str) -> str:
        if self.token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise self.error(what)
        found = self.token.content
        self.index += 1
        return found
