"""Hypothesis strategies shared by the rooms' tests: types, schemas, values, and what stands on them."""

import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from itertools import count
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from icefloe.expressions import Literal, Reference, Term, Transformed, values as ex
from icefloe.metadata import (
    MAIN_BRANCH,
    Operation,
    PartitionStatisticsFile,
    Snapshot,
    SnapshotLogEntry,
    SnapshotRef,
    SnapshotRefType,
    StatisticsFile,
    TableMetadata,
    branch,
    new_table_metadata,
)
from icefloe.metadata.snapshot import MetadataLogEntry, Summary
from icefloe.metadata.table import BlobMetadata, EncryptedKey
from icefloe.partitioning import (
    NullOrder,
    PartitionField,
    PartitionSpec,
    SortDirection,
    SortField,
    SortOrder,
    transforms as tr,
)
from icefloe.schema import IcebergType, NestedField, Schema, StructType
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
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
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


@lru_cache
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


@lru_cache
def names() -> st.SearchStrategy[str]:
    """Column names: plain ones mostly, unicode and spaces sometimes; never a dot, which would be ambiguous."""
    plain = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=9)
    odd = st.text(
        st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters=".`"), min_size=1, max_size=6
    )
    return st.one_of(plain, plain, plain, odd)


def types(version: int = 4, next_id: Callable[[], int] | None = None, depth: int = 2) -> st.SearchStrategy[IcebergType]:
    """Any type; nested ones take their ids from `next_id`."""
    return _types(version, next_id or count(1).__next__, depth)


@st.composite
def _types(draw: st.DrawFn, version: int, numbers: Callable[[], int], left: int) -> IcebergType:
    kind = draw(st.sampled_from(("primitive",) * 6 + ("struct", "list", "map", "variant"))) if left else "primitive"
    if kind == "variant" and allows(version, Feature.VARIANT):
        return VariantType()
    if kind == "struct":
        unique = draw(st.lists(names(), min_size=1, max_size=3, unique=True))
        return StructType(*(_field(draw, name, version, numbers, left - 1) for name in unique))
    if kind == "list":
        return ListType(numbers(), *_element(draw, version, numbers, left - 1))
    if kind == "map":
        key_id = numbers()
        key = draw(primitive_types(version).filter(lambda kind: not isinstance(kind, UnknownType)))
        return MapType(key_id, key, numbers(), *_element(draw, version, numbers, left - 1))
    return draw(primitive_types(version))


def _element(draw: st.DrawFn, version: int, numbers: Callable[[], int], left: int) -> tuple[IcebergType, bool]:
    element = draw(_types(version, numbers, left))
    return element, draw(st.booleans()) and not isinstance(element, UnknownType)


def _field(draw: st.DrawFn, name: str, version: int, numbers: Callable[[], int], left: int) -> NestedField:
    field_id = numbers()
    kind, required = _element(draw, version, numbers, left)
    return NestedField(field_id, name, kind, required, draw(st.none() | st.text(max_size=5)))


@st.composite
def schemas(draw: st.DrawFn, version: int = 4, min_size: int = 1, max_size: int = 5, depth: int = 2) -> Schema:
    """A schema of random columns, with ids given in an order of no meaning."""
    numbers = count(1).__next__
    unique = draw(st.lists(names(), min_size=min_size, max_size=max_size, unique=True))
    fields = [_field(draw, name, version, numbers, depth) for name in unique]
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


def transforms() -> st.SearchStrategy[tr.Transform]:
    """Every transform but the unknown ones."""
    plain = (
        tr.IdentityTransform(),
        tr.YearTransform(),
        tr.MonthTransform(),
        tr.DayTransform(),
        tr.HourTransform(),
        tr.VoidTransform(),
    )
    number = st.one_of(st.integers(1, 20), st.integers(1, INT_MAX))
    return st.one_of(
        st.sampled_from(plain), st.builds(tr.BucketTransform, number), st.builds(tr.TruncateTransform, number)
    )


def transforms_of(kind: IcebergType) -> st.SearchStrategy[tr.Transform]:
    """Every transform that takes columns of the type."""
    return transforms().filter(lambda transform: transform.can_transform(kind))


