"""How incoming data becomes rows of the table: by name, types only where no value is lost, what is missing filled.

Columns that the data lacks get their write default, or null if they are optional (spec: Default values); columns that the
table lacks are an error, and so is null where the table has a required column. Only casts that keep every value are done:
wider and narrower numbers that fit, exact fractions, finer units of time. Text is not parsed, and timestamps with and without
a zone are never taken for each other.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.formats.metrics import leaves
from icefloe.formats.projection import constant_array, null_array, without_nulls
from icefloe.formats.variant.shredding import unshred
from icefloe.schema import Schema, Value, check_wkb_column, schema_to_arrow, types


def shape_table(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with exactly the columns of the schema, found by name."""
    target = schema_to_arrow(schema)
    _check_names(table.schema.names, [field.name for field in schema.fields], "")
    columns = [
        _column(table, field, arrow_field.type) for field, arrow_field in zip(schema.fields, target, strict=True)
    ]
    shaped = pa.Table.from_arrays(columns, schema=target)
    _check_shapes(shaped, schema)
    return shaped


def _check_shapes(table: pa.Table, schema: Schema) -> None:
    """Fail on geometries and geographies, outside of lists and maps, that are not whole ISO WKB."""
    for field, (first, *rest) in leaves(schema):
        if isinstance(field.field_type, types.GeometryType | types.GeographyType):
            # Below null structs there may be anything.
            values = pc.struct_field(table.column(first), rest) if rest else table.column(first)
            check_wkb_column(values, schema.names_by_id[field.field_id])


def write_default(field: types.NestedField) -> Value:
    """What is written for a field that nobody gave a value; a struct of its fields' defaults where it has the empty one."""
    if isinstance(field.field_type, types.StructType) and field.write_default == ():
        return tuple((inner.field_id, write_default(inner)) for inner in field.field_type)
    return field.write_default


