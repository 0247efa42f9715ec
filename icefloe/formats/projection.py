"""Batches of a file made batches of the wanted columns, by a projection plan: reordered, renamed, promoted, filled."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.formats.variant.shredding import unshred
from icefloe.schema import Schema, Value, projection as plans, schema_to_arrow, types

MICROS_PER_DAY = 86_400_000_000

Convert = Callable[[pa.Array, pa.DataType], pa.Array]
"""From values as the file has them to values of an Arrow type."""


def project_batch(
    batch: pa.RecordBatch,
    plan: plans.ProjectStruct,
    wanted: Schema,
    location: str,
    row_count: int | None = None,
    *,
    may_be_encoded: bool = False,
) -> pa.RecordBatch:
    """A record batch with the wanted columns; `row_count` is for a batch of no columns, `location` for errors.

    Texts that come as dictionaries stay so if they `may_be_encoded`.
    """
    rows = batch.num_rows if row_count is None else row_count
    target = schema_to_arrow(wanted)
    try:
        if may_be_encoded:
            target = _with_dictionaries(target, plan, batch)
        columns = _fields(plan, batch.columns, rows, target)
    except CorruptFileError as error:
        raise CorruptFileError(location, error.problem) from error
    return pa.RecordBatch.from_arrays(columns, schema=target)


def decoded(array: pa.Array) -> pa.Array:
    """The array with its values instead of a dictionary of them."""
    if not isinstance(array, pa.DictionaryArray):
        return array
    _check_indices(array)
    return pc.take(array.dictionary, array.indices, boundscheck=False)


def _with_dictionaries(target: pa.Schema, plan: plans.ProjectStruct, batch: pa.RecordBatch) -> pa.Schema:
    """The schema with the dictionaries of the batch where it has texts."""
    for index, field in enumerate(plan.fields):
        if isinstance(field.source, plans.FromFile) and isinstance(field.source.plan, plans.Keep):
            column = batch.column(field.source.position)
            if isinstance(column, pa.DictionaryArray) and column.type.value_type.equals(target.types[index]):
                _check_indices(column)
                target = target.set(index, target.field(index).with_type(column.type))
    return target


def _check_indices(array: pa.DictionaryArray) -> None:
    # Arrow does not check those that it reads.
    first, last = pc.min_max(array.indices).values()
    if first.is_valid and not 0 <= first.as_py() <= last.as_py() < len(array.dictionary):
        raise CorruptFileError("", f"a value is number {last} of a dictionary of {len(array.dictionary)}")


def constant_array(value: Value, kind: types.IcebergType, arrow_type: pa.DataType, rows: int) -> pa.Array:
    """One internal value, for all rows."""
    if value is None:
        return null_array(rows, arrow_type)
    one = pa.array([arrow_object(value, kind)], storage_type(arrow_type)).cast(arrow_type)
    return one.take(pa.array(np.zeros(rows, np.int32)))


def null_array(rows: int, arrow_type: pa.DataType) -> pa.Array:
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


def without_nulls(array: pa.Array) -> pa.Array:
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


def arrow_object(value: Value, kind: types.IcebergType) -> Any:
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


def storage_type(arrow_type: pa.DataType) -> pa.DataType:
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


def as_stored(array: pa.Array) -> pa.Array:
    """The array with extension types as what they are stored as.

    pyarrow cannot make an empty array of an extension type inside of another, so that copies of null lists fail with them.
    """
    plain = storage_type(array.type)
    return array if plain.equals(array.type) else array.cast(plain)


def compacted(array: pa.Array) -> pa.Array:
    """A copy that is no slice and holds nothing below nulls, with extension types as what they are stored as."""
    return as_stored(array).take(pa.array(np.arange(len(array))))


def _fields(
    plan: plans.ProjectStruct, children: list[pa.Array], rows: int, target: Iterable[pa.Field]
) -> list[pa.Array]:
    """The columns of a struct, or of a batch, from those of the file."""
    return [_field(field, children, rows, inner.type) for field, inner in zip(plan.fields, target, strict=True)]


def _field(field: plans.ProjectField, children: list[pa.Array], rows: int, arrow_type: pa.DataType) -> pa.Array:
    match field.source:
        case plans.FromFile(position=position, plan=plan):
            return _values(children[position], plan, field.field.field_type, arrow_type)
        case plans.Constant(value=value) | plans.Default(value=value):
            return constant_array(value, field.field.field_type, arrow_type, rows)
        case plans.Null():
            return null_array(rows, arrow_type)


def _values(array: pa.Array, plan: plans.ValuePlan, kind: types.IcebergType, arrow_type: pa.DataType) -> pa.Array:
    match plan, kind:
        case plans.Keep(), _:
            return _kept(array, kind, arrow_type)
        case plans.Promote(old=types.DateType()), _:
            return _dates_to_timestamps(array, arrow_type)
        case plans.Promote(), _:
            return _cast(array, arrow_type)
        case plans.ProjectStruct(), types.StructType():
            children = [array.field(i) for i in range(array.type.num_fields)]
            return _struct(_fields(plan, children, len(array), arrow_type), array, arrow_type)
        case plans.ProjectList(), types.ListType():
            return _list(
                array, lambda values, inner: _values(values, plan.element, kind.element_type, inner), arrow_type
            )
        case plans.ProjectMap(), types.MapType():
            return _map(
                array,
                lambda keys, inner: _values(keys, plan.key, kind.key_type, inner),
                lambda items, inner: _values(items, plan.value, kind.value_type, inner),
                arrow_type,
            )
        case _:
            raise AssertionError(f"the plan {plan} does not fit {kind}")


def _kept(array: pa.Array, kind: types.IcebergType, arrow_type: pa.DataType) -> pa.Array:
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


def _struct(children: list[pa.Array], array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """The children as a struct that is null where the array is."""
    if children:
        return pa.StructArray.from_arrays(children, fields=list(arrow_type), mask=null_mask(array))
    # Of a struct whose fields were all dropped, only its nulls are left.
    valid = np.packbits(pc.is_valid(array).to_numpy(zero_copy_only=False), bitorder="little")
    return pa.Array.from_buffers(arrow_type, len(array), [pa.py_buffer(valid)])


def _list(array: pa.Array, inner: Convert, arrow_type: pa.DataType) -> pa.Array:
    if not pa.types.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    values = inner(as_stored(array).flatten(), arrow_type.value_type)
    return pa.ListArray.from_arrays(list_offsets(array), values, type=arrow_type, mask=null_mask(array))


def _map(array: pa.Array, key: Convert, item: Convert, arrow_type: pa.DataType) -> pa.Array:
    offsets, keys, items = map_parts(array)
    keys, items = key(keys, arrow_type.key_type), item(items, arrow_type.item_type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type, mask=null_mask(array))


def list_offsets(array: pa.ListArray) -> pa.Array:
    """The offsets of lists in their flattened elements."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.array(offsets)


