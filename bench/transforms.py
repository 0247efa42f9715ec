"""Transforms of whole Arrow columns against the same transform applied value by value."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from bench.report import Row, interleave
from icefloe.partitioning import transform_array, transforms as tr
from icefloe.schema import coerce, types

ROWS = {"small": 10_000, "medium": 1_000_000, "full": 5_000_000}
DECIMAL = types.DecimalType(18, 2)


def run(size: str) -> Iterator[Row]:
    """Each case as one row; the goal is one part of the value-by-value time."""
    rows = ROWS[size]
    random = np.random.default_rng(7)
    longs = pa.array(random.integers(-(2**63), 2**63 - 1, rows))
    micros = pa.array(random.integers(-(2**50), 2**51, rows))
    strings = pa.array(["".join(map(chr, letters)) for letters in _letters(random, rows)])
    decimals = pa.array([Decimal(number).scaleb(-2) for number in random.integers(-(10**17), 10**17, rows).tolist()])
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([random.bytes(16) for _ in range(rows)], pa.binary(16)))
    timestamps = micros.cast(pa.timestamp("us"))
    cases: list[tuple[str, tr.Transform, Any, types.IcebergType, float]] = [
        ("bucket-long", tr.BucketTransform(16), longs, types.LongType(), 1 / 20),
        ("bucket-string", tr.BucketTransform(16), strings, types.StringType(), 1 / 5),
        ("bucket-uuid", tr.BucketTransform(16), uuids, types.UUIDType(), 1 / 5),
        ("bucket-decimal", tr.BucketTransform(16), decimals.cast(pa.decimal128(18, 2)), DECIMAL, 1 / 5),
        ("truncate-long", tr.TruncateTransform(100), pa.array(longs.to_numpy() >> 1), types.LongType(), 1 / 20),
        ("truncate-string", tr.TruncateTransform(4), strings, types.StringType(), 1 / 5),
        ("day-timestamp", tr.DayTransform(), timestamps, types.TimestampType(), 1 / 20),
        ("month-timestamp", tr.MonthTransform(), timestamps, types.TimestampType(), 1 / 20),
    ]
    for case in cases:
        yield _measure(*case)


def _measure(name: str, transform: tr.Transform, array: Any, kind: types.IcebergType, goal: float) -> Row:
    natural = array.cast(pa.int64()) if isinstance(kind, types.TimestampType) else array
    values = [coerce(value, kind) for value in natural.to_pylist()]

    def loop() -> list[Any]:
        return [transform.apply(value, kind) for value in values]

    ours, theirs = interleave(lambda: transform_array(transform, array, kind), loop)
    return Row(name, ours, theirs, goal, f"{len(array):,} values; theirs is the loop of Transform.apply over them")


def _letters(random: np.random.Generator, rows: int) -> list[list[int]]:
    ends = np.cumsum(random.integers(0, 33, rows))
    return [part.tolist() for part in np.split(random.integers(97, 123, ends[-1]), ends[:-1])]