def _column(table: pa.Table, field: types.NestedField, arrow_type: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if field.name not in table.schema.names:
        return _filled(field, table.num_rows, arrow_type, field.name)
    column = table.column(field.name)
    if column.type.equals(arrow_type, check_metadata=True) and not isinstance(
        field.field_type, types.StructType | types.ListType | types.MapType
    ):
        _check_nulls(column, field, field.name, None)
        if isinstance(field.field_type, types.StringType):
            _check_utf_8(column, field.name)
        return column
    chunks = [_values(chunk, field.field_type, arrow_type, field.name) for chunk in column.chunks]
    shaped = pa.chunked_array(chunks, arrow_type)
    _check_nulls(shaped, field, field.name, None)
    return shaped


def _filled(field: types.NestedField, rows: int, arrow_type: pa.DataType, path: str) -> pa.Array:
    value = write_default(field)
    if value is None and field.required:
        raise InvalidValueError(
            f"the data lacks the required column {path!r}, which has no write default; give it values"
        )
    return constant_array(value, field.field_type, arrow_type, rows)


def _values(array: pa.Array, field_type: types.IcebergType, arrow_type: pa.DataType, path: str) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    elif pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_null(array.type):
        return null_array(len(array), arrow_type)
    match field_type:
        case types.StructType():
            return _struct(array, field_type, arrow_type, path)
        case types.ListType():
            return _list(array, field_type, arrow_type, path)
        case types.MapType():
            return _map(array, field_type, arrow_type, path)
        case types.VariantType():
            return _variant(array, arrow_type, path)
        case types.StringType():
            texts = _cast_leaf(array, field_type, arrow_type, path)
            _check_utf_8(texts, path)
            return texts
        case _:
            return _cast_leaf(array, field_type, arrow_type, path)


def _check_utf_8(texts: pa.Array | pa.ChunkedArray, path: str) -> None:
    """Arrow takes any bytes for text unless it is asked to look; this looks at some gigabytes in a second."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidValueError(f"column {path!r} has text that is not UTF-8: {error}") from None


def _struct(array: pa.Array, struct: types.StructType, arrow_type: pa.StructType, path: str) -> pa.StructArray:
    if not pa.types.is_struct(array.type):
        raise _refused(array, struct, path)
    names = [field.name for field in array.type]
    _check_names(names, [field.name for field in struct.fields], f"{path}.")
    valid = pc.is_valid(array) if array.null_count else None
    children = []
    for field, inner in zip(struct.fields, arrow_type, strict=True):
        below = f"{path}.{field.name}"
        if field.name in names:
            child = _values(array.field(names.index(field.name)), field.field_type, inner.type, below)
            _check_nulls(child, field, below, valid)
            # Below null structs there may be nulls that are none; writers take them for what they look like.
            child = without_nulls(child) if field.required and child.null_count else child
        else:
            child = _filled(field, len(array), inner.type, below)
        children.append(child)
    missing = None if valid is None else pc.invert(valid)
    return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=missing)


def _list(array: pa.Array, list_type: types.ListType, arrow_type: pa.ListType, path: str) -> pa.ListArray:
    is_a = pa.types
    if is_a.is_fixed_size_list(array.type) or is_a.is_list_view(array.type) or is_a.is_large_list_view(array.type):
        array = array.cast(pa.large_list(array.type.value_field))
    if not (is_a.is_list(array.type) or is_a.is_large_list(array.type)):
        raise _refused(array, list_type, path)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    elements = _values(array.flatten(), list_type.element_type, arrow_type.value_type, f"{path}.element")
    _check_nulls(elements, list_type.element_field, f"{path}.element", None)
    return pa.ListArray.from_arrays(_offsets(lengths), elements, type=arrow_type, mask=_nulls(array))


def _map(array: pa.Array, map_type: types.MapType, arrow_type: pa.MapType, path: str) -> pa.MapArray:
    if not pa.types.is_map(array.type):
        raise _refused(array, map_type, path)
    if array.offset or array.null_count:
        # Keys and items know nothing of slices and of what lies below nulls; a copy has neither.
        array = array.take(pa.array(np.arange(len(array))))
    ends = array.offsets.to_numpy()
    first, last = int(ends[0]), int(ends[-1])
    keys = _values(array.keys.slice(first, last - first), map_type.key_type, arrow_type.key_type, f"{path}.key")
    items = _values(array.items.slice(first, last - first), map_type.value_type, arrow_type.item_type, f"{path}.value")
    _check_nulls(items, map_type.value_field, f"{path}.value", None)
    return pa.MapArray.from_arrays(_offsets(np.diff(ends)), keys, items, type=arrow_type, mask=_nulls(array))


def _variant(array: pa.Array, arrow_type: pa.DataType, path: str) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.cast(array.type.storage_type)
    if not pa.types.is_struct(array.type) or "metadata" not in {field.name for field in array.type}:
        raise _refused(array, types.VariantType(), path)
    return array if array.type.equals(arrow_type, check_metadata=True) else unshred(array, path)


def _offsets(lengths: npt.NDArray[np.integer]) -> pa.Array:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise InvalidValueError("lists and maps of one batch hold more than 2^31 values; give smaller batches")
    return pa.array(offsets.astype(np.int32))


def _nulls(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None


def _check_nulls(
    values: pa.Array | pa.ChunkedArray, field: types.NestedField, path: str, around: pa.Array | None
) -> None:
    """Fail on null in a required field; `around` says where the struct that holds it is not null."""
    if not field.required or not values.null_count:
        return
    nulls = values.null_count
    if around is not None:
        nulls = pc.sum(pc.and_(pc.is_null(values), around)).as_py() or 0
    if nulls:
        raise InvalidValueError(f"required column {path!r} has {nulls} nulls in the data; it must have none")


def _check_names(names: Sequence[str], known: Sequence[str], around: str) -> None:
    if len(set(names)) < len(names):
        twice = sorted({around + name for name in names if names.count(name) > 1})
        raise InvalidValueError(f"the data has more than one column named {', '.join(map(repr, twice))}")
    if extra := [around + name for name in names if name not in known]:
        raise InvalidValueError(
            f"the data has columns that the table lacks: {', '.join(map(repr, extra))};"
            f" the table has {', '.join(repr(around + name) for name in known) or 'none'}"
        )


def _refused(array: pa.Array, field_type: types.IcebergType, path: str) -> InvalidValueError:
    return InvalidValueError(f"column {path!r} is {array.type} in the data; the table has {field_type}")


# -- values of primitive types


def _is_without_zone(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow_type)) and arrow_type.tz is None


def _is_with_zone(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(arrow_type)) and arrow_type.tz is not None


def _is_uuid(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width == 16)


_BYTES = (pa.types.is_fixed_size_binary, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
_ACCEPTED: dict[type[types.IcebergType], tuple[Callable[[pa.DataType], bool], ...]] = {
    types.BooleanType: (pa.types.is_boolean,),
    types.IntegerType: (pa.types.is_integer,),
    types.LongType: (pa.types.is_integer,),
    types.FloatType: (pa.types.is_floating, pa.types.is_integer),
    types.DoubleType: (pa.types.is_floating, pa.types.is_integer),
    types.DecimalType: (pa.types.is_decimal, pa.types.is_integer),
    types.DateType: (pa.types.is_date,),
    types.TimeType: (pa.types.is_time,),
    types.TimestampType: (_is_without_zone, pa.types.is_date),
    types.TimestampNanoType: (_is_without_zone, pa.types.is_date),
    types.TimestamptzType: (_is_with_zone,),
    types.TimestamptzNanoType: (_is_with_zone,),
    types.StringType: (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    types.UUIDType: (_is_uuid,),
    types.FixedType: _BYTES,
    types.BinaryType: _BYTES,
    types.GeometryType: _BYTES,
    types.GeographyType: _BYTES,
}
"""The Arrow types whose values can be values of a column at all."""


def _cast_leaf(array: pa.Array, field_type: types.IcebergType, arrow_type: pa.DataType, path: str) -> pa.Array:
    """The array as values of the column's type; an error if that loses anything."""
    if array.type.equals(arrow_type):
        return array
    if isinstance(array.type, pa.BaseExtensionType) and not isinstance(field_type, types.UUIDType):
        array = array.storage
    if not any(is_accepted(array.type) for is_accepted in _ACCEPTED.get(type(field_type), ())):
        raise _refused(array, field_type, path)
    try:
        return _cast(array, field_type, arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as problem:
        raise InvalidValueError(
            f"column {path!r} is {array.type} in the data and cannot be stored as {field_type} without loss: {problem}"
        ) from None


def _cast(array: pa.Array, field_type: types.IcebergType, arrow_type: pa.DataType) -> pa.Array:
    match field_type:
        case types.UUIDType():
            return pa.ExtensionArray.from_storage(arrow_type, array.cast(arrow_type.storage_type))
        case types.FloatType() if array.type.bit_width == 64:
            return _as_floats(array, arrow_type)
        case types.FixedType() if pa.types.is_binary_view(array.type) or pa.types.is_large_binary(array.type):
            return array.cast(pa.binary()).cast(arrow_type)
        case types.TimestampType() | types.TimestampNanoType() if pa.types.is_date(array.type):
            return array.cast(pa.date32()).cast(arrow_type)
        case _:
            return array.cast(arrow_type)


def _as_floats(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """64-bit numbers as 32-bit ones, if each is the same number then."""
    floats = array.cast(arrow_type)
    if pa.types.is_floating(array.type):
        same = pc.or_(pc.equal(floats.cast(array.type), array), pc.is_nan(array))
        if not pc.all(same, min_count=0).as_py():
            raise pa.ArrowInvalid("a value is not one of 32 bits")
    return floats