def unknown_transforms() -> st.SearchStrategy[tr.Transform]:
    """Transforms that somebody else may have written."""
    return st.builds(
        tr.UnknownTransform, st.from_regex(r"zorder(\[[0-9]{1,3}\])?|bucketv2\[[0-9]{1,3}\]", fullmatch=True)
    )


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


# --- metadata --------------------------------------------------------------------------------------------------------

TIMES_MS = st.integers(0, 4_102_444_800_000)
PATHS = st.text("abc/019", min_size=1, max_size=8).map(lambda name: f"s3://bucket/{name}.avro")


@lru_cache
def string_maps() -> st.SearchStrategy[dict[str, str]]:
    """Properties, with none of the reserved keys."""
    key = st.text("abc.", min_size=1, max_size=8)
    return st.dictionaries(key, texts(8), max_size=3)


@lru_cache
def summaries() -> st.SearchStrategy[Summary]:
    """Summaries with known operations."""
    return st.builds(Summary, st.sampled_from(Operation), string_maps())


@st.composite
def snapshot_chains(draw: st.DrawFn, version: int, max_size: int = 4) -> tuple[Snapshot, ...]:
    """Snapshots as a table of this version may have them, in the order of commits."""
    numbered, lineage = allows(version, Feature.SEQUENCE_NUMBERS), allows(version, Feature.ROW_LINEAGE)
    found: list[Snapshot] = []
    next_row_id = 0
    for snapshot_id in draw(st.lists(st.integers(1, LONG_MAX), max_size=max_size, unique=True)):
        inline = allows(version, Feature.INLINE_MANIFESTS) and draw(st.booleans())
        optional_summary = not allows(version, Feature.SNAPSHOT_SUMMARY_REQUIRED)
        added_rows = draw(st.integers(0, 100))
        found.append(
            Snapshot(
                snapshot_id,
                draw(TIMES_MS),
                None if inline else draw(PATHS),
                draw(st.none() | summaries()) if optional_summary else draw(summaries()),
                draw(st.none() | st.sampled_from([each.snapshot_id for each in found])) if found else None,
                len(found) + 1 if numbered else 0,
                draw(st.none() | st.just(0)),
                next_row_id if lineage else None,
                added_rows if lineage else None,
                draw(st.none() | texts(8)) if allows(version, Feature.ENCRYPTION_KEYS) else None,
                tuple(draw(st.lists(PATHS, max_size=2))) if inline else None,
            )
        )
        next_row_id += added_rows
    return tuple(found)


@st.composite
def snapshot_refs(draw: st.DrawFn, snapshot_ids: list[int]) -> SnapshotRef:
    """A branch or tag on one of the snapshots, with any retention that it may have."""
    kind = draw(st.sampled_from(SnapshotRefType))
    limit = st.none() | st.integers(1, LONG_MAX)
    on_branch = kind is SnapshotRefType.BRANCH
    return SnapshotRef(
        draw(st.sampled_from(snapshot_ids)),
        kind,
        draw(st.none() | st.integers(1, INT_MAX)) if on_branch else None,
        draw(limit) if on_branch else None,
        draw(limit),
    )


@lru_cache
def statistics_files() -> st.SearchStrategy[StatisticsFile]:
    """Statistics files of any snapshot."""
    number = st.integers(0, LONG_MAX)
    fields = st.lists(st.integers(0, INT_MAX), max_size=3).map(tuple)
    blobs = st.builds(BlobMetadata, texts(8), number, number, fields, string_maps())
    keys = st.none() | st.binary(max_size=8)
    return st.builds(StatisticsFile, number, PATHS, number, number, st.lists(blobs, max_size=2).map(tuple), keys)


@lru_cache
def partition_statistics_files() -> st.SearchStrategy[PartitionStatisticsFile]:
    """Partition statistics files of any snapshot."""
    return st.builds(PartitionStatisticsFile, st.integers(0, LONG_MAX), PATHS, st.integers(0, LONG_MAX))


@lru_cache
def encrypted_keys() -> st.SearchStrategy[EncryptedKey]:
    """Encryption keys."""
    return st.builds(EncryptedKey, texts(8), st.binary(max_size=24), st.none() | texts(8), string_maps())


