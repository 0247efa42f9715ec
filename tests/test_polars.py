"""Lazy queries of Polars over tables: the answers of Polars over the same rows, from no more files than needed."""

import datetime as dt
import math
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import icefloe
from icefloe.planning import ScanReport
from icefloe.table import Table

REPORTS: list[ScanReport] = []


def gather(report: object) -> None:
    """Stands where reports of scans and commits go."""
    if isinstance(report, ScanReport):
        REPORTS.append(report)


VALUES = [None, -1.5, -0.0, 0.0, 1.0, 2.5, math.nan, math.inf]
ROWS = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "f": pa.array(VALUES * 5, pa.float64()),
        "g": pa.array(VALUES * 5, pa.float32()),
        "s": pa.array(["a", "", None, "b", "é"] * 8),
        "d": pa.array([None if n % 7 == 0 else dt.date(2026, 1, 1) + dt.timedelta(n) for n in range(40)], pa.date32()),
        "t": pa.array([dt.datetime(2026, 1, 1) + dt.timedelta(n) for n in range(40)], pa.timestamp("us")),
        "z": pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(n) for n in range(40)], pa.timestamp("us", "UTC")),
        "b": pa.array([True, False, None, True] * 10),
        "a.b": pa.array(range(40), pa.int32()),
        "l": pa.array([[n] for n in range(40)], pa.list_(pa.int64())),
    }
)  # fmt: skip


@pytest.fixture(scope="module")
def table() -> Table:
    settings = {"metrics-reporter-impl": f"{__name__}.gather"}
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://polars/lake", **settings)
    catalog.create_namespace("shop")
    made = catalog.create_table("shop.odd", ROWS.schema)
    for start in range(0, 40, 10):
        made.append(ROWS.slice(start, 10))
    return made


FILTERS: dict[str, tuple[Any, int | None]] = {
    "equal": (pl.col("id") == 15, 1),
    "swapped": (pl.lit(35) <= pl.col("id"), 1),
    "two": ((pl.col("id") > 5) & (pl.col("t") < dt.datetime(2026, 1, 9)), 1),
    "half understood": ((pl.col("id") >= 30) & (pl.col("s").str.len_chars() > 0), 1),
    "or": ((pl.col("id") < 3) | (pl.col("id") > 37), 2),
    "or, half understood": ((pl.col("id") < 3) | (pl.col("s").str.len_chars() > 0), 4),
    "in": (pl.col("id").is_in([1, 11, 12]), 2),
    "between": (pl.col("id").is_between(10, 20, closed="left"), 1),
    "date": (pl.col("d") >= dt.date(2026, 2, 5), 1),
    "zone": (pl.col("z") >= dt.datetime(2026, 2, 5, tzinfo=dt.UTC), 1),
    "null": (pl.col("s").is_null(), None),
    "not null": (pl.col("d").is_not_null() & (pl.col("id") < 10), 1),
    "NaN is greater": (pl.col("f") > 1, None),
    "NaN is greater or equal": (pl.col("f") >= 2.5, None),
    "NaN is equal to itself": (pl.col("f") == math.nan, None),
    "zero": (pl.col("f") == 0, None),
    "less": (pl.col("f") < 1, None),
    "floats of 32 bits": (pl.col("g") >= 2.5, None),
    "text": (pl.col("s") == "é", None),
    "not": (~(pl.col("id") > 5), None),
    "not equal": (pl.col("s") != "a", None),
    "truth": (pl.col("b"), None),
    "a name with a dot": (pl.col("a.b") > 35, None),
    "too large": (pl.col("id") > 2**63, None),
    "list": (pl.col("l").list.first() == 3, None),
    "null constant": (pl.col("id") == pl.lit(None, pl.Int64), None),
    "a missing value among others": (pl.col("s").is_in(["a", None]), None),
}


@pytest.mark.parametrize("name", FILTERS)
def test_answers_are_those_of_polars(table: Table, name: str) -> None:
    predicate, files = FILTERS[name]
    REPORTS.clear()
    try:
        expected = pl.DataFrame(ROWS).filter(predicate)
    except pl.exceptions.PolarsError:
        pytest.skip("Polars itself refuses it")
    answer = table.to_polars().filter(predicate).collect().sort("id")
    assert answer.equals(expected, null_equal=True) or str(answer) == str(expected)
    [report] = REPORTS
    assert report.counts.data_files == 4
    if files is not None:
        assert report.counts.result_data_files == files


def test_columns_and_limit_are_read_alone(table: Table) -> None:
    REPORTS.clear()
    query = table.to_polars().filter(pl.col("id") > 25).select("s", "id").head(3)
    answer = query.collect()
    assert answer.columns == ["s", "id"]
    assert len({*answer["id"]} & {*range(26, 40)}) == 3
    assert set(REPORTS[0].projected_fields) == {"id", "s"}
    assert table.to_polars().select(pl.len()).collect().item() == 40
    assert table.to_polars().head(7).collect().height == 7
    assert table.to_polars().filter(pl.col("id") > 30).head(0).collect().height == 0
    assert table.scan("id > 5", ("id",)).to_polars_lazy().filter(pl.col("id") < 9).collect()["id"].to_list() == [
        6,
        7,
        8,
    ]
    first = table.scan(limit=5).to_arrow()["id"].to_pylist()
    limited = table.scan(limit=5).to_polars_lazy().filter(pl.col("id") > first[2]).collect()
    assert limited["id"].to_list() == [each for each in first if each > first[2]]
    grouped = table.to_polars().group_by("b").agg(pl.col("id").sum()).sort("b", nulls_last=True).collect()
    assert grouped.equals(pl.DataFrame(ROWS).group_by("b").agg(pl.col("id").sum()).sort("b", nulls_last=True))
