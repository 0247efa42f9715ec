"""Whether two columns hold the same, row by row: null is the same as null and NaN as NaN, but 0.0 is not -0.0."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def same_values(left: Any, right: Any) -> Mask:
    """For each row of two arrays of one type and length, whether they hold the same; entries of maps in their order."""
    left, right = _plain(left), _plain(right)
    if pa.types.is_null(left.type):
        return np.ones(len(left), bool)
    if not left.null_count and not right.null_count:
        return _same(left, right)
    in_left, in_right = _is_valid(left), _is_valid(right)
    found: Mask = in_left == in_right
    both = np.flatnonzero(in_left & in_right)
    places = pa.array(both)
    found[both] = _same(left.take(places), right.take(places))
    return found


def _same(left: Any, right: Any) -> Mask:
    """The same for arrays without nulls."""
    is_a, kind = pa.types, left.type
    if is_a.is_floating(kind):
        return _same_floats(left.to_numpy(), right.to_numpy())
    if is_a.is_struct(kind):
        found = np.ones(len(left), bool)
        for place in range(kind.num_fields):
            found &= same_values(left.field(place), right.field(place))
        return found
    if is_a.is_list(kind) or is_a.is_large_list(kind) or is_a.is_map(kind):
        return _same_lists(left, right)
    return np.asarray(pc.equal(left, right))


def _same_floats(left: Any, right: Any) -> Mask:
    bits = np.dtype(f"i{left.dtype.itemsize}")
    found: Mask = (left.view(bits) == right.view(bits)) | (np.isnan(left) & np.isnan(right))
    return found


def _same_lists(left: Any, right: Any) -> Mask:
    lengths = _lengths(left)
    found: Mask = lengths == _lengths(right)
    alike = np.flatnonzero(found)
    places = pa.array(alike)
    # A copy has neither an offset nor items of other rows.
    pairs = zip(_items(left.take(places)), _items(right.take(places)), strict=True)
    owners = np.repeat(alike, lengths[alike])
    for ours, theirs in pairs:
        found[owners[~same_values(ours, theirs)]] = False
    return found


def _lengths(array: Any) -> Any:
    width = np.int64 if pa.types.is_large_list(array.type) else np.int32
    if not len(array):
        return np.zeros(0, np.int64)
    starts = np.frombuffer(array.buffers()[1], width, len(array) + 1, array.offset * np.dtype(width).itemsize)
    return np.diff(starts).astype(np.int64)


def _items(array: Any) -> tuple[Any, ...]:
    return (array.keys, array.items) if pa.types.is_map(array.type) else (array.flatten(),)


def _plain(column: Any) -> Any:
    """One array, with extension types taken off."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def _is_valid(array: Any) -> Mask:
    return np.asarray(array.is_valid())
