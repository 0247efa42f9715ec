"""Root manifests and content entries of the proposal #16025 for v4, as of 2026-08-10: read only, for tables with the switch.

A snapshot has one root manifest in Parquet. Its entries are data files, equality delete files, and leaf manifests; entries of one
manifest are of any spec, data files have their deletion vectors with them, and a leaf its entries that are not live any more. Here
each becomes manifests as other versions have them: one for each spec, and one for the vectors of each spec.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icefloe import errors, metadata as md
from icefloe.formats.mumbling import decode_mumbling
from icefloe.manifests import entry_codec as ec
from icefloe.manifests.arrow_values import partition_columns
from icefloe.manifests.columns import ManifestColumns, decoded_columns
from icefloe.manifests.inheritance import inherit
from icefloe.manifests.metrics import MetricColumns
from icefloe.manifests.parquet_codec import check_room, children_of, field_id_of, stats_of, type_of, whole_column
from icefloe.manifests.reader import Read, read_manifest
from icefloe.manifests.values import UNKNOWN_SIZE, EntryStatus, FileContent, ManifestContent, ManifestFile
from icefloe.schema import IcebergType, StructType

_TRACKING, _MANIFEST_INFO, _VECTOR, _COLUMN_FILES, _SPEC, _VERSION = 147, 150, 148, 158, 141, 157
_VECTOR_LOCATION, _VECTOR_OFFSET, _VECTOR_SIZE, _VECTOR_ROWS, _VECTOR_KEY = 155, 144, 145, 156, 149
_MIN_SEQUENCE_NUMBER, _DEAD = 516, 522
_DATA_MANIFEST, _DELETE_MANIFEST = 3, 4
_MODIFIED = 4
_STATUSES = pa.array(
    [int(status) for status in (EntryStatus.EXISTING, EntryStatus.ADDED, EntryStatus.DELETED, EntryStatus.DELETED, EntryStatus.EXISTING)],
    pa.int32(),
)  # fmt: skip
"""EXISTING, ADDED, DELETED, REPLACED (which is not live) and MODIFIED (which is) as other versions have them."""


@dataclass(frozen=True, slots=True)
class ContentManifest(ManifestFile):
    """The files of one spec in a manifest of content entries, or their deletion vectors; or a leaf of an older version."""

    is_older: bool = False
    is_root: bool = False
    is_of_vectors: bool = False
    dead: bytes | None = field(default=None, repr=False)
    """Which entries are not live any more, as a Mumbling bitmap."""


def read_root_manifest(
    location: str, read: Read, metadata: md.TableMetadata, snapshot: md.Snapshot, limits: md.Limits
) -> tuple[ManifestFile, ...]:
    """The manifests that a root manifest stands for."""
    entries = _Entries.read(location, read, limits)
    manifests = list(_of_specs(entries, _described(entries, snapshot)))
    kinds = entries.column(134).to_pylist()
    for row in (row for row, kind in enumerate(kinds) if kind in (_DATA_MANIFEST, _DELETE_MANIFEST)):
        if entries.statuses[row].as_py() == int(EntryStatus.DELETED):
            continue
        leaf = _leaf(entries, row, kinds[row], metadata)
        if leaf.is_older:
            manifests.append(leaf)
        else:
            manifests += _of_specs(_Entries.read(leaf.manifest_path, read, limits), leaf)
    return tuple(manifests)


def read_content_manifest(
    manifest: ContentManifest,
    read: Read,
    wanted: ec.Wanted,
    partition_type: StructType | None,
    table_location: str | None,
    limits: md.Limits,
) -> ManifestColumns:
    """The entries of a manifest that `read_root_manifest` gave, as other versions have them."""
    if manifest.is_older:
        columns = read_manifest(
            manifest, read, wanted, partition_type=partition_type, table_location=table_location, limits=limits
        )
        return columns.with_columns(status=_with_dead(columns.column("status"), manifest))
    entries = _Entries.read(manifest.manifest_path, read, limits)
    chosen = entries.chosen(manifest.partition_spec_id, manifest.content, manifest.is_of_vectors)
    columns = entries.columns(wanted, partition_type, manifest.partition_spec_id)
    columns = inherit(columns, manifest, committed=not manifest.is_root)
    columns = columns.with_columns(status=_with_dead(columns.column("status"), manifest))
    if manifest.is_of_vectors:
        columns = _vectors(columns, entries)
    return columns.filter(chosen).resolved(table_location)


@dataclass(frozen=True, slots=True)
class _Entries:
    """The content entries of one file, in columns by field id; those of their structs among them."""

    location: str
    size: int
    rows: int
    by_id: dict[int, pa.Array]
    types: dict[int, IcebergType]
    header: dict[str, str]

    @classmethod
    def read(cls, location: str, read: Read, limits: md.Limits) -> "_Entries":
        data = read(location)
        try:
            file = pq.ParquetFile(pa.BufferReader(data))
            check_room(file.metadata, len(data), location, limits)
            table = file.read(use_threads=False).combine_chunks()
            entries = cls._of(table, location, len(data))
        except (pa.ArrowException, OSError, MemoryError, LookupError, TypeError, ValueError) as error:
            raise errors.CorruptFileError(location, f"it cannot be read as a manifest of #16025: {error}") from error
        entries.check()
        return entries

    @classmethod
    def _of(cls, table: pa.Table, location: str, size: int) -> "_Entries":
        by_id: dict[int, pa.Array] = {}
        kinds: dict[int, IcebergType] = {}
        for top, column in zip(table.schema, map(whole_column, table.columns), strict=True):
            field_id = field_id_of(top)
            if field_id is None:
                continue
            by_id[field_id] = column
            if field_id in (_TRACKING, _MANIFEST_INFO, _VECTOR, ec.PARTITION_ID):
                for child_id, child, values in children_of(column):
                    # Offset and size of a vector have the ids that files of other versions have.
                    by_id[child_id], kinds[child_id] = values, type_of(child)
        header = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        return cls(location, size, len(table), by_id, kinds, header)

    def column(self, field_id: int, kind: pa.DataType | None = None) -> pa.Array:
        column = self.by_id.get(field_id)
        return pa.nulls(self.rows, kind or pa.int64()) if column is None else column

    @property
    def statuses(self) -> pa.Array:
        return _STATUSES.take(self.column(0).cast(pa.int64()))

    def check(self) -> None:
        """Fail for what is no content entry, or has what only newer readers know."""
        for name, field_id in (("content_type", 134), ("location", 100), ("tracking", _TRACKING), ("status", 0), ("record_count", 103)):  # fmt: skip
            if field_id not in self.by_id or self.by_id[field_id].null_count:
                raise errors.CorruptFileError(self.location, f"a content entry of #16025 has no {name}")
        for name, field_id, most in (("content_type", 134, _DELETE_MANIFEST), ("status", 0, _MODIFIED)):
            unknown = [value for value in pc.unique(self.by_id[field_id]).to_pylist() if not 0 <= value <= most]
            if unknown or (field_id == 134 and pc.any(pc.equal(self.by_id[134], 1), min_count=0).as_py()):
                raise errors.CorruptFileError(
                    self.location, f"a content entry has the {name} {unknown or 1}, which is none"
                )
        if self.column(_COLUMN_FILES).null_count != self.rows:
            raise errors.UnsupportedVersionError(
                f"{self.location}: a file has column files, of the proposal #16425, which are not read here"
            )

    def chosen(self, spec_id: int, content: ManifestContent, of_vectors: bool) -> pa.Array:
        """The entries of a manifest."""
        wanted = FileContent.DATA if content is ManifestContent.DATA or of_vectors else FileContent.EQUALITY_DELETES
        is_kind = pc.equal(self.column(134), int(wanted))
        is_of_spec = pc.equal(pc.fill_null(self.column(_SPEC), 0), spec_id)
        chosen = pc.and_(is_kind, is_of_spec)
        return pc.and_(chosen, self.column(_VECTOR).is_valid()) if of_vectors else chosen

    def columns(self, wanted: ec.Wanted, partition_type: StructType | None, spec_id: int) -> ManifestColumns:
        """All entries in the columns of other versions; what is no file among them is left to whoever chooses."""
        own = {"referenced_data_file", "content_offset", "content_size_in_bytes"}
        names = {name: field_id for name, field_id in (ec.ENTRY_COLUMNS | ec.FILE_COLUMNS).items() if name not in own}
        columns = {name: self.by_id[field_id] for name, field_id in names.items() if field_id in self.by_id}
        content = pc.if_else(pc.less(columns["content"], _DATA_MANIFEST), columns["content"], 0)
        columns |= {"status": self.statuses, "content": content}
        partition = self.by_id.get(ec.PARTITION_ID)
        stored = (
            {}
            if partition is None
            else {child: (values, self.types[child]) for child, _, values in children_of(partition)}
        )
        struct, values = partition_columns(stored, partition_type, self.header)
        stats = self.by_id.get(ec.CONTENT_STATS_ID)
        spread = {} if stats is None or not wanted.metrics else stats_of(stats, wanted)
        named = decoded_columns(columns, self.rows, self.location)
        metrics = MetricColumns(self.rows, {}, spread)
        return ManifestColumns(self.rows, named, struct, values, metrics, spec_id, self.location, self.header)


def _of_specs(entries: _Entries, manifest: ContentManifest) -> Iterator[ContentManifest]:
    """A manifest for each spec and kind of files that the entries have."""
    specs = sorted(set(pc.unique(pc.fill_null(entries.column(_SPEC), 0)).to_pylist()))
    kinds = ((ManifestContent.DATA, False), (ManifestContent.DELETES, False), (ManifestContent.DELETES, True))
    for spec_id, (content, of_vectors) in product(specs, kinds):
        if pc.any(entries.chosen(spec_id, content, of_vectors), min_count=0).as_py():
            first_row_id = manifest.first_row_id if content is ManifestContent.DATA else None
            yield _changed(manifest, spec_id, content, of_vectors, first_row_id)


def _changed(
    manifest: ContentManifest, spec_id: int, content: ManifestContent, of_vectors: bool, first_row_id: int | None
) -> ContentManifest:
    return ContentManifest(
        manifest.manifest_path,
        manifest.manifest_length,
        spec_id,
        manifest.added_snapshot_id,
        content,
        manifest.sequence_number,
        manifest.min_sequence_number,
        first_row_id=first_row_id,
        is_root=manifest.is_root,
        is_of_vectors=of_vectors,
        dead=manifest.dead,
    )


def _described(entries: _Entries, snapshot: md.Snapshot) -> ContentManifest:
    return ContentManifest(
        entries.location, entries.size, 0, snapshot.snapshot_id, sequence_number=snapshot.sequence_number, is_root=True
    )


def _leaf(entries: _Entries, row: int, kind: int, metadata: md.TableMetadata) -> ContentManifest:
    def value(field_id: int) -> int | None:
        column = entries.by_id.get(field_id)
        return None if column is None else column[row].as_py()

    location, dead = entries.column(100)[row].as_py(), entries.by_id.get(_DEAD)
    number = value(3)
    if number is None or value(1) is None:
        raise errors.CorruptFileError(entries.location, f"the manifest {location!r} has no snapshot or sequence number")
    if value(131) is not None:
        raise errors.UnsupportedVersionError(f"{entries.location}: encrypted manifests of #16025 are not read here")
    return ContentManifest(
        metadata.resolve(location),
        value(104) or 0,
        value(_SPEC) or 0,
        value(1) or 0,
        ManifestContent.DATA if kind == _DATA_MANIFEST else ManifestContent.DELETES,
        number,
        value(_MIN_SEQUENCE_NUMBER) or 0,
        first_row_id=value(142),
        is_older=value(_VERSION) == 0,
        dead=None if dead is None else dead[row].as_py(),
    )


def _with_dead(statuses: pa.Array, manifest: ContentManifest) -> pa.Array:
    """The statuses, with DELETED for the entries that the root says are not live any more."""
    if manifest.dead is None:
        return statuses
    try:
        positions = decode_mumbling(manifest.dead)
    except errors.InvalidValueError as error:
        raise errors.CorruptFileError(manifest.manifest_path, f"its vector in the root manifest: {error}") from None
    if len(positions) and positions[-1] >= len(statuses):
        raise errors.CorruptFileError(
            manifest.manifest_path, f"its vector names entry {positions[-1]} of {len(statuses)} in the root manifest"
        )
    changed = statuses.to_numpy().copy()
    changed[np.asarray(positions)] = int(EntryStatus.DELETED)
    return pa.array(changed, statuses.type)


def _vectors(columns: ManifestColumns, entries: _Entries) -> ManifestColumns:
    """The deletion vectors of data files, as the files that other versions have for them."""
    rows = len(columns)
    return columns.with_columns(
        content=pa.array(np.full(rows, int(FileContent.POSITION_DELETES), np.int32)),
        referenced_data_file=columns.column("file_path"),
        file_path=entries.column(_VECTOR_LOCATION, pa.string()),
        file_format=pa.repeat(pa.scalar("puffin"), rows),
        # The proposal does not say how long the file is that a vector is in.
        file_size_in_bytes=pa.repeat(pa.scalar(UNKNOWN_SIZE, pa.int64()), rows),
        record_count=pc.fill_null(entries.column(_VECTOR_ROWS).cast(pa.int64()), 0),
        content_offset=entries.column(_VECTOR_OFFSET).cast(pa.int64()),
        content_size_in_bytes=entries.column(_VECTOR_SIZE).cast(pa.int64()),
        key_metadata=entries.column(_VECTOR_KEY, pa.binary()),
        split_offsets=pa.nulls(rows, pa.list_(pa.int64())),
        first_row_id=pa.nulls(rows, pa.int64()),
        sort_order_id=pa.nulls(rows, pa.int32()),
    )
