"""Decides what a query needs of each table: which columns, and which rows at least.

sqlglot reads the statement; the engine runs the user's own text, in which only the names of tables are exchanged. What is
found here may only ever be too much, since the engine applies every condition itself: where a statement is not understood,
all columns and all rows are read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from icefloe.errors import InvalidInputError

_DIALECT = "duckdb"
_VERSIONED = re.compile(
    r"""'(?:[^']|'')*' | --[^\n]* | /\*.*?\*/          # texts and comments stay
      | (?P<name>"(?:[^"]|"")*"|[A-Za-z_][\w$]*)@(?P<version>[A-Za-z0-9_][\w:.+\-]*)
      | "(?:[^"]|"")*" """,
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: tuple[type[Any], ...] = (
    exp.Literal,
    exp.Boolean,
    exp.Cast,
    exp.Neg,
    exp.Paren,
    exp.Interval,
    exp.IntervalSpan,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Var,
    exp.Date,
    exp.DataType,
    exp.DataTypeParam,
)
_COMPARISONS = {exp.EQ: "=", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
_SWAPPED = {"=": "=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}


@dataclass(frozen=True, slots=True)
class TableUse:
    """A place in a statement where a table is named."""

    number: int
    parts: tuple[str, ...]
    alias: str
    start: int
    end: int
    has_alias: bool

    @property
    def stand_in(self) -> str:
        """The name that stands for it in the engine."""
        return f"_icefloe_{self.number}"


@dataclass(frozen=True, slots=True)
class Condition:
    """`column operator constants`, which every row that counts fulfils; the constants are SQL."""

    column: str
    operator: str
    constants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Need:
    """What a use of a table needs: some columns, or all if None; and rows that fulfil all conditions."""

    columns: tuple[str, ...] | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Statement:
    """A query, with the tables that it uses."""

    text: str
    uses: tuple[TableUse, ...]
    _tree: Any = field(repr=False, compare=False)

    def rewritten(self) -> str:
        """The text with stand-ins in place of the names of tables."""
        text, last = [], 0
        for use in sorted(self.uses, key=lambda each: each.start):
            alias = "" if use.has_alias else f" AS {_quoted(use.alias)}"
            text += [self.text[last : use.start], _quoted(use.stand_in), alias]
            last = use.end
        return "".join([*text, self.text[last:]])

    def needs(self, columns: Mapping[int, Sequence[str]]) -> dict[int, Need]:
        """What each use needs, by its number, given the columns of the tables."""
        everything = {use.number: Need() for use in self.uses}
        try:
            return _Needs(self, columns).found()
        except (SqlglotError, _NotUnderstoodError):
            return everything


def read_statement(text: str) -> Statement:
    """The one query in a text; anything that is not a query is refused."""
    spelled = _VERSIONED.sub(_with_version, text).strip().rstrip(";")
    try:
        trees = [tree for tree in sqlglot.parse(spelled, dialect=_DIALECT) if tree is not None]
    except SqlglotError as error:
        raise InvalidInputError(f"the query cannot be parsed: {error}") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise InvalidInputError(
            "only a single query such as SELECT is supported here; use `icefloe sql` for other statements"
        )
    return Statement(spelled, tuple(_uses(trees[0])), trees[0])


def _with_version(match: re.Match[str]) -> str:
    """`orders@v1` as one quoted name."""
    if match["name"] is None:
        return match[0]
    name = match["name"][1:-1] if match["name"].startswith('"') else match["name"]
    return f'"{name}@{match["version"]}"'


def _uses(tree: Any) -> Iterator[TableUse]:
    for table in _tables(tree):
        number = table.meta["icefloe"]
        parts = table.parts
        yield TableUse(
            number,
            tuple(part.name for part in parts),
            table.alias or parts[-1].name.partition("@")[0],
            parts[0].meta["start"],
            parts[-1].meta["end"] + 1,
            bool(table.alias),
        )


def _tables(tree: Any) -> list[Any]:
    """Where tables are named, other than those that the statement itself defines; each gets a number."""
    tables: dict[int, Any] = {}
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
                tables.setdefault(id(source), source)
    for number, table in enumerate(tables.values()):
        table.meta["icefloe"] = number
    return list(tables.values())


def name_and_version(parts: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    """The name of a table in a query, and what stands behind its @."""
    *namespace, last = parts
    table, at, version = last.rpartition("@")
    name = (*namespace, table if at else last)
    if len(parts) < 2:
        raise InvalidInputError(f"the table {last!r} has no namespace; write it as namespace.{last}")
    return name, version if at else None


class _NotUnderstoodError(Exception):
    """Something in a statement whose meaning is left to the engine."""


class _Needs:
    """Looks through a copy of a statement in which every column has its table."""

    def __init__(self, statement: Statement, columns: Mapping[int, Sequence[str]]) -> None:
        self._columns = {number: {name.lower(): name for name in names} for number, names in columns.items()}
        if any(len(self._columns[number]) != len(names) for number, names in columns.items()):
            raise _NotUnderstoodError
        self._uses = {use.number: use for use in statement.uses}
        tree = statement._tree.copy()
        self._check(tree)
        schema = {}
        for table in _tables(tree):
            use = self._uses[table.meta["icefloe"]]
            schema[use.stand_in] = dict.fromkeys(self._columns[use.number], "int")
            table.set(
                "alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(use.alias, quoted=True))
            )
            for part in ("db", "catalog"):
                table.set(part, None)
            table.set("this", exp.to_identifier(use.stand_in))
        self._tree = qualify(tree, schema=schema, dialect=_DIALECT, quote_identifiers=False)

    @staticmethod
    def _check(tree: Any) -> None:
        if any(True for _ in tree.find_all(exp.Columns, exp.Lateral, exp.Unnest, exp.Pivot, exp.TableColumn)):
            raise _NotUnderstoodError
        for join in tree.find_all(exp.Join):
            if join.args.get("using") or join.args.get("method") or join.args.get("kind") in ("SEMI", "ANTI"):
                raise _NotUnderstoodError

    def found(self) -> dict[int, Need]:
        """What each use needs."""
        columns: dict[int, dict[str, None]] = {number: {} for number in self._uses}
        conditions: dict[int, list[Condition]] = {number: [] for number in self._uses}
        for whole in self._tree.find_all(exp.Star, exp.TableColumn):
            if not isinstance(whole.parent, exp.Count):
                raise _NotUnderstoodError
        by_alias: dict[str, set[int]] = {}
        scopes = traverse_scope(self._tree)
        for scope in scopes:
            for alias, (_, source) in scope.selected_sources.items():
                if (number := self._number(source)) is not None:
                    by_alias.setdefault(alias, set()).add(number)
        for column in self._tree.find_all(exp.Column):
            if column.table not in by_alias:
                # The name of a result, of a subquery, or of a struct: a column of that name may be meant in any table.
                for number, names in self._columns.items():
                    columns[number] |= dict.fromkeys(names[each] for each in _names(column) if each in names)
                continue
            numbers = by_alias[column.table]
            known = {number: self._columns[number].get(column.name.lower()) for number in numbers}
            if numbers and not any(known.values()):
                raise _NotUnderstoodError
            for number, name in known.items():
                if name is not None:
                    columns[number][name] = None
        for scope in scopes:
            for number, condition in self._conditions(scope):
                conditions[number].append(condition)
        return {number: Need(tuple(columns[number]), tuple(dict.fromkeys(conditions[number]))) for number in self._uses}

    @staticmethod
    def _number(source: object) -> int | None:
        name = source.name if isinstance(source, exp.Table) else ""
        return int(name.removeprefix("_icefloe_")) if re.fullmatch(r"_icefloe_\d+", name) else None

    def _conditions(self, scope: Scope) -> Iterator[tuple[int, Condition]]:
        select = scope.expression
        if not isinstance(select, exp.Select):
            return
        own = {
            alias: number
            for alias, (_, source) in scope.selected_sources.items()
            if (number := self._number(source)) is not None
        }
        joins = select.args.get("joins") or []
        # A row that an outer join makes of nulls must not come into being by a condition: then only those count that null fails.
        is_outer = any(join.side for join in joins)
        texts = [join.args.get("on") for join in joins if not join.side]
        if where := select.args.get("where"):
            texts.append(where.this)
        for text in texts:
            if text is None:
                continue
            for part in text.flatten() if isinstance(text, exp.And) else [text]:
                yield from self._condition(part.unnest(), own, is_outer)

    def _condition(self, part: Any, own: Mapping[str, int], is_outer: bool) -> Iterator[tuple[int, Condition]]:
        match part:
            case exp.And():
                for inner in part.flatten():
                    yield from self._condition(inner.unnest(), own, is_outer)
            case exp.Between():
                yield from self._compared(part.this, ">=", [part.args["low"]], own)
                yield from self._compared(part.this, "<=", [part.args["high"]], own)
            case exp.In() if part.args.get("expressions"):
                yield from self._compared(part.this, "in", part.args["expressions"], own)
            case exp.Is() if isinstance(part.expression, exp.Null) and not is_outer:
                yield from self._compared(part.this, "is null", [], own)
            case exp.Not() if isinstance(part.this, exp.Is) and isinstance(part.this.expression, exp.Null):
                yield from self._compared(part.this.this, "is not null", [], own)
            case _ if type(part) in _COMPARISONS:
                operator = _COMPARISONS[type(part)]
                if isinstance(part.this, exp.Column):
                    yield from self._compared(part.this, operator, [part.expression], own)
                else:
                    yield from self._compared(part.expression, _SWAPPED[operator], [part.this], own)

    def _compared(
        self, column: Any, operator: str, constants: Sequence[Any], own: Mapping[str, int]
    ) -> Iterator[tuple[int, Condition]]:
        if not isinstance(column, exp.Column) or column.table not in own or not all(map(_is_constant, constants)):
            return
        number = own[column.table]
        name = self._columns[number].get(column.name.lower())
        if name is not None:
            yield number, Condition(name, operator, tuple(each.sql(dialect=_DIALECT) for each in constants))


def _names(column: Any) -> list[str]:
    return [part.name.lower() for part in column.parts]


def _is_constant(node: Any) -> bool:
    return all(isinstance(each, _CONSTANTS) for each in node.walk())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
