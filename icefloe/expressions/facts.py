"""What statistics say for sure about one column, for many files or manifests at once.

Whatever is missing, contradictory or unreliable is unknown: nothing is ruled out, and nothing is sure. Some
statistics are known to mislead: NaN as a bound of old ORC writers; counts of fields in structs, which some writers take
without the rows whose struct is null; bounds of uuids, which Java orders as two signed numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.expressions.arrow import Column, storage_type
from icefloe.expressions.terms import BoundExtract, BoundReference
from icefloe.schema import IcebergType, Value, types
from icefloe.variant import bound_at, is_exact, normalized, same_class, variant_bound

Mask = npt.NDArray[np.bool_]

_UNKNOWN = -1
_UUID_BYTES = 16
_HALF = 8
_SIGN = 0x80


class Statistics(Protocol):
    """Column statistics of files; in the arrays, one entry per file, null is unknown."""

    @property
    def size(self) -> int:
        """How many files there are."""

    @property
    def record_counts(self) -> Column:
        """Rows per file, an int64 array; negative is unknown too."""

    def value_counts(self, field_id: int) -> Column | None:
        """Values of the column, nulls and NaNs among them, an int64 array; None: unknown for all."""

    def null_counts(self, field_id: int) -> Column | None:
        """Nulls of the column."""

    def nan_counts(self, field_id: int) -> Column | None:
        """NaNs of the column."""

    def lower_bounds(self, field_id: int, field_type: IcebergType) -> Column | None:
        """At most the least value of the column, an array of the Arrow type of `field_type`."""

    def upper_bounds(self, field_id: int, field_type: IcebergType) -> Column | None:
        """At least the greatest value of the column."""


class PartitionSummaries(Protocol):
    """Summaries of the partition fields of manifests of one spec; one entry per manifest, null is unknown."""

    @property
    def size(self) -> int:
        """How many manifests there are."""

    def contains_null(self, position: int) -> Column | None:
        """Whether the field at that position of the spec is null in some file, a boolean array; None: unknown for all."""

    def contains_nan(self, position: int) -> Column | None:
        """Whether the field is NaN in some file."""

    def lower_bounds(self, position: int, field_type: IcebergType) -> Column | None:
        """At most the least value of the field, an array of the Arrow type of `field_type`; null if all are null or NaN."""

    def upper_bounds(self, position: int, field_type: IcebergType) -> Column | None:
        """At least the greatest value of the field."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower and upper bounds as arrays of the storage type; None or null: unknown.

    NaN is as good as unknown, since every comparison with it is false.
    """

    size: int
    lower: pa.Array | None = None
    upper: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is sure about one column; an ordinary value is neither null nor NaN."""

    size: int
    may_be_null: Mask
    may_be_nan: Mask
    is_all_null: Mask
    is_all_nan: Mask
    has_no_ordinary: Mask
    bounds: Callable[[], Bounds]


def facts_of_files(column: BoundReference, statistics: Statistics) -> Facts:
    """The facts about a column of files."""
    size, field_id = statistics.size, column.field_id
    lower, upper = statistics.lower_bounds, statistics.upper_bounds
    values = _counts(statistics.value_counts(field_id), size)
    nulls = _counts(statistics.null_counts(field_id), size)
    is_counted = values > 0
    is_nested = len(column.path) > 1
    may_be_null = (nulls != 0) | is_nested if column.is_nullable else _none(size)
    is_all_null = is_counted & (values == nulls)
    if isinstance(column.field_type, types.FloatType | types.DoubleType):
        nans = _counts(statistics.nan_counts(field_id), size)
        may_be_nan = nans != 0
        # A nested field that is NaN in every counted value may be null in other rows.
        is_all_nan = is_counted & (values == nans) & (not is_nested)
        ordinary = values - nulls - nans
        has_no_ordinary = is_all_null | (is_counted & (nulls >= 0) & (nans >= 0) & (ordinary == 0))
    else:
        may_be_nan = is_all_nan = _none(size)
        has_no_ordinary = is_all_null
    return Facts(
        size,
        may_be_null,
        may_be_nan,
        is_all_null,
        is_all_nan,
        has_no_ordinary | is_all_nan,
        cache(
            lambda: _bounds(
                size, lower(field_id, column.field_type), upper(field_id, column.field_type), column.field_type
            )
        ),
    )