def map_parts(array: pa.MapArray) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Offsets, keys and items of maps; these know nothing of slices and of what lies below nulls, but a copy has neither."""
    if array.offset or array.null_count:
        array = compacted(array)
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    offsets = pc.subtract(array.offsets, first) if first else array.offsets
    return offsets, array.keys.slice(first, last - first), array.items.slice(first, last - first)


def null_mask(array: pa.Array) -> pa.BooleanArray | None:
    """Where the array is null, if anywhere."""
    return pc.is_null(array) if array.null_count else None


def _dates_to_timestamps(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Midnight of each day; a day beyond the range of the timestamp is an error (spec: Schema Evolution)."""
    per_day = MICROS_PER_DAY * (1000 if arrow_type.unit == "ns" else 1)
    try:
        ticks = pc.multiply_checked(array.cast(pa.int32()).cast(pa.int64()), per_day)
    except pa.ArrowInvalid:
        raise InvalidValueError(
            f"a date is outside of the range of {arrow_type}, to which its column was promoted"
        ) from None
    return ticks.cast(arrow_type)


def _cast(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    try:
        if isinstance(array.type, pa.BaseExtensionType) and not isinstance(arrow_type, pa.BaseExtensionType):
            array = array.cast(array.type.storage_type)
        return decoded(array).cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise InvalidValueError(f"values of {array.type} cannot be read as {arrow_type}: {problem}") from None
