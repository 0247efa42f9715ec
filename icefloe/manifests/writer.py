"""Writing manifests: entries in columns to Avro files of a format version, rolled at a target size."""

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import (
    SYNC_SIZE,
    avro_record,
    codec_named,
    container_block,
    container_header,
    deflate,
    encode_rows,
    zigzag,
)
from icefloe.errors import InvalidInputError
from icefloe.manifests.checks import check_entries
from icefloe.manifests.columns import ManifestColumns, columns_of
from icefloe.manifests.content_stats_codec import content_stats_type, stats_columns
from icefloe.manifests.entry_codec import (
    BLOCK_SIZE_ID,
    CONTENT_STATS_ID,
    DEFAULT_BLOCK_SIZE,
    ENTRY_COLUMNS,
    ENTRY_NAME,
    FILE_COLUMNS,
    METRIC_IDS,
    Stored,
    entry_type,
    manifest_metadata,
)
from icefloe.manifests.paths import relativize_paths
from icefloe.manifests.summaries import count_entries, min_sequence_number, summarize_partitions
from icefloe.manifests.values import (
    UNASSIGNED_SEQUENCE_NUMBER,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    Metric,
)
from icefloe.partitioning import PartitionSpec, partition_type
from icefloe.schema import Schema, StructType
from icefloe.versions import Feature, allows, check_version, require

DEFAULT_TARGET_SIZE = 8 << 20
"""What `commit.manifest.target-size-bytes` is when a table does not say."""

_MANY = 4096
"""From this number of entries on, blocks are compressed by several threads."""
_MOST_WORKERS = 4

Write = Callable[[str, bytes], object]
"""Puts bytes at a location."""


class StatsForm(Enum):
    """How metrics are stored: maps by field id, which every reader knows, or v4's typed `content_stats`."""

    MAPS = "maps"
    CONTENT_STATS = "content stats"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class ManifestFormat:
    """What all manifests of one write share.

    `stats` is None for the version's own form: content stats where there are some, maps before. The Java library reads
    maps only, so tables that it shall read need MAPS or BOTH in v4. Paths under `table_location` are stored relative to
    it where the version knows relative paths; leave it out to store them whole.
    """

    version: int
    schema: Schema
    spec: PartitionSpec
    snapshot_id: int
    content: ManifestContent = ManifestContent.DATA
    codec: str = "gzip"
    level: int | None = None
    stats: StatsForm | None = None
    table_location: str | None = None
    older_schemas: tuple[Schema, ...] = ()

    def __post_init__(self) -> None:
        check_version(self.version)
        codec_named(self.codec)
        if self.stats is not None and self.stats is not StatsForm.MAPS:
            require(self.version, Feature.CONTENT_STATS, f"a manifest with metrics as {self.stats.value}")

    @property
    def stats_form(self) -> StatsForm:
        """The form that is written."""
        if self.stats is not None:
            return self.stats
        return StatsForm.CONTENT_STATS if allows(self.version, Feature.CONTENT_STATS) else StatsForm.MAPS

    @property
    def partition_type(self) -> StructType:
        """The type of the partition tuple."""
        return partition_type(self.spec, self.schema, *self.older_schemas)


Entries = ManifestColumns | Iterable[ManifestEntry]


def write_manifest(entries: Entries, form: ManifestFormat, location: str, write: Write) -> ManifestFile:
    """One manifest with all the entries, whatever its size."""
    found = write_manifests(entries, form, iter([location]), write, target_size=None)
    return found[0]


