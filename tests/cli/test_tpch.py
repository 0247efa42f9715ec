"""The 22 queries of TPC-H: `icefloe query` answers them as DuckDB does over tables of its own."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

import icefloe
from icefloe.table import Table
from tests.cli.test_query import answer, rows_of

tpch = pytest.importorskip(
    "duckdb_extension_tpch", reason="the rows and queries of TPC-H come with `pip install 'icefloe[bench]'`"
)
pytestmark = pytest.mark.slow
NAMES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


@pytest.fixture(scope="module")
def duck() -> Any:
    [extension] = Path(str(tpch.__file__)).parent.rglob("*.duckdb_extension")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{extension}'")
    connection.execute("CALL dbgen(sf = 0.02)")
    return connection


@pytest.fixture(scope="module")
def tables(duck: Any) -> dict[str, Table]:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://tpch/lake")
    catalog.create_namespace("shop")
    made = {}
    for name in NAMES:
        rows = duck.execute(f"SELECT * FROM {name}").to_arrow_table()
        table = catalog.create_table(f"shop.{name}", rows.schema, properties={"format-version": "3"})
        half = rows.num_rows // 2
        for part in (rows.slice(0, half), rows.slice(half)):
            if part.num_rows:
                table.append(part)
        made[name] = table
    return made


@pytest.mark.parametrize("number", range(1, 23))
def test_a_query(duck: Any, tables: dict[str, Table], number: int) -> None:
    [(sql,)] = duck.execute("SELECT query FROM tpch_queries() WHERE query_nr = ?", [number]).fetchall()
    with_names = in_catalog(sql)
    expected = rows_of(duck.execute(sql).to_arrow_table())
    assert answer(with_names, tables) == expected


def in_catalog(sql: str) -> str:
    """The query with a namespace before each table that is read."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, dialect="duckdb")
    for table in tree.find_all(exp.Table):
        if table.name in NAMES and not table.db:
            table.set("db", exp.to_identifier("shop"))
    return str(tree.sql(dialect="duckdb"))
