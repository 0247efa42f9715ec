"""Batches of a file made batches of the wanted columns, by a projection plan: reordered, renamed, promoted, filled."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.variant.shredding import unshred
from icefloe.schema import (
    Constant,
    Default,
    FromFile,
    Keep,
    Null,
    ProjectField,
    ProjectList,
    ProjectMap,
    ProjectStruct,
    Promote,
    Schema,
    ValuePlan,
    field_to_arrow,
    schema_to_arrow,
    types,
)

MICROS_PER_DAY = 86_400_000_000


def project_batch(batch: Any, plan: ProjectStruct, wanted: Schema, location: str, row_count: int | None = None) -> Any:
    """A record batch with the wanted columns; `row_count` is for a batch of no columns, `location` for errors."""
    rows = batch.num_rows if row_count is None else row_count
    target = schema_to_arrow(wanted)
    fields = zip(plan.fields, target, strict=True)
    try:
        columns = [_field(each, batch.columns, rows, arrow_field.type) for each, arrow_field in fields]
    except CorruptFileError as error:
        raise CorruptFileError(location, error.problem) from error
    return pa.RecordBatch.from_arrays(columns, schema=target)


def constant_array(value: Any, kind: types.IcebergType, arrow_type: Any, rows: int) -> Any:
    """One internal value, for all rows."""
    if value is None:
        return null_array(rows, arrow_type)
    one = pa.array([arrow_object(value, kind)], storage_type(arrow_type)).cast(arrow_type)
    return one.take(pa.array(np.zeros(rows, np.int32)))


def null_array(rows: int, arrow_type: Any) -> Any:
    """Nothing but nulls; fields that must have values have some below, which nobody sees, as writers want them."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, null_array(rows, arrow_type.storage_type))
    if not pa.types.is_struct(arrow_type):
        return pa.nulls(rows, arrow_type)
    children = [null_array(rows, field.type) for field in arrow_type]
    shown = [
        child if field.nullable else without_nulls(child) for child, field in zip(children, arrow_type, strict=True)
    ]
    return pa.StructArray.from_arrays(shown, fields=list(arrow_type), mask=pa.array(np.ones(rows, np.bool_)))


def without_nulls(array: Any) -> Any:
    """The array as if each of its values were there; for values that nobody sees."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, without_nulls(array.storage))
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays([array.field(i) for i in range(kind.num_fields)], fields=list(kind))
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=kind)
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(array.offsets, array.values, type=kind)
    return pa.Array.from_buffers(kind, len(array), [None, *array.buffers()[1:]], 0, array.offset)


def arrow_object(value: Any, kind: types.IcebergType) -> Any:
    """What `pyarrow.array` takes for an internal value: dicts for structs, bytes for UUIDs."""
    if value is None:
        return None
    match kind:
        case types.StructType():
            fields = {field.field_id: field for field in kind.fields}
            return {fields[i].name: arrow_object(inner, fields[i].field_type) for i, inner in value}
        case types.ListType():
            return [arrow_object(inner, kind.element_type) for inner in value]
        case types.MapType():
            return [(arrow_object(k, kind.key_type), arrow_object(v, kind.value_type)) for k, v in value]
        case _:
            return getattr(value, "bytes", value)


def storage_type(arrow_type: Any) -> Any:
    """The type with extension types replaced by what they are stored as, since Python objects make only those."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return arrow_type.storage_type
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(storage_type(field.type)) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        key, item = arrow_type.key_field, arrow_type.item_field
        return pa.map_(key.with_type(storage_type(key.type)), item.with_type(storage_type(item.type)))
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(storage_type(arrow_type.value_type)))
    return arrow_type


def as_stored(array: Any) -> Any:
    """The array with extension types as what they are stored as.

    pyarrow cannot make an empty array of an extension type inside of another, so that copies of null lists fail with them.
    """
    plain = storage_type(array.type)
    return array if plain.equals(array.type) else array.cast(plain)


def compacted(array: Any) -> Any:
    """A copy that is no slice and holds nothing below nulls, with extension types as what they are stored as."""
    return as_stored(array).take(pa.array(np.arange(len(array))))


def _field(each: ProjectField, present: list[Any], rows: int, arrow_type: Any) -> Any:
    match each.source:
        case FromFile(position=position, plan=plan):
            return _values(present[position], plan, each.field.field_type, arrow_type)
        case Constant(value=value) | Default(value=value):
            return constant_array(value, each.field.field_type, arrow_type, rows)
        case Null():
            return null_array(rows, arrow_type)