def write_manifests(
    entries: Entries,
    form: ManifestFormat,
    locations: Iterator[str],
    write: Write,
    *,
    target_size: int | None = DEFAULT_TARGET_SIZE,
    workers: int | None = None,
) -> list[ManifestFile]:
    """As many manifests as the entries need at that size; names come from `locations`. No entries make no manifest.

    With several workers, blocks are compressed and files written side by side; None leaves their number to the machine.
    """
    columns = entries if isinstance(entries, ManifestColumns) else _from_values(entries, form)
    columns = _prepared(columns, form)
    if not len(columns):
        raise InvalidInputError("a manifest needs at least one entry")
    stored = _stored(columns, form)
    struct = entry_type(form.version, columns.partition_type, stored)
    if workers is None:
        # Most commits write one small manifest: a thread would cost more than it saves.
        workers = min(_MOST_WORKERS, os.cpu_count() or 1) if len(columns) >= _MANY else 1
    if workers <= 1:
        return list(_written(_files(columns, struct, stored, form, target_size, map), columns, form, locations, write))
    with ThreadPoolExecutor(workers, thread_name_prefix="icefloe-manifest") as pool:
        waiting: list[Future[object]] = []
        files = _files(columns, struct, stored, form, target_size, partial(_side_by_side, pool, 8 * workers))
        found = list(_written(files, columns, form, locations, lambda *file: waiting.append(pool.submit(write, *file))))
        for each in waiting:
            each.result()
        return found


def _side_by_side(
    pool: ThreadPoolExecutor, most: int, work: Callable[[Any], tuple[int, bytes]], items: Iterable[Any]
) -> Iterator[tuple[int, bytes]]:
    """The results in the order of the items; only so many are under way, as each holds its rows in memory."""
    waiting: deque[Future[tuple[int, bytes]]] = deque()
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _written(
    files: Iterator[tuple[int, int, bytes]],
    columns: ManifestColumns,
    form: ManifestFormat,
    locations: Iterator[str],
    write: Write,
) -> Iterator[ManifestFile]:
    for start, count, data in files:
        location = next(locations)
        write(location, data)
        yield _describe(columns.slice(start, count), form, location, len(data))


def _from_values(entries: Iterable[ManifestEntry], form: ManifestFormat) -> ManifestColumns:
    return columns_of(entries, form.partition_type, form.spec.spec_id)


def _prepared(columns: ManifestColumns, form: ManifestFormat) -> ManifestColumns:
    """The entries as they are stored: checked, with our snapshot id, and with paths as the version has them."""
    if columns.spec_id != form.spec.spec_id:
        raise InvalidInputError(
            f"entries of spec {columns.spec_id} cannot go into a manifest of spec {form.spec.spec_id}; write one for each"
        )
    wanted = [(field.field_id, field.field_type) for field in form.partition_type.fields]
    found = [(field.field_id, field.field_type) for field in columns.partition_type.fields]
    if [field_id for field_id, _ in wanted] != [field_id for field_id, _ in found]:
        raise InvalidInputError(f"entries have partition fields {found}; the spec has {wanted}")
    check_entries(columns, form.version, form.content, form.snapshot_id)
    snapshots = columns.column("snapshot_id")
    is_ours = pc.not_equal(columns.column("status"), int(EntryStatus.EXISTING))
    own = pa.scalar(form.snapshot_id, pa.int64())
    changed = {
        "snapshot_id": pc.if_else(is_ours, own, snapshots),
        # The names of formats are in capitals in every manifest that the Java library and PyIceberg write.
        "file_format": pc.utf8_upper(columns.column("file_format")),
    }
    columns = columns.with_columns(**changed)
    if form.table_location is not None and allows(form.version, Feature.RELATIVE_PATHS):
        columns = relativize_paths(columns, form.table_location)
    return columns


def _stored(columns: ManifestColumns, form: ManifestFormat) -> Stored:
    if form.stats_form is StatsForm.MAPS:
        return Stored(True)
    with_stats = {field_id for metric in Metric for field_id in columns.metrics.field_ids(metric)}
    stats = content_stats_type(form.schema, with_stats)
    return Stored(form.stats_form is StatsForm.BOTH, stats if stats.fields else None)


