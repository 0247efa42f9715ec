"""Which primitive variants fit a typed column, and their values as an Arrow array."""

from decimal import Decimal

import numpy as np
import pyarrow as pa

from icefloe.variant.assembling import Bytes, Integers, Mask
from icefloe.variant.reading import read_primitive
from icefloe.variant.slices import Slices
from icefloe.variant.values import VariantKind as Kind

INTEGERS = {Kind.INT8: 1, Kind.INT16: 2, Kind.INT32: 4, Kind.INT64: 8}
"""The kinds of integers, with their bytes."""
DECIMALS = {Kind.DECIMAL4: 4, Kind.DECIMAL8: 8, Kind.DECIMAL16: 16}
"""The kinds of decimals, with the bytes of their digits."""
PLAIN: dict[pa.DataType, tuple[Kind, int]] = {
    pa.float32(): (Kind.FLOAT, 4),
    pa.float64(): (Kind.DOUBLE, 8),
    pa.date32(): (Kind.DATE, 4),
    pa.time64("us"): (Kind.TIME, 8),
    pa.timestamp("us"): (Kind.TIMESTAMP, 8),
    pa.timestamp("us", "UTC"): (Kind.TIMESTAMPTZ, 8),
    pa.timestamp("ns"): (Kind.TIMESTAMP_NANOS, 8),
    pa.timestamp("ns", "UTC"): (Kind.TIMESTAMPTZ_NANOS, 8),
    pa.binary(16): (Kind.UUID, 16),
}
"""Typed columns whose values have the bytes of the variants: their kind, and how many bytes."""
_LONG_DIGITS = 18
DAY_MICROS = 86_400_000_000
_LENGTH = 4


def typed_values(slices: Slices, kind: pa.DataType) -> tuple[Mask, pa.Array]:
    """Which of the values fit the type, and an array of the type that is null for all others."""
    if kind in PLAIN:
        return _plain(slices, kind)
    if kind == pa.int64():
        is_fit, numbers = integers(slices)
        return is_fit, pa.array(numbers, mask=~is_fit)
    if pa.types.is_boolean(kind):
        is_fit = slices.is_kind(Kind.TRUE, Kind.FALSE)
        return is_fit, pa.array(slices.is_kind(Kind.TRUE), mask=~is_fit)
    if pa.types.is_decimal(kind):
        return _decimals(slices, kind)
    if kind == pa.string():
        is_fit, texts = _long_or_short(slices)
        # The cast refuses bytes that are no text.
        return is_fit, texts.as_binary().cast(pa.string())
    if kind == pa.binary():
        is_fit = slices.is_kind(Kind.BINARY)
        return is_fit, _with_length(slices, is_fit).as_binary()
    raise AssertionError(f"no variant is shredded as {kind}")


def integers(slices: Slices) -> tuple[Mask, Integers]:
    """Which of the values are integers, and these."""
    numbers = np.zeros(len(slices), np.int64)
    is_integer = np.zeros(len(slices), np.bool_)
    for kind, width in INTEGERS.items():
        mask = slices.is_kind(kind)
        if mask.any():
            numbers[mask] = signed(slices.body(mask, 1, width))
            is_integer |= mask
    return is_integer, numbers


def signed(body: Bytes) -> Integers:
    """Rows of 1, 2, 4 or 8 bytes as numbers."""
    return np.ascontiguousarray(body).view(f"<i{body.shape[1]}").reshape(-1).astype(np.int64)


def _plain(slices: Slices, kind: pa.DataType) -> tuple[Mask, pa.Array]:
    variant_kind, width = PLAIN[kind]
    is_fit = slices.is_kind(variant_kind)
    body = np.zeros((len(slices), width), np.uint8)
    body[is_fit] = slices.body(is_fit, 1, width)
    if variant_kind is Kind.TIME:
        micros = body.view("<i8").reshape(-1)
        is_fit &= (micros >= 0) & (micros < DAY_MICROS)
    return is_fit, _from_bytes(body, kind, is_fit)


