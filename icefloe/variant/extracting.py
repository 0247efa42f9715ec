"""What is at a path of variants, as values of a type: of one variant, of a whole column, and of the bounds of files.

A value of another class than the type's is null, as a missing one is. Integers and decimals are one class, and are values of each
number type that holds them exactly; of double they are the nearest values, and floats too. A time that is not within a day is
null as well. A type `variant` is for tests of null: whether anything but null is there.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.errors import InvalidValueError
from icefloe.schema import Value, type_to_arrow, types
from icefloe.variant.assembling import Integers, Mask
from icefloe.variant.paths import Path
from icefloe.variant.reading import ARRAY, OBJECT, basic_type, read_dictionary, read_fields, read_primitive
from icefloe.variant.slices import Names, OddRowsError, Slices, fields_of, of_regular, whole
from icefloe.variant.typed import DAY_MICROS, DECIMALS, INTEGERS, integers, signed, typed_values
from icefloe.variant.values import Variant, VariantKind as Kind, VariantPrimitive

_KINDS: dict[type[types.IcebergType], tuple[Kind, ...]] = {
    types.BooleanType: (Kind.TRUE, Kind.FALSE),
    types.StringType: (Kind.STRING,),
    types.BinaryType: (Kind.BINARY,),
    types.DateType: (Kind.DATE,),
    types.TimeType: (Kind.TIME,),
    types.TimestampType: (Kind.TIMESTAMP,),
    types.TimestamptzType: (Kind.TIMESTAMPTZ,),
    types.TimestampNanoType: (Kind.TIMESTAMP_NANOS,),
    types.TimestamptzNanoType: (Kind.TIMESTAMPTZ_NANOS,),
    types.UUIDType: (Kind.UUID,),
}
EXTRACTED = (*_KINDS, types.IntegerType, types.LongType, types.DoubleType, types.DecimalType, types.VariantType)
"""The types of what is extracted."""
_NUMBERS = frozenset((*INTEGERS, *DECIMALS))
_LIMITS = {types.IntegerType: 31, types.LongType: 63}
_EXACT_DOUBLE = 2**53
_MOST_EXACT_SCALE = 22
_MANY_DIGITS = Context(prec=200)


def value_at(variant: Variant, path: Path, field_type: types.IcebergType) -> Value:
    """What is at the path of a variant, as a value of the type; None if that is null."""
    place = _place_at(variant, path)
    if place is None:
        return None
    data, (start, end) = variant.value, place
    if basic_type(data, start, end) in (OBJECT, ARRAY):
        return True if isinstance(field_type, types.VariantType) else None
    return value_of_primitive(read_primitive(data, start, end), field_type)


def _place_at(variant: Variant, path: Path) -> tuple[int, int] | None:
    """Where in its bytes the value at the path of a variant is."""
    dictionary = read_dictionary(variant.metadata)
    data, start, end = variant.value, 0, len(variant.value)
    for step in path:
        if basic_type(data, start, end) != OBJECT:
            return None
        place = next((at for at in read_fields(data, start, end, dictionary) if at[0] == step), None)
        if place is None:
            return None
        _, start, end = place
    return start, end


def value_of_primitive(primitive: VariantPrimitive, field_type: types.IcebergType) -> Value:
    """A primitive as a value of the type; None if it is null, or of another class."""
    kind, value = primitive.kind, primitive.value
    if kind is Kind.NULL:
        return None
    match field_type:
        case types.VariantType():
            return True
        case types.IntegerType() | types.LongType() if kind in _NUMBERS:
            return _whole_number(value, _LIMITS[type(field_type)])
        case types.DecimalType() if kind in _NUMBERS:
            return _exact_decimal(value, field_type)
        case types.DoubleType() if kind in _NUMBERS or kind in (Kind.FLOAT, Kind.DOUBLE):
            return float(value)
        case types.TimeType() if kind is Kind.TIME:
            return value if 0 <= value < DAY_MICROS else None
        case _:
            return value if kind in _KINDS.get(type(field_type), ()) else None


def values_at(column: pa.StructArray, path: Path, field_type: types.IcebergType) -> pa.Array:
    """What is at the path of each variant of a column, `struct<metadata, value>`, as an array of the type.

    For UUIDs it is one of 16 bytes, and for `variant` of booleans, which are true.
    """
    if not len(column):
        return pa.array([], extracted_type(field_type))
    try:
        return of_regular(column, lambda rows: _extracted(_at(rows, path), field_type))
    except pa.ArrowInvalid as error:
        raise InvalidValueError(f"a variant cannot be read: {error}") from error


def encoded_at(column: pa.StructArray, path: Path) -> pa.BinaryArray:
    """What is at the path of each variant of a column, encoded; its names are those of the row's metadata."""
    if not len(column):
        return pa.array([], pa.binary())
    try:
        return _at(column, path).as_binary()
    except OddRowsError:
        # Rows in an odd form would get other metadata if they were written anew.
        rows = (None if row is None else Variant(row["metadata"], row["value"]) for row in column.to_pylist())
        return pa.array([None if row is None else _encoded_at(row, path) for row in rows], pa.binary())


