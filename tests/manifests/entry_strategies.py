"""Random entries of manifests, for a fixed schema with a partition field of every type."""

from functools import cache
from typing import Any

from hypothesis import strategies as st

from icefloe.manifests import DataFile, EntryStatus, FileContent, ManifestContent, ManifestEntry
from icefloe.partitioning import UNPARTITIONED, PartitionField, PartitionSpec, partition_type, transforms as tr
from icefloe.schema import GeoPoint, Schema, encode_bound, reserved, types
from icefloe.variant import VariantKind, VariantPrimitive, encode_variant_bounds
from icefloe.versions import Feature, allows
from tests.strategies import nullable_values_of, texts, values_of

_KINDS = (
    types.BooleanType(),
    types.IntegerType(),
    types.LongType(),
    types.FloatType(),
    types.DoubleType(),
    types.DecimalType(9, 2),
    types.DecimalType(38, 10),
    types.DateType(),
    types.TimeType(),
    types.TimestampType(),
    types.TimestamptzType(),
    types.StringType(),
    types.UUIDType(),
    types.FixedType(5),
    types.BinaryType(),
)
SNAPSHOT = 7_000_000_000_000_000_001


@cache
def schema_for(version: int) -> Schema:
    """A column of every type that the version has."""
    kinds: tuple[Any, ...] = _KINDS
    if allows(version, Feature.NANOSECOND_TIMESTAMPS):
        kinds = (*kinds, types.TimestampNanoType(), types.GeometryType(), types.VariantType())
    fields = [types.NestedField(i, f"c{i}", kind) for i, kind in enumerate(kinds, 1)]
    return Schema(*fields, types.NestedField(50, "tags", types.ListType(51, types.StringType())), schema_id=3)


@cache
def spec_for(schema: Schema) -> PartitionSpec:
    """Every column as it is, and some transforms."""
    fields = [
        PartitionField(field.field_id, 1000 + field.field_id, tr.IdentityTransform(), field.name)
        for field in schema.fields
        if not isinstance(field.field_type, types.ListType | types.GeometryType | types.VariantType)
    ]
    fields += [
        PartitionField(10, 1100, tr.DayTransform(), "day"),
        PartitionField(3, 1101, tr.BucketTransform(16), "bucket"),
        PartitionField(12, 1102, tr.TruncateTransform(4), "odd name é"),
        PartitionField(12, 1103, tr.VoidTransform(), "gone"),
    ]
    return PartitionSpec(*fields, spec_id=5)


COUNT = st.integers(0, 2**62)


def counts(schema: Schema) -> st.SearchStrategy[dict[int, int]]:
    """A count for some fields, those of lineage among them."""
    lineage = [field.field_id for field in reserved.ROW_LINEAGE_COLUMNS]
    return st.dictionaries(st.sampled_from([*sorted(schema.fields_by_id), *lineage]), COUNT, max_size=3)


def small(schema: Schema, most: int) -> st.SearchStrategy[dict[int, int]]:
    """A number up to a limit for some fields."""
    return st.dictionaries(st.sampled_from(sorted(schema.fields_by_id)), st.integers(0, most), max_size=3)


def bounds(schema: Schema) -> st.SearchStrategy[dict[int, bytes]]:
    """A bound for some fields, in binary form."""
    number = st.floats(-180, 180)
    corner = st.builds(GeoPoint, number, number, st.none() | number, st.none() | number)
    choices = []
    for field in schema.fields:
        kind = field.field_type
        if isinstance(kind, types.VariantType):
            paths = st.sampled_from(["$", "$['a']", "$['a']['b']"])
            leaves = st.integers(-(2**63), 2**63 - 1).map(lambda value: VariantPrimitive(VariantKind.INT64, value))
            encoded = st.dictionaries(paths, leaves, max_size=2).map(encode_variant_bounds)
            choices.append(st.tuples(st.just(field.field_id), encoded))
        elif not isinstance(kind, types.ListType):
            values = corner if isinstance(kind, types.GeometryType) else values_of(kind)
            encoded = values.map(lambda value, kind=kind: encode_bound(value, kind))  # type: ignore[misc]  # bound early
            choices.append(st.tuples(st.just(field.field_id), encoded))
    return st.lists(st.one_of(choices), max_size=4).map(dict)


@cache
def data_files(version: int, content: ManifestContent, partitioned: bool = True) -> st.SearchStrategy[DataFile]:
    """Data files, or delete files of the kinds that the version may add."""
    schema = schema_for(version)
    spec = spec_for(schema) if partitioned else UNPARTITIONED
    kinds = partition_type(spec, schema).fields
    common: dict[str, Any] = {
        "file_path": texts(10).map(lambda text: f"s3://bucket/{text}"),
        "file_format": st.sampled_from(("parquet", "avro", "orc")),
        "record_count": st.integers(0, 2**40),
        "file_size_in_bytes": COUNT,
        "spec_id": st.just(spec.spec_id),
        "partition": st.tuples(*(nullable_values_of(field.field_type) for field in kinds)),
        "column_sizes": counts(schema),
        "value_counts": counts(schema),
        "null_value_counts": counts(schema),
        "nan_value_counts": counts(schema),
        "lower_bounds": bounds(schema),
        "upper_bounds": bounds(schema),
        "key_metadata": st.none() | st.binary(max_size=5),
        "split_offsets": st.none() | st.lists(COUNT, max_size=4).map(lambda found: tuple(sorted(found))),
        "sort_order_id": st.none() | st.integers(0, 9),
    }
    if allows(version, Feature.CONTENT_STATS):
        common |= {"tight_bounds": small(schema, 1), "avg_value_sizes": small(schema, 2**31 - 1)}
    if content is ManifestContent.DATA:
        lineage = {"first_row_id": st.none() | COUNT} if allows(version, Feature.ROW_LINEAGE) else {}
        return st.builds(DataFile, **common, **lineage)
    equality = st.builds(
        DataFile, **common, content=st.just(FileContent.EQUALITY_DELETES), equality_ids=st.just((1, 3))
    )
    position = common | {"content": st.just(FileContent.POSITION_DELETES)}
    if allows(version, Feature.DELETION_VECTORS):
        position["file_format"] = st.just("puffin")
        position |= {"referenced_data_file": st.just("s3://bucket/data"), "content_offset": COUNT}
        position["content_size_in_bytes"] = COUNT
    return st.one_of(equality, st.builds(DataFile, **position))


@cache
def entries(version: int, content: ManifestContent, partitioned: bool = True) -> st.SearchStrategy[ManifestEntry]:
    """Entries as they may be written: new ones wait for their numbers, others have them."""
    files = data_files(version, content, partitioned)
    number = st.integers(0, 1000)
    ours = st.just(SNAPSHOT)
    if not allows(version, Feature.SEQUENCE_NUMBERS):
        number = st.none()  # type: ignore[assignment]  # v1 entries have none
    added = st.builds(ManifestEntry, st.just(EntryStatus.ADDED), files, ours, st.none() | number)
    existing = st.builds(ManifestEntry, st.just(EntryStatus.EXISTING), files, COUNT, number, number)
    deleted = st.builds(ManifestEntry, st.just(EntryStatus.DELETED), files, ours, number, number)
    return st.one_of(added, existing, deleted)
