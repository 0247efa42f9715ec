"""How Arrow columns of metadata tables become columns of Spark: values of the table's columns have the types that its rows have."""

import inspect

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from icefloe.spark.arrow_engine import uuid_texts


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of a metadata table as Spark has them."""
    # Left to itself, PySpark takes times without a zone for times in that of the session, some of which do not exist.
    return from_arrow_schema(shown_schema(schema), prefer_timestamp_ntz=True)


def task_schema(schema: StructType) -> pa.Schema:
    """Columns of Spark as it takes them from tasks."""
    # Spark 4.3 names the zone, earlier ones have a switch that is on by default.
    zone = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


def shown_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of `shown_rows`."""
    return pa.schema([field.with_type(_shown_type(field.type)) for field in schema])


def shown_rows(rows: pa.Table) -> pa.Table:
    """Rows in types that Spark has: uuid as text, fixed as binary, times of day and nanoseconds as numbers."""
    schema = shown_schema(rows.schema)
    if not rows.num_rows:
        return schema.empty_table()
    columns = [
        pa.chunked_array([_shown(chunk) for chunk in column.chunks], field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _shown_type(arrow_type: pa.DataType) -> pa.DataType:
    if _is_known(arrow_type):
        return arrow_type
    if isinstance(arrow_type, pa.UuidType):
        return pa.string()
    if not pa.types.is_nested(arrow_type):
        return pa.binary() if pa.types.is_fixed_size_binary(arrow_type) else pa.int64()
    fields = [arrow_type.field(index) for index in range(arrow_type.num_fields)]
    if pa.types.is_map(arrow_type):
        fields = [arrow_type.key_field, arrow_type.item_field]
    fields = [field.with_type(_shown_type(field.type)) for field in fields]
    if pa.types.is_map(arrow_type):
        return pa.map_(*fields)
    return pa.struct(fields) if pa.types.is_struct(arrow_type) else pa.list_(*fields)


def _is_known(arrow_type: pa.DataType) -> bool:
    """Whether Spark has the type."""
    if pa.types.is_nested(arrow_type):
        return all(_is_known(arrow_type.field(index).type) for index in range(arrow_type.num_fields))
    is_nano = pa.types.is_timestamp(arrow_type) and arrow_type.unit == "ns"
    is_other = pa.types.is_time(arrow_type) or pa.types.is_fixed_size_binary(arrow_type)
    return not (is_nano or is_other or isinstance(arrow_type, pa.UuidType))


def _shown(array: pa.Array) -> pa.Array:
    arrow_type = array.type
    if _is_known(arrow_type):
        return array
    if isinstance(arrow_type, pa.UuidType):
        return uuid_texts(array.storage)
    shown = _shown_type(arrow_type)
    if pa.types.is_struct(arrow_type):
        children = [_shown(array.field(index)) for index in range(arrow_type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(shown), mask=_mask(array))
    if pa.types.is_map(arrow_type):
        return pa.MapArray.from_arrays(array.offsets, _shown(array.keys), _shown(array.items), shown, mask=_mask(array))
    if pa.types.is_list(arrow_type):
        return pa.ListArray.from_arrays(array.offsets, _shown(array.values), shown, mask=_mask(array))
    return array.cast(shown)


def _mask(array: pa.Array) -> pa.BooleanArray | None:
    return pc.is_null(array) if array.null_count else None
