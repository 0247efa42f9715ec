"""Whether two columns are equal, row by row: null equals null and NaN equals NaN, but 0.0 is not -0.0."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def same_values(left: pa.Array | pa.ChunkedArray, right: pa.Array | pa.ChunkedArray) -> Mask:
    """For each row of two arrays of one type and length, whether they are equal; entries of maps in their order."""
    left, right = _plain(left), _plain(right)
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    if not left.null_count and not right.null_count:
        return _same(left, right)
    in_left, in_right = np.asarray(left.is_valid()), np.asarray(right.is_valid())
    is_same: Mask = in_left == in_right
    both = np.flatnonzero(in_left & in_right)
    is_same[both] = _same(left.take(pa.array(both)), right.take(pa.array(both)))
    return is_same


def _same(left: pa.Array, right: pa.Array) -> Mask:
    """The same for arrays without nulls."""
    is_a, arrow_type = pa.types, left.type
    if is_a.is_floating(arrow_type):
        return _same_floats(left.to_numpy(), right.to_numpy())
    if is_a.is_struct(arrow_type):
        is_same = np.ones(len(left), bool)
        for index in range(arrow_type.num_fields):
            is_same &= same_values(left.field(index), right.field(index))
        return is_same
    if is_a.is_list(arrow_type) or is_a.is_large_list(arrow_type) or is_a.is_map(arrow_type):
        return _same_lists(left, right)
    return np.asarray(pc.equal(left, right))


def _same_floats(left: npt.NDArray[np.floating], right: npt.NDArray[np.floating]) -> Mask:
    bits = np.dtype(f"i{left.dtype.itemsize}")
    is_same: Mask = (left.view(bits) == right.view(bits)) | (np.isnan(left) & np.isnan(right))
    return is_same


def _same_lists(left: pa.Array, right: pa.Array) -> Mask:
    lengths = _lengths(left)
    is_same: Mask = lengths == _lengths(right)
    alike = np.flatnonzero(is_same)
    # A copy has neither an offset nor items of other rows.
    pairs = zip(_items(left.take(pa.array(alike))), _items(right.take(pa.array(alike))), strict=True)
    owners = np.repeat(alike, lengths[alike])
    for ours, theirs in pairs:
        is_same[owners[~same_values(ours, theirs)]] = False
    return is_same


def _lengths(array: pa.Array) -> npt.NDArray[np.int64]:
    if not len(array):
        return np.zeros(0, np.int64)
    width = np.dtype(np.int64 if pa.types.is_large_list(array.type) else np.int32)
    starts = np.frombuffer(array.buffers()[1], width, len(array) + 1, array.offset * width.itemsize)
    return np.diff(starts).astype(np.int64)


def _items(array: pa.Array) -> tuple[pa.Array, ...]:
    return (array.keys, array.items) if pa.types.is_map(array.type) else (array.flatten(),)


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, without an extension type."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.storage if isinstance(column, pa.ExtensionArray) else column
