"""One reading of a metadata table: of which snapshots, which rows and columns; and how columns come to have the types asked for."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import manifests as mf, metadata as md, planning
from icefloe.expressions import AlwaysTrue, Expression, bound_references, mask
from icefloe.schema import NestedField, Schema, StructType, schema_to_arrow, select_ids
from icefloe.storage import Storage

Row = dict[str, object]
"""A row of a metadata table by the names of its columns."""

_MEMORY_PER_BYTE = 10
"""About how much memory a byte of a compressed manifest takes as rows of all columns."""


@dataclass(frozen=True)
class MetadataRequest:
    """What is asked of a metadata table with the columns `schema`: those of `projection`, of rows that match `bound`."""

    name: str
    metadata: md.TableMetadata
    metadata_location: str | None
    storage: Storage
    snapshots: tuple[md.Snapshot, ...]
    schema: Schema
    projection: Schema
    bound: Expression
    workers: int
    read_ahead_bytes: int | None = None
    """How much may be in memory ahead of whoever reads a stream, about; None if all of it is kept anyway."""
    skipped_manifests: frozenset[str] = frozenset()
    """Manifests whose files are not asked for, by path."""
    manifests: tuple[tuple[int, mf.ManifestFile], ...] | None = None
    """The manifests to read, with the snapshots that they are of, if somebody has chosen them already."""
    cache: mf.ManifestCache | None = field(default=None, compare=False, repr=False)
    """Where lists, and the manifests of few files, are kept for the next one who asks."""

    @cached_property
    def filter_schema(self) -> Schema:
        """The columns that the filter speaks of."""
        return select_ids(self.schema, {reference.field_id for reference in bound_references(self.bound)})

    @property
    def is_filtered(self) -> bool:
        """Whether some rows may not be wanted."""
        return not isinstance(self.bound, AlwaysTrue)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns that are given."""
        return schema_to_arrow(self.projection, ids=False)

    def threads(self, manifests: Sequence[mf.ManifestFile]) -> int:
        """How many read manifests at a time: each has one in hand, and one more waits."""
        if self.read_ahead_bytes is None or not manifests:
            return self.workers
        largest = max(manifest.manifest_length for manifest in manifests) * _MEMORY_PER_BYTE
        return max(1, min(self.workers, self.read_ahead_bytes // (2 * max(1, largest))))

    def source(self, snapshot_id: int) -> planning.ManifestSource:
        """Where the manifests of a snapshot come from."""
        return planning.ManifestSource(self.metadata, self.storage, snapshot_id, self.metadata.schema(), self.cache)

    def matching(self, rows: pa.RecordBatch) -> pa.Array:
        """For each row of a batch that has the columns of the filter, whether it matches."""
        matches = mask(self.bound, rows)
        return matches.combine_chunks() if isinstance(matches, pa.ChunkedArray) else matches

    def narrowed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The wanted rows and columns of batches that have all columns."""
        for batch in batches:
            rows = batch.filter(self.matching(batch)) if self.is_filtered else batch
            if rows.num_rows:
                columns = [_picked(rows.column(field.name), field) for field in self.projection.fields]
                yield pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)

    def few(self, rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
        """The same of rows that are few, as one batch."""
        listed, schema = list(rows), schema_to_arrow(self.schema, ids=False)
        columns = [pa.array([row[field.name] for row in listed], field.type) for field in schema]
        return self.narrowed([pa.RecordBatch.from_arrays(columns, schema=schema)])


def _picked(array: pa.Array, field: NestedField) -> pa.Array:
    """An array with only the fields of a struct that are wanted."""
    struct = field.field_type
    if not isinstance(struct, StructType) or array.type.num_fields == len(struct.fields):
        return array
    parts = [_picked(pc.struct_field(array, [inner.name]), inner) for inner in struct.fields]
    names = [inner.name for inner in struct.fields]
    fields = [array.type.field(name).with_type(part.type) for name, part in zip(names, parts, strict=True)]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())


def retyped(array: pa.Array, target: pa.DataType) -> pa.Array:
    """A list or map as one of another type that differs in nothing but names and nullability, sharing its memory."""
    if array.type.equals(target, check_metadata=True):
        return array
    if pa.types.is_map(target):
        parts = [array.keys.cast(target.key_type), array.items.cast(target.item_type)]
        inner = pa.StructArray.from_arrays(parts, fields=[target.key_field, target.item_field])
    elif pa.types.is_list(target):
        inner = array.values.cast(target.value_type)
    else:
        return array.cast(target)
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(target, len(array), buffers, offset=array.offset, children=[inner])
