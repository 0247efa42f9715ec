"""How shredded variant columns become plain ones: `value` and `typed_value` put together again (parquet-format: VariantShredding).

The work is per row, but a column that is not shredded, or shredded with nothing in its typed columns, passes untouched.
"""

from typing import TypeVar
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.variant.reading import OBJECT, Dictionary, basic_type, read_dictionary, read_fields
from icefloe.formats.variant.values import VARIANT_NULL, VariantKind, VariantPrimitive
from icefloe.formats.variant.writing import encode_array, encode_object, encode_primitive
from icefloe.schema import VARIANT_STORAGE

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)

_ROWS_AT_ONCE = 4096
_MAX_SCHEMA_DEPTH = 200
_PARTS = {"metadata", "value", "typed_value"}


def unshred(column: Column, location: str) -> Column:
    """The variants of a column read from a file, as `struct<metadata, value>`, whatever way the file shreds them.

    Takes and returns an Arrow array or chunked array; a null row stays null.
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([unshred(chunk, location) for chunk in column.chunks], VARIANT_STORAGE)
    column = _storage(column)
    if not pa.types.is_struct(column.type):
        raise CorruptFileError(location, f"a variant column is of type {column.type}, not a group")
    names = [field.name for field in column.type]
    if len(set(names)) != len(names) or not set(names) <= _PARTS or "metadata" not in names or len(names) < 2:
        raise CorruptFileError(
            location, f"a variant group has the fields {names}; metadata, value and typed_value are known"
        )
    metadata = _child(column, "metadata")
    if metadata is None or metadata.null_count != column.null_count:
        raise CorruptFileError(location, "a variant has no metadata")
    value, typed = _child(column, "value"), _child(column, "typed_value")
    if typed is not None and typed.null_count == len(typed):
        typed = None
    if typed is None and (value is None or value.null_count):
        return _plain(column, _without_nulls(column, value))
    if typed is None:
        return _plain(column, value)
    try:
        rows = [
            _unshred_rows(column.slice(start, _ROWS_AT_ONCE), location)
            for start in range(0, len(column), _ROWS_AT_ONCE)
        ]
    except InvalidValueError as error:
        raise CorruptFileError(location, f"a shredded variant cannot be put together: {error}") from error
    return _plain(column, pa.concat_arrays(rows))


def _plain(column: pa.StructArray, value: pa.Array) -> pa.StructArray:
    mask = column.is_null() if column.null_count else None
    parts = [_as_binary(column.field("metadata")), _as_binary(value)]
    if mask is not None:
        parts = [pc.fill_null(part, b"") if part.null_count else part for part in parts]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_STORAGE), mask=mask)


def _as_binary(array: pa.Array) -> pa.BinaryArray:
    array = _storage(array)
    return array if array.type == pa.binary() else array.cast(pa.binary())


def _without_nulls(column: pa.StructArray, value: pa.Array | None) -> pa.BinaryArray:
    # Neither value nor typed value, where a value is needed: a variant null (parquet-format: VariantShredding).
    if value is None:
        return pa.array([VARIANT_NULL] * len(column), pa.binary())
    return pc.fill_null(_as_binary(value), VARIANT_NULL)


def _unshred_rows(column: pa.StructArray, location: str) -> pa.BinaryArray:
    dictionaries: dict[bytes, Dictionary] = {}
    rows: list[Dictionary | None] = []
    valid = column.is_valid().to_pylist()
    for is_valid, metadata in zip(valid, _as_binary(column.field("metadata")).to_pylist(), strict=True):
        if is_valid and metadata not in dictionaries:
            dictionaries[metadata] = read_dictionary(metadata)
        rows.append(dictionaries[metadata] if is_valid else None)
    values = _join(_child(column, "value"), _child(column, "typed_value"), rows, location, 0)
    return pa.array([VARIANT_NULL if value is None else value for value in values], pa.binary())


def _join(
    value: pa.Array | None, typed: pa.Array | None, rows: list[Dictionary | None], location: str, depth: int
) -> list[bytes | None]:
    """The encoded value of each row, None where it is missing; rows without a dictionary are not looked at."""
    if depth > _MAX_SCHEMA_DEPTH:
        raise CorruptFileError(location, f"a variant is shredded deeper than {_MAX_SCHEMA_DEPTH} levels")
    rest: list[bytes | None] = [None] * len(rows) if value is None else _as_binary(value).to_pylist()
    if typed is None:
        return rest
    typed = _storage(typed)
    if pa.types.is_struct(typed.type):
        return _join_objects(rest, typed, rows, location, depth)
    if pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
        shredded = _join_arrays(typed, rows, location, depth)
    else:
        shredded = _join_primitives(typed, location)
    for row, left, right in zip(rows, rest, shredded, strict=True):
        if row is not None and left is not None and right is not None:
            raise CorruptFileError(location, "a variant has both value and typed_value, but is not an object")
    return [left if right is None else right for left, right in zip(rest, shredded, strict=True)]


def _join_objects(
    rest: list[bytes | None], typed: pa.StructArray, rows: list[Dictionary | None], location: str, depth: int
) -> list[bytes | None]:
    inner = [row if is_valid else None for row, is_valid in zip(rows, typed.is_valid().to_pylist(), strict=True)]
    # Flattening brings the nulls of the group down to its fields, which may hold anything there.
    children = typed.flatten()
    columns = {
        field.name: _join(*_pair(child, location), inner, location, depth + 1)
        for field, child in zip(typed.type, children, strict=True)
    }
    if len(columns) != typed.type.num_fields:
        raise CorruptFileError(location, "a variant is shredded into two fields of the same name")
    joined = list(rest)
    for index, dictionary in enumerate(inner):
        if dictionary is not None:
            shredded = {name: values[index] for name, values in columns.items()}
            joined[index] = _join_object(rest[index], shredded, dictionary, location)
    return joined


def _join_object(rest: bytes | None, shredded: dict[str, bytes | None], dictionary: Dictionary, location: str) -> bytes:
    fields: dict[str, bytes] = {}
    if rest is not None:
        if basic_type(rest, 0, len(rest)) != OBJECT:
            raise CorruptFileError(location, "a variant is shredded as an object, but its value is none")
        for name, start, end in read_fields(rest, 0, len(rest), dictionary):
            if name in shredded and shredded[name] is None:
                raise CorruptFileError(
                    location, f"the field {name!r} of a variant is missing where it is shredded, but in its value"
                )
            fields[name] = rest[start:end]
    fields.update((name, value) for name, value in shredded.items() if value is not None)
    for name in fields:
        if name not in dictionary.ids:
            raise CorruptFileError(location, f"the shredded field {name!r} is not in the metadata of a variant")
    return encode_object(fields, dictionary.ids)


def _join_arrays(typed: pa.ListArray, rows: list[Dictionary | None], location: str, depth: int) -> list[bytes | None]:
    lengths: list[int | None] = typed.value_lengths().to_pylist()
    inner = [row for row, length in zip(rows, lengths, strict=True) for _ in range(length or 0)]
    elements = _join(*_pair(typed.flatten(), location), inner, location, depth + 1)
    joined: list[bytes | None] = []
    position = 0
    for row, length in zip(rows, lengths, strict=True):
        part = elements[position : position + (length or 0)]
        position += length or 0
        is_there = row is not None and length is not None
        joined.append(encode_array([VARIANT_NULL if item is None else item for item in part]) if is_there else None)
    return joined


def _join_primitives(typed: pa.Array, location: str) -> list[bytes | None]:
    kind, internal = _primitive(typed.type, location)
    values = (typed if internal is None else typed.cast(internal)).to_pylist()
    if kind is None:
        return [None if value is None else encode_primitive(value) for value in values]
    if kind is VariantKind.UUID:
        values = [None if value is None else UUID(bytes=value) for value in values]
    return [None if value is None else encode_primitive(VariantPrimitive(kind, value)) for value in values]


def _primitive(kind: pa.DataType, location: str) -> tuple[VariantKind | None, pa.DataType | None]:
    """The variant type of a typed column, and the type that its internal values are cast to; none where values tell it."""
    types = pa.types
    if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return None, None
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return VariantKind.BINARY, None
    if kind in _PLAIN_KINDS:
        return _PLAIN_KINDS[kind], None
    if types.is_decimal(kind) and 0 <= kind.scale <= kind.precision <= 38:
        wide = VariantKind.DECIMAL4 if kind.precision <= 9 else VariantKind.DECIMAL8
        return wide if kind.precision <= 18 else VariantKind.DECIMAL16, None
    if types.is_date32(kind):
        return VariantKind.DATE, pa.int32()
    if types.is_time64(kind) and kind.unit == "us":
        return VariantKind.TIME, pa.int64()
    if types.is_timestamp(kind) and kind.unit in ("us", "ns"):
        return _TIMESTAMP_KINDS[kind.unit, kind.tz is not None], pa.int64()
    raise CorruptFileError(location, f"a variant is shredded as {kind}, which is not a type of variants")


def _pair(column: pa.Array, location: str) -> tuple[pa.Array | None, pa.Array | None]:
    """Value and typed value of a shredded field or element."""
    column = _storage(column)
    names = [field.name for field in column.type] if pa.types.is_struct(column.type) else []
    if not names or len(set(names)) != len(names) or not set(names) <= {"value", "typed_value"}:
        raise CorruptFileError(
            location, f"a part of a shredded variant is {column.type}, not a group of value and typed_value"
        )
    return _child(column, "value"), _child(column, "typed_value")


def _child(column: pa.StructArray, name: str) -> pa.Array | None:
    """The child column with the nulls of its parent; None if there is no such child."""
    index = column.type.get_field_index(name)
    if index < 0:
        return None
    return column.flatten()[index] if column.null_count else column.field(index)


def _storage(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array


_PLAIN_KINDS = {
    pa.int8(): VariantKind.INT8,
    pa.int16(): VariantKind.INT16,
    pa.int32(): VariantKind.INT32,
    pa.int64(): VariantKind.INT64,
    pa.float32(): VariantKind.FLOAT,
    pa.float64(): VariantKind.DOUBLE,
    pa.binary(16): VariantKind.UUID,
}
_TIMESTAMP_KINDS = {
    ("us", True): VariantKind.TIMESTAMPTZ,
    ("us", False): VariantKind.TIMESTAMP,
    ("ns", True): VariantKind.TIMESTAMPTZ_NANOS,
    ("ns", False): VariantKind.TIMESTAMP_NANOS,
}
