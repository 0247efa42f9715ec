"""Manifests written as Parquet, in the form in which Java 1.12 has them in v4 tables; the spec's own are Avro."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe import errors
from icefloe.encryption import FileKey
from icefloe.formats.parquet.encryption import encryption
from icefloe.schema import Schema, types
from icefloe.schema.arrow import field_to_arrow

_CODECS = {"gzip": "gzip", "zstd": "zstd", "snappy": "snappy", "uncompressed": "none", "none": "none"}
_NOT_OF_PARQUET = ("iceberg.schema", "schema-id")
"""Keys of Avro headers that Java's Parquet manifests lack."""


def parquet_files(
    struct: types.StructType,
    columns: Mapping[int, pa.Array],
    rows: int,
    texts: Mapping[str, str],
    codec: str,
    level: int | None,
    target_size: int | None,
    key_length: int | None = None,
) -> Iterator[tuple[int, int, bytes, FileKey | None]]:
    """(first entry, entries, bytes, key) of each file; `columns` are by field id, with marks for structs that may be null.

    With a length of keys, each file is encrypted with a key of its own, by Parquet's own means.
    """
    stored = _stored(struct)
    table = pa.Table.from_arrays(
        [_column(field, columns, rows) for field in stored.fields],
        schema=_arrow_schema(stored).with_metadata(
            {key: text for key, text in texts.items() if key not in _NOT_OF_PARQUET}
        ),
    )
    key = _new_key(key_length)
    data = _encoded(table, codec, level, key)
    if target_size is None or len(data) <= target_size or rows == 1:
        yield 0, rows, data, key
        return
    count = -(-rows // min(rows, -(-len(data) // target_size)))
    for start in range(0, rows, count):
        part = table.slice(start, count)
        key = _new_key(key_length)
        yield start, len(part), _encoded(part, codec, level, key), key


def _new_key(length: int | None) -> FileKey | None:
    return None if length is None else FileKey.new(length)


def _encoded(table: pa.Table, codec: str, level: int | None, key: FileKey | None) -> bytes:
    if codec.lower() not in _CODECS:
        raise errors.InvalidPropertyError(f"Parquet manifests have no codec {codec!r}; there are {', '.join(_CODECS)}")
    name = _CODECS[codec.lower()]
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression=name,
        compression_level=level if name in ("gzip", "zstd") else None,
        store_schema=False,
        **({} if key is None else {"encryption_properties": encryption(key)}),
    )
    return bytes(sink.getvalue())


def _stored(struct: types.StructType) -> types.StructType:
    """The struct without what Parquet has no form for: fields of type unknown, and structs without fields."""
    fields = []
    for field in struct.fields:
        kind = field.field_type
        if isinstance(kind, types.StructType):
            kind = _stored(kind)
            if not kind.fields:
                continue
        elif isinstance(kind, types.UnknownType):
            continue
        fields.append(types.NestedField(field.field_id, field.name, kind, field.required))
    return types.StructType(*fields)


def _arrow_schema(struct: types.StructType) -> pa.Schema:
    return pa.schema([field_to_arrow(field) for field in Schema(*struct.fields).fields])


def _column(field: types.NestedField, columns: Mapping[int, pa.Array], rows: int) -> pa.Array:
    target = field_to_arrow(field).type
    if not isinstance(field.field_type, types.StructType):
        column = _retyped(columns.get(field.field_id, pa.nulls(rows, target)), target)
        # What a struct must have is null only where the struct itself is.
        return column.fill_null(0) if field.required and column.null_count else column
    children = [_column(child, columns, rows) for child in field.field_type.fields]
    is_there = columns.get(field.field_id)
    mask = None if is_there is None else pc.invert(pc.fill_null(is_there, False))
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


def _retyped(column: pa.Array, target: pa.DataType) -> pa.Array:
    """The same values in a type that has field ids inside."""
    if column.type == target and not pa.types.is_nested(target):
        return column
    if pa.types.is_map(target):
        pairs = pa.StructArray.from_arrays(
            [_retyped(column.keys, target.key_type), _retyped(column.items, target.item_type)],
            fields=[target.key_field, target.item_field],
        )
        return _over(column, target, pairs)
    if pa.types.is_list(target):
        return _over(column, target, _retyped(column.values, target.value_type))
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, column.cast(target.storage_type))
    return column.cast(target)


def _over(column: pa.Array, target: pa.DataType, children: pa.Array) -> pa.Array:
    buffers = column.buffers()[:2]
    return pa.Array.from_buffers(target, len(column), buffers, offset=column.offset, children=[children])
