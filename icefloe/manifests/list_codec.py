"""Manifest lists: the manifests of a snapshot, read across versions and written for one (spec: Manifest Lists)."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import avro, errors, metadata as md
from icefloe.encryption import FileKey
from icefloe.manifests.inheritance import assign_first_row_ids, assign_sequence_numbers
from icefloe.manifests.reader import Read, decode_rows
from icefloe.manifests.sealing import sealed, unsealed
from icefloe.manifests.values import ManifestContent, ManifestFile, PartitionFieldSummary
from icefloe.schema import JSON, Schema, arrow_value_type, schema_to_json, types
from icefloe.versions import Feature, allows, check_version

LIST_NAME = "manifest_file"

_FIELDS: dict[str, tuple[int, types.IcebergType]] = {
    "manifest_path": (500, types.StringType()),
    "manifest_length": (501, types.LongType()),
    "partition_spec_id": (502, types.IntegerType()),
    "content": (517, types.IntegerType()),
    "sequence_number": (515, types.LongType()),
    "min_sequence_number": (516, types.LongType()),
    "added_snapshot_id": (503, types.LongType()),
    "added_files_count": (504, types.IntegerType()),
    "existing_files_count": (505, types.IntegerType()),
    "deleted_files_count": (506, types.IntegerType()),
    "added_rows_count": (512, types.LongType()),
    "existing_rows_count": (513, types.LongType()),
    "deleted_rows_count": (514, types.LongType()),
    "key_metadata": (519, types.BinaryType()),
    "first_row_id": (520, types.LongType()),
}
_NEVER_NULL = ("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id")
_ZERO_IN_V1 = ("content", "sequence_number", "min_sequence_number")
_COUNTS = tuple(name for name in _FIELDS if name.endswith("_count"))

_PARTITIONS_ID = 507
_SUMMARY = types.StructType(
    types.NestedField(509, "contains_null", types.BooleanType(), True),
    types.NestedField(518, "contains_nan", types.BooleanType()),
    types.NestedField(510, "lower_bound", types.BinaryType()),
    types.NestedField(511, "upper_bound", types.BinaryType()),
)
_SUMMARIES = types.ListType(508, _SUMMARY)

_VALUE_BYTES = 512
"""About what a manifest takes as a value."""

_CHOICE = avro.TakeFields(
    (
        *((field_id, name, avro.Take((name, 0))) for name, (field_id, _) in _FIELDS.items()),
        (
            _PARTITIONS_ID,
            "partitions",
            avro.TakeRecords(
                ("partitions", 0), tuple((field.field_id, field.name, (field.name, 0)) for field in _SUMMARY.fields)
            ),
        ),
    )
)

_TABLE_COLUMNS = {
    "manifest_path": pa.string(),
    "manifest_length": pa.int64(),
    "partition_spec_id": pa.int32(),
    "added_snapshot_id": pa.int64(),
    "content": pa.int32(),
    "sequence_number": pa.int64(),
    "min_sequence_number": pa.int64(),
    "added_files_count": pa.int32(),
    "existing_files_count": pa.int32(),
    "key_metadata": pa.binary(),
}
MANIFEST_TABLE = pa.schema(list(_TABLE_COLUMNS.items()))
"""The columns of manifests where there are many: what is needed to choose some and to read them."""
_TABLE_CHOICE = avro.TakeFields(tuple((_FIELDS[name][0], name, avro.Take((name, 0))) for name in _TABLE_COLUMNS))


def read_manifest_list(
    location: str,
    read: Read,
    *,
    table_location: str | None = None,
    limits: md.Limits = md.DEFAULT_LIMITS,
    key: FileKey | None = None,
) -> tuple[ManifestFile, ...]:
    """The manifests of the list at a location; relative paths become locations under `table_location`."""
    data = unsealed(read(location), key, location)
    return decode_manifest_list(data, location, table_location=table_location, limits=limits)


def decode_manifest_list(
    data: bytes, location: str, *, table_location: str | None = None, limits: md.Limits = md.DEFAULT_LIMITS
) -> tuple[ManifestFile, ...]:
    """The manifests that the bytes of a list name, in its order."""
    container = avro.open_container(unsealed(data, None, location), location, limits)
    # They become values, which take more memory than columns do.
    container.check_room(container.rows * _VALUE_BYTES)
    decoded = decode_rows(container, _CHOICE)
    columns = {key[0]: column for key, column in decoded.columns.items()}
    for name in _NEVER_NULL:
        if name not in columns or columns[name].null_count:
            raise errors.CorruptFileError(location, f"it is not a manifest list: a manifest has no {name}")
    rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    return tuple(_manifest(dict(zip(columns, row, strict=True)), location, table_location) for row in rows)


def decode_manifest_table(
    data: bytes, location: str, *, table_location: str | None = None, limits: md.Limits = md.DEFAULT_LIMITS
) -> pa.Table:
    """The same in columns, without the partition summaries: for readers of many lists."""
    container = avro.open_container(unsealed(data, None, location), location, limits)
    decoded = decode_rows(container, _TABLE_CHOICE)
    columns = {key[0]: column for key, column in decoded.columns.items()}
    for name in _NEVER_NULL:
        if name not in columns or columns[name].null_count:
            raise errors.CorruptFileError(location, f"it is not a manifest list: a manifest has no {name}")
    arrays = []
    for name, column_type in _TABLE_COLUMNS.items():
        column = columns[name].cast(column_type) if name in columns else pa.nulls(decoded.rows, column_type)
        arrays.append(pc.fill_null(column, 0) if name in _ZERO_IN_V1 else column)
    if table_location is not None:
        arrays[0] = pa.array([md.resolve_location(table_location, path) for path in arrays[0].to_pylist()], pa.string())
    return pa.Table.from_arrays(arrays, schema=MANIFEST_TABLE)


def manifest_table(manifests: Iterable[ManifestFile]) -> pa.Table:
    """Manifests that are values already, in these columns."""
    rows = [{name: getattr(manifest, name) for name in _TABLE_COLUMNS} for manifest in manifests]
    return pa.Table.from_pylist([row | {"content": int(row["content"])} for row in rows], MANIFEST_TABLE)


def manifests_in(table: pa.Table | pa.RecordBatch) -> Iterator[ManifestFile]:
    """The values of such columns."""
    for row in table.to_pylist():
        yield ManifestFile(**(row | {"content": ManifestContent(row["content"])}))


def _manifest(fields: dict[str, Any], location: str, table_location: str | None) -> ManifestFile:
    for name in _ZERO_IN_V1:
        fields[name] = fields.get(name) or 0
    if fields["content"] not in (0, 1):
        raise errors.CorruptFileError(
            location, f"manifest {fields['manifest_path']!r} has the unknown content {fields['content']}"
        )
    fields["content"] = ManifestContent(fields["content"])
    if fields.get("partitions") is not None:
        fields["partitions"] = tuple(map(_summary, fields["partitions"]))
    if table_location is not None:
        fields["manifest_path"] = md.resolve_location(table_location, fields["manifest_path"])
    return ManifestFile(**fields)


def _summary(item: Mapping[str, Any]) -> PartitionFieldSummary:
    fields = {key.partition(":")[0]: value for key, value in item.items()}
    fields["contains_null"] = fields.get("contains_null") is not False
    return PartitionFieldSummary(**fields)


def inline_manifests(locations: Iterable[str], snapshot_id: int, read: Read) -> tuple[ManifestFile, ...]:
    """The manifests of a v1 snapshot that names them itself, with what their own headers say; counts are not known."""
    manifests = []
    for location in locations:
        data = read(location)
        header = avro.open_container(data, location).metadata
        text = header.get("partition-spec-id", "0")
        if not text.isdigit():
            raise errors.CorruptFileError(location, f"its partition-spec-id is {text!r}; it must be a number")
        manifests.append(ManifestFile(location, len(data), int(text), snapshot_id))
    return tuple(manifests)


def _list_type(version: int) -> types.StructType:
    numbers = allows(version, Feature.SEQUENCE_NUMBERS)
    fields = []
    for name, (field_id, field_type) in _FIELDS.items():
        if name in _ZERO_IN_V1 and not numbers:
            continue
        if name == "first_row_id" and not allows(version, Feature.ROW_LINEAGE):
            continue
        if name == "key_metadata":
            fields.append(types.NestedField(_PARTITIONS_ID, "partitions", _SUMMARIES))
        is_required = name in _NEVER_NULL or (numbers and (name in _ZERO_IN_V1 or name in _COUNTS))
        fields.append(types.NestedField(field_id, name, field_type, is_required))
    return types.StructType(*fields)


@dataclass(frozen=True, slots=True)
class EncodedList:
    """A snapshot's manifest list: its bytes, its manifests with the numbers that they got, and how many row ids it gave."""

    data: bytes
    manifests: tuple[ManifestFile, ...]
    added_rows: int | None
    """None where the version has no row lineage."""
    key: FileKey | None = None
    """The key of the bytes, in an encrypted table."""


