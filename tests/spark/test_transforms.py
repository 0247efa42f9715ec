"""Partition transforms on Spark give what `partitioning` gives, for every source type, null and extreme values among them."""

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812  # its usual name
from pyspark.sql.types import StructField, StructType

from icefloe.errors import InvalidTransformError, InvalidValueError
from icefloe.partitioning import transform_array, transforms as tr
from icefloe.schema import coerce, types
from icefloe.spark.gateway import Gateway
from icefloe.spark.transforms import transform_column
from icefloe.spark.types import user_type
from tests.partitioning.columns import COUNTED, column
from tests.partitioning.test_hashing import SPEC_VALUES

KINDS: tuple[types.IcebergType, ...] = (
    types.BooleanType(),
    types.IntegerType(),
    types.LongType(),
    types.FloatType(),
    types.DoubleType(),
    types.DecimalType(9, 2),
    types.DecimalType(18, 0),
    types.DecimalType(38, 10),
    types.DateType(),
    types.TimeType(),
    types.TimestampType(),
    types.TimestamptzType(),
    types.TimestampNanoType(),
    types.TimestamptzNanoType(),
    types.StringType(),
    types.UUIDType(),
    types.FixedType(5),
    types.BinaryType(),
)
TRANSFORMS: tuple[tr.Transform, ...] = (
    tr.IdentityTransform(),
    tr.BucketTransform(16),
    tr.BucketTransform(2**31 - 1),
    tr.TruncateTransform(3),
    tr.TruncateTransform(1_000_000_007),
    tr.YearTransform(),
    tr.MonthTransform(),
    tr.DayTransform(),
    tr.HourTransform(),
    tr.VoidTransform(),
)
CASES = [(kind, transform) for kind in KINDS for transform in TRANSFORMS if transform.can_transform(kind)]
ROWS = 500
EXACT = Context(prec=60)


def shown(values: Sequence[Any], kind: types.IcebergType) -> Any:
    """The values as a DataFrame shows them, as Arrow."""
    if isinstance(kind, types.UUIDType):
        return pa.array([None if value is None else str(value) for value in values])
    made = column(values, kind)
    if isinstance(kind, types.TimeType | types.TimestampNanoType | types.TimestamptzNanoType):
        return made.view(pa.int64())
    return made.cast(pa.binary()) if isinstance(kind, types.FixedType) else made


def plain(values: Any) -> list[Any]:
    """Values of an Arrow column in a form that compares: times as numbers, NaN as text."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.ExtensionArray):
        return [None if value is None else str(value) for value in values.to_pylist()]
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    return [str(value) if isinstance(value, float) else value for value in values.to_pylist()]


def allowed(transform: tr.Transform, value: Any, kind: types.IcebergType) -> Any:
    """The value, or null where the transform refuses it."""
    try:
        transform.apply(value, kind)
    except InvalidValueError:
        return None
    return value


def results(spark: Any, cases: Sequence[tuple[types.IcebergType, tr.Transform, Sequence[Any]]]) -> list[list[Any]]:
    """What Spark makes of each column, all in one job."""
    gateway = Gateway(spark)
    data = pa.table({f"c{place}": shown(values, kind) for place, (kind, _, values) in enumerate(cases)})
    columns = [StructField(f"c{place}", user_type(kind)) for place, (kind, _, _) in enumerate(cases)]
    frame = spark.createDataFrame(data, StructType(columns)).select(
        *(
            transform_column(gateway, transform, F.col(f"c{place}"), kind).alias(f"r{place}")
            for place, (kind, transform, _) in enumerate(cases)
        )
    )
    found = frame.toArrow()
    return [plain(found.column(place)) for place in range(len(cases))]


def random_values(kind: types.IcebergType, random: Random) -> list[Any]:
    """Null, the ends of the type's range, and values of every size between them."""

    def whole(bits: int) -> int:
        number = random.getrandbits(random.randint(1, bits - 1))
        return random.choice((number, -number - 1))

    def octets(size: int) -> bytes:
        return random.randbytes(size)

    def one() -> Any:
        match kind:
            case types.BooleanType():
                return random.random() < 0.5
            case types.IntegerType() | types.DateType():
                return whole(32)
            case types.DecimalType():
                return Decimal(random.randint(0, 10 ** random.randint(0, kind.precision) - 1)).scaleb(
                    -kind.scale, EXACT
                ) * random.choice((1, -1))
            case types.FloatType() | types.DoubleType():
                return struct.unpack("f", octets(4))[0]
            case types.StringType():
                return "".join(random.choice("a\u0000é日🦆 /%=") for _ in range(random.randint(0, 20)))
            case types.UUIDType():
                return UUID(bytes=octets(16))
            case types.FixedType():
                return octets(kind.length)
            case types.BinaryType():
                return octets(random.randint(0, 20))
            case types.TimeType():
                return random.randrange(86_400_000_000)
            case _:
                return whole(64)

    return [None, *(one() for _ in range(ROWS - 1))]


