"""The 22 queries of TPC-H on one set of files: on our tables, on Java Iceberg's and on plain Parquet, in turn.

DuckDB's extension makes the rows, knows the queries, and says how many rows answer them. Tables are written by us, once; Java
reads the same, and plain Parquet reads their files.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_tpch

from bench.engines.engine import CATALOG, Engine, EngineError, engines, in_turn
from bench.report import Row

SCALE = {"small": 0.01, "medium": 1.0, "full": 3.0}
REPEAT = {"small": 1, "medium": 1, "full": 3}
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
PLAIN = "plain"


def run(size: str) -> Iterator[Row]:
    """Each query against Java, then all together against Java and against plain Parquet."""
    with engines() as (ours, java, home), _duckdb(SCALE[size]) as duck:
        _make(ours, duck, home)
        work = [(ours, f"{CATALOG}.db"), (java, f"{CATALOG}.db"), (ours, f"spark_catalog.{PLAIN}")]
        totals = [0.0, 0.0, 0.0]
        for number, text in _queries(duck).items():
            asked = [(engine, "sql", {"text": text, "use": place}) for engine, place in work]
            expected = len(duck.execute(text).fetchall())
            measured = in_turn(asked, REPEAT[size], rows=expected)
            seconds = [each.median for each in measured]
            totals = [one + other for one, other in zip(totals, seconds, strict=True)]
            yield Row(f"q{number:02}", seconds[0], seconds[1], 1.0, f"plain Parquet {seconds[2]:.3g} s")
        note = f"all queries at scale {SCALE[size]}"
        yield Row("all-against-java", totals[0], totals[1], 1.0, note)
        yield Row("all-against-parquet", totals[0], totals[2], 1.05, note)


@contextmanager
def _duckdb(scale: float) -> Iterator[Any]:
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    [extension] = Path(str(duckdb_extension_tpch.__file__)).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL dbgen(sf = {scale})")
    yield connection
    connection.close()


def _make(ours: Engine, duck: Any, home: Path) -> None:
    """Our tables, and the same files as plain tables of Spark."""
    ours.sql(f"CREATE DATABASE spark_catalog.{PLAIN}")
    for table in TABLES:
        whole, file = f"{CATALOG}.db.{table}", f"{home}/{table}.parquet"
        duck.execute(f"COPY {table} TO '{file}' (FORMAT parquet)")
        ours.sql(f"CREATE TABLE {whole} USING iceberg AS SELECT * FROM parquet.`{file}`")
        [[found]] = ours.sql(f"SELECT count(*) FROM {whole}")
        [[expected]] = duck.execute(f"SELECT count(*) FROM {table}").fetchall()
        if int(found) != expected:
            raise EngineError(f"{table} has {found} rows of {expected}")
        [[folder]] = ours.sql(f"SELECT DISTINCT regexp_replace(file_path, '/[^/]*$', '') FROM {whole}.files")
        ours.sql(f"CREATE TABLE spark_catalog.{PLAIN}.{table} USING parquet LOCATION '{folder}'")


def _queries(duck: Any) -> dict[int, str]:
    texts = duck.execute("SELECT query_nr, query FROM tpch_queries() ORDER BY 1").fetchall()
    return {int(number): str(text).strip().rstrip(";") for number, text in texts}