@st.composite
def new_tables(draw: st.DrawFn, version: int, types_of: int | None = None) -> TableMetadata:
    """Metadata of a table that nothing was committed to; its columns may be kept to the types of an older version."""
    schema = draw(schemas(types_of or version))
    located = not allows(version, Feature.OPTIONAL_LOCATION) or draw(st.booleans())
    return new_table_metadata(
        schema,
        draw(partition_specs(schema)),
        draw(sort_orders(schema)),
        "s3://bucket/db/table" if located else None,
        draw(string_maps()),
        version,
        uuid=draw(st.uuids()),
        timestamp_ms=draw(TIMES_MS),
    )


@st.composite
def table_metadata(draw: st.DrawFn, version: int, types_of: int | None = None) -> TableMetadata:
    """Metadata of a table of this version with everything that it may hold."""
    base = draw(new_tables(version, types_of))
    other = draw(schemas(types_of or version)).with_id(base.current_schema_id + 1)
    chain = draw(snapshot_chains(version))
    ids = [each.snapshot_id for each in chain]
    current = draw(st.none() | st.sampled_from(ids)) if ids else None
    names_of_refs = texts(8).filter(lambda name: name != MAIN_BRANCH)
    refs = draw(st.dictionaries(names_of_refs, snapshot_refs(ids), max_size=3)) if ids else {}
    main = {} if current is None else {MAIN_BRANCH: branch(current)}
    entries = st.builds(SnapshotLogEntry, st.sampled_from(ids or [0]), TIMES_MS)
    with_keys = allows(version, Feature.ENCRYPTION_KEYS)
    keys = draw(st.lists(encrypted_keys(), max_size=2, unique_by=lambda key: key.key_id)) if with_keys else []
    return base.evolve(
        last_updated_ms=draw(TIMES_MS),
        last_column_id=max(base.last_column_id, other.highest_field_id),
        schemas=(*base.schemas, other),
        snapshots=chain,
        current_snapshot_id=current,
        refs=main | refs,
        last_sequence_number=chain[-1].sequence_number if chain else 0,
        snapshot_log=tuple(draw(st.lists(entries, max_size=3 if ids else 0))),
        metadata_log=tuple(draw(st.lists(st.builds(MetadataLogEntry, PATHS, TIMES_MS), max_size=2))),
        statistics=tuple(draw(st.lists(statistics_files(), max_size=2))),
        partition_statistics=tuple(draw(st.lists(partition_statistics_files(), max_size=2))),
        next_row_id=(chain[-1].first_row_id or 0) + (chain[-1].added_rows or 0) if chain else 0,
        encryption_keys=tuple(keys),
    )


# --- predicates ------------------------------------------------------------------------------------------------------

FILTER_SCHEMA = Schema(
    NestedField(1, "flag", BooleanType()),
    NestedField(2, "small", IntegerType()),
    NestedField(3, "id", LongType(), required=True),
    NestedField(4, "ratio", FloatType()),
    NestedField(5, "score", DoubleType(), required=True),
    NestedField(6, "price", DecimalType(9, 2)),
    NestedField(7, "day", DateType()),
    NestedField(8, "clock", TimeType()),
    NestedField(9, "ts", TimestampType()),
    NestedField(10, "ts_tz", TimestamptzType(), required=True),
    NestedField(11, "ts_ns", TimestampNanoType()),
    NestedField(12, "ts_tz_ns", TimestamptzNanoType()),
    NestedField(13, "name", StringType()),
    NestedField(14, "key", UUIDType()),
    NestedField(15, "code", FixedType(3)),
    NestedField(16, "blob", BinaryType()),
    NestedField(17, "Odd name", StringType(), required=True),
    NestedField(18, "place", StructType(NestedField(19, "zip", IntegerType()), NestedField(20, "town", StringType(), True))),
    NestedField(21, "inner", StructType(NestedField(22, "deep", StructType(NestedField(23, "n", DoubleType(), True)), True)), True),
    NestedField(24, "tags", ListType(25, StringType())),
)  # fmt: skip
"""A column of every type that can be compared, some required, some in structs."""

