"""The metadata tables of files and of manifest entries, one batch of Arrow columns for each manifest."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icefloe.inspect.pruning import prune_manifests
from icefloe.inspect.readable_metrics import READABLE_METRICS, metrics_needed, readable_metrics
from icefloe.inspect.request import MetadataRequest, retyped
from icefloe.inspect.schemas import table_partition_type
from icefloe.manifests import ALWAYS, COLUMN_TYPES, ManifestColumns, ManifestContent, ManifestFile, Metric, Wanted
from icefloe.parallel import in_order
from icefloe.planning import ManifestSource, shown_values
from icefloe.schema import NestedField, Schema, StructType, schema_to_arrow, type_to_arrow
from icefloe.storage import identity

NEEDED = ALWAYS | {"file_path", "file_size_in_bytes"}
"""What is read of a manifest in any case."""

_MAPS = {metric.value: metric for metric in Metric}
_DATA_FILE = "data_file"

FoundManifest = tuple[ManifestSource, ManifestFile]
"""A manifest, and where it comes from."""


def file_batches(request: MetadataRequest) -> Generator[Any, None, None]:
    """The live files of the snapshots, those that a manifest of several snapshots holds once."""
    kind = {"data_files": ManifestContent.DATA, "delete_files": ManifestContent.DELETES}
    content = kind.get(request.name.removeprefix("all_"))
    return _entry_batches(request, content, live_only=True)


def entry_batches(request: MetadataRequest) -> Generator[Any, None, None]:
    """The entries of the snapshots, removed ones too, those that a manifest of several snapshots holds once."""
    return _entry_batches(request, None, live_only=False)


def _entry_batches(
    request: MetadataRequest, content: ManifestContent | None, *, live_only: bool
) -> Generator[Any, None, None]:
    rows = EntryRows(request, live_only)
    around = "" if live_only else f"{_DATA_FILE}."
    found = [
        (source, manifest)
        for source, manifest in manifests_of(request)
        if content in (None, manifest.content) and (manifest.has_live_files or not live_only)
    ]
    kept = set(map(id, prune_manifests(request, [each for _, each in found], rows.partition, around)))
    chosen = [each for each in found if id(each[1]) in kept]
    batches = in_order(rows, chosen, request.threads([manifest for _, manifest in chosen]))
    try:
        for batch in batches:
            if batch.num_rows:
                yield batch
    finally:
        batches.close()


def manifests_of(request: MetadataRequest) -> Iterator[FoundManifest]:
    """The manifests of the snapshots, in order, each once."""
    seen: set[str] = set()
    sources = [request.source(snapshot) for snapshot in request.snapshots]

    def read(place: int) -> Sequence[ManifestFile]:
        return sources[place].manifests(request.snapshots[place])

    for source, manifests in zip(sources, in_order(read, range(len(sources)), request.workers), strict=True):
        for manifest in manifests:
            if (name := identity(manifest.manifest_path)) not in seen:
                seen.add(name)
                yield source, manifest


@dataclass(frozen=True)
class EntryRows:
    """From a manifest to the wanted rows and columns of it; runs in threads."""

    request: MetadataRequest
    live_only: bool

    @cached_property
    def partition(self) -> StructType:
        """The partition type of the table."""
        return table_partition_type(self.request.metadata)

    def __call__(self, found: FoundManifest) -> Any:
        source, manifest = found
        columns = source.read(manifest, self.wanted)
        if self.live_only and not pc.all(live := columns.is_live, min_count=0).as_py():
            columns = columns.filter(live)
        if self.request.is_filtered:
            # What only the result shows is made of the rows that are left.
            is_match = self.request.matching(self.batch(columns, self.request.filter_schema))
            if not pc.all(is_match, min_count=0).as_py():
                columns = columns.filter(is_match)
        return self.batch(columns, self.request.projection)

    @cached_property
    def wanted(self) -> Wanted:
        """What must be decoded for the filter and the result."""
        fields = [*_flat(self.request.filter_schema), *_flat(self.request.projection)]
        names = {field.name for field in fields}
        metrics = {_MAPS[name] for name in names & _MAPS.keys()}
        field_ids: set[int] = set()
        all_fields = bool(metrics)
        for field in fields:
            if field.name == READABLE_METRICS and isinstance(field.field_type, StructType):
                kinds, ids = metrics_needed(field.field_type, self.request.metadata.schema())
                metrics |= kinds
                field_ids |= ids
        return Wanted(
            NEEDED | (names & COLUMN_TYPES.keys()),
            "partition" in names,
            frozenset(metrics) if all_fields or field_ids else frozenset(),
            None if all_fields else tuple(sorted(field_ids)),
        )

    def batch(self, columns: ManifestColumns, schema: Schema) -> Any:
        """The columns of a schema, which is a part of the table's."""
        target = self._arrow_schemas[schema is self.request.projection]
        arrays = [self._column(columns, *each) for each in zip(schema.fields, target.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    @cached_property
    def _arrow_schemas(self) -> tuple[Any, Any]:
        """Of the filter and of the result: making them takes long if there are many columns."""
        return schema_to_arrow(self.request.filter_schema, ids=False), self.request.arrow_schema

    def _column(self, columns: ManifestColumns, field: NestedField, target: Any) -> Any:
        kind, name = field.field_type, field.name
        if name == "partition" and isinstance(kind, StructType):
            return partition_column(columns, kind)
        if name == READABLE_METRICS and isinstance(kind, StructType):
            return readable_metrics(columns.metrics, kind, target, self.request.metadata.schema())
        if name == _DATA_FILE and isinstance(kind, StructType):
            arrays = [
                self._column(columns, inner, place.type) for inner, place in zip(kind.fields, target, strict=True)
            ]
            return pa.StructArray.from_arrays(arrays, fields=list(target))
        if name == "spec_id":
            return repeated(columns.spec_id, len(columns), target)
        if name == "file_format":
            # As Java shows them, however they are written.
            return pc.ascii_upper(columns.column(name))
        found = columns.metrics.as_map(_MAPS[name]) if name in _MAPS else columns.column(name)
        return retyped(found, target)


def _flat(schema: Schema) -> Iterator[NestedField]:
    """The columns, those of the file of an entry among them."""
    for field in schema.fields:
        if field.name == _DATA_FILE and isinstance(field.field_type, StructType):
            yield from field.field_type.fields
        else:
            yield field


def partition_column(columns: ManifestColumns, kind: StructType, ids: Sequence[int] | None = None) -> Any:
    """The partition tuples in a type of fields of several specs; null where the manifest's spec lacks one.

    `ids` are those of the partition fields, where `kind` has others.
    """
    arrays = []
    own = {field.field_id: field.field_type for field in columns.partition_type.fields}
    for place, field in enumerate(kind.fields):
        field_id = field.field_id if ids is None else ids[place]
        arrays.append(shown_values(columns.partition.get(field_id), own.get(field_id), field, len(columns)))
    return pa.StructArray.from_arrays(arrays, fields=list(type_to_arrow(kind, ids=False)))


def repeated(value: Any, length: int, kind: Any) -> Any:
    """One value in every row."""
    return pa.repeat(pa.scalar(value, kind), length)
