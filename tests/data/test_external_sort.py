"""Sorting more rows than fit into memory: the order is that of a sort in memory, and nothing is left on disk."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.data import OrderKeys, external_sort, sorted_batches
from icefloe.data.arranging import sort_rows
from icefloe.errors import StorageError
from icefloe.partitioning import SortOrder, parse_sort_order
from icefloe.schema import NestedField, Schema, schema_to_arrow
from icefloe.schema.types import DateType, DecimalType, DoubleType, LongType, StringType, TimestampNanoType
from tests.small_disk import no_file_beyond
from tests.strategies import values_of

SCHEMA = Schema(
    NestedField(1, "number", LongType()),
    NestedField(2, "ratio", DoubleType()),
    NestedField(3, "name", StringType()),
    NestedField(4, "moment", TimestampNanoType()),
    NestedField(5, "day", DateType()),
    NestedField(6, "amount", DecimalType(20, 2)),
    NestedField(7, "arrival", LongType()),
)
TERMS = [
    f"{term} {direction} nulls {nulls}"
    for term in ("number", "ratio", "name", "moment", "day", "amount", "bucket(3, number)", "truncate(1, name)")
    for direction in ("asc", "desc")
    for nulls in ("first", "last")
]


@st.composite
def row_tables(draw: st.DrawFn) -> pa.Table:
    """Rows with few different values, so that many are equal; `arrival` says in which order they came."""
    count = draw(st.integers(0, 40))
    columns = {}
    for field in SCHEMA.fields[:-1]:
        choices = draw(st.lists(st.none() | values_of(field.field_type), min_size=1, max_size=5))
        picks = draw(st.lists(st.integers(0, len(choices) - 1), min_size=count, max_size=count))
        columns[field.name] = _column([choices[pick] for pick in picks], field)
    return pa.table({**columns, "arrival": range(count)}, schema=schema_to_arrow(SCHEMA))


def _column(values: list[object], field: NestedField) -> pa.Array:
    arrow_type = schema_to_arrow(Schema(field)).field(0).type
    if isinstance(field.field_type, TimestampNanoType | DateType):
        whole = pa.int32() if isinstance(field.field_type, DateType) else pa.int64()
        return pa.array(values, whole).cast(arrow_type)
    return pa.array(values, arrow_type)


def order_of(*terms: str) -> SortOrder:
    return parse_sort_order(list(terms), SCHEMA)


@settings(max_examples=25, deadline=None)
@given(
    rows=row_tables(),
    terms=st.lists(st.sampled_from(TERMS), min_size=1, max_size=3, unique_by=lambda term: term.split(" ")[0]),
    batch_rows=st.integers(1, 10),
    run_bytes=st.integers(300, 4000),
    most_runs=st.integers(2, 5),
)
def test_the_order_is_that_of_a_sort_in_memory(
    rows: pa.Table, terms: list[str], batch_rows: int, run_bytes: int, most_runs: int
) -> None:
    order = order_of(*terms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(external_sort, "_MOST_RUNS", most_runs)
        batches = sorted_batches(rows.to_batches(batch_rows), OrderKeys(order, SCHEMA), run_bytes=run_bytes)
        done = pa.Table.from_batches(batches, rows.schema)
    assert done["arrival"].to_pylist() == sort_rows(rows, order, SCHEMA)["arrival"].to_pylist()
    assert repr(done.to_pylist()) == repr(sort_rows(rows, order, SCHEMA).to_pylist())


def numbers(count: int, batch_rows: int = 1000) -> Iterator[pa.RecordBatch]:
    """Many rows, in no order."""
    for first in range(0, count, batch_rows):
        yield pa.record_batch({"number": [each * 7919 % count for each in range(first, first + batch_rows)]})


def _keys() -> OrderKeys:
    return OrderKeys(order_of("number"), SCHEMA)


def test_nothing_is_left_on_disk(tmp_path: Path) -> None:
    batches = sorted_batches(numbers(100_000), _keys(), run_bytes=50_000, folder=str(tmp_path))
    first = next(batches)
    assert first["number"][0].as_py() == 0
    assert len(os.listdir(tmp_path)) == 1
    batches.close()
    assert os.listdir(tmp_path) == []
    done = sorted_batches(numbers(100_000), _keys(), run_bytes=50_000, folder=str(tmp_path))
    assert [number for batch in done for number in batch["number"].to_pylist()] == list(range(100_000))
    assert os.listdir(tmp_path) == []


def test_few_rows_need_no_disk(tmp_path: Path) -> None:
    batches = sorted_batches(numbers(1000), _keys(), folder=str(tmp_path / "missing"))
    assert sum(batch.num_rows for batch in batches) == 1000
    assert list(sorted_batches([], _keys())) == []


def test_a_full_disk_is_said_clearly_and_leaves_nothing(tmp_path: Path) -> None:
    batches = sorted_batches(numbers(400_000), _keys(), run_bytes=1 << 20, folder=str(tmp_path))
    with (
        no_file_beyond(1 << 16, [os.getpid()]),
        pytest.raises(StorageError, match="no disk space left to sort rows"),
    ):
        next(batches)
    assert os.listdir(tmp_path) == []


def test_an_error_of_the_rows_is_theirs_and_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from numbers(100_000)
        raise OSError("the rows cannot be read")

    with pytest.raises(OSError, match="the rows cannot be read"):
        list(sorted_batches(broken(), _keys(), run_bytes=50_000, folder=str(tmp_path)))
    assert os.listdir(tmp_path) == []
