"""The names, ids and types of a manifest's fields in each format version (spec: Manifest Entry Fields, Data File Fields), and
which of them to decode: what nobody asks for costs no memory."""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from icefloe import errors, partitioning as pt
from icefloe.avro import Choice, Take, TakeEach, TakeFields, TakeList, TakePairs, TakeSpread
from icefloe.manifests.values import MAP_METRICS, ManifestContent, Metric
from icefloe.schema import JSON, Schema, schema_to_json, types
from icefloe.versions import Feature, allows

ENTRY_NAME = "manifest_entry"
DATA_FILE_ID = 2
PARTITION_ID = 102
CONTENT_STATS_ID = 146
BLOCK_SIZE_ID = 105
DEFAULT_BLOCK_SIZE = 64 << 20
"""What v1 writers put into a field that is required but long deprecated; the Java library's number."""

PARTITION_ROLE = "partition"
CONTENT_STATS_ROLE = "content_stats"

_INT, _LONG, _TEXT, _BYTES = types.IntegerType(), types.LongType(), types.StringType(), types.BinaryType()

_ENTRY_FIELDS: dict[str, tuple[int, types.IcebergType]] = {
    "status": (0, _INT),
    "snapshot_id": (1, _LONG),
    "sequence_number": (3, _LONG),
    "file_sequence_number": (4, _LONG),
}
_FILE_FIELDS: dict[str, tuple[int, types.IcebergType]] = {
    "content": (134, _INT),
    "file_path": (100, _TEXT),
    "file_format": (101, _TEXT),
    "record_count": (103, _LONG),
    "file_size_in_bytes": (104, _LONG),
    "key_metadata": (131, _BYTES),
    "split_offsets": (132, types.ListType(133, _LONG)),
    "equality_ids": (135, types.ListType(136, _INT)),
    "sort_order_id": (140, _INT),
    "first_row_id": (142, _LONG),
    "referenced_data_file": (143, _TEXT),
    "content_offset": (144, _LONG),
    "content_size_in_bytes": (145, _LONG),
}

ENTRY_COLUMNS = {name: field_id for name, (field_id, _) in _ENTRY_FIELDS.items()}
"""Ids of the columns of an entry besides the file."""
FILE_COLUMNS = {name: field_id for name, (field_id, _) in _FILE_FIELDS.items()}
"""Ids of the columns of a file that are neither partition nor metrics."""
COLUMN_TYPES = {name: field_type for name, (_, field_type) in (_ENTRY_FIELDS | _FILE_FIELDS).items()}

LIST_COLUMNS = ("split_offsets", "equality_ids")

_METRICS: dict[Metric, tuple[int, int, int, types.IcebergType]] = {
    Metric.COLUMN_SIZES: (108, 117, 118, _LONG),
    Metric.VALUE_COUNTS: (109, 119, 120, _LONG),
    Metric.NULL_VALUE_COUNTS: (110, 121, 122, _LONG),
    Metric.NAN_VALUE_COUNTS: (137, 138, 139, _LONG),
    Metric.LOWER_BOUNDS: (125, 126, 127, _BYTES),
    Metric.UPPER_BOUNDS: (128, 129, 130, _BYTES),
}
"""Ids of each map, its key and its value."""

METRIC_IDS = {metric: ids[0] for metric, ids in _METRICS.items()}
"""Ids of the maps."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Which forms of metrics a manifest stores: maps by field id, typed `content_stats`, or both."""

    maps: bool
    content_stats: types.StructType | None = None


def column_field(name: str, *, required: bool = False) -> types.NestedField:
    """A column of an entry or of its file."""
    field_id, field_type = (_ENTRY_FIELDS | _FILE_FIELDS)[name]
    return types.NestedField(field_id, name, field_type, required)


def metric_field(metric: Metric) -> types.NestedField:
    """The map of a metric."""
    field_id, key_id, value_id, value = _METRICS[metric]
    return types.NestedField(field_id, metric.value, types.MapType(key_id, _INT, value_id, value))


def file_type(version: int, partition: types.StructType, stored: Stored) -> types.StructType:
    """The struct of a data file as tables of this version write it."""
    fields: list[types.NestedField] = []
    if allows(version, Feature.DELETE_FILES):
        fields.append(column_field("content", required=True))
    fields += [column_field("file_path", required=True), column_field("file_format", required=True)]
    fields.append(types.NestedField(PARTITION_ID, PARTITION_ROLE, partition, True))
    fields += [column_field("record_count", required=True), column_field("file_size_in_bytes", required=True)]
    if allows(version, Feature.BLOCK_SIZES):
        fields.append(types.NestedField(BLOCK_SIZE_ID, "block_size_in_bytes", _LONG, True))
    if stored.content_stats is not None:
        fields.append(types.NestedField(CONTENT_STATS_ID, CONTENT_STATS_ROLE, stored.content_stats))
    # Sizes on disk have no place in content stats, so their map is written in any case.
    fields += [metric_field(metric) for metric in MAP_METRICS if stored.maps or metric is Metric.COLUMN_SIZES]
    fields += [column_field("key_metadata"), column_field("split_offsets")]
    if allows(version, Feature.DELETE_FILES):
        fields.append(column_field("equality_ids"))
    fields.append(column_field("sort_order_id"))
    if allows(version, Feature.ROW_LINEAGE):
        fields.append(column_field("first_row_id"))
    if allows(version, Feature.DELETE_FILES):
        fields.append(column_field("referenced_data_file"))
    if allows(version, Feature.DELETION_VECTORS):
        fields += [column_field("content_offset"), column_field("content_size_in_bytes")]
    return types.StructType(*fields)