def encode_manifest_list(
    manifests: Sequence[ManifestFile],
    version: int,
    *,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int = 0,
    first_row_id: int | None = None,
    codec: str = "gzip",
    table_location: str | None = None,
    key_length: int | None = None,
) -> EncodedList:
    """The manifest list of a snapshot, encrypted with a new key if a key length is given.

    Manifests without a sequence number get the snapshot's, data manifests without row ids get theirs here.
    """
    check_version(version)
    if not allows(version, Feature.SEQUENCE_NUMBERS):
        if sequence_number:
            raise errors.InvalidInputError(f"v{version} tables have no sequence numbers; {sequence_number} was given")
        if any(manifest.content is ManifestContent.DELETES for manifest in manifests):
            raise errors.InvalidInputError(f"v{version} tables have no delete files; a delete manifest was given")
    else:
        manifests = assign_sequence_numbers(manifests, snapshot_id, sequence_number)
    added_rows = None
    if allows(version, Feature.ROW_LINEAGE):
        if first_row_id is None:
            raise errors.InvalidInputError(f"a snapshot of a v{version} table needs a first row id")
        manifests, next_row_id = assign_first_row_ids(manifests, first_row_id)
        added_rows = next_row_id - first_row_id
    if table_location is not None and allows(version, Feature.RELATIVE_PATHS):
        paths = [md.relativize(table_location, manifest.manifest_path) for manifest in manifests]
    else:
        paths = [manifest.manifest_path for manifest in manifests]
    struct, schema, schema_text = _schema(version)
    metadata = _metadata(version, snapshot_id, parent_snapshot_id, sequence_number, first_row_id)
    metadata["iceberg.schema"] = schema_text
    sync, name = os.urandom(avro.SYNC_SIZE), avro.codec_named(codec)
    parts = [avro.container_header(schema, metadata, name, sync)]
    columns = list_columns(manifests, struct, paths)
    for count, rows in avro.encode_rows(struct, columns, len(manifests)):
        parts.append(avro.container_block(count, avro.deflate(name, rows), sync))
    data, key = sealed(b"".join(parts), key_length)
    return EncodedList(data, tuple(manifests), added_rows, key)


