"""Histories of random statements on a table, and the same in DuckDB: after every step both hold the same rows.

Each row has a number that no statement changes, by which it is known again: rows that stay keep their row ids, and no id is
given twice.
"""

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest

from icefloe import load_catalog
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.shared_rows import sql_modes
from tests.spark.conftest import SPARK

MODES = ("copy-on-write", "merge-on-read")
KINDS = ((1, MODES[0]), (2, MODES[0]), (2, MODES[1]), (3, MODES[0]), (3, MODES[1]))
SPECS = ("", "PARTITIONED BY (p)", "PARTITIONED BY (bucket(4, k), p)", "PARTITIONED BY (days(d))")
COLUMNS = {"k": "INT", "p": "INT", "x": "DOUBLE", "s": "STRING", "d": "DATE"}
TEXTS = ("a", "it's", 'say "so"', "", "ä€\\n", "100%", "`tick`", None)
NUMBERS = (0.0, -0.0, 1.5, math.nan, math.inf, -1e300, None)


@dataclass
class History:
    """One table twice, and the texts that change both."""

    ice: Session
    random: random.Random
    version: int
    mode: str
    spec: str
    duck: Any = field(default_factory=duckdb.connect)
    columns: dict[str, str] = field(default_factory=lambda: dict(COLUMNS))
    count: int = 0
    ids: dict[int, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.duck.execute(
            "CREATE OR REPLACE TABLE t (u BIGINT, k INT, p INT, x DOUBLE, s VARCHAR, d DATE,"
            " n STRUCT(a INT, b VARCHAR), l INT[])"
        )
        modes = sql_modes(self.mode)
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        self.ice.sql(
            f"CREATE OR REPLACE TABLE db.t (u BIGINT, {columns}, n STRUCT<a: INT, b: STRING>, l ARRAY<INT>) USING iceberg"
            f" {self.spec} TBLPROPERTIES ('format-version' = '{self.version}', {modes})"
        )

    def step(self, kind: str) -> None:
        """Run one statement in both, and compare."""
        text = getattr(self, kind)()
        for dialect in (True, False):
            made = text if isinstance(text, str) else text[not dialect]
            if dialect:
                # Spark 4.0 reads two quotes as the end of one text and the beginning of the next.
                made = made.replace("it''s", r"it\'s") if SPARK < (4, 1) else made
                self.told.append(made)
                with sending(self.ice.spark, len(self.told) % 2 == 0):
                    self.ice.sql(made)
            elif made:
                self.duck.execute(made.replace("db.t", "t"))
        self.compare(kind)

    # -- statements

    def insert(self) -> tuple[str, str]:
        rows = [self._row() for _ in range(self.random.randint(1, 12))]
        return tuple(f"INSERT INTO db.t {_values(rows, spark)}" for spark in (True, False))  # type: ignore[return-value]

    def update(self) -> str:
        condition = "" if self.random.random() < 0.1 else f" WHERE {self._condition()}"
        return f"UPDATE db.t SET {self._assignments()}{condition}"

    def delete(self) -> str:
        return f"DELETE FROM db.t WHERE {self._condition()}"

    def merge(self) -> tuple[str, str]:
        keys = self.random.sample(range(-2, 12), self.random.randint(1, 8))
        rows = [
            {
                "u": self._number(),
                "k": key,
                "p": self._value("INT"),
                "s": self._value("STRING"),
                "d": self._value("DATE"),
            }
            for key in keys
        ]
        clauses = []
        if self.random.random() < 0.5:
            clauses.append(f"WHEN MATCHED AND {self._condition('t.')} THEN DELETE")
        if self.random.random() < 0.8:
            clauses.append(f"WHEN MATCHED THEN UPDATE SET p = s.p, s = {self._text('t.')}")
        if self.random.random() < 0.9:
            clauses.append(
                "WHEN NOT MATCHED AND s.k % 4 <> 1 THEN INSERT (u, k, p, s, d) VALUES (s.u, s.k, s.p, s.s, s.d)"
            )
            clauses.append("WHEN NOT MATCHED AND s.p IS NOT NULL THEN INSERT (u, k) VALUES (s.u, s.k)")
        if self.random.random() < 0.4:
            clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {self._condition('t.')} THEN UPDATE SET x = 7, s = 'alone'")
        if self.random.random() < 0.3:
            clauses.append(f"WHEN NOT MATCHED BY SOURCE AND {self._condition('t.')} THEN DELETE")
        clauses = clauses or ["WHEN MATCHED THEN DELETE"]
        more = " AND t.p = s.p" if self.random.random() < 0.2 else ""
        return tuple(  # type: ignore[return-value]
            f"MERGE INTO db.t AS t USING (SELECT * FROM ({_values(rows, spark)}) AS v(u, k, p, s, d)) AS s"
            f" ON t.k = s.k{more} {' '.join(clauses)}"
            for spark in (True, False)
        )

    def alter(self) -> tuple[str, str]:
        added = [name for name in self.columns if name.startswith("c")]
        choice = self.random.choice(("add", "drop", "rename", "widen", "spec"))
        if choice == "add" or not added:
            name = f"c{len(self.told)}"
            self.columns[name] = "INT"
            default = (
                " DEFAULT 5" if allows(self.version, Feature.COLUMN_DEFAULTS) and self.random.random() < 0.5 else ""
            )
            return f"ALTER TABLE db.t ADD COLUMN {name} INT{default}", f"ALTER TABLE t ADD COLUMN {name} INT{default}"
        name = self.random.choice(added)
        if choice == "drop":
            del self.columns[name]
            return f"ALTER TABLE db.t DROP COLUMN {name}", f"ALTER TABLE t DROP COLUMN {name}"
        if choice == "rename":
            other = f"c{len(self.told)}r"
            self.columns[other] = self.columns.pop(name)
            return f"ALTER TABLE db.t RENAME COLUMN {name} TO {other}", f"ALTER TABLE t RENAME COLUMN {name} TO {other}"
        if choice == "widen":
            self.columns[name] = "BIGINT"
            return f"ALTER TABLE db.t ALTER COLUMN {name} TYPE BIGINT", f"ALTER TABLE t ALTER COLUMN {name} TYPE BIGINT"
        term = f"truncate({self.random.randint(1, 90)}, k)"
        return f"ALTER TABLE db.t ADD PARTITION FIELD {term} AS f{len(self.told)}", ""

    # -- parts of statements

    def _number(self) -> int:
        self.count += 1
        return self.count

    def _row(self) -> dict[str, Any]:
        known = [name for name in self._order() if name != "u"]
        row = {name: self._value(self.columns.get(name, name)) for name in known}
        return {"u": self._number(), **row}

    def _order(self) -> list[str]:
        return [each.name for each in self.ice.load_table("db.t").schema().fields]

    def _value(self, kind: str) -> Any:
        pick = self.random.choice
        match kind:
            case "INT" | "BIGINT":
                return pick((None, -2, 0, 1, 2, 3, 5, 7, 11))
            case "DOUBLE":
                return pick(NUMBERS)
            case "STRING":
                return pick(TEXTS)
            case "DATE":
                return pick((None, "1969-12-31", "2024-02-29", "2024-03-01"))
            case "n":
                return pick((None, {"a": pick((None, 1, 2)), "b": pick(TEXTS)}))
            case _:
                return pick((None, [], [1], [2, None]))

    def _text(self, alias: str = "") -> str:
        return self.random.choice((f"{alias}s || '!'", "'it''s'", "NULL", f"upper({alias}s)"))

    def _assignments(self) -> str:
        known: dict[str, tuple[str, ...]] = {
            "k": ("k + 1", "p", "NULL", "-k"),
            "p": ("k", "p + 1", "3", "NULL"),
            "x": ("x * 2", "CAST('NaN' AS DOUBLE)", "-x", "NULL", "k", "1.5"),
            "s": (self._text(),),
            "d": ("CAST(d + INTERVAL 1 DAY AS DATE)", "DATE '2024-03-01'", "NULL"),
            "l": ("NULL",),
        } | {name: (f"{name} + 1", "p", "NULL") for name in self.columns if name.startswith("c")}
        chosen = self.random.sample(sorted(known), self.random.randint(1, 3))
        return ", ".join(f"{name} = {self.random.choice(known[name])}" for name in chosen)

    def _condition(self, a: str = "", depth: int = 2) -> str:
        if depth and self.random.random() < 0.4:
            one, other = self._condition(a, depth - 1), self._condition(a, depth - 1)
            return self.random.choice((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
        number = self.random.choice((-2, 0, 1, 2, 3, 5))
        subquery = () if a else (f"k IN (SELECT max(k) FROM db.t WHERE p < {number})",)
        known: tuple[str, ...] = (
            f"{a}k = {number}",
            f"{a}k < {number}",
            f"{a}k % 3 = 1",
            f"{a}k IS NULL",
            f"{a}p IN (1, {number}, NULL)",
            f"{a}p NOT IN (0, {number})",
            f"{a}p >= {a}k",
            f"{a}x = CAST('NaN' AS DOUBLE)",
            f"{a}x > 1",
            f"{a}x = 0",
            f"{a}x IS NULL",
            f"{a}s = 'it''s'",
            f"{a}s LIKE '%a%'",
            f"coalesce({a}s, '') = ''",
            f"{a}d >= DATE '2024-03-01'",
            f"{a}n.a = 1",
            f"{a}n IS NULL",
            f"{a}l IS NOT NULL",
            f"{a}u % 7 = {abs(number)}",
            *subquery,
        )
        return self.random.choice(known)

    # -- what both hold

    def compare(self, kind: str) -> None:
        """The same rows; and rows that were there before have the ids that they had."""
        table = self.ice.load_table("db.t")
        names = self._order()
        ours = _rows(table, names)
        text = ", ".join(f'"{name}"' for name in names)
        theirs = [tuple(map(_plain, row)) for row in self.duck.execute(f"SELECT {text} FROM t").fetchall()]
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), "\n".join(self.told)
        if not allows(self.version, Feature.ROW_LINEAGE):
            return
        now = dict(_rows(table, ["u", "_row_id"]))
        assert len(set(now.values())) == len(now) == len(ours), "\n".join(self.told)
        assert all(self.ids.get(each, now[each]) == now[each] for each in now), "\n".join(self.told)
        new = {now[each] for each in now if each not in self.ids}
        assert not new & set(self.ids.values()), "\n".join(self.told)
        self.ids |= now
        if kind == "alter":
            return
        snapshot = table.current_snapshot()
        last = dict(_rows(table, ["u", "_last_updated_sequence_number"]))
        assert snapshot is None or all(each <= snapshot.sequence_number for each in last.values())

    def check(self) -> None:
        """All parts of the table fit together, and Spark reads it as Python does."""
        table = self.ice.load_table("db.t")
        found = table.verify()
        assert found.ok, (found, self.told)
        by_spark = [tuple(_plain(each) for each in row) for row in self.ice.table("db.t").collect()]
        assert sorted(map(repr, by_spark)) == sorted(map(repr, _rows(table, self._order()))), "\n".join(self.told)


@contextmanager
def sending(spark: Any, sends: bool) -> Iterator[None]:
    """Whether Spark may send small frames to all tasks: merges are planned otherwise if it may not."""
    key = "spark.sql.autoBroadcastJoinThreshold"
    before = spark.conf.get(key)
    spark.conf.set(key, before if sends else "-1")
    try:
        yield
    finally:
        spark.conf.set(key, before)


def _values(rows: list[dict[str, Any]], spark: bool) -> str:
    return "VALUES " + ", ".join(
        "(" + ", ".join(_literal(value, name, spark) for name, value in row.items()) + ")" for row in rows
    )


def _literal(value: Any, name: str, spark: bool) -> str:
    match value:
        case None:
            kinds = {"n": ("STRUCT<a: INT, b: STRING>", "STRUCT(a INT, b VARCHAR)"), "l": ("ARRAY<INT>", "INT[]")}
            plain = {"x": "DOUBLE", "s": "STRING" if spark else "VARCHAR", "d": "DATE", "u": "BIGINT"}.get(name, "INT")
            return f"CAST(NULL AS {kinds[name][not spark] if name in kinds else plain})"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case str() if name == "d":
            return f"DATE '{value}'"
        case str():
            return "'" + (value.replace("\\", "\\\\") if spark else value).replace("'", "''") + "'"
        case dict():
            fields = [
                (key, "CAST(NULL AS INT)" if each is None and key == "a" else _literal(each, "s", spark))
                for key, each in value.items()
            ]
            if spark:
                return "named_struct(" + ", ".join(f"'{key}', {text}" for key, text in fields) + ")"
            return "{" + ", ".join(f"'{key}': {text}" for key, text in fields) + "}"
        case list():
            items = ", ".join("NULL" if each is None else str(each) for each in value)
            return f"CAST(ARRAY({items}) AS ARRAY<INT>)" if spark else f"CAST([{items}] AS INT[])"
        case _:
            return f"CAST({value} AS BIGINT)" if name == "u" else str(value)


def _rows(table: Table, names: list[str]) -> list[tuple[Any, ...]]:
    found = table.scan(None, tuple(names)).to_arrow().to_pylist()
    return [tuple(_plain(row[name]) for name in names) for row in found]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        # DuckDB leaves a value as it is if the new one equals it, so a zero keeps its sign there.
        return repr(value + 0.0)
    if isinstance(value, dict):
        return tuple(value.values())
    if hasattr(value, "asDict"):
        return tuple(value)
    return value


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("differential")
    catalog = load_catalog("twice", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    return Session(spark, {"twice": catalog})


def run(ice: Session, version: int, mode: str, seed: int, kinds: list[str]) -> None:
    history = History(ice, random.Random(seed), version, mode, SPECS[seed % len(SPECS)])
    history.start()
    for kind in kinds:
        history.step(kind)
    history.check()


@pytest.mark.parametrize(("version", "mode"), [KINDS[0], KINDS[2], KINDS[4]])
def test_a_short_history(ice: Session, version: int, mode: str) -> None:
    seed = KINDS.index((version, mode))
    order = random.Random(seed).sample(("update", "delete", "alter"), 2)
    run(ice, version, mode, seed, ["insert", *order, "merge"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("version", "mode"), KINDS)
def test_a_long_history(ice: Session, version: int, mode: str, seed: int) -> None:
    kinds = random.Random(1000 + seed).choices(
        ("insert", "update", "delete", "merge", "alter"), weights=(5, 4, 2, 4, 1), k=49
    )
    run(ice, version, mode, 100 + seed, ["insert", *kinds])
