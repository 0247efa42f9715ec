"""Aggregates that metadata answers equal those of the rows, for tables of all kinds; where they might not, there is no answer."""

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.catalog import Catalog
from icefloe.expressions import as_expression
from icefloe.spark.metadata_answers import Aggregate, answers, as_text
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.spark.reading import delete_equal, new_catalog

SCHEMA = "id long, n int, x double, s string, d date, dec decimal(9, 2), b boolean"
ARROW = pa.schema(
    {
        "id": pa.int64(),
        "n": pa.int32(),
        "x": pa.float64(),
        "s": pa.string(),
        "d": pa.date32(),
        "dec": pa.decimal128(9, 2),
        "b": pa.bool_(),
    }
)
COLUMNS = tuple(ARROW.names)
FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.5, math.nan, math.inf, None])
ROWS = st.lists(
    st.tuples(
        st.integers(-5, 5) | st.none(),
        st.integers(-3, 3) | st.none(),
        FLOATS,
        st.sampled_from(["a", "b" * 40, "ä", "", None]),
        st.dates(dt.date(2020, 1, 1), dt.date(2020, 2, 1)) | st.none(),
        st.decimals(-99, 99, places=2) | st.none(),
        st.booleans() | st.none(),
    ),
    min_size=1,
    max_size=6,
)
FILTERS = ["", "n = 1", "n in (0, 2)", "id < 3", "n is null", "d >= '2020-01-10'", "b = true and n > -2"]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return new_catalog(tmp_path_factory.mktemp("answers"))


def computed(rows: pa.Table, name: str, column: str | None) -> Any:
    """By the rows, in the order of Spark, where NaN is greater than all else."""
    if column is None:
        return rows.num_rows
    values = [value for value in rows.column(column).to_pylist() if value is not None]
    if name == "count":
        return len(values)
    order = (lambda value: (math.isnan(value), value)) if column == "x" else lambda value: value
    return (min if name == "min" else max)(values, key=order) if values else None


def shown(value: Any) -> Any:
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


@given(
    version=st.sampled_from(ALL_VERSIONS),
    parts=st.lists(ROWS, min_size=1, max_size=3),
    deleted=st.sampled_from([None, None, "id = 1", "n = 1", "equal"]),
    evolves=st.booleans(),
    text=st.sampled_from(FILTERS),
)
@settings(max_examples=6)
def test_answers_are_those_of_the_rows(
    catalog: Catalog, version: int, parts: list[list[tuple[Any, ...]]], deleted: str | None, evolves: bool, text: str
) -> None:
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    name = ("db", f"t{abs(hash((version, str(parts), deleted, evolves)))}")
    if catalog.table_exists(name):
        catalog.drop_table(name)
    table = catalog.create_table(name, SCHEMA, partition_spec=["n"], properties=properties)
    for place, rows in enumerate(parts):
        if place and evolves:
            with table.update_schema() as change:
                change.update_column("n", "long") if place == 1 else change.add_column(f"more_{place}", "long")
        columns = [
            pa.array(list(column), field.type) for column, field in zip(zip(*rows, strict=True), ARROW, strict=True)
        ]
        data = pa.Table.from_arrays(columns, schema=ARROW)
        if evolves and place:
            data = data.set_column(1, "n", data["n"].cast(pa.int64()))
        table.append(data)
    if deleted == "equal" and version > 1:
        delete_equal(table, {"id": [1]}, next(table.scan().plan_files()).file)
    elif deleted is not None and deleted != "equal":
        table.delete(deleted)
    fields = {field.name: field for field in table.schema().fields}
    rows = table.scan(text).to_arrow()
    of_columns = [(call, column) for call in ("count", "min", "max") for column in COLUMNS]
    for call, column in [("count", None), *of_columns]:
        asked = Aggregate(call, None if column is None else fields[column])
        answer = answers(table.scan(), as_expression(text or None), [asked])
        if answer is not None:
            assert as_text(answer[0]) == as_text(shown(computed(rows, call, column))), (call, column)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_what_is_answered(catalog: Catalog, version: int) -> None:
    """Numbers and times of all versions; texts where bounds are known to be values; partitions, and files as a whole."""
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table(("db", f"known{version}"), SCHEMA, partition_spec=["n"], properties=properties)
    for n in range(3):
        row = {"id": n, "n": n, "x": n + 0.5, "s": "text", "d": dt.date(2020, 1, n + 1), "dec": None, "b": True}
        table.append(pa.Table.from_pylist([row, {**row, "id": n + 10, "s": None}], schema=ARROW))
    fields = {field.name: field for field in table.schema().fields}

    def ask(where: str, *asked: tuple[str, str | None]) -> list[Any] | None:
        aggregates = [Aggregate(name, None if column is None else fields[column]) for name, column in asked]
        return answers(table.scan(), as_expression(where or None), aggregates)

    assert ask("", ("count", None), ("min", "id"), ("max", "x"), ("max", "d"), ("count", "s")) == [6, 0, 2.5, 18264, 3]
    assert ask("", ("max", "dec"), ("count", "dec"), ("min", "b")) == [None, 0, True]
    assert ask("n in (0, 1)", ("count", None), ("max", "id")) == [4, 11]
    assert ask("x < 2.0", ("count", None)) == [4]
    assert ask("id < 11", ("count", None)) is None
    assert ask("", ("min", "s")) == (["text"] if version >= 4 else None)
    if version >= 3:
        table.delete("id = 12")
        assert ask("", ("count", None)) == [5]
        assert ask("", ("max", "id")) is None
        assert ask("n < 2", ("count", None), ("max", "id")) == [4, 11]


def test_bounds_of_columns_that_were_replaced_are_not_taken(catalog: Catalog) -> None:
    """A date that became a timestamp has other numbers in older files."""
    table = catalog.create_table(("db", "promoted"), "d date", properties={"format-version": "3"})
    table.append(pa.table({"d": [dt.date(2020, 1, 1)]}))
    with table.update_schema() as change:
        change.update_column("d", "timestamp")
    [field] = table.schema().fields
    assert answers(table.scan(), as_expression(None), [Aggregate("max", field)]) is None
    assert answers(table.scan(), as_expression(None), [Aggregate("count", None)]) == [1]


def test_no_rows_have_no_values(catalog: Catalog) -> None:
    table: Table = catalog.create_table(("db", "empty"), SCHEMA)
    [field] = [field for field in table.schema().fields if field.name == "id"]
    asked = [Aggregate("count", None), Aggregate("min", field)]
    assert answers(table.scan(), as_expression(None), asked) == [0, None]
    table.append(pa.table({name: pa.array([], ARROW.field(name).type) for name in COLUMNS}))
    assert answers(table.scan(), as_expression(None), asked) == [0, None]


def test_texts_of_values() -> None:
    assert [as_text(value) for value in (None, True, 1, 1.5, pc.add(1, 1).as_py())] == ["", "=true", "=1", "=1.5", "=2"]
