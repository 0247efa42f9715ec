"""Which columns of a Parquet file get a dictionary."""

import io
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefloe.formats.parquet.dictionaries import dictionary_columns
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.schema import Schema, schema_to_arrow, types

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType()),
    types.NestedField(2, "kind", types.StringType()),
    types.NestedField(3, "key", types.UUIDType()),
    types.NestedField(4, "tags", types.ListType(5, types.StringType())),
    types.NestedField(6, "counts", types.MapType(7, types.StringType(), 8, types.IntegerType())),
    types.NestedField(9, "at", types.StructType(types.NestedField(10, "x", types.IntegerType()))),
)


def _rows(count: int) -> pa.Table:
    rows = [
        {
            "id": number,
            "kind": f"kind {number % 7}",
            "key": uuid.UUID(int=number).bytes,
            "tags": ["a"],
            "counts": [("a", number)],
            "at": {"x": number},
        }
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows, schema_to_arrow(SCHEMA))


def _encoded(rows: pa.Table, properties: dict[str, str]) -> set[str]:
    """The columns that have a dictionary in the file."""
    sink = io.BytesIO()
    writer = ParquetFileWriter(sink, SCHEMA, properties)
    writer.write(rows)
    writer.close()
    group: Any = pq.read_metadata(io.BytesIO(sink.getvalue())).row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    return {column.path_in_schema for column in columns if column.has_dictionary_page}


def test_values_that_repeat_get_a_dictionary_and_others_none() -> None:
    nested = {"tags.list.element", "counts.key_value.key", "counts.key_value.value", "at.x"}
    assert _encoded(_rows(2000), {}) == {"kind", *nested}


def test_properties_of_the_table_come_first() -> None:
    prefix = "write.parquet.dict-encoding-enabled.column."
    asked = {f"{prefix}id": "true", f"{prefix}kind": "false", f"{prefix}at.x": "false", f"{prefix}gone": "true"}
    assert _encoded(_rows(2000), asked) == {
        "id",
        "tags.list.element",
        "counts.key_value.key",
        "counts.key_value.value",
    }


def test_repeats_far_apart_and_sorted_runs_are_seen() -> None:
    count = 1_000_000
    numbers = pa.array(range(count))
    rows = pa.table(
        {
            "once": numbers,
            "runs": pa.array([number // 1000 for number in range(count)]),
            # Its period is that of equal distances between the places that are looked at.
            "period": pa.array([number % 62_500 for number in range(count)]),
            "none": pa.nulls(count, pa.int32()),
            "null": pa.nulls(count),
        }
    )
    assert dictionary_columns(rows, {}) == ["runs", "none"]