FILTER_COLUMNS: tuple[tuple[str, IcebergType], ...] = tuple(
    (name, FILTER_SCHEMA.fields_by_id[field_id].field_type)
    for field_id, name in FILTER_SCHEMA.names_by_id.items()
    if isinstance(FILTER_SCHEMA.fields_by_id[field_id].field_type, PrimitiveType) and field_id != 25
)
"""Full name and type of the columns of FILTER_SCHEMA that predicates may compare."""

_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_COMMON_VALUES: dict[type[IcebergType], tuple[Any, ...]] = {
    IntegerType: (INT_MIN, INT_MIN + 1, -11, -10, -1, 0, 1, 9, 10, INT_MAX - 1, INT_MAX),
    LongType: (LONG_MIN, LONG_MIN + 1, -11, -1, 0, 1, 9, 10, LONG_MAX),
    DateType: (-366, -365, -32, -31, -1, 0, 1, 31, 365, 19_000),
    TimeType: (0, 1, _HOUR, 24 * _HOUR - 1),
    StringType: ("", "a", "ab", "abc", "abcd", "abd", "b", "\ud7ff", "ab\uffff", "ab\U0010ffff", "it's %_\\", "é"),
    BinaryType: (b"", b"a", b"ab", b"abc", b"abd", b"ab\xff", b"\xff\xff"),
    FixedType: (b"abc", b"abd", b"\x00\x00\x00", b"\xff\xff\xff"),
    UUIDType: tuple(UUID(int=n) for n in (0, 1, 2**63, 2**64, 2**127 - 1, 2**127, 2**127 + 2**63, 2**128 - 1)),
}
_SECONDS = (-31_536_001, -31_536_000, -86_401, -86_400, -3601, -3600, -1, 0, 1, 3599, 3600, 86_400, 31_536_000)


def common_values_of(kind: IcebergType) -> st.SearchStrategy[Any]:
    """Values that predicates and rows often share, around the edges of transforms; and now and then any other."""
    match kind:
        case TimestampType() | TimestamptzType():
            common: tuple[Any, ...] = tuple(seconds * 1_000_000 + more for seconds in _SECONDS for more in (-1, 0))
        case TimestampNanoType() | TimestamptzNanoType():
            common = tuple(seconds * 1_000_000_000 + more for seconds in _SECONDS for more in (-1, 0))
        case DecimalType():
            limit = 10**kind.precision - 1
            numbers = (-limit, -limit + 1, -51, -50, -1, 0, 1, 49, 50, limit)
            common = tuple(Decimal(number).scaleb(-kind.scale) for number in numbers)
        case FloatType() | DoubleType():
            common = (0.0, -0.0, 1.0, -1.5, math.nan, math.inf, -math.inf)
        case FixedType():
            common = tuple(value.ljust(kind.length, b"\0")[: kind.length] for value in _COMMON_VALUES[FixedType])
        case _:
            common = _COMMON_VALUES.get(type(kind), ())
    if not common:
        return values_of(kind)
    return st.one_of(st.sampled_from(common), st.sampled_from(common), values_of(kind))


def literals_of(kind: IcebergType) -> st.SearchStrategy[Literal]:
    """Constants of a type: any of its values but NaN."""
    values = common_values_of(kind).filter(lambda value: not (isinstance(value, float) and math.isnan(value)))
    return values.map(lambda value: Literal(value, kind))


def small_transforms_of(kind: IcebergType) -> st.SearchStrategy[tr.Transform]:
    """Transforms that take columns of a type, of small parameters; `identity`, `void` and unknown ones too."""
    found: tuple[tr.Transform, ...] = (
        tr.IdentityTransform(),
        tr.BucketTransform(2),
        tr.BucketTransform(7),
        tr.TruncateTransform(1),
        tr.TruncateTransform(3),
        tr.TruncateTransform(10),
        tr.YearTransform(),
        tr.MonthTransform(),
        tr.DayTransform(),
        tr.HourTransform(),
        tr.VoidTransform(),
        tr.UnknownTransform("zorder"),
    )
    return st.sampled_from([transform for transform in found if transform.can_transform(kind)])


