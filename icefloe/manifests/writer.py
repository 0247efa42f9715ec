"""Writing manifests: entries in columns to Avro files of a format version, rolled at a target size."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache, partial, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import avro, errors, parallel, properties as props
from icefloe.encryption import FileKey, encode_key_metadata
from icefloe.manifests import entry_codec as ec, values as mf
from icefloe.manifests.checks import check_entries
from icefloe.manifests.columns import ManifestColumns, columns_of
from icefloe.manifests.content_stats_codec import content_stats_type, stats_columns
from icefloe.manifests.sealing import sealed
from icefloe.manifests.summaries import count_entries, min_sequence_number, summarize_partitions
from icefloe.partitioning import PartitionSpec, partition_type
from icefloe.schema import JSON, Schema, StructType
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
    content: mf.ManifestContent = mf.ManifestContent.DATA
    codec: str = "gzip"
    level: int | None = None
    stats: StatsForm | None = None
    table_location: str | None = None
    older_schemas: tuple[Schema, ...] = ()
    container: str = props.AVRO
    """`avro`, or `parquet`, which is not in the spec."""
    key_length: int | None = None
    """How long the keys of manifests are; None if they are not encrypted."""

    def __post_init__(self) -> None:
        check_version(self.version)
        avro.codec_named(self.codec)
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


Entries = ManifestColumns | Iterable[mf.ManifestEntry]


def write_manifest(entries: Entries, form: ManifestFormat, location: str, write: Write) -> mf.ManifestFile:
    """One manifest with all the entries, whatever its size."""
    return write_manifests(entries, form, iter([location]), write, target_size=None)[0]


def write_manifests(
    entries: Entries,
    form: ManifestFormat,
    locations: Iterator[str],
    write: Write,
    *,
    target_size: int | None = DEFAULT_TARGET_SIZE,
    workers: int | None = None,
) -> list[mf.ManifestFile]:
    """As many manifests as the entries need at that size; names come from `locations`. No entries make no manifest.

    Several workers compress blocks side by side; None leaves their number to the machine.
    """
    if not isinstance(entries, ManifestColumns):
        entries = columns_of(entries, form.partition_type, form.spec.spec_id)
    columns = _prepared(entries, form)
    if not len(columns):
        raise errors.InvalidInputError("a manifest needs at least one entry")
    stored = _stored(columns, form)
    struct = ec.entry_type(form.version, columns.partition_type, stored)
    if workers is None:
        # Most commits write one small manifest: a thread would cost more than it saves.
        workers = min(_MOST_WORKERS, os.cpu_count() or 1) if len(columns) >= _MANY else 1
    manifests = []
    for start, count, data, key in _files(columns, struct, stored, form, target_size, workers):
        location = next(locations)
        write(location, data)
        described = _describe(columns.slice(start, count), form, location, len(data))
        manifests.append(described if key is None else replace(described, key_metadata=encode_key_metadata(key)))
    return manifests


def _prepared(columns: ManifestColumns, form: ManifestFormat) -> ManifestColumns:
    """The entries as they are stored: checked, with our snapshot id, and with paths as the version has them."""
    if columns.spec_id != form.spec.spec_id:
        raise errors.InvalidInputError(
            f"entries of spec {columns.spec_id} cannot go into a manifest of spec {form.spec.spec_id}; write one for each"
        )
    expected = [(field.field_id, field.field_type) for field in form.partition_type.fields]
    actual = [(field.field_id, field.field_type) for field in columns.partition_type.fields]
    if [field_id for field_id, _ in expected] != [field_id for field_id, _ in actual]:
        raise errors.InvalidInputError(f"entries have partition fields {actual}; the spec has {expected}")
    check_entries(columns, form.version, form.content, form.snapshot_id)
    is_ours = pc.not_equal(columns.column("status"), int(mf.EntryStatus.EXISTING))
    own = pa.scalar(form.snapshot_id, pa.int64())
    columns = columns.with_columns(
        snapshot_id=pc.if_else(is_ours, own, columns.column("snapshot_id")),
        # The names of formats are in capitals in every manifest that the Java library and PyIceberg write.
        file_format=pc.utf8_upper(columns.column("file_format")),
    )
    if form.table_location is not None and allows(form.version, Feature.RELATIVE_PATHS):
        columns = columns.relativized(form.table_location)
    return columns


def _stored(columns: ManifestColumns, form: ManifestFormat) -> ec.Stored:
    if form.stats_form is StatsForm.MAPS:
        return ec.Stored(True)
    stats = content_stats_type(form.schema, columns.metrics)
    return ec.Stored(form.stats_form is StatsForm.BOTH, stats if stats.fields else None)


def entry_lookup(columns: ManifestColumns, stored: ec.Stored, schema: Schema) -> dict[int, Any]:
    """Every column by its field id, as the encoder wants them."""
    lookup = {
        field_id: columns.columns[name]
        for name, field_id in (ec.ENTRY_COLUMNS | ec.FILE_COLUMNS).items()
        if name in columns.columns
    }
    lookup.update(columns.partition)
    for metric in mf.MAP_METRICS:
        if stored.maps or metric is mf.Metric.COLUMN_SIZES:
            lookup[ec.METRIC_IDS[metric]] = columns.metrics.as_map(metric)
    if stored.content_stats is not None:
        lookup.update(_stats_lookup(columns, stored.content_stats, schema))
    lookup[ec.BLOCK_SIZE_ID] = avro.zigzag(ec.DEFAULT_BLOCK_SIZE)
    return lookup


def _stats_lookup(columns: ManifestColumns, stats: StructType, schema: Schema) -> dict[int, pa.Array]:
    """Columns of content stats, with marks for the structs that hold something."""
    members = stats_columns(columns.metrics, stats, schema)
    marks = {}
    for struct in stats.fields:
        assert isinstance(struct.field_type, StructType)
        marks[struct.field_id] = reduce(
            pc.or_,
            (
                members[member.field_id]
                if isinstance(member.field_type, StructType)
                else members[member.field_id].is_valid()
                for member in struct.field_type.fields
            ),
        )
    return {**members, **marks, ec.CONTENT_STATS_ID: reduce(pc.or_, marks.values())}


def _files(
    columns: ManifestColumns,
    struct: StructType,
    stored: ec.Stored,
    form: ManifestFormat,
    target_size: int | None,
    workers: int,
) -> Iterator[tuple[int, int, bytes, FileKey | None]]:
    """(first entry, entries, bytes as they are stored, key) of each file."""
    if form.container == props.PARQUET:
        # Few tables have such manifests, and the library takes a while to load.
        from icefloe.manifests.parquet_writer import parquet_files

        texts = _header(form.version, _Same(form.schema), form.spec, form.content, struct)[1]
        lookup = entry_lookup(columns, stored, form.schema)
        with_form = partial(parquet_files, codec=form.codec, level=form.level, key_length=form.key_length)
        yield from with_form(struct, lookup, len(columns), texts, target_size=target_size)
        return
    codec = avro.codec_named(form.codec)
    schema, texts = _header(form.version, _Same(form.schema), form.spec, form.content, struct)

    def pack(block: tuple[int, memoryview]) -> tuple[int, bytes]:
        return block[0], avro.deflate(codec, block[1], form.level)

    blocks = avro.encode_rows(struct, entry_lookup(columns, stored, form.schema), len(columns))
    start = done = 0
    sync, size = b"", 0
    parts: list[bytes] = []
    for count, data in parallel.in_order(pack, blocks, workers, "icefloe-manifest"):
        if not parts:
            sync = os.urandom(avro.SYNC_SIZE)
            parts = [avro.container_header(schema, texts, codec, sync)]
            size = len(parts[0])
        parts.append(avro.container_block(count, data, sync))
        size += len(parts[-1])
        done += count
        if target_size is not None and size >= target_size:
            yield start, done - start, *sealed(b"".join(parts), form.key_length)
            parts, start = [], done
    if parts:
        yield start, done - start, *sealed(b"".join(parts), form.key_length)


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
    version: int, same: _Same, spec: PartitionSpec, content: mf.ManifestContent, struct: StructType
) -> tuple[JSON, dict[str, str]]:
    """The Avro schema of a manifest and the texts of its header, which are the same for most commits to a table."""
    metadata = ec.manifest_metadata(version, same.schema, spec, content, struct)
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for key, value in metadata.items()
    }
    return avro.avro_record(struct.fields, ec.ENTRY_NAME), texts


def _describe(columns: ManifestColumns, form: ManifestFormat, location: str, length: int) -> mf.ManifestFile:
    has_numbers = allows(form.version, Feature.SEQUENCE_NUMBERS)
    return mf.ManifestFile(
        manifest_path=location,
        manifest_length=length,
        partition_spec_id=form.spec.spec_id,
        added_snapshot_id=form.snapshot_id,
        content=form.content,
        sequence_number=mf.UNASSIGNED_SEQUENCE_NUMBER if has_numbers else 0,
        min_sequence_number=min_sequence_number(columns) if has_numbers else 0,
        partitions=summarize_partitions(columns),
        **count_entries(columns),
    )
