"""How shredded variant columns become plain ones: `value` and `typed_value` put together again (parquet-format: VariantShredding).

The work is on whole columns; only objects in an odd form, or with many different
fields that are not shredded, are put together one by one. A column that is not shredded, or shredded with nothing in its typed columns, passes untouched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.schema import VARIANT_STORAGE
from icefloe.variant import (
    OBJECT,
    VARIANT_NULL,
    Dictionary,
    Mask,
    Names,
    OddRowsError,
    Slices,
    VariantKind,
    basic_type,
    encode_column,
    encode_lists,
    encode_object,
    encode_objects,
    fields_of,
    of_values,
    read_dictionary,
    read_fields,
)

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)

_ROWS_AT_ONCE = 16384
_BYTES_AT_ONCE = 64 << 20
_MAX_SCHEMA_DEPTH = 200
_MOST_REST_COLUMNS = 64
_PARTS = {"metadata", "value", "typed_value"}


def unshred(column: Column, location: str) -> Column:
    """The variants of a column read from a file, as `struct<metadata, value>`, whatever way the file shreds them.

    Takes and returns an Arrow array or chunked array; a null row stays null.
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([unshred(chunk, location) for chunk in column.chunks], VARIANT_STORAGE)
    column = storage_of(column)
    if not pa.types.is_struct(column.type):
        raise CorruptFileError(location, f"a variant column is of type {column.type}, not a group")
    names = [field.name for field in column.type]
    if len(set(names)) != len(names) or not set(names) <= _PARTS or "metadata" not in names or len(names) < 2:
        raise CorruptFileError(
            location, f"a variant group has the fields {names}; metadata, value and typed_value are known"
        )
    metadata = child(column, "metadata")
    if metadata is None or metadata.null_count != column.null_count:
        raise CorruptFileError(location, "a variant has no metadata")
    value, typed = child(column, "value"), child(column, "typed_value")
    if typed is not None and typed.null_count == len(typed):
        typed = None
    if typed is None and (value is None or value.null_count):
        return _plain(column, _without_nulls(column, value))
    if typed is None:
        return _plain(column, value)
    step = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE * len(column) // max(1, column.nbytes)))
    try:
        rows = [_unshred_rows(column.slice(start, step), location) for start in range(0, len(column), step)]
    except (InvalidValueError, pa.ArrowInvalid) as error:
        raise CorruptFileError(location, f"a shredded variant cannot be put together: {error}") from error
    return _plain(column, pa.concat_arrays(rows))


def _plain(column: pa.StructArray, value: pa.Array) -> pa.StructArray:
    mask = column.is_null() if column.null_count else None
    parts = [as_binary(column.field("metadata")), as_binary(value)]
    if mask is not None:
        parts = [pc.fill_null(part, b"") if part.null_count else part for part in parts]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT_STORAGE), mask=mask)


def as_binary(array: pa.Array) -> pa.BinaryArray:
    """The bytes of a column of a file, whatever form their offsets have."""
    array = storage_of(array)
    return array if array.type == pa.binary() else array.cast(pa.binary())


