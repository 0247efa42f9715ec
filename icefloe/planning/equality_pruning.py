"""Which equality deletes cannot match any row of a data file, by the metrics of their key columns on both sides.

A row is deleted only if it equals a delete row in every key column, and null equals null (spec: Equality Delete Files).
So in each of them both sides must have nulls, or both other values whose ranges overlap. What is not known rules nothing out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import expressions as ex, manifests as mf, metadata as md
from icefloe.planning.partitions import Numbers
from icefloe.schema import Schema, types

Bounds = tuple[pa.Array, pa.Array]
"""Lower and upper ones."""

# Not floats, since NaN and -0.0 have no place in ranges, and not uuids, which Java orders in its own way.
_ORDERED = (
    types.BooleanType,
    types.IntegerType,
    types.LongType,
    types.DecimalType,
    types.DateType,
    types.TimeType,
    types.TimestampType,
    types.TimestamptzType,
    types.TimestampNanoType,
    types.TimestamptzNanoType,
    types.StringType,
    types.BinaryType,
    types.FixedType,
)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """What the table knows of a key column."""

    field_id: int
    field_type: types.IcebergType | None
    """None if no schema of the table has the column."""
    is_required: bool
    is_nested: bool


def key_columns(metadata: md.TableMetadata, schema: Schema, field_ids: Sequence[int]) -> dict[int, KeyColumn]:
    """Key columns by id; one that was dropped is as in the newest schema that had it (spec: Equality Delete Files)."""
    columns = {}
    for field_id in field_ids:
        schemas = (schema, *metadata.schemas_newest_first)
        holder = next((known for known in schemas if field_id in known.fields_by_id), None)
        if holder is None:
            columns[field_id] = KeyColumn(field_id, None, False, True)
            continue
        # A column is without nulls if it never was optional.
        fields = [known.fields_by_id[field_id] for known in metadata.schemas if field_id in known.fields_by_id]
        ancestors = holder.ancestors(field_id)
        is_required = not ancestors and all(field.required for field in fields)
        field_type = holder.fields_by_id[field_id].field_type
        columns[field_id] = KeyColumn(field_id, field_type, is_required, bool(ancestors))
    return columns


class KeyFacts:
    """What the metrics of some files say about key columns."""

    def __init__(self, files: mf.ManifestColumns, columns: Mapping[int, KeyColumn]) -> None:
        self._files = files
        self._columns = columns
        self._facts: dict[int, _Facts] = {}

    def of(self, field_id: int) -> "_Facts":
        """What is known of one key column."""
        if field_id not in self._facts:
            self._facts[field_id] = _Facts(self._files, self._columns[field_id])
        return self._facts[field_id]


class _Facts:
    def __init__(self, files: mf.ManifestColumns, column: KeyColumn) -> None:
        self._files = files
        self._column = column
        values = _counts(files.value_counts(column.field_id))
        nulls = _counts(files.null_counts(column.field_id))
        # Some writers count nested fields without the rows whose struct is null.
        no_nulls = np.full(len(files), column.is_required) | ((nulls == 0) & (not column.is_nested))
        self.may_be_null: ex.Mask = ~no_nulls
        self.may_be_other: ex.Mask = ~((values > 0) & (values == nulls))

    @cached_property
    def bounds(self) -> Bounds | None:
        """Lower and upper bounds as arrays of one type; None if there are none that can be compared."""
        field_type = self._column.field_type
        if not isinstance(field_type, _ORDERED):
            return None
        lower = self._files.lower_bounds(self._column.field_id, field_type)
        upper = self._files.upper_bounds(self._column.field_id, field_type)
        return None if lower is None or upper is None else (_comparable(lower), _comparable(upper))


def may_apply(
    deletes: KeyFacts, delete_rows: Numbers, data: KeyFacts, data_rows: Numbers, field_ids: Sequence[int]
) -> ex.Mask:
    """For each of some delete files (down) and data files (across), whether a row may be equal in all key columns."""
    may_match = np.ones((len(delete_rows), len(data_rows)), bool)
    for field_id in field_ids:
        down, across = deletes.of(field_id), data.of(field_id)
        both_null = down.may_be_null[delete_rows][:, None] & across.may_be_null[data_rows][None, :]
        both_other = down.may_be_other[delete_rows][:, None] & across.may_be_other[data_rows][None, :]
        if down.bounds is not None and across.bounds is not None:
            both_other &= _overlap(down.bounds, delete_rows, across.bounds, data_rows)
        may_match &= both_null | both_other
    return may_match


def _overlap(down: Bounds, delete_rows: Numbers, across: Bounds, data_rows: Numbers) -> ex.Mask:
    arrays = [*(bound.take(delete_rows) for bound in down), *(bound.take(data_rows) for bound in across)]
    (low, low_known), (high, high_known), (data_low, data_low_known), (data_high, data_high_known) = _ranked(arrays)
    apart = (low[:, None] > data_high[None, :]) & low_known[:, None] & data_high_known[None, :]
    apart |= (high[:, None] < data_low[None, :]) & high_known[:, None] & data_low_known[None, :]
    return ~apart


def _ranked(arrays: list[pa.Array]) -> list[tuple[Numbers, ex.Mask]]:
    """Each array as numbers that compare as its values do, over all arrays, and where it has a value."""
    known = [array.is_valid().to_numpy(zero_copy_only=False) for array in arrays]
    if pa.types.is_integer(arrays[0].type):
        plain = [pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.int64) for array in arrays]
        return list(zip(plain, known, strict=True))
    ranks = pc.rank(pa.concat_arrays(arrays), sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return list(zip(np.split(ranks, np.cumsum(list(map(len, arrays)))[:-1]), known, strict=True))


def _comparable(bounds: pa.Array) -> pa.Array:
    if pa.types.is_date(bounds.type):
        return bounds.view(pa.int32())
    if pa.types.is_temporal(bounds.type):
        return bounds.view(pa.int64())
    return bounds.cast(pa.binary()) if pa.types.is_fixed_size_binary(bounds.type) else bounds


def _counts(counts: pa.Array) -> Numbers:
    """The counts, with -1 for what is unknown."""
    return np.asarray(pc.fill_null(counts, -1).to_numpy(zero_copy_only=False))