def _values(array: Any, plan: ValuePlan, kind: types.IcebergType, arrow_type: Any) -> Any:
    match plan, kind:
        case Keep(), _:
            return _kept(array, kind, arrow_type)
        case Promote(old=types.DateType()), _:
            return _dates_to_timestamps(array, arrow_type)
        case Promote(), _:
            return _cast(array, arrow_type)
        case ProjectStruct(), types.StructType():
            children = [array.field(i) for i in range(array.type.num_fields)]
            columns = [
                _field(each, children, len(array), inner.type)
                for each, inner in zip(plan.fields, arrow_type, strict=True)
            ]
            return _struct(columns, array, arrow_type)
        case ProjectList(), types.ListType():
            return _list(
                array, lambda values, inner: _values(values, plan.element, kind.element_type, inner), arrow_type
            )
        case ProjectMap(), types.MapType():
            return _map(
                array,
                lambda keys, inner: _values(keys, plan.key, kind.key_type, inner),
                lambda items, inner: _values(items, plan.value, kind.value_type, inner),
                arrow_type,
            )
        case _:
            raise AssertionError(f"the plan {plan} does not fit {kind}")


def _kept(array: Any, kind: types.IcebergType, arrow_type: Any) -> Any:
    """Values of the same type, whose Arrow form may still differ: large offsets, dictionaries, shredded variants."""
    if array.type.equals(arrow_type, check_metadata=True):
        return array
    match kind:
        case types.VariantType():
            return unshred(array, "")
        case types.StructType():
            children = [
                _kept(array.field(i), field.field_type, inner.type)
                for i, (field, inner) in enumerate(zip(kind.fields, arrow_type, strict=True))
            ]
            return _struct(children, array, arrow_type)
        case types.ListType():
            return _list(array, lambda values, inner: _kept(values, kind.element_type, inner), arrow_type)
        case types.MapType():
            return _map(
                array,
                lambda keys, inner: _kept(keys, kind.key_type, inner),
                lambda items, inner: _kept(items, kind.value_type, inner),
                arrow_type,
            )
        case _:
            return _cast(array, arrow_type)


def _struct(children: list[Any], array: Any, arrow_type: Any) -> Any:
    """The children as a struct that is null where the array is."""
    if children:
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=_nulls(array))
    # Of a struct whose fields were all dropped, only its nulls are left.
    valid = np.packbits(pc.is_valid(array).to_numpy(zero_copy_only=False), bitorder="little")
    return pa.Array.from_buffers(arrow_type, len(array), [pa.py_buffer(valid)])


def _list(array: Any, inner: Any, arrow_type: Any) -> Any:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    values = inner(as_stored(array).flatten(), arrow_type.value_type)
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=arrow_type, mask=_nulls(array))


def _map(array: Any, key: Any, item: Any, arrow_type: Any) -> Any:
    if array.offset or array.null_count:
        # Keys and items know nothing of slices and of what lies below nulls; a copy has neither.
        array = compacted(array)
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    offsets = pc.subtract(array.offsets, first) if first else array.offsets
    keys = key(array.keys.slice(first, last - first), arrow_type.key_type)
    items = item(array.items.slice(first, last - first), arrow_type.item_type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type, mask=_nulls(array))


def _nulls(array: Any) -> Any:
    return pc.is_null(array) if array.null_count else None


def _dates_to_timestamps(array: Any, arrow_type: Any) -> Any:
    """Midnight of each day; a day beyond the range of the timestamp is an error (spec: Schema Evolution)."""
    per_day = MICROS_PER_DAY * (1000 if arrow_type.unit == "ns" else 1)
    try:
        ticks = pc.multiply_checked(array.cast(pa.int32()).cast(pa.int64()), per_day)
    except pa.ArrowInvalid:
        raise InvalidValueError(
            f"a date is outside of the range of {arrow_type}, to which its column was promoted"
        ) from None
    return ticks.cast(arrow_type)


def _cast(array: Any, arrow_type: Any) -> Any:
    try:
        if isinstance(array.type, pa.BaseExtensionType) and not isinstance(arrow_type, pa.BaseExtensionType):
            array = array.cast(array.type.storage_type)
        return array.cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise InvalidValueError(f"values of {array.type} cannot be read as {arrow_type}: {problem}") from None


def position_array(start: int, rows: int) -> Any:
    """The positions of rows in their file."""
    return pa.array(np.arange(start, start + rows, dtype=np.int64))


def with_positions(batch: Any, wanted: Schema, positions: Any, position_id: int) -> Any:
    """The batch with the positions as the column of that id, where it is wanted."""
    for place, field in enumerate(wanted.fields):
        if field.field_id == position_id:
            if not batch.num_columns:  # such a batch has forgotten how many rows it has
                return pa.RecordBatch.from_arrays([positions], schema=pa.schema([field_to_arrow(field)]))
            return batch.add_column(place, field_to_arrow(field), positions)
    return batch
