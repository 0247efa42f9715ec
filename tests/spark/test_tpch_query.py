"""`icefloe query` answers the 22 queries of TPC-H as Spark does over the same tables, and skips files by its plan."""

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "duckdb_extension_tpch", reason="the rows and queries of TPC-H come with `pip install 'icefloe[bench]'`"
)
from icefloe.query.engine import Engine, Source, reports
from icefloe.query.statement import read_statement
from icefloe.spark.connect import connect
from tests.cli.test_tpch import NAMES, duck, in_catalog

pytestmark = pytest.mark.slow
__all__ = ["duck"]


@pytest.fixture(scope="module")
def ice(spark: Any, duck: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A session that knows the tables; those of orders and lines are partitioned by month."""
    import icefloe

    folder: Path = tmp_path_factory.mktemp("tpch")
    catalog = icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder))
    catalog.create_namespace("shop")
    months = {"lineitem": ["months(l_shipdate)"], "orders": ["months(o_orderdate)"]}
    for name in NAMES:
        rows = duck.execute(f"SELECT * FROM {name}").to_arrow_table()
        properties = {"format-version": "3"}
        catalog.create_table(
            f"shop.{name}", rows.schema, partition_spec=months.get(name), properties=properties
        ).append(rows)
    return connect(catalog, spark=spark)


def ordered(rows: list[list[Any]]) -> list[list[Any]]:
    """Rows in order; numbers to within a millionth, as Spark rounds quotients of decimals."""
    plain = [[_plain(value) for value in row] for row in rows]
    return sorted(plain, key=lambda row: [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row])


def _plain(value: Any) -> Any:
    if isinstance(value, int | float | decimal.Decimal):
        return float(value)
    return value.isoformat() if isinstance(value, dt.date) else str(value).rstrip()


@pytest.mark.parametrize("number", range(1, 23))
def test_a_query(ice: Any, duck: Any, number: int) -> None:
    import sqlglot

    [(text,)] = duck.execute("SELECT query FROM tpch_queries() WHERE query_nr = ?", [number]).fetchall()
    sql = in_catalog(text)
    statement, engine = read_statement(sql), Engine()
    scans = {use.number: ice.catalog.load_table(use.parts).scan() for use in statement.uses}
    needs = statement.needs({key: scan.schema.column_names for key, scan in scans.items()})
    sources = {use.number: Source(use, engine.narrowed(scans[use.number], needs[use.number])) for use in statement.uses}
    try:
        ours = [list(row.values()) for row in engine.answer(statement, sources).read_all().to_pylist()]
        told = list(reports(sources))
    finally:
        engine.close()
    [spark_sql] = sqlglot.transpile(sql, read="duckdb", write="spark")
    theirs = [list(row) for row in ice.sql(spark_sql).collect()]
    assert ours
    assert len(ours) == len(theirs)
    for one, other in zip(ordered(ours), ordered(theirs), strict=True):
        assert one == [
            pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value for value in other
        ]
    if number in (3, 4, 5, 6, 7, 8, 10, 12, 14, 15, 20):
        # Those that ask for a span of dates.
        assert any(each["data_files_read"] < each["data_files"] for each in told), told
