"""The 99 queries of TPC-DS on one set of files: on our tables, on Java Iceberg's and on plain Parquet, in turn.

DuckDB's extension makes the rows and knows the queries. Tables are written by us, once, those of facts partitioned by date; Java
reads the same, and plain Parquet reads their files. Rows that are equal by a query's order come in any order.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb_extension_tpcds

from bench.engines.engine import Engine
from bench.engines.workload import chosen, duckdb_with, measured, three_sides, totals, write_table
from bench.report import Row

SCALE = {"small": 0.01, "medium": 1.0, "full": 3.0}
REPEAT = {"small": 1, "medium": 1, "full": 1}
DATES = {
    "catalog_returns": "cr_returned_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "inventory": "inv_date_sk",
    "store_returns": "sr_returned_date_sk",
    "store_sales": "ss_sold_date_sk",
    "web_returns": "wr_returned_date_sk",
    "web_sales": "ws_sold_date_sk",
}
"""The tables of facts, and their dates, which are numbers of days."""
DAYS = 90
"""How many of them a partition has."""
_QUOTED_NAME = re.compile(r'"([^"]+)"')


def run(size: str, cases: str | None = None, tables: str | None = None) -> Iterator[Row]:
    """Each query, or those of some numbers, against Java; tables are made in a folder of their own, or once in one that is kept."""
    with duckdb_with(duckdb_extension_tpcds) as duck:

        def make(ours: Engine, home: Path) -> None:
            duck.execute(f"CALL dsdgen(sf = {SCALE[size]})")
            for [table] in duck.execute("SHOW TABLES").fetchall():
                spec = f"PARTITIONED BY (truncate({DAYS}, {DATES[table]}))" if table in DATES else ""
                write_table(ours, duck, table, home, spec)

        with three_sides(make, tables) as sides:
            yield from measured(sides, chosen(texts(duck), cases), REPEAT[size])


def total(size: str, rows: Sequence[Row]) -> Iterator[Row]:
    """All queries together."""
    yield from totals(rows, SCALE[size])


def texts(duck: Any) -> dict[int, str]:
    """The queries by number, as Spark reads them."""
    found = duck.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    return {int(number): for_spark(str(text)) for number, text in found}


def for_spark(text: str) -> str:
    """The query with names in backquotes.

    That is all that is written otherwise, in queries 16, 32, 50, 62, 92, 94, 95 and 99: Spark takes what is in double quotes for a text.
    """
    return _QUOTED_NAME.sub(r"`\1`", text.strip().rstrip(";"))
