"""The 99 queries of TPC-DS on one set of files: on our tables, on Java Iceberg's and on plain Parquet, in turn.

DuckDB's extension makes the rows and knows the queries. Tables are written by us, once, those of facts partitioned by date; Java
reads the same, and plain Parquet reads their files. Rows that are equal by a query's order come in any order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_tpcds

from bench.engines.engine import CATALOG, Engine, EngineError, engines
from bench.report import Row

SCALE = {"small": 0.01, "medium": 1.0, "full": 3.0}
PLAIN = "plain"
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


def run(size: str) -> Iterator[Row]:
    """Each query against Java, then all together against Java and against plain Parquet."""
    with engines() as (ours, java, home), tpcds(SCALE[size]) as duck:
        _make(ours, duck, home)
        work = [(ours, f"{CATALOG}.db"), (java, f"{CATALOG}.db"), (ours, f"spark_catalog.{PLAIN}")]
        totals = [0.0, 0.0, 0.0]
        for number, text in queries(duck).items():
            runs = [engine.run("sql", text=text, use=place) for engine, place in work]
            answers = [sorted(rows) for _, rows in runs]
            if any(answer != answers[0] for answer in answers):
                raise EngineError(f"the answers of query {number} differ: {str(answers)[:2000]}")
            # The first run has made all warm.
            seconds = [engine.run("sql", text=text, use=place)[0] for engine, place in work]
            totals = [one + other for one, other in zip(totals, seconds, strict=True)]
            yield Row(f"q{number:02}", seconds[0], seconds[1], 1.0, f"plain Parquet {seconds[2]:.3g} s")
        note = f"all queries at scale {SCALE[size]}"
        yield Row("all-against-java", totals[0], totals[1], 1.0, note)
        yield Row("all-against-parquet", totals[0], totals[2], 1.0, note)


@contextmanager
def tpcds(scale: float) -> Iterator[Any]:
    """The rows, in DuckDB."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    [extension] = Path(str(duckdb_extension_tpcds.__file__)).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL dsdgen(sf = {scale})")
    yield connection
    connection.close()


def queries(duck: Any) -> dict[int, str]:
    """The queries by number."""
    texts = duck.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    return {int(number): str(text).strip().rstrip(";") for number, text in texts}


def _make(ours: Engine, duck: Any, home: Path) -> None:
    """Our tables, and the same files as plain tables of Spark."""
    ours.sql(f"CREATE DATABASE spark_catalog.{PLAIN}")
    for [table] in duck.execute("SHOW TABLES").fetchall():
        whole, file = f"{CATALOG}.db.{table}", f"{home}/{table}.parquet"
        duck.execute(f"COPY {table} TO '{file}' (FORMAT parquet)")
        spec = f"PARTITIONED BY (truncate({DAYS}, {DATES[table]}))" if table in DATES else ""
        ours.sql(f"CREATE TABLE {whole} USING iceberg {spec} AS SELECT * FROM parquet.`{file}`")
        # The plain table has the same rows in as many files, of which Spark alone knows nothing.
        ours.sql(f"CREATE TABLE spark_catalog.{PLAIN}.{table} USING parquet AS SELECT * FROM {whole}")