def facts_of_manifests(column: BoundReference, summaries: PartitionSummaries) -> Facts:
    """The facts about a partition field of manifests (spec: Manifest Lists)."""
    size, position, field_type = summaries.size, column.position, column.field_type
    has_null, has_no_null = _answers(summaries.contains_null(position), size)
    lower, upper = summaries.lower_bounds(position, field_type), summaries.upper_bounds(position, field_type)
    no_bounds = _is_missing(lower, size) & _is_missing(upper, size)
    if isinstance(field_type, types.FloatType | types.DoubleType):
        has_nan, has_no_nan = _answers(summaries.contains_nan(position), size)
    else:
        has_nan, has_no_nan = _none(size), ~_none(size)
    # Bounds are left out if all values are null or NaN; without either of these, the writer just gave none.
    no_ordinary = no_bounds & (has_null | has_nan)
    return Facts(
        size,
        ~has_no_null,
        ~has_no_nan,
        no_ordinary & has_no_nan,
        no_ordinary & has_nan & has_no_null,
        no_ordinary,
        cache(lambda: _bounds(size, lower, upper, field_type)),
    )


def facts_of_extract(term: BoundExtract, column: Facts, *, has_bounds: bool) -> Facts:
    """The facts about what is at a path of a variant column, of which little but bounds is known: any row may lack it."""
    size, nulls = column.size, column.is_all_null
    bounds = cache(lambda: _extracted_bounds(term, column.bounds()) if has_bounds else Bounds(size))
    may_be_nan = _none(size)
    if isinstance(term.field_type, types.DoubleType):
        may_be_nan = ~_are_exact(term, column.bounds()) if has_bounds else ~may_be_nan
    return Facts(size, ~_none(size), may_be_nan, nulls, _none(size), nulls, bounds)


def _are_exact(term: BoundExtract, bounds: Bounds) -> Mask:
    """Where all values at the path are integers or decimals, of which none is NaN."""
    if bounds.lower is None:
        return _none(bounds.size)
    path = normalized(term.path)
    return np.array(
        [data is not None and is_exact(variant_bound(data, path)) for data in bounds.lower.to_pylist()], np.bool_
    )


def _extracted_bounds(term: BoundExtract, bounds: Bounds) -> Bounds:
    """The bounds of a path, where both are of one class, and say something of the type."""
    if not isinstance(term.field_type, types.PrimitiveType) or (bounds.lower is None and bounds.upper is None):
        return Bounds(bounds.size)
    path = normalized(term.path)
    nothing = [None] * bounds.size
    sides = [nothing if side is None else side.to_pylist() for side in (bounds.lower, bounds.upper)]
    low_values, high_values = [], []
    for low_bytes, high_bytes in zip(*sides, strict=True):
        low = None if low_bytes is None else variant_bound(low_bytes, path)
        high = None if high_bytes is None else variant_bound(high_bytes, path)
        if low is not None and high is not None and not same_class(low, high):
            low = high = None
        low_values.append(None if low is None else bound_at(low, term.field_type, is_upper=False))
        high_values.append(None if high is None else bound_at(high, term.field_type, is_upper=True))
    lower, upper = (_bound_array(values, term.field_type) for values in (low_values, high_values))
    return _bounds(bounds.size, lower, upper, term.field_type)


def _bound_array(values: list[Value], field_type: IcebergType) -> pa.Array:
    return pa.array([getattr(value, "bytes", value) for value in values], storage_type(field_type))


def without_bounds(facts: Facts) -> Facts:
    """The facts about a transform of the column that preserves nulls but not order."""
    none = _none(facts.size)
    nulls = facts.is_all_null
    return Facts(facts.size, facts.may_be_null, none, nulls, none, nulls, lambda: Bounds(facts.size))


