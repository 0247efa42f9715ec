"""The 22 queries of TPC-H on one set of files: on our tables, on Java Iceberg's and on plain Parquet, in turn.

DuckDB's extension makes the rows and knows the queries. Tables are written by us, once; Java reads the same, and plain Parquet
reads their files.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb_extension_tpch

from bench.engines.engine import Engine
from bench.engines.workload import chosen, duckdb_with, measured, three_sides, totals, write_table
from bench.report import Row

SCALE = {"small": 0.01, "medium": 1.0, "full": 3.0}
REPEAT = {"small": 1, "medium": 3, "full": 3}


def run(size: str, cases: str | None = None, tables: str | None = None) -> Iterator[Row]:
    """Each query, or those of some numbers, against Java; tables are made in a folder of their own, or once in one that is kept."""
    with duckdb_with(duckdb_extension_tpch) as duck:

        def make(ours: Engine, home: Path) -> None:
            duck.execute(f"CALL dbgen(sf = {SCALE[size]})")
            for [table] in duck.execute("SHOW TABLES").fetchall():
                write_table(ours, duck, table, home)

        with three_sides(make, tables) as sides:
            yield from measured(sides, chosen(texts(duck), cases), REPEAT[size])


def total(size: str, rows: Sequence[Row]) -> Iterator[Row]:
    """All queries together."""
    yield from totals(rows, SCALE[size])


def texts(duck: Any) -> dict[int, str]:
    """The queries by number."""
    found = duck.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY 1").fetchall()
    return {int(number): str(text).strip().rstrip(";") for number, text in found}