def test_every_transform_of_every_type_is_that_of_partitioning(spark: Any) -> None:
    drawn = {kind: random_values(kind, Random(7)) for kind in KINDS}
    cases = [(kind, each, [allowed(each, value, kind) for value in drawn[kind]]) for kind, each in CASES]
    for (kind, transform, values), found in zip(cases, results(spark, cases), strict=True):
        expected = plain(transform_array(transform, column(values, kind), kind))
        assert found == expected, f"{transform} of {kind}"


def test_hashes_are_those_of_the_spec(spark: Any) -> None:
    largest = 2**31 - 1
    rows = [
        (kind, tr.BucketTransform(largest), [coerce(value, kind)])
        for kind, value, _ in SPEC_VALUES
        if isinstance(kind, tr.BUCKET_TYPES)
    ]
    expected = [[(number & largest) % largest] for kind, _, number in SPEC_VALUES if isinstance(kind, tr.BUCKET_TYPES)]
    assert len(rows) > 15
    assert results(spark, rows) == expected


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Kolkata"])
def test_the_time_zone_of_the_session_means_nothing(spark: Any, zone: str) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    numbers = [-1, 0, -86_400_000_000, 1_700_000_000_000_001, None]
    cases: list[Any] = [
        (kind, transform, numbers)
        for kind in (types.TimestampType(), types.TimestamptzType())
        for transform in (
            tr.HourTransform(),
            tr.DayTransform(),
            tr.MonthTransform(),
            tr.YearTransform(),
            tr.BucketTransform(7),
        )
    ]
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = results(spark, cases)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    expected = [plain(transform_array(transform, column(values, kind), kind)) for kind, transform, values in cases]
    assert found == expected


def test_text_is_cut_by_code_points(spark: Any) -> None:
    found = results(spark, [(types.StringType(), tr.TruncateTransform(2), ["a🦆é", "日本語", "", None])])
    assert found == [["a🦆", "日本", "", None]]


def test_truncate_comes_round_below_the_least_value(spark: Any) -> None:
    ints, longs = [-(2**31), -(2**31) + 8, None], [-(2**63), -(2**63) + 8, None]
    found = results(
        spark,
        [(types.IntegerType(), tr.TruncateTransform(10), ints), (types.LongType(), tr.TruncateTransform(10), longs)],
    )
    assert found == [[2147483646, -2147483640, None], [9223372036854775806, -9223372036854775800, None]]


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("kind", "transform", "value"),
    [
        (types.DecimalType(38, 2), tr.TruncateTransform(7), coerce("-" + "9" * 36 + ".99", types.DecimalType(38, 2))),
        (types.TimestampType(), tr.HourTransform(), 2**63 - 1),
    ],
)
def test_what_does_not_fit_fails_in_any_mode(spark: Any, ansi: str, kind: Any, transform: Any, value: Any) -> None:
    with pytest.raises(InvalidValueError):
        transform.apply(value, kind)
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(PySparkException):
            results(spark, [(kind, transform, [value])])
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_unknown_transforms_and_wrong_types_are_refused(spark: Any) -> None:
    gateway = Gateway(spark)
    with pytest.raises(InvalidTransformError, match="zorder"):
        transform_column(gateway, tr.UnknownTransform("zorder"), F.col("a"), types.LongType())
    with pytest.raises(InvalidTransformError, match="day does not support columns of type string"):
        transform_column(gateway, tr.DayTransform(), F.col("a"), types.StringType())
    assert set(COUNTED) < {type(kind) for kind in KINDS}
