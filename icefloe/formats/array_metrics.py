"""The statistics of columns, gathered from Arrow batches as they are written."""

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import errors, properties as props, schema as sc
from icefloe.formats.metrics import Metrics, MetricsMode, leaves
from icefloe.schema import types

SIZED_TYPES = (types.StringType, types.BinaryType, types.VariantType, types.GeometryType, types.GeographyType)
"""Types whose values differ in size, so that an average says something."""


class MetricsCollector:
    """Counts and bounds over all batches of one file. Batches have the columns of the schema, in its order."""

    def __init__(self, schema: sc.Schema, modes: dict[int, MetricsMode]) -> None:
        self.record_count = 0
        self._columns = [
            (path, _Column(field.field_type, modes[field.field_id], field.field_id))
            for field, path in leaves(schema)
            if field.field_id in modes
            and modes[field.field_id].counts
            and not isinstance(field.field_type, types.UnknownType)
        ]

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Take in a record batch or table."""
        self.record_count += batch.num_rows
        for (first, *rest), column in self._columns:
            values = batch.column(first)
            column.add(pc.struct_field(values, rest) if rest else values)

    def metrics(self, column_sizes: dict[int, int] | None = None) -> Metrics:
        """What was gathered."""
        columns = [column for _, column in self._columns]
        bounds = {column.field_id: column.bounds() for column in columns}
        return Metrics(
            self.record_count,
            column_sizes or {},
            {column.field_id: column.values for column in columns},
            {column.field_id: column.nulls for column in columns},
            {column.field_id: column.nans for column in columns if column.is_float},
            {field_id: low for field_id, (low, _) in bounds.items() if low is not None},
            {field_id: high for field_id, (_, high) in bounds.items() if high is not None},
            {column.field_id: column.is_tight for column in columns if None not in bounds[column.field_id]},
            {column.field_id: size for column in columns if (size := column.average_size) is not None},
        )


class _Column:
    """The running statistics of one column."""

    def __init__(self, kind: types.IcebergType, mode: MetricsMode, field_id: int) -> None:
        self.field_id = field_id
        self.values = self.nulls = self.nans = 0
        self.is_float = isinstance(kind, types.FloatType | types.DoubleType)
        self._kind = kind
        self._mode = mode
        self._range: _Range | sc.BoxCollector | None = None
        self._bytes: int | None = 0 if isinstance(kind, SIZED_TYPES) else None
        if mode.bounds and not isinstance(kind, types.VariantType):
            if isinstance(kind, types.GeometryType | types.GeographyType):
                self._range = sc.BoxCollector(kind)
            else:
                self._range = _Range(kind)

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        self.values += len(values)
        self.nulls += values.null_count
        if self.is_float:
            self.nans += pc.sum(pc.is_nan(values)).as_py() or 0
        if self._range is not None:
            self._range.add(values)
        if self._bytes is not None:
            self._bytes += byte_count(values)

    @property
    def average_size(self) -> int | None:
        """Bytes of a value on average, as far as values have sizes of their own and there are some."""
        present = self.values - self.nulls
        return None if self._bytes is None or not present else min(round(self._bytes / present), props.MAX_INT)

    @property
    def is_tight(self) -> int:
        """Whether both bounds are values of the column."""
        values = self._range
        return int(isinstance(values, _Range) and are_tight(values.low, values.high, self._kind, self._mode))

    def bounds(self) -> tuple[bytes | None, bytes | None]:
        match self._range:
            case None:
                return None, None
            case sc.BoxCollector():
                low, high = self._range.corners() or (None, None)
            case _Range(low=low, high=high):
                pass
        return encode_bounds(low, high, self._kind, self._mode)


class _Range:
    """The smallest and largest value so far, NaN aside."""

    def __init__(self, kind: types.IcebergType) -> None:
        self.low: sc.Value = None
        self.high: sc.Value = None
        self._kind = kind
        self._is_float = isinstance(kind, types.FloatType | types.DoubleType)

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        if isinstance(self._kind, types.UUIDType) and isinstance(values.type, pa.BaseExtensionType):
            values = values.cast(values.type.storage_type)
        if self._is_float:
            values = pc.if_else(pc.is_nan(values), None, values)
        least_and_most = pc.min_max(values)
        low, high = (internal_value(least_and_most[name], self._kind) for name in ("min", "max"))
        if low is not None:
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)


def internal_value(scalar: pa.Scalar, kind: types.IcebergType) -> sc.Value:
    """The internal value of an Arrow scalar."""
    if not scalar.is_valid:
        return None
    if pa.types.is_temporal(scalar.type):
        return scalar.value
    try:
        value = scalar.as_py()
    except UnicodeDecodeError as error:
        raise errors.InvalidValueError(f"a text is not UTF-8: {error.object!r}") from None
    return sc.coerce(value, kind) if isinstance(kind, types.UUIDType) else value


def byte_count(values: pa.Array | pa.ChunkedArray) -> int:
    """The bytes of all values that are not null, of text, bytes or structs of these."""
    if isinstance(values, pa.ChunkedArray):
        return sum(map(byte_count, values.chunks))
    if isinstance(values.type, pa.BaseExtensionType):
        values = values.storage
    if pa.types.is_struct(values.type):
        return sum(byte_count(child) for child in values.flatten())
    is_plain = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
    if is_plain and len(values) and not values.null_count:
        # Where nothing is null, the ends of the values say it all.
        offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4)
        return int(offsets[-1]) - int(offsets[0])
    is_sized = is_plain or pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    return (pc.sum(pc.binary_length(values)).as_py() or 0) if is_sized else int(values.nbytes)


def are_tight(low: sc.Value, high: sc.Value, kind: types.IcebergType, mode: MetricsMode) -> bool:
    """Whether bounds stay what the values are when they are encoded as the mode says."""
    if low is None or high is None:
        return False
    if isinstance(kind, types.FloatType | types.DoubleType):
        # A zero may have become another one.
        return bool(low != 0 and high != 0)
    width = mode.width
    return width is None or (
        sc.truncate_lower(low, kind, width) == low and sc.truncate_upper(high, kind, width) == high
    )


def encode_bounds(
    low: sc.Value, high: sc.Value, kind: types.IcebergType, mode: MetricsMode
) -> tuple[bytes | None, bytes | None]:
    """Both bounds in binary form, cut as the mode says; the upper one goes where it cannot be rounded up."""
    if low is None or high is None:
        return None, None
    if isinstance(kind, types.FloatType | types.DoubleType):
        if math.isnan(low) or math.isnan(high):
            return None, None
        # A zero may stand for both: -0.0 sorts before 0.0 (spec: bounds).
        low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    if mode.width is not None:
        low, high = sc.truncate_lower(low, kind, mode.width), sc.truncate_upper(high, kind, mode.width)
    return sc.encode_bound(low, kind), None if high is None else sc.encode_bound(high, kind)