def _lookup(columns: ManifestColumns, stored: Stored, form: ManifestFormat) -> dict[int, Any]:
    """Every column by its field id, as the encoder wants them."""
    found = {
        field_id: columns.columns[name]
        for name, field_id in (ENTRY_COLUMNS | FILE_COLUMNS).items()
        if name in columns.columns
    }
    found.update(columns.partition)
    for metric in Metric:
        if stored.maps or metric is Metric.COLUMN_SIZES:
            found[METRIC_IDS[metric]] = columns.metrics.as_map(metric)
    if stored.content_stats is not None:
        found.update(_stats_lookup(columns, stored.content_stats, form.schema))
    found[BLOCK_SIZE_ID] = zigzag(DEFAULT_BLOCK_SIZE)
    return found


def _stats_lookup(columns: ManifestColumns, stats: StructType, schema: Schema) -> dict[int, Any]:
    """Columns of content stats, with marks for the structs that hold something."""
    members = stats_columns(columns.metrics, stats, schema)
    found: dict[int, Any] = dict(members)
    every = None
    for struct in stats.fields:
        assert isinstance(struct.field_type, StructType)
        mark = None
        for member in struct.field_type.fields:
            column = members[member.field_id]
            known = column if isinstance(member.field_type, StructType) else column.is_valid()
            mark = known if mark is None else pc.or_(mark, known)
        found[struct.field_id] = mark
        every = mark if every is None else pc.or_(every, mark)
    found[CONTENT_STATS_ID] = every
    return found


def _files(
    columns: ManifestColumns,
    struct: StructType,
    stored: Stored,
    form: ManifestFormat,
    target_size: int | None,
    apply: Callable[..., Iterator[tuple[int, bytes]]],
) -> Iterator[tuple[int, int, bytes]]:
    """(first entry, entries, bytes) of each file; `apply` is `map`, or one with several threads."""
    codec = codec_named(form.codec)
    schema, texts = _header(form.version, _Same(form.schema), form.spec, form.content, struct)

    def pack(block: tuple[int, memoryview]) -> tuple[int, bytes]:
        return block[0], deflate(codec, block[1], form.level)

    blocks = encode_rows(struct, _lookup(columns, stored, form), len(columns))
    packed = apply(pack, blocks)
    start = done = 0
    sync, size = b"", 0
    parts: list[bytes] = []
    for count, data in packed:
        if not parts:
            sync = os.urandom(SYNC_SIZE)
            parts = [container_header(schema, texts, codec, sync)]
            size = len(parts[0])
        parts.append(container_block(count, data, sync))
        size += len(parts[-1])
        done += count
        if target_size is not None and size >= target_size:
            yield start, done - start, b"".join(parts)
            parts, start = [], done
    if parts:
        yield start, done - start, b"".join(parts)


class _Same:
    """A schema that equals only itself: equal ones may differ in how their defaults are written, like 0.0 and -0.0."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.schema is other.schema

    def __hash__(self) -> int:
        return id(self.schema)


@lru_cache(maxsize=32)
def _header(
    version: int, same: _Same, spec: PartitionSpec, content: ManifestContent, struct: StructType
) -> tuple[Any, dict[str, str]]:
    """The Avro schema of a manifest and the texts of its header, which are the same for most commits to a table."""
    metadata = manifest_metadata(version, same.schema, spec, content, struct)
    return avro_record(struct.fields, ENTRY_NAME), {key: _as_text(value) for key, value in metadata.items()}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _describe(columns: ManifestColumns, form: ManifestFormat, location: str, length: int) -> ManifestFile:
    has_numbers = allows(form.version, Feature.SEQUENCE_NUMBERS)
    return ManifestFile(
        manifest_path=location,
        manifest_length=length,
        partition_spec_id=form.spec.spec_id,
        added_snapshot_id=form.snapshot_id,
        content=form.content,
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER if has_numbers else 0,
        min_sequence_number=min_sequence_number(columns) if has_numbers else 0,
        partitions=summarize_partitions(columns),
        **count_entries(columns),
    )
