"""Positions of rows by Spark's reader, on which deletes and row ids rest: whatever it skips, splits, or a column is called."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import StateError
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.reading import new_catalog

ROWS = 6_000
EVERY = 7
"""One in so many rows is deleted."""
SPARKS_NAME = "_tmp_metadata_row_index"
"""What Spark's reader calls positions."""

# What is asked of rows, for Spark and in Python: nothing, what lets it skip row groups and pages, and positions themselves.
FILTERS = {
    "true": lambda _: True,
    "id >= 4321": lambda each: each >= 4321,
    "id in (5, 2222, 5999)": lambda each: each in (5, 2222, 5999),
    "id > 1000 and other = 3": lambda each: each > 1000 and each % 100 == 3,
    "nested.a between 3000 and 3010": lambda each: 3000 <= each <= 3010,
    "_pos >= 100 and _pos < 4000": lambda each: 100 <= each < 4000,
    "_row_id = 4001 or _pos = 17": lambda each: each in (4001, 17),
}
SETTINGS = {
    "as it is": {},
    "one row at a time": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "nested ones row by row": {"spark.sql.parquet.enableNestedColumnVectorizedReader": "false"},
    "files in pieces": {"spark.sql.files.maxPartitionBytes": "20000", "spark.sql.files.openCostInBytes": "0"},
    "without generated code": {"spark.sql.codegen.wholeStage": "false"},
}


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("positions")), spark=spark) as session:
        yield session


def made_table(ice: Session, name: str, column: str) -> Table:
    """One file of several row groups in the order of ids, so that positions and row ids are ids, with some rows deleted."""
    options = {
        "format-version": "3",
        "write.delete.mode": "merge-on-read",
        "write.parquet.row-group-size-bytes": "20000",
        "write.parquet.page-row-limit": "100",
    }
    schema = f"id long, {column} long, nested struct<a: long, b: list<string>>"
    table = ice.catalog.create_table(("db", name), schema=schema, properties=options)
    ids = range(ROWS)
    nested = [{"a": each, "b": [str(each)]} for each in ids]
    table.append(pa.table({"id": pa.array(ids), column: [each % 100 for each in ids], "nested": nested}))
    [task] = table.scan().plan_files()
    assert len(task.file.split_offsets or ()) > 2, "the file has few row groups"
    table.delete(f"id in ({', '.join(map(str, range(0, ROWS, EVERY)))})")
    return table


@pytest.fixture(scope="module")
def table(ice: Session) -> Table:
    """A table with the usual names."""
    return made_table(ice, "plain", "other")


def check(ice: Session, table: Table, which: str, is_wanted: Any, **options: str) -> None:
    rows = ice.table(table.name(), selected_fields=("*", "_pos", "_row_id"), options=options)
    found = sorted(rows.filter(which).select("id", "_pos", "_row_id").collect())
    assert found == [(each, each, each) for each in range(ROWS) if each % EVERY and is_wanted(each)]


@pytest.mark.parametrize("which", FILTERS)
@pytest.mark.parametrize("how", SETTINGS)
def test_positions_are_right_whatever_is_skipped(ice: Session, table: Table, which: str, how: str) -> None:
    before = {key: ice.spark.conf.get(key) for key in SETTINGS[how]}
    try:
        for key, value in SETTINGS[how].items():
            ice.spark.conf.set(key, value)
        check(ice, table, which, FILTERS[which], **{"read.engine": "native"})
    finally:
        for key, kept in before.items():
            ice.spark.conf.set(key, kept)


@pytest.mark.parametrize("column", [SPARKS_NAME, SPARKS_NAME.upper()])
def test_a_column_may_be_called_as_spark_calls_positions(ice: Session, column: str) -> None:
    table = made_table(ice, f"called_{column}", column)
    with pytest.raises(StateError, match="what Spark's reader calls the positions"):
        ice.table(table.name(), options={"read.engine": "native"})
    check(ice, table, "true", FILTERS["true"])
    check(ice, table, f"{column} = 3 and id > 1000", FILTERS["id > 1000 and other = 3"])
    with table.update_schema() as update:
        update.rename_column(column, "other")
    check(ice, table, "id > 1000 and other = 3", FILTERS["id > 1000 and other = 3"])
    check(ice, table, "_pos >= 100 and _pos < 4000", FILTERS["_pos >= 100 and _pos < 4000"])
