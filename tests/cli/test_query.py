"""Queries without Java: the same answers as DuckDB over the same rows, of no more files than needed."""

import datetime as dt
import math
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import icefloe
from icefloe.errors import InvalidInputError
from icefloe.query.engine import Engine, Source
from icefloe.query.statement import Condition, read_statement
from icefloe.schema import types
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.cli.conftest import Run, orders
from tests.shared_rows import row_modes
from tests.spark.reading import delete_equal


def needs(sql: str, **columns: tuple[str, ...]) -> dict[str, Any]:
    """What a query needs of each table, by alias."""
    statement = read_statement(sql)
    known = {use.number: columns[use.parts[-1].partition("@")[0]] for use in statement.uses}
    found = statement.needs(known)
    return {use.alias: found[use.number] for use in statement.uses}


ORDERS = ("id", "region", "total", "ts")
CUSTOMERS = ("id", "name", "age")


def test_columns_and_conditions_are_found() -> None:
    found = needs(
        """WITH big AS (SELECT id, total FROM shop.orders WHERE total > 5 AND Region = 'eu')
           SELECT b.id, count(*) FROM big b JOIN shop.customers c ON b.id = c.id AND c.age BETWEEN 1 AND 2 + 3
           WHERE c.name IS NOT NULL AND 7 >= c.id GROUP BY ALL""",
        orders=ORDERS,
        customers=CUSTOMERS,
    )
    assert set(found["orders"].columns) == {"id", "total", "region"}
    assert set(found["orders"].conditions) == {Condition("total", ">", ("5",)), Condition("region", "=", ("'eu'",))}
    assert set(found["c"].columns) == {"id", "age", "name"}
    assert set(found["c"].conditions) == {
        Condition("age", ">=", ("1",)),
        Condition("age", "<=", ("2 + 3",)),
        Condition("name", "is not null"),
        Condition("id", "<=", ("7",)),
    }


def test_names_of_results_and_structs() -> None:
    needed = needs(
        """SELECT o.region, sum(o.total) AS revenue, s.f AS part FROM shop.orders o, shop.nested
           WHERE o.ts > DATE '2026-01-01' GROUP BY o.region, s.f HAVING revenue > 5 ORDER BY revenue DESC, part""",
        orders=ORDERS,
        nested=("id", "s", "l", "Revenue"),
    )
    assert set(needed["o"].columns) == {"region", "total", "ts"}
    assert needed["o"].conditions == (Condition("ts", ">", ("CAST('2026-01-01' AS DATE)",)),)
    assert {"s"} <= set(needed["nested"].columns) <= {"s", "Revenue"}


def test_outer_joins_leave_conditions_that_null_fulfils() -> None:
    sql = "SELECT o.id FROM shop.orders o LEFT JOIN shop.customers c ON o.id = c.id AND c.age = 3 WHERE c.id IS NULL AND c.name = 'x'"
    assert needs(sql, orders=ORDERS, customers=CUSTOMERS)["c"].conditions == (Condition("name", "=", ("'x'",)),)


@pytest.mark.parametrize(
    "condition",
    [
        "id = 1 OR id = 2",
        "id = total",
        "id + 1 = 2",
        "id > random()",
        "ts > now()",
        "NOT id = 1",
        "id IN (SELECT 1)",
        "lower(region) = 'eu'",
    ],
)
def test_other_conditions_are_left_to_the_engine(condition: str) -> None:
    assert needs(f"SELECT id FROM shop.orders WHERE {condition}", orders=ORDERS)["orders"].conditions == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM shop.orders",
        "SELECT o FROM shop.orders o",
        "SELECT COLUMNS('i.*') FROM shop.orders",
        "SELECT id FROM shop.orders JOIN shop.customers USING (id)",
        "SELECT * EXCLUDE (id) FROM shop.orders",
        "FROM shop.orders",
        "SELECT nope FROM shop.orders",
    ],
)
def test_whatever_is_not_understood_reads_all_columns(sql: str) -> None:
    columns = needs(sql, orders=ORDERS, customers=CUSTOMERS)[
        "o" if " o" in sql.partition("shop.orders")[2] else "orders"
    ].columns
    assert columns is None or set(columns) >= {"region", "total", "ts"}


