"""Every library of Arrow's PyCapsule interface takes tables and scans as they are, with deletes applied."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

import icefloe
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.shared_rows import row_modes


@pytest.fixture(params=ALL_VERSIONS)
def table(request: pytest.FixtureRequest) -> Iterator[Table]:
    """Rows 0 to 9 without 3, in two files."""
    version = request.param
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://streams/v{version}")
    catalog.create_namespace("shop")
    modes = row_modes("merge-on-read" if version > 1 else "copy-on-write")
    made = catalog.create_table("shop.t", "id long, s string", properties={"format-version": str(version), **modes})
    for start in (0, 5):
        ids = range(start, start + 5)
        made.append(pa.table({"id": pa.array(ids, pa.int64()), "s": [f"row {each}" for each in ids]}))
    made.delete("id = 3")
    yield made
    catalog.close()


IDS = [0, 1, 2, 4, 5, 6, 7, 8, 9]


def test_duckdb(table: Table) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.register("t", table)
        assert connection.execute("SELECT id FROM t ORDER BY id").fetchall() == [(each,) for each in IDS]


def test_polars(table: Table) -> None:
    import polars as pl

    assert sorted(pl.DataFrame(table)["id"]) == sorted(table.to_polars().collect()["id"]) == IDS


def test_pandas(table: Table) -> None:
    assert sorted(table.scan("id > 1").to_pandas()["id"]) == IDS[2:]
    assert sorted(pa.table(table).to_pandas()["s"])[0] == "row 0"


@pytest.mark.filterwarnings("ignore")  # those of a library that is not ours
def test_datafusion(table: Table) -> None:
    datafusion = pytest.importorskip("datafusion", reason="it comes with the packages for development")

    context = datafusion.SessionContext()
    context.from_arrow(table, name="t")
    rows = context.sql("SELECT id FROM t WHERE id > 1 ORDER BY id").to_arrow_table()
    assert rows["id"].to_pylist() == IDS[2:]


@pytest.mark.filterwarnings("ignore")  # those of a library that is not ours
def test_daft(table: Table) -> None:
    daft = pytest.importorskip("daft", reason="it comes with the packages for development")

    frame = daft.from_arrow(pa.table(table.scan("id > 1")))
    assert sorted(frame.to_pydict()["id"]) == IDS[2:]


def test_rows_of_a_table_go_into_another(table: Table) -> None:
    catalog = icefloe.load_catalog("other", type="memory", warehouse="memory://streams/other")
    catalog.create_namespace("shop")
    copy = catalog.create_table("shop.copy", table.schema())
    copy.append(table)
    assert sorted(copy.scan().to_arrow()["id"].to_pylist()) == IDS
