"""Tables are written from frames of pandas and polars, and read into them."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import icefloe
from icefloe.table import Table


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Table:
    catalog = icefloe.load_catalog(request.node.name, type="memory")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id long not null, name string, score double")


def test_pandas_both_ways(table: Table) -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["a", None], "score": [0.5, 1.5]})
    table.append(frame)
    found = table.scan("id > 1").to_pandas()
    assert found["id"].tolist() == [2]
    assert found["name"].isna().tolist() == [True]
    assert table.scan().to_pandas()["score"].tolist() == [0.5, 1.5]


def test_polars_both_ways(table: Table) -> None:
    frame = pl.DataFrame({"id": [1, 2], "name": ["a", None], "score": [0.5, 1.5]})
    table.append(frame)
    table.append(frame.lazy().filter(pl.col("id") == 1))
    assert table.scan().to_polars().sort("id")["id"].to_list() == [1, 1, 2]
    table.upsert(pl.DataFrame({"id": [2], "name": ["b"], "score": [9.0]}), join_cols=["id"])
    assert table.scan("id = 2").to_polars()["name"].to_list() == ["b"]


def test_duckdb_reads_a_scan(table: Table) -> None:
    table.append(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"], "score": [1.0, 2.0, 3.0]}))
    connection = table.scan("id >= 2").to_duckdb("found")
    assert connection.sql("select sum(score) from found").fetchall() == [(5.0,)]
