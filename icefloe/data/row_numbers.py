"""Which rows of a table are equal: null equals null and NaN equals NaN, 0.0 is not -0.0, and maps are equal in any order.

Every type can be compared, nested ones by the numbers of what is in them; no row is looked at in Python.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]


def row_numbers(rows: pa.Table) -> Numbers:
    """A number for each row, from 0, the same for equal rows."""
    return _combined([value_numbers(column) for column in rows.columns], len(rows))


def value_numbers(column: pa.Array | pa.ChunkedArray) -> Numbers:
    """A number for each value, from 0, the same for equal ones."""
    values = _plain(column)
    numbers = _of_type(values)
    if pa.types.is_nested(values.type) and values.null_count:
        numbers = np.where(np.asarray(values.is_valid()), numbers + 1, 0)
    return numbers


def ranks(groups: Numbers) -> Numbers:
    """For each item, how many of the same group come before it."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(ordered)])
    result = np.empty(len(groups), np.int64)
    result[order] = np.arange(len(groups)) - np.repeat(starts, lengths)
    return result


def _of_type(values: pa.Array) -> Numbers:
    is_a, arrow_type = pa.types, values.type
    if is_a.is_null(arrow_type):
        return np.zeros(len(values), np.int64)
    if is_a.is_struct(arrow_type):
        fields = [value_numbers(values.field(index)) for index in range(arrow_type.num_fields)]
        return _combined(fields, len(values))
    if is_a.is_map(arrow_type):
        return _of_maps(values)
    if is_a.is_list(arrow_type) or is_a.is_large_list(arrow_type):
        whole = values.take(pa.array(np.arange(len(values))))
        return _of_sequences(value_numbers(whole.flatten()), _lengths(whole))
    if is_a.is_floating(arrow_type):
        values = _bits(values)
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _of_maps(values: pa.MapArray) -> Numbers:
    # A copy has neither an offset nor entries of other rows.
    whole = values.take(pa.array(np.arange(len(values))))
    lengths = _lengths(whole)
    keys, items = value_numbers(whole.keys), value_numbers(whole.items)
    order = np.lexsort((keys, np.repeat(np.arange(len(values)), lengths)))
    return _of_sequences(_combined([keys, items], len(keys))[order], lengths)


def _of_sequences(items: Numbers, lengths: Numbers) -> Numbers:
    """Numbers of sequences of numbers, which are told apart as bytes."""
    offsets = np.concatenate(([0], np.cumsum(lengths))) * items.itemsize
    texts = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(lengths), [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(items)]
    )
    return np.asarray(texts.dictionary_encode().indices.to_numpy().astype(np.int64))


def _lengths(values: pa.Array) -> Numbers:
    lengths = pc.list_value_length(values) if not pa.types.is_map(values.type) else None
    if lengths is None:
        offsets = np.asarray(values.offsets.to_numpy(zero_copy_only=False), np.int64)
        return np.diff(offsets)
    return np.asarray(pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64))


def _combined(columns: list[Numbers], count: int) -> Numbers:
    numbers = np.zeros(count, np.int64)
    for column in columns:
        pairs = numbers * (int(column.max(initial=0)) + 1) + column
        numbers = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return numbers


def _bits(values: pa.FloatingPointArray) -> pa.Array:
    """Floats as integers, with one NaN."""
    floats = values.to_numpy(zero_copy_only=False).copy()
    floats[np.isnan(floats)] = np.nan
    return pa.array(floats.view(f"i{floats.itemsize}"), mask=np.asarray(values.is_null()))


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, without an extension type."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.storage if isinstance(column, pa.ExtensionArray) else column
