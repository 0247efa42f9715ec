"""Data files and delete files as the REST protocol has them, both ways, in the form that the Java library reads and writes.

Bounds are the binary form of a single value in hexadecimal digits, as in Java; the document of the protocol shows typed
values, which cannot be told from them. Sequence numbers are not part of it.
"""

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from icefloe.errors import InvalidMetadataError, InvalidValueError
from icefloe.manifests import DataFile, FileContent
from icefloe.metadata import TableMetadata
from icefloe.metadata.wire_codec import Int, Long, WireStruct, present
from icefloe.partitioning import partition_type
from icefloe.schema import (
    JSON,
    IcebergType,
    Schema,
    StructType,
    Value,
    bytes_from_hex,
    types,
    value_from_json,
    value_to_json,
)

PartitionTypes: TypeAlias = Mapping[int, StructType]
"""The types of partition tuples, by the id of their spec."""

_CONTENTS = {
    FileContent.DATA: "data",
    FileContent.POSITION_DELETES: "position-deletes",
    FileContent.EQUALITY_DELETES: "equality-deletes",
}
_CONTENTS_BY_NAME = {name: content for content, name in _CONTENTS.items()}
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class _CountsWire(WireStruct):
    keys: list[Int]
    values: list[Long]


class _BoundsWire(WireStruct):
    keys: list[Int]
    values: list[Any]


class ContentFileWire(WireStruct):
    """A data or delete file."""

    spec_id: Int
    content: str
    file_path: str
    file_format: str
    file_size_in_bytes: Long
    record_count: Long
    partition: list[Any] | dict[str, Any] | None = None
    column_sizes: _CountsWire | None = None
    value_counts: _CountsWire | None = None
    null_value_counts: _CountsWire | None = None
    nan_value_counts: _CountsWire | None = None
    lower_bounds: _BoundsWire | None = None
    upper_bounds: _BoundsWire | None = None
    key_metadata: str | None = None
    split_offsets: list[Long] | None = None
    equality_ids: list[Int] | None = None
    sort_order_id: Int | None = None
    first_row_id: Long | None = None
    referenced_data_file: str | None = None
    content_offset: Long | None = None
    content_size_in_bytes: Long | None = None


def partition_types(metadata: TableMetadata, schema: Schema) -> PartitionTypes:
    """The types of the partitions of all specs for a scan with this schema; lost columns are looked for in older schemas."""
    older = metadata.schemas_newest_first
    return {spec.spec_id: partition_type(spec, schema, *older) for spec in metadata.partition_specs}


def content_file_to_json(file: DataFile, partitions: PartitionTypes) -> JSON:
    """A file with all that is known of it."""
    return {
        "spec-id": file.spec_id,
        "content": _CONTENTS[file.content],
        "file-path": file.file_path,
        "file-format": file.file_format.lower(),
        "partition": _partition_to_json(file, _type_of(file.spec_id, partitions)),
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
        **_counts_to_json("column-sizes", file.column_sizes),
        **_counts_to_json("value-counts", file.value_counts),
        **_counts_to_json("null-value-counts", file.null_value_counts),
        **_counts_to_json("nan-value-counts", file.nan_value_counts),
        **_bounds_to_json("lower-bounds", file.lower_bounds),
        **_bounds_to_json("upper-bounds", file.upper_bounds),
        **present("key-metadata", None if file.key_metadata is None else _hex(file.key_metadata)),
        **present("split-offsets", file.split_offsets),
        **present("equality-ids", file.equality_ids),
        **present("sort-order-id", file.sort_order_id),
        **present("first-row-id", file.first_row_id),
        **present("referenced-data-file", file.referenced_data_file),
        **present("content-offset", file.content_offset),
        **present("content-size-in-bytes", file.content_size_in_bytes),
    }