def test_names_with_versions() -> None:
    text = """SELECT 'a@b', "x@y".id FROM shop.orders@v1 AS "x@y", lake.shop."od""d"@2026-11-01T00:00Z -- a@b"""
    parts = [use.parts for use in read_statement(text).uses]
    assert parts == [("shop", "orders@v1"), ("lake", "shop", 'od"d@2026-11-01T00:00Z')]
    assert read_statement("SELECT 1 FROM a.b@7").rewritten() == 'SELECT 1 FROM "_icefloe_0" AS "b"'


@pytest.mark.parametrize(
    "sql", ["DELETE FROM shop.orders", "SELECT 1; SELECT 2", "", "DROP TABLE x", "SELECT FROM WHERE", "COPY x TO 'y'"]
)
def test_only_queries_are_answered(sql: str) -> None:
    with pytest.raises(InvalidInputError):
        read_statement(sql)


# -- answers


def answer(sql: str, tables: dict[str, Table]) -> list[tuple[Any, ...]]:
    """By our engine."""
    statement, engine = read_statement(sql), Engine()
    scans = {use.number: tables[use.parts[-1]].scan() for use in statement.uses}
    found = statement.needs({number: scan.schema.column_names for number, scan in scans.items()})
    sources = {use.number: Source(use, engine.narrowed(scans[use.number], found[use.number])) for use in statement.uses}
    try:
        rows = engine.answer(statement, sources).read_all()
    finally:
        engine.close()
    return rows_of(rows)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(map(repr, row.values())) for row in table.to_pylist())


def oracle(sql: str, rows: dict[str, pa.Table]) -> list[tuple[Any, ...]]:
    """By DuckDB over tables of its own, with the same rows."""
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA shop")
        for name, table in rows.items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE shop.{name} AS SELECT * FROM given")
        return rows_of(connection.execute(sql).to_arrow_table())


VALUES = [None, -1.5, -0.0, 0.0, 1.0, 2.5, math.nan, math.inf, -math.inf]
ODD = pa.table(
    {
        "id": pa.array(range(27), pa.int64()),
        "f": pa.array(VALUES * 3, pa.float64()),
        "g": pa.array(VALUES * 3, pa.float32()),
        "s": pa.array(["a", "", None, "B", "b", "é", "aa", "z", "%"] * 3),
        "d": pa.array([None if n % 5 == 0 else dt.date(2026, 1, 1 + n) for n in range(27)], pa.date32()),
        "t": pa.array([None if n % 7 == 0 else dt.datetime(2026, 1, 1 + n, 12) for n in range(27)], pa.timestamp("us")),
        "p": pa.array([None if n % 4 == 0 else n for n in range(27)], pa.int32()),
    }
)


@pytest.fixture(scope="module")
def odd() -> dict[str, Table]:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://query/odd")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.odd", ODD.schema, partition_spec=["truncate(5, id)"])
    for start in range(0, 27, 9):
        table.append(ODD.slice(start, 9))
    return {"odd": table}


CONSTANTS = {
    "id": ["5", "-1", "5.5", "'7'", "1e0", "26", "99999999999999999999"],
    "f": ["0", "1", "2.5", "-1.5e0", "'nan'::double", "1e308", "0.1"],
    "g": ["0", "1", "2.5", "'inf'::float"],
    "s": ["'a'", "''", "'b'", "'é'", "'%'"],
    "d": ["DATE '2026-01-10'", "'2026-01-10'", "DATE '2026-01-20' - INTERVAL 5 DAY", "TIMESTAMP '2026-01-10 06:00:00'"],
    "t": ["TIMESTAMP '2026-01-10 12:00:00'", "DATE '2026-01-10'", "'2026-01-10 12:00:00'"],
    "p": ["3", "4.0", "NULL", "2147483648"],
}


