"""Which of Iceberg's extension statements a text is, if any, and how an error says which statement it is about.

    statement  = ALTER TABLE name clause [;]
    clause     = ADD PARTITION FIELD term [AS name] | DROP PARTITION FIELD term
               | REPLACE PARTITION FIELD term WITH term [AS name]
               | WRITE { DISTRIBUTED BY PARTITION | [LOCALLY] ORDERED BY keys | UNORDERED }
               | (SET | DROP) IDENTIFIER FIELDS column, ...
               | (CREATE [OR REPLACE] | REPLACE) (BRANCH | TAG) [IF NOT EXISTS] name [AS OF VERSION id]
                 [RETAIN number unit] [WITH SNAPSHOT RETENTION [number SNAPSHOTS] [number unit]]
               | DROP (BRANCH | TAG) [IF EXISTS] name
    unit       = DAYS | HOURS | MINUTES

Everything else is Spark's: `parse_extension` returns None, and Spark's parser decides.
"""

import re

from icefloe import errors, expressions as ex, metadata as md, partitioning as pt
from icefloe.sql import statements as st

_COMMENT = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_OURS = re.compile(
    r"\s*alter\s+table\s.*?\s(?:(?:add|drop|replace)\s+partition\s+field\b|write\s+(?:ordered|locally|distributed|unordered)\b"
    r"|(?:set|drop)\s+identifier\s+fields\b|(?:create|replace|drop)\s+(?:branch|tag)\b)",
    re.IGNORECASE | re.DOTALL,
)
_KEYWORDS = (
    "create or replace alter drop insert into overwrite delete update merge truncate describe show call use table view"
    " global temporary temp namespace from if not exists tblproperties partitions columns in extended"
).replace(" ", "|") + r"|with\s+schema\s+evolution"
_NAME = r"(?:`[^`]*`|[\w.])+"
_HEAD = re.compile(rf"\s*((?:(?:{_KEYWORDS})\s+)+{_NAME})", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:\s+[A-Za-z]+\b){1,3}")
_QUERIES = ("select", "with", "from", "values", "table", "explain")
_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000}
_REF_TYPES = {"branch": md.SnapshotRefType.BRANCH, "tag": md.SnapshotRefType.TAG}


def parse_extension(text: str) -> st.Statement | None:
    """The statement, or None if it is not one of Iceberg's extensions; a malformed one is an error."""
    plain = _COMMENT.sub(lambda match: match[1] or " ", text).strip().removesuffix(";")
    if _OURS.match(plain) is None:
        return None
    try:
        return _Reader(plain).statement()
    except errors.InvalidExpressionError as error:
        raise errors.InvalidInputError(str(error).replace("of the filter", "of the statement")) from None


