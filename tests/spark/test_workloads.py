"""Queries of TPC-DS and TPC-H over our tables, whose answers are those of Spark over the same files as plain Parquet."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import icefloe
from icefloe.spark.connect import connect

for _package in ("duckdb_extension_tpcds", "duckdb_extension_tpch"):
    pytest.importorskip(
        _package, reason="the rows and queries of TPC-DS and TPC-H come with `pip install 'icefloe[bench]'`"
    )

from bench import tpcds, tpch  # noqa: E402 - they need the packages above
from bench.engines.workload import duckdb_with, without_limit  # noqa: E402 - as above

SCALE = 0.01
FEW = (6, 12)
MAKES = {"tpcds": (tpcds, "dsdgen"), "tpch": (tpch, "dbgen")}


class Workload:
    """The queries of a workload, and two sessions of one Spark with its tables: ours, and plain Parquet."""

    def __init__(self, ours: Any, plain: Any, texts: dict[int, str]) -> None:
        self.ours, self.plain, self.texts = ours, plain, texts

    def check(self, number: int) -> int:
        """How many rows a query has, which must be the same in both; a limit may cut through rows of equal order."""
        text = without_limit(self.texts[number])
        ours, plain = (_shown(session.sql(text).collect()) for session in (self.ours, self.plain))
        assert ours == plain
        return len(ours)


def _shown(rows: list[Any]) -> list[list[str]]:
    """Rows in an order of their own; the last digits of floating sums depend on the order of tasks."""
    return sorted([f"{value:.6g}" if isinstance(value, float) else str(value) for value in row] for row in rows)


@contextmanager
def made(name: str, spark: Any, folder: Path) -> Iterator[Workload]:
    """The tables, in v3; those of facts are partitioned."""
    module, generator = MAKES[name]
    catalog = icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder))
    catalog.create_namespace("shop")
    plain = spark.newSession()
    with duckdb_with(getattr(module, f"duckdb_extension_{name}")) as duck:
        duck.execute(f"CALL {generator}(sf = {SCALE})")
        for [table] in duck.execute("SHOW TABLES").fetchall():
            rows = duck.execute(f"SELECT * FROM {table}").to_arrow_table()
            dates = getattr(module, "DATES", {})
            spec = [f"truncate({module.DAYS}, {dates[table]})"] if table in dates else None
            properties = {"format-version": "3"}
            held = catalog.create_table(f"shop.{table}", rows.schema, partition_spec=spec, properties=properties)
            held.append(rows)
            reader = plain.read.option("recursiveFileLookup", "true")
            reader.parquet(f"{held.location()}/data").createOrReplaceTempView(table)
        texts = module.texts(duck)
    with ExitStack() as stack:
        stack.callback(catalog.close)
        ours = connect(catalog, spark=spark.newSession())
        ours.sql("USE lake.shop")
        yield Workload(ours, plain, texts)


@pytest.fixture(scope="module")
def workload(
    request: pytest.FixtureRequest, spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workload]:
    """The one that a test names."""
    with made(request.param, spark, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.mark.parametrize("workload", ["tpch"], indirect=True)
def test_a_few_queries(workload: Workload) -> None:
    assert all(workload.check(number) for number in FEW), "each has rows at this scale"


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("workload", MAKES, indirect=True)
def test_all_queries(workload: Workload) -> None:
    answered = [number for number in workload.texts if workload.check(number)]
    assert len(answered) >= len(workload.texts) // 2, f"most have rows: {answered}"
