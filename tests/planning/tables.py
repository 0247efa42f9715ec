"""Tables for planning: real metadata and manifests in memory, data files that exist only as rows of a model, and the naive scan."""

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from icefloe.expressions import Expression, bind, evaluate
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    read_manifest,
    write_manifest,
)
from icefloe.metadata import MAIN_BRANCH, apply_all, branch, new_table_metadata, updates as up
from icefloe.partitioning import UNPARTITIONED, PartitionField, PartitionSpec, partition_type
from icefloe.planning import FileScanTask
from icefloe.schema import Schema, encode_bound, reserved, truncate_lower, truncate_upper, types
from icefloe.storage import Storage
from icefloe.versions import Feature, allows
from tests.peers.tables import HandmadeTable

Row = Mapping[int, Any]
"""Values by field id; a struct is a tuple of pairs."""


@dataclass
class Model:
    """What the files hold."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    positions: dict[tuple[str, int | None], set[tuple[str, int]]] = field(default_factory=dict)
    """By path and content offset: which positions of which data files."""
    keys: dict[str, tuple[tuple[int, ...], list[tuple[Any, ...]]]] = field(default_factory=dict)
    """By path: key columns, and the rows to delete."""


class SyntheticTable(HandmadeTable):
    """A table in memory whose every step is spelled out: files of any spec, removals, evolution."""

    def __init__(self, schema: Schema, version: int, spec: PartitionSpec = UNPARTITIONED) -> None:
        self.storage = Storage()
        self.location = f"memory://planning/{uuid.uuid4()}"
        self.clock = 1_700_000_000_000
        self.metadata = new_table_metadata(
            schema,
            spec,
            location=self.location,
            format_version=version,
            uuid=uuid.uuid4(),
            timestamp_ms=self.clock,
        )
        self.manifests: tuple[ManifestFile, ...] = ()
        self.model = Model()
        self.states: dict[int, tuple[ManifestFile, ...]] = {}
        self._numbers = 0

    # -- evolution

    def evolve_schema(self, schema: Schema) -> None:
        self._apply(up.AddSchemaUpdate(schema), up.SetCurrentSchemaUpdate())

    def evolve_spec(self, spec: PartitionSpec) -> int:
        """Add a spec, whose field ids are those that the table has for such fields, or new ones; gives the spec's id."""
        known = [field for each in self.metadata.partition_specs for field in each.fields]
        fields, last = [], self.metadata.last_partition_id
        for place, wanted in enumerate(spec.fields):
            same = [each.field_id for each in known if each.same_values(wanted)]
            field_id = 1000 + place
            if allows(self.metadata.format_version, Feature.PARTITION_FIELD_IDS):
                last += not same
                field_id = same[0] if same else last
            fields.append(PartitionField(wanted.source_ids, field_id, wanted.transform, wanted.name))
        self._apply(up.AddPartitionSpecUpdate(PartitionSpec(*fields)), up.SetDefaultSpecUpdate())
        return self.metadata.default_spec_id

    def upgrade(self, version: int) -> None:
        self._apply(up.UpgradeFormatVersionUpdate(version))

    def _apply(self, *updates: Any) -> None:
        self.clock += 1000
        self.metadata = apply_all(self.metadata, updates, self.clock)

    # -- files

    def path(self, suffix: str = "parquet") -> str:
        self._numbers += 1
        return f"{self.location}/data/{self._numbers:05d}.{suffix}"

    def partition_of(self, row: Row, spec_id: int | None = None) -> tuple[Any, ...]:
        """The partition of a row, by the definition of each transform."""
        found = []
        for each in self.metadata.spec(spec_id).fields:
            kind = self.schema.fields_by_id[each.source_id].field_type
            found.append(each.transform.apply(value_at(row, self.schema, each.source_id), kind))
        return tuple(found)

    def data(
        self, rows: Sequence[Row], spec_id: int | None = None, metrics: Mapping[str, Any] | None = None, **more: Any
    ) -> DataFile:
        """A data file; all rows must be in one partition."""
        path = self.path()
        self.model.rows[path] = list(rows)
        spec = self.metadata.spec(spec_id)
        partition = self.partition_of(rows[0], spec.spec_id) if rows else (None,) * len(spec)
        given = metrics_of(rows, self.schema) if metrics is None else metrics
        return DataFile(
            path, "parquet", len(rows), 1000 + len(rows), spec_id=spec.spec_id, partition=partition, **given, **more
        )

    def positions(self, targets: Iterable[tuple[DataFile, int]], like: DataFile, scope: str = "partition") -> DataFile:
        """A position delete file in the partition of a data file."""
        path = self.path("pos.parquet")
        hits = {(file.file_path, position) for file, position in targets}
        self.model.positions[path, None] = hits
        paths = sorted(each for each, _ in hits)
        bounds: dict[str, Any] = {}
        if paths and scope != "reference":
            kind = reserved.DELETE_FILE_PATH.field_id
            bounds = {"lower_bounds": {kind: paths[0].encode()}, "upper_bounds": {kind: paths[-1].encode()}}
        if scope == "unbounded":
            bounds = {}
        return DataFile(
            path,
            "parquet",
            len(hits),
            100,
            FileContent.POSITION_DELETES,
            like.spec_id,
            like.partition,
            referenced_data_file=like.file_path if scope == "reference" else None,
            **bounds,
        )

    def vector(self, of: DataFile, positions: Iterable[int], **more: Any) -> DataFile:
        """A deletion vector."""
        path, offset = self.path("puffin"), 4
        hits = {(of.file_path, position) for position in positions}
        self.model.positions[path, offset] = hits
        return DataFile(
            path,
            "puffin",
            len(hits),
            300,
            FileContent.POSITION_DELETES,
            **{
                "spec_id": of.spec_id,
                "partition": of.partition,
                "referenced_data_file": of.file_path,
                "content_offset": offset,
                "content_size_in_bytes": 40,
                **more,
            },
        )

    def equality(
        self,
        field_ids: tuple[int, ...],
        keys: Sequence[tuple[Any, ...]],
        spec_id: int,
        partition: tuple[Any, ...] = (),
        with_metrics: bool = True,
    ) -> DataFile:
        """An equality delete file."""
        path = self.path("eq.parquet")
        self.model.keys[path] = (field_ids, list(keys))
        rows: list[Row] = [dict(zip(field_ids, key, strict=True)) for key in keys]
        kinds = {field_id: self._kind(field_id) for field_id in field_ids}
        given = flat_metrics(rows, kinds) if with_metrics else {}
        return DataFile(
            path,
            "parquet",
            len(keys),
            200,
            FileContent.EQUALITY_DELETES,
            spec_id,
            partition,
            equality_ids=field_ids,
            **given,
        )

    def _kind(self, field_id: int) -> types.IcebergType:
        return next(
            each.fields_by_id[field_id].field_type for each in self.metadata.schemas if field_id in each.fields_by_id
        )

    # -- commits

    def add(
        self,
        *added: DataFile,
        removed: Iterable[DataFile] = (),
        operation: str = "append",
        sequence_numbers: Mapping[str, int] | None = None,
        ref: str = MAIN_BRANCH,
        rewrite: bool = False,
        timestamp_ms: int | None = None,
    ) -> int:
        """A snapshot with files added and removed; `rewrite` writes all manifests anew. Gives the snapshot's id."""
        snapshot_id = uuid.uuid4().int >> 66
        gone = {(file.file_path, file.content_offset) for file in removed}
        kept: list[ManifestFile] = []
        for manifest in self.manifests:
            entries = [each for each in self.entries_of(manifest) if each.is_live]
            if rewrite or any(_name(each) in gone for each in entries):
                changed = [_removed(each) if _name(each) in gone else _existing(each) for each in entries]
                if changed:
                    kept.append(self._write(changed, manifest.content, manifest.partition_spec_id, snapshot_id))
            else:
                kept.append(manifest)
        groups: dict[tuple[ManifestContent, int], list[ManifestEntry]] = {}
        for file in added:
            content = ManifestContent(file.content is not FileContent.DATA)
            number = (sequence_numbers or {}).get(file.file_path)
            entry = ManifestEntry(EntryStatus.ADDED, file, snapshot_id, number)
            groups.setdefault((content, file.spec_id), []).append(entry)
        written = [self._write(entries, *key, snapshot_id) for key, entries in groups.items()]
        self.manifests = (*written, *kept)
        self.clock += 1000
        snapshot = replace(
            self._snapshot(snapshot_id, operation),
            timestamp_ms=self.clock if timestamp_ms is None else timestamp_ms,
        )
        update = up.SetSnapshotRefUpdate(ref, branch(snapshot_id))
        self.metadata = apply_all(self.metadata, [up.AddSnapshotUpdate(snapshot), update], self.clock)
        self.states[snapshot_id] = self.manifests
        return snapshot_id

    def _write(
        self, entries: list[ManifestEntry], content: ManifestContent, spec_id: int, snapshot_id: int
    ) -> ManifestFile:
        form = ManifestFormat(
            self.metadata.format_version,
            self.schema,
            self.metadata.spec(spec_id),
            snapshot_id,
            content,
            table_location=self.location,
            older_schemas=self.metadata.schemas,
        )
        place = f"{self.location}/metadata/{uuid.uuid4()}-m0.avro"
        return write_manifest(entries, form, place, self.storage.write)

    def entries_of(self, manifest: ManifestFile) -> list[ManifestEntry]:
        kind = partition_type(
            self.metadata.spec(manifest.partition_spec_id), self.schema, *reversed(self.metadata.schemas)
        )
        columns = read_manifest(manifest, self.storage.read, partition_type=kind, table_location=self.location)
        return list(columns.entries())

    def live(self, snapshot_id: int | None = None) -> list[ManifestEntry]:
        """All live entries of a snapshot, by default the newest, read without any planning."""
        manifests = self.manifests if snapshot_id is None else self.states[snapshot_id]
        return [each for manifest in manifests for each in self.entries_of(manifest) if each.is_live]

    # -- the naive scan

    def naive_deletes(self, snapshot_id: int | None = None) -> dict[str, set[tuple[str, int | None]]]:
        """For each live data file, the delete files that apply, by the table in the spec."""
        entries = self.live(snapshot_id)
        deletes = [each for each in entries if each.data_file.content is not FileContent.DATA]
        found: dict[str, set[tuple[str, int | None]]] = {}
        for data in entries:
            if data.data_file.content is not FileContent.DATA:
                continue
            applied = [each for each in deletes if applies(each, data, self)]
            if any(each.data_file.is_deletion_vector for each in applied):
                applied = [
                    each
                    for each in applied
                    if each.data_file.is_deletion_vector or each.data_file.content is FileContent.EQUALITY_DELETES
                ]
            found[data.data_file.file_path] = {_name(each) for each in applied}
        return found

    def naive_rows(self, predicate: Expression, snapshot_id: int | None = None) -> list[tuple[str, int]]:
        """Path and position of every live row that matches, by definition."""
        bound = bind(predicate, self.schema)
        deletes = {_name(each): each.data_file for each in self.live(snapshot_id)}
        return sorted(
            (path, position)
            for path, names in self.naive_deletes(snapshot_id).items()
            for position in self.surviving(path, [deletes[name] for name in names])
            if evaluate(bound, self.model.rows[path][position])
        )

    def surviving(self, path: str, deletes: Iterable[DataFile]) -> list[int]:
        """The positions of a file that no delete is about."""
        files = list(deletes)
        return [
            position
            for position, row in enumerate(self.model.rows[path])
            if not any(self._hits(file, path, position, row) for file in files)
        ]

    def _hits(self, file: DataFile, path: str, position: int, row: Row) -> bool:
        if file.content is FileContent.EQUALITY_DELETES:
            field_ids, keys = self.model.keys[file.file_path]
            return tuple(row.get(field_id) for field_id in field_ids) in keys
        return (path, position) in self.model.positions[file.file_path, file.content_offset]

    def planned_rows(self, tasks: Iterable[FileScanTask]) -> list[tuple[str, int]]:
        """Path and position of every row that a reader of these tasks would give."""
        return sorted(
            (task.file.file_path, position)
            for task in tasks
            for position in self.surviving(task.file.file_path, task.deletes)
            if evaluate(task.residual, self.model.rows[task.file.file_path][position])
        )