def _none(size: int) -> Mask:
    return np.zeros(size, dtype=np.bool_)


def _counts(counts: Column | None, size: int) -> npt.NDArray[np.int64]:
    """The counts, negative where unknown."""
    if counts is None:
        return np.full(size, _UNKNOWN, dtype=np.int64)
    numbers: npt.NDArray[np.int64] = _filled(_one_array(counts), _UNKNOWN).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64, copy=False)


def _answers(answers: Column | None, size: int) -> tuple[Mask, Mask]:
    """Where the answer is known to be yes, and where it is known to be no."""
    if answers is None:
        return _none(size), _none(size)
    array = _one_array(answers)
    return known(array), known(pc.invert(array))


def known(array: Column) -> Mask:
    """Where a boolean array is true; null is not."""
    mask: Mask = _filled(array, False).to_numpy(zero_copy_only=False)
    return mask


def _filled(array: Column, value: int | bool) -> Column:
    # Where there is nothing to fill, the call would still cost more than small arrays do.
    return pc.fill_null(array, value) if array.null_count else array


def _is_missing(bounds: Column | None, size: int) -> Mask:
    return ~_none(size) if bounds is None else known(pc.is_null(_one_array(bounds)))


def _bounds(size: int, lower: Column | None, upper: Column | None, field_type: IcebergType) -> Bounds:
    bounds = Bounds(size, _comparable(lower, field_type), _comparable(upper, field_type))
    return _loose_uuid_bounds(bounds) if isinstance(field_type, types.UUIDType) else bounds


def _comparable(bounds: Column | None, field_type: IcebergType) -> pa.Array | None:
    if bounds is None:
        return None
    array = _one_array(bounds)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_struct(array.type):
        return array  # The corners of boxes.
    if isinstance(field_type, types.VariantType):
        return array  # Bytes with the bounds of all paths.
    target = storage_type(field_type)
    return array if array.type == target else array.cast(target)


def _one_array(array: Column) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _loose_uuid_bounds(bounds: Bounds) -> Bounds:
    """Bounds in the order of unsigned bytes that hold even if the writer compared two signed halves, as Java does.

    Where the sign bits of both bounds are equal, the first halves are in order either way, but nothing is known of the
    second ones. A lower bound with the sign and an upper one without can only come from signed comparison, and say
    nothing then; the other way round they can only come from the right order.
    """
    if bounds.lower is None or bounds.upper is None:
        return Bounds(bounds.size)
    is_known = known(pc.and_(pc.is_valid(bounds.lower), pc.is_valid(bounds.upper)))
    lower, upper = _byte_rows(bounds.lower), _byte_rows(bounds.upper)
    low_sign, high_sign = (lower[:, 0] & _SIGN).astype(np.bool_), (upper[:, 0] & _SIGN).astype(np.bool_)
    is_known &= ~(low_sign & ~high_sign)
    is_loose = (low_sign == high_sign) & ~(lower == upper).all(axis=1)
    lower[is_loose, _HALF:] = 0x00
    upper[is_loose, _HALF:] = 0xFF
    return Bounds(bounds.size, _from_byte_rows(lower, is_known), _from_byte_rows(upper, is_known))


def _byte_rows(array: pa.Array) -> npt.NDArray[np.uint8]:
    filled = pc.fill_null(array, bytes(_UUID_BYTES))
    raw = np.frombuffer(
        filled.buffers()[1], dtype=np.uint8, count=len(filled) * _UUID_BYTES, offset=filled.offset * _UUID_BYTES
    )
    return raw.reshape(-1, _UUID_BYTES).copy()


def _from_byte_rows(rows: npt.NDArray[np.uint8], is_known: Mask) -> pa.Array:
    validity = pa.array(is_known).buffers()[1]
    return pa.Array.from_buffers(pa.binary(_UUID_BYTES), len(rows), [validity, pa.py_buffer(rows.tobytes())])