@st.composite
def conditions(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(CONSTANTS)))
    constant = st.sampled_from(CONSTANTS[column])
    shape = draw(st.integers(0, 4))
    if shape == 0:
        return f"{column} IN ({draw(constant)}, {draw(constant)})"
    if shape == 1:
        return f"{column} BETWEEN {draw(constant)} AND {draw(constant)}"
    if shape == 2:
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    operator = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]))
    return f"{draw(constant)} {operator} {column}" if shape == 3 else f"{column} {operator} {draw(constant)}"


@given(st.lists(conditions(), min_size=1, max_size=3), st.sampled_from([" AND ", " OR "]))
@settings(max_examples=25)
def test_filters_mean_what_they_mean_in_duckdb(odd: dict[str, Table], parts: list[str], word: str) -> None:
    sql = f"SELECT id, f, g FROM shop.odd WHERE {word.join(parts)}"
    try:
        expected = oracle(sql, {"odd": ODD})
    except duckdb.Error:
        with pytest.raises(InvalidInputError):
            answer(sql, odd)
        return
    assert answer(sql, odd) == expected


NESTED = pa.table(
    {
        "id": [1, 2, 3, 4],
        "s": pa.array(
            [{"f": 1.0, "t'x": {"g": math.nan}}, {"f": math.nan, "t'x": None}, None, {"f": 9.0, "t'x": {"g": 3.0}}],
            pa.struct([("f", pa.float64()), ("t'x", pa.struct([("g", pa.float32())]))]),
        ),
        "l": pa.array([[math.nan], [1.0], None, []], pa.list_(pa.float64())),
    }
)


def test_nan_within_structs_is_greater_than_any_number() -> None:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://query/nested")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.nested", NESTED.schema)
    table.append(NESTED)
    inner = """s."t'x".g"""
    for condition in ("s.f > 5", "s.f >= 9", "s.f < 5", f"{inner} > 1", f"{inner} <= 3", "s IS NULL", "l[1] > 5"):
        sql = f"SELECT id, s, l FROM shop.nested WHERE {condition}"
        assert answer(sql, {"nested": table}) == oracle(sql, {"nested": NESTED}), condition


QUERIES = [
    "SELECT region, sum(total) AS s, count(*) AS n FROM shop.orders GROUP BY region",
    "SELECT count(*) AS n FROM shop.orders",
    "WITH o AS (SELECT * FROM shop.orders WHERE id > 5) SELECT a.id, b.total FROM o a JOIN o b ON a.id = b.id + 1",
    "SELECT a.id, b.id AS other FROM shop.orders a LEFT JOIN shop.orders b ON a.id = b.id + 2 AND b.region = 'eu' WHERE a.id < 9",
    "SELECT a.id FROM shop.orders a LEFT JOIN shop.orders b ON a.id = b.id + 7 WHERE b.id IS NULL",
    "SELECT id FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.orders i WHERE i.id = o.id + 1 AND i.region = 'eu')",
    "SELECT id FROM shop.orders WHERE id = (SELECT max(id) FROM shop.orders WHERE region = 'us')",
    "SELECT id FROM shop.orders WHERE region = 'eu' UNION ALL SELECT id FROM shop.orders WHERE id < 3",
    "SELECT region, id, row_number() OVER (PARTITION BY region ORDER BY id) AS n FROM shop.orders WHERE total >= 4 ORDER BY ALL",
    "SELECT total * 2 AS id FROM shop.orders WHERE id > 5",
    "SELECT o.id FROM shop.orders o FULL JOIN (SELECT id + 20 AS id FROM shop.orders) x ON o.id = x.id WHERE o.region = 'us'",
    "FROM shop.orders SELECT max(ts) AS m",
]