@st.composite
def terms(draw: st.DrawFn) -> tuple[Term, IcebergType]:
    """A column of FILTER_SCHEMA or a transform of one, and the type of its values."""
    name, kind = draw(st.sampled_from(FILTER_COLUMNS))
    reference = Reference(name)
    if draw(st.integers(0, 3)):
        return reference, kind
    transform = draw(
        small_transforms_of(kind).filter(lambda one: not isinstance(one, tr.VoidTransform | tr.UnknownTransform))
    )
    return Transformed(transform, reference), transform.result_type(kind)


@st.composite
def predicates(draw: st.DrawFn) -> ex.Expression:
    """One test of a column of FILTER_SCHEMA, or of a transform of one."""
    term, kind = draw(terms())
    tests = ["null", "not null", "compare", "compare", "compare", "compare", "in", "not in"]
    tests += ["prefix"] * 3 * isinstance(kind, StringType) + ["nan"] * 2 * isinstance(kind, FloatType | DoubleType)
    match draw(st.sampled_from(tests)):
        case "null":
            return ex.IsNull(term)
        case "not null":
            return ex.NotNull(term)
        case "nan":
            return draw(st.sampled_from((ex.IsNaN, ex.NotNaN)))(term)
        case "prefix":
            return draw(st.sampled_from((ex.StartsWith, ex.NotStartsWith)))(term, draw(literals_of(kind)))
        case "in":
            return ex.is_in(term, draw(st.lists(literals_of(kind), max_size=4)))
        case "not in":
            return ex.not_in(term, draw(st.lists(literals_of(kind), max_size=4)))
        case _:
            kinds = (ex.EqualTo, ex.NotEqualTo, ex.LessThan, ex.LessThanOrEqual, ex.GreaterThan, ex.GreaterThanOrEqual)
            return draw(st.sampled_from(kinds))(term, draw(literals_of(kind)))


def expressions(leaves: st.SearchStrategy[ex.Expression] | None = None) -> st.SearchStrategy[ex.Expression]:
    """Predicates over FILTER_SCHEMA that are combined with and, or and not."""
    constants = st.sampled_from((ex.AlwaysTrue(), ex.AlwaysFalse()))
    parts = predicates() if leaves is None else leaves
    return st.recursive(
        st.one_of(parts, parts, parts, constants),
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda children: ex.conjunction(*children)),
            st.lists(inner, min_size=1, max_size=3).map(lambda children: ex.disjunction(*children)),
            inner.map(ex.negation),
        ),
        max_leaves=5,
    )


def filter_values_of(kind: IcebergType, required: bool) -> st.SearchStrategy[Any]:
    """Values of a column of FILTER_SCHEMA, null among them unless it is required."""
    match kind:
        case StructType():
            fields = [filter_values_of(field.field_type, field.required) for field in kind.fields]
            found: st.SearchStrategy[Any] = st.tuples(*fields).map(
                lambda values: tuple(zip((field.field_id for field in kind.fields), values, strict=True))
            )
        case ListType():
            found = st.just(())
        case _:
            found = common_values_of(kind)
    return found if required else st.one_of(found, found, found, st.none())


def filter_rows() -> st.SearchStrategy[tuple[Any, ...]]:
    """Rows of FILTER_SCHEMA, as values in the order of its columns."""
    return st.tuples(*(filter_values_of(field.field_type, field.required) for field in FILTER_SCHEMA.fields))


@st.composite
def filter_specs(draw: st.DrawFn) -> PartitionSpec:
    """Partition specs over FILTER_SCHEMA, with several fields of one column among them."""
    fields: list[PartitionField] = []
    columns = draw(st.lists(st.sampled_from(FILTER_COLUMNS), min_size=1, max_size=3))
    for name, kind in columns:
        for transform in draw(st.lists(small_transforms_of(kind), min_size=1, max_size=2)):
            position = len(fields)
            source = FILTER_SCHEMA.find_field(name).field_id
            fields.append(PartitionField(source, 1000 + position, transform, f"p{position}"))
    return PartitionSpec(*fields)
