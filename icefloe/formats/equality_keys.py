"""Which rows equal one of many keys, by field id, with null equal to null (spec: Equality Delete Files).

Keys are numbered column by column: the values of each column, then the pairs of what came before and the next column. A row
matches if every step has a number for it. Memory is that of the distinct keys, and no row is looked at in Python.
"""

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.errors import InvalidValueError
from icefloe.schema import FIELD_ID_KEY

_MISSING = -1
_SPARSE = 16
"""How many values there may be for each that is a key in a table that tells their numbers."""
_LARGEST_TABLE = 1 << 26
Codes = npt.NDArray[np.int64]
Integers = npt.NDArray[np.int32 | np.int64]
Rows: TypeAlias = pa.RecordBatch | pa.Table


def key_columns(batch: Rows, field_ids: Iterable[int]) -> pa.Table:
    """The columns of these field ids as a table, named by the ids; a null struct makes its fields null."""
    columns, fields = [], []
    for field_id in field_ids:
        column = _column(batch, field_id)
        fields.append(pa.field(str(field_id), column.type, True, {FIELD_ID_KEY: str(field_id).encode()}))
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


class EqualityKeys:
    """A set of keys, made once and asked for many batches."""

    def __init__(self, keys: Rows, field_ids: Iterable[int]) -> None:
        self._ids = tuple(field_ids)
        if not self._ids:
            raise InvalidValueError("keys need at least one column to compare rows by")
        self._keys = _plain_columns(keys, self._ids)
        self._values = [_Values(column) for column in self._keys]
        self._pairs: list[Codes] = []
        codes = self._values[0].codes(self._keys[0])
        for values, column in zip(self._values[1:], self._keys[1:], strict=True):
            pairs = codes * values.count + values.codes(column)
            known = np.unique(pairs)
            codes = np.searchsorted(known, pairs).astype(np.int64)
            self._pairs.append(known)
        self.own_numbers = codes
        self.count = len(self._pairs[-1]) if self._pairs else self._values[0].count

    def mask(self, batch: Rows) -> npt.NDArray[np.bool_]:
        """For each row of a batch or table, whether it equals a key; columns are matched by field id."""
        return np.not_equal(self.numbers(batch), _MISSING)

    def numbers(self, batch: Rows) -> Codes:
        """For each row of a batch or table, the number of the key that it equals, below `count`; -1 if it equals none.

        Keys that are equal have one number; `own_numbers` are those of the rows that the keys were made of.
        """
        columns = _plain_columns(batch, self._ids)
        if any(column.type != key.type for column, key in zip(columns, self._keys, strict=True)):
            return self._promoted([column.type for column in columns]).numbers(batch)
        codes = self._values[0].codes(columns[0])
        for values, column, known in zip(self._values[1:], columns[1:], self._pairs, strict=True):
            codes = _pair_codes(codes, values.codes(column), values.count, known)
        return codes

    def _promoted(self, types: list[pa.DataType]) -> "EqualityKeys":
        """The keys in the types of the rows, to which the columns were promoted since the keys were read."""
        columns = [_cast(key, kind) for key, kind in zip(self._keys, types, strict=True)]
        fields = [
            pa.field(str(i), kind, True, {FIELD_ID_KEY: str(i).encode()})
            for i, kind in zip(self._ids, types, strict=True)
        ]
        return EqualityKeys(pa.Table.from_arrays(columns, schema=pa.schema(fields)), self._ids)


