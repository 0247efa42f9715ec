"""The metadata tables of files and of manifest entries, one batch of Arrow columns for each manifest."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import manifests as mf, parallel, partitioning as pt
from icefloe.inspect.pruning import SourcedManifest, manifests_to_read
from icefloe.inspect.readable_metrics import READABLE_METRICS, metrics_needed, readable_metrics
from icefloe.inspect.request import MetadataRequest, retyped
from icefloe.inspect.schemas import table_partition_type
from icefloe.schema import Schema, field_to_arrow, is_promotion, schema_to_arrow, type_to_arrow, types

NEEDED = mf.ALWAYS | {"file_path", "file_size_in_bytes"}
"""What is read of a manifest in any case."""

_MAPS = {metric.value: metric for metric in mf.MAP_METRICS}
_DATA_FILE = "data_file"

_CONTENT = {"data_files": mf.ManifestContent.DATA, "delete_files": mf.ManifestContent.DELETES}


def _without_keys(columns: mf.ManifestColumns) -> mf.ManifestColumns:
    """The entries without the keys of encrypted files: those that see a metadata table may show it to anybody."""
    if "key_metadata" not in columns.columns:
        return columns
    return columns.with_columns(key_metadata=pa.nulls(len(columns), pa.binary()))


def entry_batches(request: MetadataRequest) -> Generator[pa.RecordBatch, None, None]:
    """The live files of the snapshots, or all their entries; what a manifest of several snapshots holds comes once."""
    manifests = entry_manifests(request)
    rows = EntryRows(request, _is_of_files(request))
    batches = parallel.in_order(rows, manifests, request.threads([manifest for _, manifest in manifests]))
    try:
        for batch in batches:
            if batch.num_rows:
                yield batch
    finally:
        batches.close()


def entry_manifests(request: MetadataRequest) -> list[SourcedManifest]:
    """The manifests that may hold wanted files or entries."""
    content = _CONTENT.get(request.name.removeprefix("all_"))
    of_files = _is_of_files(request)

    def is_wanted(manifest: mf.ManifestFile) -> bool:
        is_such = content in (None, manifest.content) and (manifest.has_live_files or not of_files)
        return is_such and manifest.manifest_path not in request.skipped_manifests

    struct = "" if of_files else f"{_DATA_FILE}."
    return manifests_to_read(request, table_partition_type(request.metadata), is_wanted, struct)


def _is_of_files(request: MetadataRequest) -> bool:
    """Whether live files are asked for; entries are those of removed files too."""
    return request.name.removeprefix("all_") != "entries"


@dataclass(frozen=True)
class EntryRows:
    """From a manifest to the wanted rows and columns of it; runs in threads."""

    request: MetadataRequest
    live_only: bool

    def __call__(self, sourced: SourcedManifest) -> pa.RecordBatch:
        source, manifest = sourced
        columns = _without_keys(source.read(manifest, self.wanted))
        if self.live_only and not pc.all(live := columns.is_live, min_count=0).as_py():
            columns = columns.filter(live)
        if self.request.is_filtered:
            # What only the result shows is made of the rows that are left.
            is_match = self.request.matching(self.batch(columns, self.request.filter_schema))
            if not pc.all(is_match, min_count=0).as_py():
                columns = columns.filter(is_match)
        return self.batch(columns, self.request.projection)

    @cached_property
    def wanted(self) -> mf.Wanted:
        """What must be decoded for the filter and the result."""
        fields = [*_flat(self.request.filter_schema), *_flat(self.request.projection)]
        names = {field.name for field in fields}
        metrics = {_MAPS[name] for name in names & _MAPS.keys()}
        field_ids: set[int] = set()
        all_fields = bool(metrics)
        for field in fields:
            if field.name == READABLE_METRICS and isinstance(field.field_type, types.StructType):
                needed, ids = metrics_needed(field.field_type, self.request.metadata.schema())
                metrics |= needed
                field_ids |= ids
        return mf.Wanted(
            NEEDED | (names & mf.COLUMN_TYPES.keys()),
            "partition" in names,
            frozenset(metrics) if all_fields or field_ids else frozenset(),
            None if all_fields else tuple(sorted(field_ids)),
        )

    def batch(self, columns: mf.ManifestColumns, schema: Schema) -> pa.RecordBatch:
        """The columns of a schema, which is a part of the table's."""
        target = self._arrow_schemas[schema is self.request.projection]
        arrays = [self._column(columns, *pair) for pair in zip(schema.fields, target.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=target)

    @cached_property
    def _arrow_schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Of the filter and of the result: making them takes long if there are many columns."""
        return schema_to_arrow(self.request.filter_schema, ids=False), self.request.arrow_schema

    def _column(self, columns: mf.ManifestColumns, field: types.NestedField, target: pa.DataType) -> pa.Array:
        struct, name = field.field_type, field.name
        if name == "partition" and isinstance(struct, types.StructType):
            return partition_column(columns, struct)
        if name == READABLE_METRICS and isinstance(struct, types.StructType):
            return readable_metrics(columns.metrics, struct, target, self.request.metadata.schema())
        if name == _DATA_FILE and isinstance(struct, types.StructType):
            pairs = zip(struct.fields, target, strict=True)
            arrays = [self._column(columns, inner, arrow_field.type) for inner, arrow_field in pairs]
            return pa.StructArray.from_arrays(arrays, fields=list(target))
        if name == "spec_id":
            return repeated(columns.spec_id, len(columns), target)
        if name == "file_format":
            # As Java shows them, however they are written.
            return pc.ascii_upper(columns.column(name))
        return retyped(columns.metrics.as_map(_MAPS[name]) if name in _MAPS else columns.column(name), target)


def _flat(schema: Schema) -> Iterator[types.NestedField]:
    """The columns, those of the file of an entry among them."""
    for field in schema.fields:
        if field.name == _DATA_FILE and isinstance(field.field_type, types.StructType):
            yield from field.field_type.fields
        else:
            yield field


def partition_column(columns: mf.ManifestColumns, struct: types.StructType) -> pa.StructArray:
    """The partition tuples in a type of fields of several specs; null where the manifest's spec lacks one."""
    own = {field.field_id: field.field_type for field in columns.partition_type.fields}
    arrays = [
        _shown_values(columns.partition.get(field.field_id), own.get(field.field_id), field, len(columns))
        for field in struct.fields
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(type_to_arrow(struct, ids=False)))


def _shown_values(
    stored: pa.Array | None, written: types.IcebergType | None, field: types.NestedField, rows: int
) -> pa.Array:
    """The values of a partition field, stored as `written`, in the type of `field`.

    A column that was replaced by one of another type under the same id leaves values that the type of now may not hold:
    strings show them as text, numbers show equal numbers, all else is null.
    """
    target = field_to_arrow(field, ids=False).type
    # A void field is stored in its source's type (spec: Partition Transforms), while other specs have that of a transform.
    if stored is None or written is None or stored.null_count == len(stored):
        return pa.nulls(rows, target)
    if isinstance(target, pa.BaseExtensionType):
        if stored.type != target.storage_type:
            return pa.nulls(rows, target)
        return pa.ExtensionArray.from_storage(target, stored)
    if stored.type == target:
        return stored
    if isinstance(field.field_type, types.StringType):
        values = mf.to_internal(stored, written)
        return pa.array([None if value is None else pt.human_value(value, written) for value in values], target)
    if is_promotion(written, field.field_type):
        return stored.cast(target)
    return _equal_numbers(stored, target)


def _equal_numbers(stored: pa.Array, target: pa.DataType) -> pa.Array:
    if not all(pa.types.is_integer(type_) or pa.types.is_floating(type_) for type_ in (stored.type, target)):
        return pa.nulls(len(stored), target)
    numbers = stored.cast(target, safe=False)
    is_equal = pc.equal(numbers.cast(stored.type, safe=False), stored)
    return pc.if_else(pc.fill_null(is_equal, False), numbers, pa.scalar(None, target))


def repeated(value: object, length: int, arrow_type: pa.DataType) -> pa.Array:
    """One value in every row."""
    return pa.repeat(pa.scalar(value, arrow_type), length)
