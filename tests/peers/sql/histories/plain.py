"""Histories judged by a plain model, for versions that Java does not read: rows as dicts, and what each statement does to them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
Verdict = bool | None
"""Of three values, as SQL's."""


@dataclass(frozen=True, slots=True)
class Value:
    """A literal: its text, its form in compared rows, and what it is ordered by."""

    text: str
    normal: Any
    order: Any


def _value(text: str, normal: Any, order: Any = None) -> Value:
    return Value(text, normal, normal if order is None else order)


NULL = Value("NULL", None, None)
TYPES: dict[str, tuple[Value, ...]] = {
    "INT": tuple(_value(str(n), n) for n in (-1, 0, 1, 7, 2147483647)),
    "BIGINT": tuple(_value(f"{n}L", n) for n in (0, 1, 9007199254740993, -9223372036854775807)),
    "DOUBLE": (
        _value("1.5D", "1.5", 1.5),
        _value("double('-0.0')", "-0.0", 0.0),
        _value("0.0D", "0.0", 0.0),
        # Spark orders NaN after all others.
        _value("double('NaN')", "NaN", float("inf")),
    ),
    "STRING": tuple(_value(f"'{text}'", text) for text in ("", "a", "B", "ä", "a text of more than sixteen")),
    "DATE": tuple(
        _value(f"DATE'{text}'", f"day {day}", day)
        for text, day in (("1969-12-31", -1), ("1970-01-01", 0), ("2024-02-29", 19782))
    ),
    "BOOLEAN": (_value("true", True), _value("false", False)),
    "DECIMAL(10,2)": tuple(_value(f"{text}BD", text, float(text)) for text in ("0.00", "1.50", "-99999999.99")),
    "STRUCT<x: INT, y: STRING>": (
        _value("named_struct('x', 1, 'y', 'a')", (("x", 1), ("y", "a"))),
        _value("named_struct('x', CAST(NULL AS INT), 'y', '')", (("x", None), ("y", ""))),
    ),
    "ARRAY<INT>": (_value("array(1, NULL)", ("list", 1, None)), _value("CAST(array() AS ARRAY<INT>)", ("list",))),
}
NESTED = ("STRUCT<x: INT, y: STRING>", "ARRAY<INT>")
NAMES = ("a", "b", "c", "d", "e f", "G")


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate: its text, and what it says of a row."""

    text: str
    holds: Callable[[Row], Verdict]


class PlainTable:
    """A table as SQL defines it, whatever files it has."""

    def __init__(self, chance: random.Random, name: str) -> None:
        self.chance = chance
        self.name = name
        self.columns: dict[str, str] = {"k": "INT"}
        for column in chance.sample(NAMES, chance.randint(2, 4)):
            self.columns[column] = chance.choice(list(TYPES))
        self.rows: list[Row] = []

    def create(self, version: int) -> str:
        """The statement that makes it."""
        columns = ", ".join(f"`{name}` {kind}" for name, kind in self.columns.items())
        mode = self.chance.choice(("copy-on-write", "merge-on-read"))
        modes = ", ".join(f"'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
        partitioned = self.chance.choice(("", " PARTITIONED BY (bucket(2, k))", " PARTITIONED BY (k)"))
        return (
            f"CREATE TABLE {self.name} ({columns}){partitioned} TBLPROPERTIES ('format-version'='{version}', {modes})"
        )

    def statements(self, count: int) -> Iterator[str]:
        """Statements, each of which has had its effect here when it is given."""
        yield self.insert()
        kinds = (self.insert, self.delete, self.update, self.merge, self.overwrite, self.add, self.drop, self.rename)
        for _ in range(count):
            yield self.chance.choices(kinds, (4, 4, 5, 5, 1, 2, 1, 2))[0]()

    def expected(self) -> list[tuple[Any, ...]]:
        """The rows as they are compared, in the order of what they look like."""
        return sorted((tuple(_normal(row[name]) for name in self.columns) for row in self.rows), key=repr)

    def insert(self) -> str:
        """Rows more."""
        made = self._new_rows()
        self.rows += made
        return f"INSERT INTO {self.name} VALUES {', '.join(map(self._tuple, made))}"

    def overwrite(self) -> str:
        """Other rows."""
        made = self._new_rows()
        self.rows = made
        # One file without a partition: an overwrite of all.
        return f"INSERT INTO {self.name} REPLACE WHERE true VALUES {', '.join(map(self._tuple, made))}"

    def delete(self) -> str:
        """Rows less."""
        condition = self._condition()
        self.rows = [row for row in self.rows if condition.holds(row) is not True]
        return f"DELETE FROM {self.name} WHERE {condition.text}"

    def update(self) -> str:
        """Some columns of some rows anew, from the values before."""
        condition = self._condition()
        text, change = self._assignments()
        self.rows = [change(row) if condition.holds(row) is True else row for row in self.rows]
        return f"UPDATE {self.name} SET {text} WHERE {condition.text}"

    def merge(self) -> str:
        """Rows of a source with keys of their own."""
        source = [dict(row) for row in self._new_rows(least=1)]
        keys = self.chance.sample(TYPES["INT"], min(len(source), len(TYPES["INT"])))
        source = [row | {"k": key} for row, key in zip(source, keys, strict=False)]
        by_key = {row["k"].normal: row for row in source}
        matched, matched_text = self._change()
        missing, missing_text = self._change()
        condition = self._condition("t.")
        kept: list[Row] = []
        for row in self.rows:
            if _normal(row["k"]) is not None and _normal(row["k"]) in by_key:
                changed = matched(row) if condition.holds(row) is True else row
            else:
                changed = missing(row)
            kept += [] if changed is None else [changed]
        present = {_normal(row["k"]) for row in self.rows}
        kept += [row for key, row in by_key.items() if key not in present]
        self.rows = kept
        shown = " UNION ALL ".join(
            "SELECT "
            + ", ".join(f"CAST({row[name].text} AS {kind}) AS `{name}`" for name, kind in self.columns.items())
            for row in source
        )
        return (
            f"MERGE INTO {self.name} t USING ({shown}) s ON t.k = s.k WHEN MATCHED AND {condition.text} THEN {matched_text}"
            f" WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN {missing_text}"
        )

    def add(self) -> str:
        """A column more, whose name may have been another's."""
        free = [name for name in NAMES if name not in self.columns]
        if not free:
            return self.insert()
        name, kind = self.chance.choice(free), self.chance.choice(list(TYPES))
        self.columns[name] = kind
        for row in self.rows:
            row[name] = NULL
        return f"ALTER TABLE {self.name} ADD COLUMN `{name}` {kind}"

    def drop(self) -> str:
        """A column less."""
        if len(self.columns) < 3:
            return self.add()
        name = self.chance.choice([each for each in self.columns if each != "k"])
        del self.columns[name]
        self.rows = [{each: row[each] for each in self.columns} for row in self.rows]
        return f"ALTER TABLE {self.name} DROP COLUMN `{name}`"

    def rename(self) -> str:
        """A column by another name."""
        free = [name for name in NAMES if name not in self.columns]
        old = self.chance.choice([each for each in self.columns if each != "k"])
        if not free:
            return self.drop()
        new = self.chance.choice(free)
        self.columns = {new if each == old else each: kind for each, kind in self.columns.items()}
        self.rows = [{new if each == old else each: value for each, value in row.items()} for row in self.rows]
        return f"ALTER TABLE {self.name} RENAME COLUMN `{old}` TO `{new}`"

    def _new_rows(self, least: int = 1) -> list[Row]:
        return [
            {name: self._literal(kind) for name, kind in self.columns.items()}
            for _ in range(self.chance.randint(least, 4))
        ]

    def _literal(self, kind: str) -> Value:
        return NULL if self.chance.random() < 0.2 else self.chance.choice(TYPES[kind])

    def _tuple(self, row: Row) -> str:
        return f"({', '.join(row[name].text for name in self.columns)})"

    def _change(self) -> tuple[Callable[[Row], Row | None], str]:
        if self.chance.random() < 0.4:
            return (lambda _: None), "DELETE"
        text, change = self._assignments("t.")
        return change, f"UPDATE SET {text}"

    def _assignments(self, prefix: str = "") -> tuple[str, Callable[[Row], Row]]:
        chosen = self.chance.sample(list(self.columns), self.chance.randint(1, min(2, len(self.columns))))
        sources: dict[str, str | Value] = {}
        for name in chosen:
            same = [each for each, kind in self.columns.items() if kind == self.columns[name]]
            sources[name] = (
                self.chance.choice(same) if self.chance.random() < 0.3 else self._literal(self.columns[name])
            )
        text = ", ".join(
            f"{prefix}`{name}` = {f'{prefix}`{source}`' if isinstance(source, str) else source.text}"
            for name, source in sources.items()
        )

        def change(row: Row) -> Row:
            return row | {name: row[each] if isinstance(each, str) else each for name, each in sources.items()}

        return text, change

    def _condition(self, prefix: str = "", depth: int = 0) -> Condition:
        draw = self.chance.random()
        if depth < 2 and draw < 0.3:
            left, right = self._condition(prefix, depth + 1), self._condition(prefix, depth + 1)
            if draw < 0.1:
                return Condition(f"NOT ({left.text})", lambda row: _negated(left.holds(row)))
            if draw < 0.2:
                return Condition(
                    f"({left.text} AND {right.text})", lambda row: _both(left.holds(row), right.holds(row))
                )
            return Condition(f"({left.text} OR {right.text})", lambda row: _either(left.holds(row), right.holds(row)))
        name = self.chance.choice(list(self.columns))
        if draw < 0.5 or self.columns[name] in NESTED:
            return Condition(f"{prefix}`{name}` IS NULL", lambda row: row[name] is NULL)
        wanted = self.chance.choice(TYPES[self.columns[name]])
        sign, compare = self.chance.choice(_COMPARISONS)
        return Condition(f"{prefix}`{name}` {sign} {wanted.text}", lambda row: _compared(compare, row[name], wanted))


_COMPARISONS: tuple[tuple[str, Callable[[Any, Any], bool]], ...] = (
    ("=", lambda a, b: a == b),
    ("<>", lambda a, b: a != b),
    ("<", lambda a, b: a < b),
    (">=", lambda a, b: a >= b),
)


def _compared(compare: Callable[[Any, Any], bool], value: Value, wanted: Value) -> Verdict:
    return None if value is NULL else compare(value.order, wanted.order)


def _negated(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def _both(left: Verdict, right: Verdict) -> Verdict:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(left: Verdict, right: Verdict) -> Verdict:
    return _negated(_both(_negated(left), _negated(right)))


def _normal(value: Value) -> Any:
    return value.normal