class _Values:
    """The distinct values of one column, numbered from 0."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._has_null = column.null_count > 0
        present = column.drop_null()
        self._sorted: Integers | None = None
        self._table: npt.NDArray[np.int32] | None = None
        self._listed: pa.Array | None = None
        if _is_number(column.type):
            self._sorted = _distinct(_numbers(present))
            self._table = _lookup_table(self._sorted)
            self.count = len(self._sorted) + self._has_null
        else:
            self._listed = pc.unique(present)
            self.count = len(self._listed) + self._has_null

    def codes(self, column: pa.ChunkedArray) -> Codes:
        """The number of each value, or -1 for a value that is none of them."""
        if self._sorted is not None:
            codes = self._number_codes(column)
        else:
            indices = pc.index_in(column, value_set=self._listed, skip_nulls=True)
            codes = pc.fill_null(indices, _MISSING).to_numpy().astype(np.int64)
        if column.null_count:
            codes[np.asarray(pc.is_null(column))] = self.count - 1 if self._has_null else _MISSING
        return codes

    def _number_codes(self, column: pa.ChunkedArray) -> Codes:
        assert self._sorted is not None
        if not len(self._sorted):
            return np.full(len(column), _MISSING, np.int64)
        numbers = _numbers(column)
        if self._table is not None:
            # Without a sign, what is below the lowest value is far above the highest.
            unsigned = np.dtype(f"u{numbers.dtype.itemsize}")
            indices = (numbers - self._sorted[0]).view(unsigned)
            np.minimum(indices, unsigned.type(len(self._table) - 1), out=indices)
            return np.asarray(self._table[indices], np.int64)
        codes = np.searchsorted(self._sorted, numbers).astype(np.int64)
        codes[codes == len(self._sorted)] = 0
        codes[self._sorted[codes] != numbers] = _MISSING
        return codes


def _distinct(numbers: Integers) -> Integers:
    if np.all(numbers[1:] > numbers[:-1]):
        return numbers
    return np.unique(numbers)


def _lookup_table(numbers: Integers) -> npt.NDArray[np.int32] | None:
    """The number of each value from the lowest to the highest, and of what comes after; faster than a search if it is short."""
    span = int(numbers[-1]) - int(numbers[0]) + 1 if len(numbers) else 0
    if not 0 < span <= min(_SPARSE * len(numbers), _LARGEST_TABLE):
        return None
    table = np.full(span + 1, _MISSING, np.int32)
    table[numbers - numbers[0]] = np.arange(len(numbers), dtype=np.int32)
    return table


def _pair_codes(before: Codes, codes: Codes, count: int, known: Codes) -> Codes:
    if not len(known):
        return np.full(len(codes), _MISSING, np.int64)
    pairs = before * count + codes
    numbers = np.searchsorted(known, pairs).astype(np.int64)
    numbers[numbers == len(known)] = 0
    numbers[(known[numbers] != pairs) | (before == _MISSING) | (codes == _MISSING)] = _MISSING
    return numbers


def _is_number(kind: pa.DataType) -> bool:
    is_a = pa.types
    return bool(is_a.is_integer(kind) or is_a.is_date32(kind) or is_a.is_time64(kind) or is_a.is_timestamp(kind))


def _numbers(column: pa.ChunkedArray) -> Integers:
    width = pa.int32() if column.type.bit_width == 32 else pa.int64()
    values = column.cast(width)
    return np.asarray(pc.fill_null(values, 0) if values.null_count else values)


def _plain_columns(rows: Rows, field_ids: tuple[int, ...]) -> list[pa.ChunkedArray]:
    return [_plain(column, i) for column, i in zip(key_columns(rows, field_ids).columns, field_ids, strict=True)]


def _plain(column: pa.ChunkedArray, field_id: int) -> pa.ChunkedArray:
    """The column with extension types taken off; types that cannot be compared for equality are refused."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if pa.types.is_floating(column.type) or pa.types.is_nested(column.type):
        raise InvalidValueError(
            f"the column with field id {field_id} is {column.type}; rows are deleted by primitive columns other than float and double"
        )
    return column.cast(pa.int32()) if pa.types.is_null(column.type) else column


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise InvalidValueError(f"keys of {column.type} cannot be compared to rows of {kind}: {problem}") from None


def _column(batch: Rows, field_id: int) -> pa.ChunkedArray:
    text = str(field_id).encode()
    for i, field in enumerate(batch.schema):
        path = _path(field, text)
        if path is not None:
            column = batch.column(i)
            if isinstance(column, pa.Array):
                column = pa.chunked_array([column])
            return pc.struct_field(column, path) if path else column
    raise InvalidValueError(
        f"the rows have no column with field id {field_id}; key columns must be read even where they are not selected"
    )


def _path(field: pa.Field, field_id: bytes) -> list[int] | None:
    """The positions that lead from a field to the one with the id in it, through structs only."""
    if (field.metadata or {}).get(FIELD_ID_KEY) == field_id:
        return []
    if pa.types.is_struct(field.type):
        for i, child in enumerate(field.type):
            below = _path(child, field_id)
            if below is not None:
                return [i, *below]
    return None