@pytest.fixture(scope="module")
def worn() -> dict[int, Table]:
    """The same rows in every version: with deletes of all kinds, a renamed and a new column."""
    tables = {}
    for version in ALL_VERSIONS:
        catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://query/v{version}")
        catalog.create_namespace("shop")
        settings = {"format-version": str(version), **row_modes("merge-on-read" if version > 1 else "copy-on-write")}
        table = catalog.create_table(
            "shop.orders", "id int, area string, total float", partition_spec=["area"], properties=settings
        )
        first = pa.schema([("id", pa.int32()), ("area", pa.string()), ("total", pa.float32())])
        table.append(orders(0, 12).drop_columns("ts").rename_columns(["id", "area", "total"]).cast(first))
        with table.update_schema() as update:
            update.rename_column("area", "region")
            update.update_column("id", types.LongType())
            update.update_column("total", types.DoubleType())
            update.add_column("ts", "timestamp")
        table.append(orders(12, 21))
        table.delete("id in (3, 4, 13)")
        if version > 1:
            # id 19 is in the same partition, and stays.
            delete_equal(table, {"id": [7]}, next(table.scan("id = 7 and region = 'eu'").plan_files()).file)
            delete_equal(table, {"region": ["us"], "id": [20]}, next(table.scan("id = 20").plan_files()).file)
        else:
            table.delete("id in (7, 20)")
        tables[version] = table
    return tables


@pytest.mark.parametrize("sql", QUERIES)
def test_answers_of_every_version(worn: dict[int, Table], sql: str) -> None:
    for version, table in worn.items():
        rows = table.scan().to_arrow()
        assert sorted(rows["id"].to_pylist()) == sorted({*range(20)} - {3, 4, 7, 13})
        assert answer(sql, {"orders": table}) == oracle(sql, {"orders": rows}), version


def test_the_command(lake: Path, run: Run) -> None:
    said = run(
        "query", "SELECT sum(id) AS s FROM shop.orders WHERE region = 'eu' AND id >= 20", "--explain", "-o", "json"
    )
    assert said.result() == [{"s": 125}]
    assert "shop.orders: columns id, region;" in said.err
    assert "1 of 4 data files read, 3 skipped" in said.err
    assert run("query", "SELECT count(*) AS n FROM shop.orders@v1").out == "n\n10\n"
    assert run("query", "SELECT count(*) AS n FROM icefloe.shop.orders@audit", "-o", "csv").out == "n\n15\n"
    Path("q.sql").write_text("SELECT max(id) AS m FROM shop.orders;\n")
    assert run("query", "-f", "q.sql", "-o", "csv").out == "m\n29\n"
    assert run("query", "SELECT 1 AS one", "-o", "csv").out == "one\n1\n"
    assert "no table shop.none" in run("query", "SELECT * FROM shop.none", code=3).err
    assert "has no namespace" in run("query", "SELECT * FROM orders", code=2).err
    assert "only a single query" in run("query", "DELETE FROM shop.orders", code=2).err
    assert "cannot run this query" in run("query", "SELECT nope FROM shop.orders", code=2).err
    for evil in ("read_text('icefloe.toml')", "'icefloe.toml'"):
        assert run("query", f"SELECT * FROM {evil}", code=2).out == ""
    assert run("query", code=2).out == ""


def test_other_libraries_take_scans_as_streams(lake: Path) -> None:
    import polars as pl

    table = icefloe.load_catalog("icefloe").load_table("shop.orders")
    scan = table.scan("region = 'eu'", ("id",))
    assert pa.table(scan).num_rows == pa.RecordBatchReader.from_stream(scan).read_all().num_rows == 9
    assert pl.DataFrame(scan).height == 9
    assert pl.DataFrame(table).height == 19
    with duckdb.connect() as connection:
        connection.register("orders", table)
        assert connection.execute("SELECT count(*) FROM orders a, orders b WHERE a.id = b.id").fetchall() == [(19,)]
    catalog = icefloe.load_catalog("other", type="memory", warehouse="memory://query/streams")
    catalog.create_namespace("n")
    copy = catalog.create_table("n.t", table.schema())
    copy.append(scan)
    assert copy.scan().count() == 9