def content_file_from_wire(wire: ContentFileWire, partitions: PartitionTypes) -> DataFile:
    """The file that a JSON object describes; the names of contents and formats may be in capitals, as in older releases."""
    return DataFile(
        wire.file_path,
        wire.file_format.lower(),
        wire.record_count,
        wire.file_size_in_bytes,
        _content(wire),
        wire.spec_id,
        _partition_from_json(wire.partition, _type_of(wire.spec_id, partitions)),
        _counts(wire.column_sizes, "column-sizes"),
        _counts(wire.value_counts, "value-counts"),
        _counts(wire.null_value_counts, "null-value-counts"),
        _counts(wire.nan_value_counts, "nan-value-counts"),
        _bounds(wire.lower_bounds, "lower-bounds"),
        _bounds(wire.upper_bounds, "upper-bounds"),
        None if wire.key_metadata is None else bytes_from_hex(wire.key_metadata, types.BinaryType()),
        None if wire.split_offsets is None else tuple(wire.split_offsets),
        None if wire.equality_ids is None else tuple(wire.equality_ids),
        wire.sort_order_id,
        wire.first_row_id,
        wire.referenced_data_file,
        wire.content_offset,
        wire.content_size_in_bytes,
    )


def _content(wire: ContentFileWire) -> FileContent:
    content = _CONTENTS_BY_NAME.get(wire.content.lower().replace("_", "-"))
    if content is None:
        raise InvalidMetadataError(
            f"`content` is {wire.content!r:.100}; it must be one of {', '.join(_CONTENTS_BY_NAME)}"
        )
    if content is FileContent.EQUALITY_DELETES and not wire.equality_ids:
        raise InvalidMetadataError(f"equality delete file {wire.file_path!r:.200} has no `equality-ids`")
    return content


# -- partitions


def _type_of(spec_id: int, partitions: PartitionTypes) -> StructType:
    known = partitions.get(spec_id)
    if known is None:
        raise InvalidMetadataError(f"`spec-id` is {spec_id}, but the table has the specs {sorted(partitions)}")
    return known


def _partition_to_json(file: DataFile, struct: StructType) -> list[object]:
    if not struct.fields:
        return []
    return [_value_to_json(value, field.field_type) for value, field in zip(file.partition, struct.fields, strict=True)]


def _partition_from_json(document: list[Any] | dict[str, Any] | None, struct: StructType) -> tuple[Value, ...]:
    """The tuple, from values in the order of the spec, or from an object by field id that leaves nulls out."""
    if isinstance(document, list) and len(document) == len(struct.fields):
        values: list[object] = document
    elif isinstance(document, dict) and set(document) <= {str(field.field_id) for field in struct.fields}:
        values = [document.get(str(field.field_id)) for field in struct.fields]
    elif document is None and not struct.fields:
        values = []
    else:
        ids = ", ".join(str(field.field_id) for field in struct.fields)
        raise InvalidMetadataError(
            f"`partition` is {document!r:.200}; it must be an array of {len(struct.fields)} values, or an object by field id ({ids})"
        )
    return tuple(_value_from_json(value, field.field_type) for value, field in zip(values, struct.fields, strict=True))


def _value_to_json(value: Value, field_type: IcebergType) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        # JSON has no such number; Java writes these texts.
        return next(text for text, number in _NOT_FINITE.items() if number == value or value != value)
    return value_to_json(value, field_type)


def _value_from_json(value: object, field_type: IcebergType) -> Value:
    if isinstance(value, str) and value in _NOT_FINITE and isinstance(field_type, types.FloatType | types.DoubleType):
        return _NOT_FINITE[value]
    return value_from_json(value, field_type)


# -- metrics


def _hex(data: bytes) -> str:
    return data.hex().upper()


def _counts_to_json(key: str, counts: Mapping[int, int]) -> JSON:
    return {key: {"keys": list(counts), "values": list(counts.values())}} if counts else {}


def _bounds_to_json(key: str, bounds: Mapping[int, bytes]) -> JSON:
    return {key: {"keys": list(bounds), "values": list(map(_hex, bounds.values()))}} if bounds else {}


def _counts(wire: _CountsWire | None, what: str) -> Mapping[int, int]:
    return {} if wire is None else dict(_pairs(wire.keys, wire.values, what))


def _bounds(wire: _BoundsWire | None, what: str) -> Mapping[int, bytes]:
    """The bounds; one in another form is unknown, which is never wrong."""
    bounds: dict[int, bytes] = {}
    for field_id, text in () if wire is None else _pairs(wire.keys, wire.values, what):
        try:
            bounds[field_id] = bytes_from_hex(text if isinstance(text, str) else "?", types.BinaryType())
        except InvalidValueError:
            continue
    return bounds


def _pairs(keys: list[int], values: list[Any], what: str) -> Any:
    if len(keys) != len(values):
        raise InvalidMetadataError(f"`{what}` has {len(keys)} keys and {len(values)} values")
    return zip(keys, values, strict=True)