def bound_at(bound: VariantPrimitive, field_type: types.IcebergType, *, is_upper: bool) -> Value:
    """A bound of the values at a path as a bound of what is extracted from them; None if it says nothing of the type.

    Numbers are rounded outwards, and by one step more than needed, so that engines that round are covered, too.
    """
    kind, value = bound.kind, bound.value
    match field_type:
        case types.IntegerType() | types.LongType() if kind in _NUMBERS:
            return _whole_number(math.ceil(value) if is_upper else math.floor(value), _LIMITS[type(field_type)])
        case types.DecimalType() if kind in _NUMBERS:
            rounding = ROUND_CEILING if is_upper else ROUND_FLOOR
            outward = Decimal(value).quantize(Decimal((0, (1,), -field_type.scale)), rounding, _MANY_DIGITS)
            return _exact_decimal(outward, field_type)
        case types.DoubleType() if kind in _NUMBERS:
            return math.nextafter(float(value), math.inf if is_upper else -math.inf)
        case types.DoubleType() if kind in (Kind.FLOAT, Kind.DOUBLE):
            return None if math.isnan(value) else float(value)
        case types.VariantType():
            return None
        case _:
            return value if kind in _KINDS.get(type(field_type), ()) else None


def is_exact(bound: VariantPrimitive | None) -> bool:
    """Whether a bound is of integers or decimals."""
    return bound is not None and bound.kind in _NUMBERS


def same_class(lower: VariantPrimitive, upper: VariantPrimitive) -> bool:
    """Whether two bounds are of one class: of one type, or two integers, or two decimals, or two booleans."""
    classes = (frozenset(INTEGERS), frozenset(DECIMALS), frozenset((Kind.TRUE, Kind.FALSE)))
    return lower.kind is upper.kind or any(lower.kind in each and upper.kind in each for each in classes)


def _encoded_at(variant: Variant, path: Path) -> bytes | None:
    place = _place_at(variant, path)
    return None if place is None else variant.value[place[0] : place[1]]


def _whole_number(value: int | Decimal, bits: int) -> int | None:
    number = int(value)
    return number if number == value and -(2**bits) <= number < 2**bits else None


def _exact_decimal(value: int | Decimal, field_type: types.DecimalType) -> Decimal | None:
    scaled = _MANY_DIGITS.scaleb(Decimal(value), field_type.scale)
    number = int(scaled)
    if number != scaled or abs(number) >= 10**field_type.precision:
        return None
    return Decimal(f"{number}E-{field_type.scale}")


def _at(column: pa.StructArray, path: Path) -> Slices:
    """Where the values at the path are."""
    slices = whole(column)
    if not path:
        return slices
    names = Names.of_column(column)
    for step in path:
        starts, ends = np.full(len(slices), -1, np.int64), np.zeros(len(slices), np.int64)
        if step in names.numbers:
            fields = fields_of(slices, names)
            is_named = fields.names == names.numbers[step]
            owners = fields.owners[is_named]
            starts[owners], ends[owners] = fields.slices.starts[is_named], fields.slices.ends[is_named]
        slices = Slices(slices.data, starts, ends, slices.rows)
    return slices


