"""Hypothesis strategies shared by the rooms' tests: types, schemas, values, and what stands on them."""

import math
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from typing import Any

from hypothesis import strategies as st

from icefloe.partitioning.sorting import NullOrder, SortDirection, SortField, SortOrder
from icefloe.partitioning.spec import PartitionField, PartitionSpec
from icefloe.partitioning.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
)
from icefloe.schema.schema import Schema
from icefloe.schema.types import (
    EDGE_ALGORITHMS,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
    VariantType,
)
from icefloe.versions import Feature, allows

# --- types -----------------------------------------------------------------------------------------------------------

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
DAYS_MIN, DAYS_MAX = -719162, 2932896  # 0001-01-01 and 9999-12-31, what Python's dates can hold
DAY_MICROS = 86_400_000_000

_PLAIN: tuple[PrimitiveType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    BinaryType(),
)


def decimal_types() -> st.SearchStrategy[DecimalType]:
    """Decimals of every precision, with every scale."""
    return st.integers(1, 38).flatmap(lambda p: st.builds(DecimalType, st.just(p), st.integers(0, p)))


def primitive_types(version: int = 4) -> st.SearchStrategy[PrimitiveType]:
    """Every primitive type that a table of this version may hold."""
    found: list[st.SearchStrategy[PrimitiveType]] = [
        st.sampled_from(_PLAIN),
        decimal_types(),
        st.builds(FixedType, st.integers(1, 32)),
    ]
    if allows(version, Feature.NANOSECOND_TIMESTAMPS):
        found.append(st.sampled_from((TimestampNanoType(), TimestamptzNanoType())))
    if allows(version, Feature.UNKNOWN_TYPE):
        found.append(st.just(UnknownType()))
    if allows(version, Feature.GEO_TYPES):
        crs = st.sampled_from(("OGC:CRS84", "EPSG:4326", "srid:3857"))
        found.append(st.builds(GeometryType, crs))
        found.append(st.builds(GeographyType, crs, st.sampled_from(EDGE_ALGORITHMS)))
    return st.one_of(found)


def names() -> st.SearchStrategy[str]:
    """Column names: plain ones mostly, unicode and spaces sometimes; never a dot, which would be ambiguous."""
    plain = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
    odd = st.text(
        st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters=".`"), min_size=1, max_size=6
    )
    return st.one_of(plain, plain, plain, odd)


def types(version: int = 4, next_id: Callable[[], int] | None = None, depth: int = 2) -> st.SearchStrategy[IcebergType]:
    """Any type; nested ones take their ids from `next_id`."""
    numbers = next_id or count(1).__next__

    @st.composite
    def draw_type(draw: st.DrawFn, left: int) -> IcebergType:
        kind = draw(st.sampled_from(("primitive",) * 6 + ("struct", "list", "map", "variant"))) if left else "primitive"
        if kind == "variant" and allows(version, Feature.VARIANT):
            return VariantType()
        if kind == "struct":
            unique = draw(st.lists(names(), min_size=1, max_size=3, unique=True))
            return StructType(*(draw_field(draw, name, left - 1) for name in unique))
        if kind == "list":
            return ListType(numbers(), *draw_element(draw, left - 1))
        if kind == "map":
            key_id = numbers()
            key = draw(primitive_types(version).filter(lambda kind: not isinstance(kind, UnknownType)))
            return MapType(key_id, key, numbers(), *draw_element(draw, left - 1))
        return draw(primitive_types(version))

    def draw_element(draw: st.DrawFn, left: int) -> tuple[IcebergType, bool]:
        element = draw(draw_type(left))
        return element, draw(st.booleans()) and not isinstance(element, UnknownType)

    def draw_field(draw: st.DrawFn, name: str, left: int) -> NestedField:
        field_id = numbers()
        kind, required = draw_element(draw, left)
        return NestedField(field_id, name, kind, required, draw(st.none() | st.text(max_size=5)))

    return draw_type(depth)


@st.composite
def schemas(draw: st.DrawFn, version: int = 4, min_size: int = 1, max_size: int = 5, depth: int = 2) -> Schema:
    """A schema of random columns, with ids given in an order of no meaning."""
    numbers = count(1).__next__
    fields = []
    for name in draw(st.lists(names(), min_size=min_size, max_size=max_size, unique=True)):
        field_id = numbers()
        kind = draw(types(version, numbers, depth))
        required = draw(st.booleans()) and not isinstance(kind, UnknownType)
        fields.append(NestedField(field_id, name, kind, required, draw(st.none() | st.text(max_size=5))))
    draw(st.randoms(use_true_random=False)).shuffle(fields)
    return Schema(*fields, schema_id=draw(st.integers(0, 5)))


# --- values ----------------------------------------------------------------------------------------------------------


def texts(max_size: int = 24) -> st.SearchStrategy[str]:
    """Text without surrogates, with the code points around them often."""
    edges = st.sampled_from("aZ\x00\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff")
    return st.text(st.one_of(st.characters(codec="utf-8"), edges), max_size=max_size)


def decimals(kind: DecimalType) -> st.SearchStrategy[Decimal]:
    """Decimals that fit the type exactly."""
    limit = 10**kind.precision - 1
    return st.integers(-limit, limit).map(
        lambda unscaled: Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -kind.scale))
    )


def wkb_points() -> st.SearchStrategy[bytes]:
    """Points as little-endian ISO WKB."""
    import struct

    number = st.floats(-180, 180)
    return st.builds(lambda x, y: struct.pack("<BIdd", 1, 1, x, y), number, number)