def _from_bytes(body: Bytes, kind: pa.DataType, is_fit: Mask) -> pa.Array:
    validity = pa.py_buffer(np.packbits(is_fit, bitorder="little"))
    return pa.Array.from_buffers(kind, len(body), [validity, pa.py_buffer(np.ascontiguousarray(body))])


def _long_or_short(slices: Slices) -> tuple[Mask, Slices]:
    """Which values are texts, and where the bytes of these are."""
    is_short, is_long = slices.is_short_string, slices.is_kind(Kind.STRING)
    far = _with_length(slices, is_long)
    lengths = np.where(is_short, slices.first_bytes() >> 2, 0)
    starts = np.where(is_short, slices.starts + 1, far.starts)
    ends = np.where(is_short, starts + lengths, far.ends)
    slices.refuse(is_short & (ends > slices.ends))
    is_fit = is_short | is_long
    return is_fit, Slices(slices.data, np.where(is_fit, starts, -1), ends, slices.rows)


def _with_length(slices: Slices, mask: Mask) -> Slices:
    """The bytes of values that begin with their length."""
    starts = np.where(mask, slices.starts + 1 + _LENGTH, -1)
    ends = np.zeros(len(slices), np.int64)
    if mask.any():
        lengths = np.ascontiguousarray(slices.body(mask, 1, _LENGTH)).view("<u4").reshape(-1).astype(np.int64)
        ends[mask] = starts[mask] + lengths
        slices.refuse(ends[mask] > slices.ends[mask], mask)
    return Slices(slices.data, starts, ends, slices.rows)


def _decimals(slices: Slices, kind: pa.DataType) -> tuple[Mask, pa.Array]:
    if kind.precision > _LONG_DIGITS:
        return _wide_decimals(slices, kind)
    is_fit, unscaled = integers(slices)
    scales = np.zeros(len(slices), np.int64)
    for variant_kind in (Kind.DECIMAL4, Kind.DECIMAL8):
        mask = slices.is_kind(variant_kind)
        if mask.any():
            body = slices.body(mask, 1, 1 + DECIMALS[variant_kind])
            scales[mask], unscaled[mask] = body[:, 0], signed(body[:, 1:])
            is_fit |= mask
    is_fit &= scales <= kind.scale
    factors = 10 ** np.where(is_fit, kind.scale - scales, 0)
    most = (10**kind.precision - 1) // factors
    is_fit &= (unscaled <= most) & (unscaled >= -most)
    numbers = np.where(is_fit, unscaled, 0) * factors
    body = np.column_stack([numbers, numbers >> 63]).astype("<i8")
    return is_fit, _from_bytes(body.view(np.uint8), kind, is_fit)


def _wide_decimals(slices: Slices, kind: pa.DataType) -> tuple[Mask, pa.Array]:
    """Numbers of more digits than fit in 64 bits, one by one."""
    is_number = slices.is_kind(*INTEGERS, *DECIMALS)
    decimals: list[Decimal | None] = [None] * len(slices)
    data = slices.data.tobytes() if is_number.any() else b""
    for index in np.flatnonzero(is_number).tolist():
        number = Decimal(read_primitive(data, int(slices.starts[index]), int(slices.ends[index])).value)
        decimals[index] = rescaled(number, kind.precision, kind.scale)
    is_fit = np.array([number is not None for number in decimals], np.bool_)
    return is_fit, pa.array(decimals, kind)


def rescaled(number: Decimal, precision: int, scale: int) -> Decimal | None:
    """The number with exactly this scale; None if it has digits beyond, or too many."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "variants have finite decimals"
    magnitude = int("".join(map(str, digits)))
    shift = scale + exponent
    if shift < 0:
        return None
    magnitude *= 10**shift
    return None if magnitude >= 10**precision else Decimal(f"{'-' if sign else ''}{magnitude}E-{scale}")