def _extracted(slices: Slices, field_type: types.IcebergType) -> pa.Array:
    match field_type:
        case types.VariantType():
            is_something = slices.is_there & ~slices.is_kind(Kind.NULL)
            return pa.array(np.ones(len(slices), np.bool_), mask=~is_something)
        case types.IntegerType() | types.LongType():
            is_known, numbers = integers(slices)
            limit = 2 ** _LIMITS[type(field_type)]
            is_fit = is_known & (numbers >= -limit) & (numbers <= limit - 1)
            return _with_odd(slices, slices.is_kind(*DECIMALS), is_fit, numbers, field_type)
        case types.DoubleType():
            is_known, doubles = _doubles(slices)
            return _with_odd(slices, slices.is_kind(*_NUMBERS) & ~is_known, is_known, doubles, field_type)
        case types.DecimalType():
            is_fit, typed = typed_values(slices, extracted_type(field_type))
            odd = slices.is_kind(*_NUMBERS) & ~is_fit
            return _replaced(typed, _one_by_one(slices, odd, field_type), odd)
        case _:
            return typed_values(slices, extracted_type(field_type))[1]


def _doubles(slices: Slices) -> tuple[Mask, Any]:
    """Which values are numbers whose nearest double is found in columns, and these."""
    is_known, numbers = integers(slices)
    doubles = numbers.astype(np.float64)
    for kind, width in ((Kind.FLOAT, 4), (Kind.DOUBLE, 8)):
        mask = slices.is_kind(kind)
        doubles[mask] = np.ascontiguousarray(slices.body(mask, 1, width)).view(f"<f{width}").reshape(-1)
        is_known |= mask
    for kind in (Kind.DECIMAL4, Kind.DECIMAL8):
        mask = slices.is_kind(kind)
        if mask.any():
            body = slices.body(mask, 1, 1 + DECIMALS[kind])
            scales, unscaled = body[:, 0].astype(np.int64), signed(body[:, 1:])
            # Both are exact as doubles, so that their quotient is the nearest double.
            is_exact = (np.abs(unscaled) <= _EXACT_DOUBLE) & (scales <= _MOST_EXACT_SCALE)
            places = np.flatnonzero(mask)[is_exact]
            doubles[places] = unscaled[is_exact] / _powers_of_ten(scales[is_exact])
            is_known[places] = True
    return is_known, doubles


def _powers_of_ten(scales: Integers) -> Any:
    return np.array([float(10**scale) for scale in range(_MOST_EXACT_SCALE + 1)])[scales]


def _with_odd(slices: Slices, odd: Mask, is_fit: Mask, numbers: Any, field_type: types.IcebergType) -> pa.Array:
    typed = pa.array(np.where(is_fit, numbers, 0), mask=~is_fit).cast(extracted_type(field_type))
    return _replaced(typed, _one_by_one(slices, odd, field_type), odd)


def _replaced(typed: pa.Array, others: list[Value], odd: Mask) -> pa.Array:
    if not others:
        return typed
    values = typed.to_pylist()
    for place, value in zip(np.flatnonzero(odd).tolist(), others, strict=True):
        values[place] = value
    return pa.array(values, typed.type)


def _one_by_one(slices: Slices, odd: Mask, field_type: types.IcebergType) -> list[Value]:
    places = np.flatnonzero(odd).tolist()
    data = slices.data.tobytes() if places else b""
    return [
        value_of_primitive(read_primitive(data, int(slices.starts[at]), int(slices.ends[at])), field_type)
        for at in places
    ]


def extracted_type(field_type: types.IcebergType) -> pa.DataType:
    """The Arrow type of what `values_at` gives for a type."""
    match field_type:
        case types.VariantType():
            return pa.bool_()
        case types.UUIDType():
            return pa.binary(16)
        case _:
            return type_to_arrow(field_type)