def values_of(kind: IcebergType) -> st.SearchStrategy[Any]:
    """Non-null internal values of a type (see schema.values): extremes, NaN and -0.0 included. Variants: not covered."""
    match kind:
        case BooleanType():
            return st.booleans()
        case IntegerType():
            return st.one_of(st.integers(INT_MIN, INT_MAX), st.sampled_from((INT_MIN, -1, 0, 1, INT_MAX)))
        case LongType():
            return st.one_of(
                st.integers(LONG_MIN, LONG_MAX), st.integers(-50, 50), st.sampled_from((LONG_MIN, LONG_MAX))
            )
        case FloatType():
            return st.one_of(st.floats(width=32), st.sampled_from((0.0, -0.0, math.nan, math.inf, -math.inf)))
        case DoubleType():
            return st.one_of(st.floats(), st.sampled_from((0.0, -0.0, math.nan, math.inf, -math.inf)))
        case DecimalType():
            return decimals(kind)
        case DateType():
            return st.one_of(st.integers(DAYS_MIN, DAYS_MAX), st.integers(-400, 400))
        case TimeType():
            return st.integers(0, DAY_MICROS - 1)
        case TimestampType() | TimestamptzType():
            return st.one_of(
                st.integers(DAYS_MIN * DAY_MICROS, DAYS_MAX * DAY_MICROS), st.integers(-DAY_MICROS, DAY_MICROS)
            )
        case TimestampNanoType() | TimestamptzNanoType():
            return st.one_of(st.integers(LONG_MIN, LONG_MAX), st.integers(-DAY_MICROS * 1000, DAY_MICROS * 1000))
        case StringType():
            return texts()
        case UUIDType():
            return st.uuids()
        case FixedType():
            return st.binary(min_size=kind.length, max_size=kind.length)
        case BinaryType():
            return st.binary(max_size=24)
        case GeometryType() | GeographyType():
            return wkb_points()
        case UnknownType():
            return st.none()
        case StructType():
            parts = [
                st.tuples(st.just(field.field_id), nullable_values_of(field.field_type, field.required))
                for field in kind.fields
            ]
            return st.tuples(*parts)
        case ListType():
            return st.lists(nullable_values_of(kind.element_type, kind.element_required), max_size=3).map(tuple)
        case MapType():
            pair = st.tuples(values_of(kind.key_type), nullable_values_of(kind.value_type, kind.value_required))
            return st.lists(pair, max_size=3, unique_by=lambda item: repr(item[0])).map(tuple)
        case _:
            raise AssertionError(f"no values for {kind}")


def nullable_values_of(kind: IcebergType, required: bool = False) -> st.SearchStrategy[Any]:
    """Values of a type, with None among them unless required."""
    return values_of(kind) if required else st.one_of(st.none(), values_of(kind))


# --- partitioning ----------------------------------------------------------------------------------------------------


def transforms() -> st.SearchStrategy[Transform]:
    """Every transform but the unknown ones."""
    plain = (
        IdentityTransform(),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
    number = st.one_of(st.integers(1, 20), st.integers(1, INT_MAX))
    return st.one_of(st.sampled_from(plain), st.builds(BucketTransform, number), st.builds(TruncateTransform, number))


def transforms_of(kind: IcebergType) -> st.SearchStrategy[Transform]:
    """Every transform that takes columns of the type."""
    return transforms().filter(lambda transform: transform.can_transform(kind))


def unknown_transforms() -> st.SearchStrategy[Transform]:
    """Transforms that somebody else may have written."""
    return st.builds(UnknownTransform, st.from_regex(r"zorder(\[[0-9]{1,3}\])?|bucketv2\[[0-9]{1,3}\]", fullmatch=True))


def partition_sources(schema: Schema) -> list[NestedField]:
    """The columns that a partition or sort field may be made from."""
    return [
        field
        for field_id, field in schema.fields_by_id.items()
        if isinstance(field.field_type, PrimitiveType)
        and all(isinstance(parent.field_type, StructType) for parent in schema.ancestors(field_id))
    ]


@st.composite
def partition_specs(draw: st.DrawFn, schema: Schema, max_size: int = 4, first_id: int = 1000) -> PartitionSpec:
    """A valid spec over the schema, with field ids from `first_id` on."""
    fields: list[PartitionField] = []
    sources = partition_sources(schema)
    for position in range(draw(st.integers(0, max_size)) if sources else 0):
        source = draw(st.sampled_from(sources))
        transform = draw(transforms_of(source.field_type))
        if any(field.source_id == source.field_id and field.transform == transform for field in fields):
            continue
        fields.append(PartitionField(source.field_id, first_id + len(fields), transform, f"part {position}"))
    return PartitionSpec(*fields, spec_id=draw(st.integers(0, 5)))


@st.composite
def sort_orders(draw: st.DrawFn, schema: Schema, max_size: int = 4) -> SortOrder:
    """A valid order over the schema."""
    sources = partition_sources(schema)
    fields = []
    for _ in range(draw(st.integers(0, max_size)) if sources else 0):
        source = draw(st.sampled_from(sources))
        transform = draw(transforms_of(source.field_type))
        fields.append(
            SortField(
                source.field_id,
                transform,
                draw(st.sampled_from(SortDirection)),
                draw(st.sampled_from(NullOrder)),
            )
        )
    return SortOrder(*fields, order_id=draw(st.integers(1, 5)) if fields else None)