def list_schema(version: int) -> Schema:
    """What the rows of a list are in a version."""
    return Schema(*_schema(version)[0].fields)


@cache
def _schema(version: int) -> tuple[types.StructType, JSON, str]:
    """The type of a list's rows, as Avro has it, and as the header does."""
    struct = _list_type(version)
    text = json.dumps(schema_to_json(Schema(*struct.fields)), separators=(",", ":"))
    return struct, avro.avro_record(struct.fields, LIST_NAME), text


def _metadata(
    version: int, snapshot_id: int, parent_snapshot_id: int | None, sequence_number: int, first_row_id: int | None
) -> dict[str, str]:
    parent = "null" if parent_snapshot_id is None else str(parent_snapshot_id)
    metadata = {"snapshot-id": str(snapshot_id), "parent-snapshot-id": parent, "format-version": str(version)}
    if allows(version, Feature.SEQUENCE_NUMBERS):
        metadata["sequence-number"] = str(sequence_number)
    if allows(version, Feature.ROW_LINEAGE):
        metadata["first-row-id"] = str(first_row_id)
    return metadata


def list_columns(manifests: Sequence[ManifestFile], struct: types.StructType, paths: list[str]) -> dict[int, pa.Array]:
    """The columns of a list by their field ids, with these paths."""
    columns: dict[int, pa.Array] = {}
    for field in struct.fields:
        if field.field_id == _PARTITIONS_ID:
            columns[field.field_id] = _summary_column(manifests)
            continue
        values: list[Any] = paths if field.name == "manifest_path" else list(map(attrgetter(field.name), manifests))
        if field.required and None in values:
            raise errors.InvalidInputError(
                f"manifest {paths[values.index(None)]!r} has no {field.name}; manifest lists of this version need it"
            )
        try:
            columns[field.field_id] = pa.array(values, arrow_value_type(field.field_type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise errors.InvalidInputError(f"a manifest's {field.name} is not a {field.field_type}: {error}") from error
    return columns


def _summary_column(manifests: Sequence[ManifestFile]) -> pa.ListArray:
    lists = [manifest.partitions for manifest in manifests]
    flat = [summary for summaries in lists for summary in summaries or ()]
    offsets = np.zeros(len(lists) + 1, np.int32)
    offsets[1:] = np.cumsum([len(summaries or ()) for summaries in lists])
    arrays = [
        pa.array([getattr(summary, field.name) for summary in flat], arrow_value_type(field.field_type))
        for field in _SUMMARY.fields
    ]
    items = pa.StructArray.from_arrays(arrays, [field.name for field in _SUMMARY.fields])
    missing = np.array([summaries is None for summaries in lists], bool)
    bitmap = pa.py_buffer(np.packbits(~missing, bitorder="little")) if missing.any() else None
    return pa.Array.from_buffers(pa.list_(items.type), len(lists), [bitmap, pa.py_buffer(offsets)], children=[items])