def _without_nulls(column: pa.StructArray, value: pa.Array | None) -> pa.BinaryArray:
    # Neither value nor typed value, where a value is needed: a variant null (parquet-format: VariantShredding).
    if value is None:
        return pa.array([VARIANT_NULL] * len(column), pa.binary())
    return pc.fill_null(as_binary(value), VARIANT_NULL)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The dictionaries of some rows, and which of them each row has; negative: the row is not looked at."""

    dictionaries: Sequence[Dictionary]
    codes: npt.NDArray[np.int64]

    @property
    def is_seen(self) -> Mask:
        return self.codes >= 0

    def ids(self, name: str) -> npt.NDArray[np.int64]:
        """The id of a name in the dictionary of each row; negative where there is none."""
        by_code = np.array([dictionary.ids.get(name, -1) for dictionary in self.dictionaries] + [-1], np.int64)
        return by_code[self.codes]


def _unshred_rows(column: pa.StructArray, location: str) -> pa.BinaryArray:
    values = encoded(
        as_binary(child(column, "metadata")), child(column, "value"), child(column, "typed_value"), location
    )
    return pc.fill_null(values, VARIANT_NULL) if values.null_count else values


def encoded(metadata: pa.BinaryArray, value: pa.Array | None, typed: pa.Array | None, location: str) -> pa.BinaryArray:
    """The encoded values of a group of `value` and `typed_value`, null where they are missing."""
    names = metadata.dictionary_encode()
    codes = pc.fill_null(names.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = _Rows([read_dictionary(each) for each in names.dictionary.to_pylist()], codes)
    return _join(value, typed, rows, location, 0)


def _join(value: pa.Array | None, typed: pa.Array | None, rows: _Rows, location: str, depth: int) -> pa.BinaryArray:
    """The encoded value of each row, null where it is missing."""
    if depth > _MAX_SCHEMA_DEPTH:
        raise CorruptFileError(location, f"a variant is shredded deeper than {_MAX_SCHEMA_DEPTH} levels")
    rest = pa.nulls(len(rows.codes), pa.binary()) if value is None else as_binary(value)
    if typed is None:
        return rest
    typed = storage_of(typed)
    if pa.types.is_struct(typed.type):
        return _join_objects(rest, typed, rows, location, depth)
    if pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type):
        shredded = _join_arrays(typed, rows, location, depth)
    else:
        kind, internal = primitive_of(typed.type, location)
        shredded = encode_column(typed if internal is None else typed.cast(internal), kind)
    if rest.null_count == len(rest):
        return shredded
    if (_valid(rest) & _valid(shredded) & rows.is_seen).any():
        raise CorruptFileError(location, "a variant has both value and typed_value, but is not an object")
    return pc.coalesce(shredded, rest)


def _join_objects(
    rest: pa.BinaryArray, typed: pa.StructArray, rows: _Rows, location: str, depth: int
) -> pa.BinaryArray:
    inner = _Rows(rows.dictionaries, np.where(_valid(typed), rows.codes, -1))
    # Flattening brings the nulls of the group down to its fields, which may hold anything there.
    children = typed.flatten()
    columns = {
        field.name: _join(*pair(column, location), inner, location, depth + 1)
        for field, column in zip(typed.type, children, strict=True)
    }
    if len(columns) != typed.type.num_fields:
        raise CorruptFileError(location, "a variant is shredded into two fields of the same name")
    ids = {name: inner.ids(name) for name in columns}
    for name, column in columns.items():
        if (inner.is_seen & _valid(column) & (ids[name] < 0)).any():
            raise CorruptFileError(location, f"the shredded field {name!r} is not in the metadata of a variant")
    has_rest = inner.is_seen & _valid(rest)
    if has_rest.any() and (more := _rest_columns(rest, has_rest, columns, inner, location)) is not None:
        columns, ids = columns | more, ids | {name: inner.ids(name) for name in more}
        has_rest[:] = False
    objects = encode_objects(columns, ids, inner.is_seen & ~has_rest)
    if has_rest.any():
        merged = _merge_rests(rest, columns, inner, np.flatnonzero(has_rest), location)
        objects = pc.replace_with_mask(objects, pa.array(has_rest), merged)
    return pc.coalesce(objects, rest)


def _rest_columns(
    rest: pa.BinaryArray, has_rest: Mask, columns: dict[str, pa.BinaryArray], rows: _Rows, location: str
) -> dict[str, pa.BinaryArray] | None:
    """The fields that are not shredded, a column for each name; None where there are too many, or rows in an odd form."""
    names = Names.from_dictionaries(rows.dictionaries, rows.codes)
    try:
        slices = of_values(rest, has_rest)
        if (has_rest & ~slices.is_object).any():
            return None
        fields = fields_of(slices, names)
    except OddRowsError:
        return None
    numbers = np.unique(fields.names)
    if len(numbers) > _MOST_REST_COLUMNS:
        return None
    by_number = {number: name for name, number in names.numbers.items()}
    more = {}
    for number in numbers.tolist():
        is_named = fields.names == number
        name, owners = by_number[number], fields.owners[is_named]
        if name in columns:
            if not _valid(columns[name])[owners].all():
                raise CorruptFileError(
                    location, f"the field {name!r} of a variant is missing where it is shredded, but in its value"
                )
            continue
        starts, ends = np.full(len(rest), -1, np.int64), np.zeros(len(rest), np.int64)
        starts[owners], ends[owners] = fields.slices.starts[is_named], fields.slices.ends[is_named]
        more[name] = Slices(slices.data, starts, ends, slices.rows).as_binary()
    return more


def _merge_rests(
    rest: pa.BinaryArray,
    columns: dict[str, pa.BinaryArray],
    rows: _Rows,
    places: npt.NDArray[np.int64],
    location: str,
) -> pa.BinaryArray:
    """The objects at these places, some of whose fields are shredded and others are not, one by one."""
    chosen = pa.array(places)
    parts = [column.take(chosen).to_pylist() for column in columns.values()]
    rests = rest.take(chosen).to_pylist()
    fields = zip(*parts, strict=True) if parts else ((),) * len(places)
    return pa.array(
        [
            _join_object(left, dict(zip(columns, values, strict=True)), rows.dictionaries[code], location)
            for left, values, code in zip(rests, fields, rows.codes[places].tolist(), strict=True)
        ],
        pa.binary(),
    )


def _join_object(rest: bytes, shredded: dict[str, bytes | None], dictionary: Dictionary, location: str) -> bytes:
    if basic_type(rest, 0, len(rest)) != OBJECT:
        raise CorruptFileError(location, "a variant is shredded as an object, but its value is none")
    fields: dict[str, bytes] = {}
    for name, start, end in read_fields(rest, 0, len(rest), dictionary):
        if name in shredded and shredded[name] is None:
            raise CorruptFileError(
                location, f"the field {name!r} of a variant is missing where it is shredded, but in its value"
            )
        fields[name] = rest[start:end]
    fields.update((name, value) for name, value in shredded.items() if value is not None)
    return encode_object(fields, dictionary.ids)


def _join_arrays(typed: pa.ListArray, rows: _Rows, location: str, depth: int) -> pa.BinaryArray:
    lengths = pc.fill_null(typed.value_lengths(), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    inner = _Rows(rows.dictionaries, np.repeat(rows.codes, lengths))
    elements = _join(*pair(typed.flatten(), location), inner, location, depth + 1)
    return encode_lists(elements, lengths, _valid(typed) & rows.is_seen)


def _valid(array: pa.Array) -> Mask:
    mask: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def primitive_of(kind: pa.DataType, location: str) -> tuple[VariantKind | None, pa.DataType | None]:
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
    raise CorruptFileError(location, f"a variant is shredded as {kind}, which is not a variant type")


def primitive_kind(kind: pa.DataType) -> VariantKind | None:
    """The variant type of a typed column of primitives, `TRUE` for booleans; None if variants have no such type."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    if pa.types.is_boolean(kind):
        return VariantKind.TRUE
    try:
        return primitive_of(kind, "")[0] or VariantKind.STRING
    except CorruptFileError:
        return None


def pair(column: pa.Array, location: str) -> tuple[pa.Array | None, pa.Array | None]:
    """Value and typed value of a shredded field or element."""
    column = storage_of(column)
    names = [field.name for field in column.type] if pa.types.is_struct(column.type) else []
    if not names or len(set(names)) != len(names) or not set(names) <= {"value", "typed_value"}:
        raise CorruptFileError(
            location, f"a part of a shredded variant is {column.type}, not a group of value and typed_value"
        )
    return child(column, "value"), child(column, "typed_value")


def child(column: pa.StructArray, name: str) -> pa.Array | None:
    """The child column with the nulls of its parent; None if there is no such child."""
    index = column.type.get_field_index(name)
    if index < 0:
        return None
    return column.flatten()[index] if column.null_count else column.field(index)


def storage_of(array: pa.Array) -> pa.Array:
    """What an extension array is stored as."""
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