def entry_type(version: int, partition: types.StructType, stored: Stored) -> types.StructType:
    """The struct of a manifest entry as tables of this version write it."""
    has_numbers = allows(version, Feature.SEQUENCE_NUMBERS)
    fields = [column_field("status", required=True), column_field("snapshot_id", required=not has_numbers)]
    if has_numbers:
        fields += [column_field("sequence_number"), column_field("file_sequence_number")]
    fields.append(types.NestedField(DATA_FILE_ID, "data_file", file_type(version, partition, stored), True))
    return types.StructType(*fields)


def manifest_metadata(
    version: int, schema: Schema, spec: pt.PartitionSpec, content: ManifestContent, entry: types.StructType
) -> JSON:
    """The key-value metadata of a manifest, before it is turned to text (spec: Manifests)."""
    metadata: JSON = {
        "schema": schema_to_json(schema),
        "schema-id": schema.schema_id,
        "partition-spec": pt.fields_to_json(spec, version),
        "partition-spec-id": spec.spec_id,
        "format-version": version,
        "iceberg.schema": schema_to_json(Schema(*entry.fields)),
    }
    if allows(version, Feature.DELETE_FILES):
        metadata["content"] = "data" if content is ManifestContent.DATA else "deletes"
    return metadata


ALL_COLUMNS = frozenset((*ENTRY_COLUMNS, *FILE_COLUMNS))
ALWAYS = frozenset((*ENTRY_COLUMNS, "content", "record_count", "first_row_id"))
"""What is decoded in any case: inheritance needs it."""
BOUNDS = frozenset(metric for metric in Metric if metric.is_bound)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns by name, the partition tuple, and metrics of some fields (of all if `field_ids` is None)."""

    columns: frozenset[str]
    partition: bool
    metrics: frozenset[Metric]
    field_ids: tuple[int, ...] | None

    def __post_init__(self) -> None:
        unknown = self.columns - ALL_COLUMNS
        if unknown:
            known = ", ".join(sorted(ALL_COLUMNS))
            raise errors.InvalidInputError(
                f"manifests have no column {', '.join(sorted(unknown))}; columns are {known}"
            )


EVERYTHING = Wanted(ALL_COLUMNS, True, frozenset(Metric), None)
"""All that a manifest says."""

WITHOUT_METRICS = Wanted(ALL_COLUMNS, True, frozenset(), ())
"""All but the statistics of columns."""


def wanted(
    *columns: str, partition: bool = True, field_ids: Iterable[int] = (), metrics: Iterable[Metric] = Metric
) -> Wanted:
    """These columns and those that inheritance needs, with metrics of these fields."""
    ids = tuple(sorted(set(field_ids)))
    return Wanted(ALWAYS | frozenset(columns), partition, frozenset(metrics) if ids else frozenset(), ids)


def choose(wanted: Wanted) -> TakeFields:
    """What to take from the rows of a manifest."""
    columns, field_ids = wanted.columns | ALWAYS, wanted.field_ids
    file: list[tuple[int, str, Choice]] = []
    for name, field_id in FILE_COLUMNS.items():
        if name in columns:
            key = (name, 0)
            file.append((field_id, name, TakeList(key) if name in LIST_COLUMNS else Take(key)))
    if wanted.partition:
        file.append((PARTITION_ID, PARTITION_ROLE, TakeEach(PARTITION_ROLE)))
    if field_ids is None or field_ids:
        for metric in sorted(wanted.metrics & METRIC_IDS.keys(), key=attrgetter("value")):
            role = metric.value
            taken: Choice = TakePairs((role, 0)) if field_ids is None else TakeSpread(role, field_ids)
            file.append((METRIC_IDS[metric], role, taken))
        if wanted.metrics - {Metric.COLUMN_SIZES}:
            only = None if field_ids is None else frozenset(map(stats_base_id, field_ids)) - {-1}
            file.append((CONTENT_STATS_ID, CONTENT_STATS_ROLE, TakeEach(CONTENT_STATS_ROLE, only)))
    entry: list[tuple[int, str, Choice]] = [
        (field_id, name, Take((name, 0))) for name, field_id in ENTRY_COLUMNS.items() if name in columns
    ]
    return TakeFields((*entry, (DATA_FILE_ID, "data_file", TakeFields(tuple(file)))))


_FIRST_STATS_ID = 10_000
_STATS_IDS_PER_FIELD = 200
_STATS_END = 200_000_000
_LINEAGE_STATS = {2147483539: 9_000, 2147483540: 9_200}


def stats_base_id(field_id: int) -> int:
    """The id of a column's struct in `content_stats`, or -1 if it can have none (spec: Content Stats)."""
    if field_id in _LINEAGE_STATS:
        return _LINEAGE_STATS[field_id]
    base = _FIRST_STATS_ID + _STATS_IDS_PER_FIELD * field_id
    return base if field_id >= 0 and base < _STATS_END else -1


def stats_field_of(stats_id: int) -> tuple[int, int] | None:
    """The column and the offset of a member that an id in `content_stats` stands for."""
    for field_id, base in _LINEAGE_STATS.items():
        if base <= stats_id < base + _STATS_IDS_PER_FIELD:
            return field_id, stats_id - base
    if _FIRST_STATS_ID <= stats_id < _STATS_END:
        return divmod(stats_id - _FIRST_STATS_ID, _STATS_IDS_PER_FIELD)
    return None