class _Reader(ex.Cursor):
    """Every method reads one rule of the grammar above."""

    def accept(self, *words: str) -> bool:
        """Whether these words come next, which are then behind the cursor."""
        following = self.tokens[self.index : self.index + len(words)]
        if len(following) < len(words) or not all(map(ex.Token.is_word, following, words)):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.expected(" ".join(words).upper())

    def statement(self) -> st.Statement:
        self.expect("alter", "table")
        table = self.name()
        statement = self.clause(table)
        if self.token.kind is not ex.TokenKind.END:
            raise self.expected("the end of the statement")
        return statement

    def clause(self, table: st.Parts) -> st.Statement:
        if self.accept("add", "partition", "field"):
            return st.AddPartitionField(table, self.term(), self.alias())
        if self.accept("drop", "partition", "field"):
            return st.DropPartitionField(table, self.term())
        if self.accept("replace", "partition", "field"):
            old = self.term()
            self.expect("with")
            return st.ReplacePartitionField(table, old, self.term(), self.alias())
        if self.accept("write"):
            return self.write_order(table)
        if self.accept("set", "identifier", "fields"):
            return st.SetIdentifierFields(table, self.columns())
        if self.accept("drop", "identifier", "fields"):
            return st.DropIdentifierFields(table, self.columns())
        if self.accept("drop"):
            return self.drop_ref(table)
        return self.create_ref(table)

    def write_order(self, table: st.Parts) -> st.Statement:
        distributed, ordering = False, ""
        order: tuple[st.SortKey, ...] = ()
        while self.token.kind is not ex.TokenKind.END:
            if not distributed and self.accept("distributed", "by", "partition"):
                distributed = True
            elif not ordering and self.accept("unordered"):
                ordering = "unordered"
            elif not ordering and self.accept("locally", "ordered", "by"):
                ordering, order = "local", self.sort_keys()
            elif not ordering and self.accept("ordered", "by"):
                ordering, order = "global", self.sort_keys()
            else:
                raise self.expected("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED, each at most once")
        if not distributed and not ordering:
            raise self.expected("DISTRIBUTED BY PARTITION, [LOCALLY] ORDERED BY or UNORDERED")
        mode = "hash" if distributed else {"unordered": "none", "local": None, "global": "range"}[ordering]
        return st.SetWriteOrder(table, order, mode)

    def sort_keys(self) -> tuple[st.SortKey, ...]:
        wrapped = self.accept_symbol("(")
        keys = [self.sort_key()]
        while self.accept_symbol(","):
            keys.append(self.sort_key())
        if wrapped and not self.accept_symbol(")"):
            raise self.expected("',' or ')'")
        return tuple(keys)

    def sort_key(self) -> st.SortKey:
        term = self.term()
        descending = not self.accept("asc") and self.accept("desc")
        direction = pt.SortDirection.DESC if descending else pt.SortDirection.ASC
        if not self.accept("nulls"):
            return st.SortKey(term, direction)
        if self.accept("first"):
            return st.SortKey(term, direction, pt.NullOrder.NULLS_FIRST)
        self.expect("last")
        return st.SortKey(term, direction, pt.NullOrder.NULLS_LAST)

    def create_ref(self, table: st.Parts) -> st.Statement:
        if self.accept("create", "or", "replace"):
            when = st.WhenRefExists.CREATE_OR_REPLACE
        elif self.accept("replace"):
            when = st.WhenRefExists.REPLACE
        else:
            self.expect("create")
            when = st.WhenRefExists.FAIL
        ref_type = self.ref_type()
        if when is st.WhenRefExists.FAIL and self.accept("if", "not", "exists"):
            when = st.WhenRefExists.KEEP
        name = self.identifier("the name of the branch or tag")
        snapshot_id = self.number("a snapshot id") if self.accept("as", "of", "version") else None
        max_age = self.duration() if self.accept("retain") else None
        is_branch = ref_type is md.SnapshotRefType.BRANCH
        retention = self.retention() if is_branch and self.accept("with", "snapshot", "retention") else (None, None)
        return st.CreateRef(table, ref_type, name, when, snapshot_id, max_age, *retention)

    def retention(self) -> tuple[int | None, int | None]:
        first = self.number("a number of snapshots, or an age")
        if not self.accept("snapshots"):
            return None, first * self.unit()
        return first, self.duration() if self.token.kind is ex.TokenKind.INTEGER else None

    def drop_ref(self, table: st.Parts) -> st.Statement:
        ref_type = self.ref_type()
        if_exists = self.accept("if", "exists")
        return st.DropRef(table, ref_type, self.identifier("the name of the branch or tag"), if_exists)

    def ref_type(self) -> md.SnapshotRefType:
        for word, ref_type in _REF_TYPES.items():
            if self.accept(word):
                return ref_type
        raise self.expected("BRANCH or TAG")

    def duration(self) -> int:
        return self.number("a number of days, hours or minutes") * self.unit()

    def unit(self) -> int:
        for word, length in _UNITS_MS.items():
            if self.accept(word):
                return length
        raise self.expected("DAYS, HOURS or MINUTES")

    def number(self, what: str) -> int:
        return int(self.take(what, ex.TokenKind.INTEGER))

    def term(self) -> str:
        """A column or a transform of one, as its text."""
        start = self.token
        self.name()
        if self.accept_symbol("("):
            while not self.accept_symbol(")"):
                if self.token.kind is ex.TokenKind.END:
                    raise self.expected("')'")
                self.index += 1
        last = self.tokens[self.index - 1]
        return self.text[start.position : last.position + len(last.source)]

    def alias(self) -> str | None:
        return self.identifier("a name") if self.accept("as") else None

    def columns(self) -> tuple[str, ...]:
        columns = [".".join(self.name())]
        while self.accept_symbol(","):
            columns.append(".".join(self.name()))
        return tuple(columns)

    def name(self) -> st.Parts:
        parts = [self.identifier("a name")]
        while self.accept_symbol("."):
            parts.append(self.identifier("the rest of the name"))
        return tuple(parts)

    def identifier(self, what: str) -> str:
        return self.take(what, ex.TokenKind.WORD, ex.TokenKind.NAME)

    def take(self, what: str, *kinds: ex.TokenKind) -> str:
        if self.token.kind not in kinds:
            raise self.expected(what)
        return self.advance().content


def head_of(text: str) -> str | None:
    """The words that say what a statement does, and to what: `ALTER TABLE shop.orders ADD COLUMN`; None for a query."""
    match = _HEAD.match(text)
    if match is None or text.split(None, 1)[0].lower() in _QUERIES:
        return None
    head = match[1]
    if head[:5].lower() == "alter" and (clause := _CLAUSE.match(text, match.end())) is not None:
        head += clause[0]
    return " ".join(head.split())


def name_statement(error: errors.IcefloeError, text: str) -> None:
    """Put the head of the statement in front of an error's message, unless it begins with it."""
    head = head_of(text)
    if head is None or len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    if not error.args[0].startswith(head):
        error.args = (f"{head}: {error.args[0]}",)