def applies(delete: ManifestEntry, data: ManifestEntry, table: SyntheticTable) -> bool:
    """Whether a delete file applies to a data file (spec: Scan Planning), each condition in turn."""
    file, target = delete.data_file, data.data_file
    assert delete.sequence_number is not None
    assert data.sequence_number is not None
    same = file.spec_id == target.spec_id and same_partition(file.partition, target.partition)
    if file.content is FileContent.EQUALITY_DELETES:
        everywhere = table.metadata.spec(file.spec_id).is_unpartitioned
        return data.sequence_number < delete.sequence_number and (same or everywhere)
    about = file.referenced_data_file
    low, high = (bounds.get(reserved.DELETE_FILE_PATH.field_id) for bounds in (file.lower_bounds, file.upper_bounds))
    if about is None and low is not None and low == high:
        about = low.decode()
    return same and data.sequence_number <= delete.sequence_number and about in (None, target.file_path)


def same_partition(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two tuples are one partition: NaN equals NaN, and the zeros differ."""
    return [_exact(value) for value in one] == [_exact(value) for value in other]


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else (value, math.copysign(1.0, value))
    return value


def _name(entry: ManifestEntry) -> tuple[str, int | None]:
    return entry.data_file.file_path, entry.data_file.content_offset


def name(file: DataFile) -> tuple[str, int | None]:
    """What tells a delete file from others: several vectors share a file."""
    return file.file_path, file.content_offset


def _existing(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, status=EntryStatus.EXISTING)


def _removed(entry: ManifestEntry) -> ManifestEntry:
    return replace(entry, status=EntryStatus.DELETED, snapshot_id=None)


def value_at(row: Row, schema: Schema, field_id: int) -> Any:
    """The value of a field, at the top or in structs."""
    path = [*(each.field_id for each in reversed(schema.ancestors(field_id))), field_id]
    value = row.get(path[0])
    for each in path[1:]:
        value = None if value is None else dict(value).get(each)
    return value


def metrics_of(rows: Sequence[Row], schema: Schema, width: int = 2) -> dict[str, Any]:
    """The metrics of rows, for every primitive column outside lists and maps."""
    kinds = {}
    for field_id, each in schema.fields_by_id.items():
        around = schema.ancestors(field_id)
        if isinstance(each.field_type, types.PrimitiveType) and not any(
            isinstance(parent.field_type, types.ListType | types.MapType) for parent in around
        ):
            kinds[field_id] = each.field_type
    flat: list[Row] = [{field_id: value_at(row, schema, field_id) for field_id in kinds} for row in rows]
    return flat_metrics(flat, kinds, width)


def flat_metrics(rows: Sequence[Row], kinds: Mapping[int, types.IcebergType], width: int = 2) -> dict[str, Any]:
    """The metrics of columns, whose values are by field id."""
    found: dict[str, dict[int, Any]] = {
        metric: {}
        for metric in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    for field_id, kind in kinds.items():
        if isinstance(kind, types.UnknownType):
            continue
        values = [row.get(field_id) for row in rows]
        known = [value for value in values if value is not None]
        found["value_counts"][field_id] = len(values)
        found["null_value_counts"][field_id] = len(values) - len(known)
        if isinstance(kind, types.FloatType | types.DoubleType):
            nans = [value for value in known if value != value]
            found["nan_value_counts"][field_id] = len(nans)
            known = [value for value in known if value == value]
        if known:
            low, high = min(known), max(known)
            if isinstance(kind, types.FloatType | types.DoubleType):
                # -0.0 comes before 0.0 (spec: Field-level Metrics).
                low = -0.0 if low == 0 else low
                high = 0.0 if high == 0 else high
            found["lower_bounds"][field_id] = encode_bound(truncate_lower(low, kind, width), kind)
            upper = truncate_upper(high, kind, width)
            if upper is not None:
                found["upper_bounds"][field_id] = encode_bound(upper, kind)
    return found
