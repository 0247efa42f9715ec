"""What a scan asks of manifests: their entries under the schema of the scan, checked, and which of their values, bounds and
metrics say nothing to it, since their column has been replaced by one of another type.

A table that takes the place of another keeps the ids of its columns by their names, and with them those of its partition
fields, whatever types they have now (Java's rule). Branches, tags and snapshots of before stay, with what was written then.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from icefloe import errors, manifests as mf, metadata as md
from icefloe.expressions import Mask, Statistics
from icefloe.partitioning import PartitionField, PartitionSpec, partition_type, transforms as tr
from icefloe.schema import IcebergType, Schema, StructType, is_promotion, types
from icefloe.storage import Storage


@dataclass(frozen=True, slots=True)
class ReplacedColumns:
    """The columns of a table, as seen by a reader who has them in the types of `schema`."""

    metadata: md.TableMetadata
    schema: Schema
    _known: dict[tuple[int, int | None], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def columns(self, ids: Iterable[int], manifest: mf.ManifestFile) -> frozenset[int]:
        """Those of the columns that files of the manifest may have in a type that the reader's cannot hold."""
        # Most tables never replaced a column: then nothing is asked of the snapshots, which may have to be loaded.
        doubtful = [field_id for field_id in ids if self._differs(field_id, None)]
        if not doubtful:
            return frozenset()
        schema_id = self._schema_of_manifest(manifest)
        return frozenset(field_id for field_id in doubtful if self._differs(field_id, schema_id))

    def fields(self, spec: PartitionSpec, manifest: mf.ManifestFile) -> frozenset[int]:
        """The partition fields that are made of such columns."""
        unlike = self.columns((part.source_id for part in spec.fields), manifest)
        return frozenset(part.field_id for part in spec.fields if part.source_id in unlike)

    def fields_ever(self, spec: PartitionSpec) -> frozenset[int]:
        """The partition fields that some file of the table may have in such a type."""
        return frozenset(part.field_id for part in spec.fields if self._differs(part.source_id, None))

    def types(self, spec: PartitionSpec, manifest: mf.ManifestFile) -> Mapping[int, IcebergType]:
        """The types in which the manifest has these fields, if the snapshot that added it is known."""
        if not self.fields(spec, manifest) or (schema_id := self._schema_of_manifest(manifest)) is None:
            return {}
        return differing_types(partition_type(spec, self.metadata.schema(schema_id)), partition_type(spec, self.schema))

    def is_alike(self, ids: Iterable[int], snapshot_ids: pa.Array) -> Mask:
        """For files that these snapshots added, an array, whether they have the columns in a type that the reader's can hold."""
        doubtful = [field_id for field_id in ids if self._differs(field_id, None)]
        if not doubtful:
            return np.ones(len(snapshot_ids), np.bool_)
        schema_ids = map(self._schema_of_snapshot, snapshot_ids.to_pylist())
        alike = [not any(self._differs(field_id, schema_id) for field_id in doubtful) for schema_id in schema_ids]
        return np.array(alike, np.bool_)

    def _schema_of_manifest(self, manifest: mf.ManifestFile) -> int | None:
        """The schema that all files of the manifest were written with; None if it cannot be told."""
        # Files of others that were carried on may be older.
        return None if manifest.existing_files_count != 0 else self._schema_of_snapshot(manifest.added_snapshot_id)

    def _schema_of_snapshot(self, snapshot_id: int | None) -> int | None:
        snapshot = None if snapshot_id is None else self.metadata.snapshots_by_id.get(snapshot_id)
        if snapshot is None or snapshot.schema_id not in self.metadata.schemas_by_id:
            return None
        return snapshot.schema_id

    def _differs(self, field_id: int, schema_id: int | None) -> bool:
        """Whether the column has a type under that schema that the reader's cannot hold; without one, under any."""
        differs = self._known.get((field_id, schema_id))
        if differs is None:
            target = self.schema.fields_by_id.get(field_id)
            schemas = self.metadata.schemas if schema_id is None else (self.metadata.schema(schema_id),)
            written = (schema.fields_by_id.get(field_id) for schema in schemas)
            differs = target is not None and any(
                source is not None and not is_promotion(source.field_type, target.field_type) for source in written
            )
            self._known[field_id, schema_id] = differs
        return differs


def differing_types(written: StructType, target: StructType) -> dict[int, IcebergType]:
    """The types of the partition fields whose values the target type cannot hold, by id; both are of one spec."""
    return {
        old.field_id: old.field_type
        for old, new in zip(written.fields, target.fields, strict=True)
        if not isinstance(old.field_type, types.UnknownType)
        and not isinstance(new.field_type, types.UnknownType)
        and not is_promotion(old.field_type, new.field_type)
    }


def without_values(spec: PartitionSpec, field_ids: Collection[int]) -> PartitionSpec:
    """The spec with nothing known of the values of these fields."""
    if not field_ids:
        return spec
    return PartitionSpec(
        *(
            PartitionField(part.source_ids, part.field_id, tr.VoidTransform(), part.name)
            if part.field_id in field_ids
            else part
            for part in spec.fields
        ),
        spec_id=spec.spec_id,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PartialStatistics:
    """Statistics of files in which some columns count as unknown."""

    statistics: Statistics
    is_known: Callable[[int], bool]
    """Of a column by its id."""

    @property
    def size(self) -> int:
        """How many files there are."""
        return self.statistics.size

    @property
    def record_counts(self) -> pa.Array:
        """Rows per file."""
        return self.statistics.record_counts

    def value_counts(self, field_id: int) -> pa.Array | None:
        """Values of the column."""
        return self.statistics.value_counts(field_id) if self.is_known(field_id) else None

    def null_counts(self, field_id: int) -> pa.Array | None:
        """Nulls of the column."""
        return self.statistics.null_counts(field_id) if self.is_known(field_id) else None

    def nan_counts(self, field_id: int) -> pa.Array | None:
        """NaNs of the column."""
        return self.statistics.nan_counts(field_id) if self.is_known(field_id) else None

    def lower_bounds(self, field_id: int, field_type: IcebergType) -> pa.Array | None:
        """At most the least value of the column."""
        return self.statistics.lower_bounds(field_id, field_type) if self.is_known(field_id) else None

    def upper_bounds(self, field_id: int, field_type: IcebergType) -> pa.Array | None:
        """At least the greatest value of the column."""
        return self.statistics.upper_bounds(field_id, field_type) if self.is_known(field_id) else None


@dataclass(frozen=True)
class ManifestSource:
    """Where the manifests of one snapshot come from. Errors of files name the snapshot too."""

    metadata: md.TableMetadata
    storage: Storage
    snapshot_id: int
    schema: Schema
    cache: mf.ManifestCache | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # What was read is not pickled.
        return ManifestSource, (self.metadata, self.storage, self.snapshot_id, self.schema)

    @cached_property
    def replaced(self) -> ReplacedColumns:
        """Which columns have another type than the scan's."""
        return ReplacedColumns(self.metadata, self.schema)

    @cached_property
    def _manifests(self) -> mf.SnapshotManifests:
        storage = self.storage
        return mf.SnapshotManifests(self.metadata, storage.read, storage.limits, self.cache, storage.keyring)

    @cached_property
    def _partition_types(self) -> dict[int, StructType]:
        return {}

    def manifests(self, snapshot: md.Snapshot) -> tuple[mf.ManifestFile, ...]:
        """The manifests of a snapshot, in the order of its list."""
        return self._manifests.of(snapshot)

    def read(self, manifest: mf.ManifestFile, wanted: mf.Wanted, threads: int = 1) -> mf.ManifestColumns:
        """The entries of a manifest, from memory if they were read before; several threads may decode a large one."""
        struct = self.partition_type(manifest)
        try:
            return _checked(self._manifests.entries(manifest, wanted, struct, threads=threads), manifest)
        except (errors.CorruptFileError, errors.StorageError) as error:
            raise mf.error_of_snapshot(error, self.snapshot_id) from error

    def together(self, manifests: Sequence[mf.ManifestFile], wanted: mf.Wanted) -> mf.ManifestColumns | None:
        """The entries of several manifests of one spec as those of one, if all of them are in memory.

        None, too, if something is wrong with an entry: then the manifest that holds it is to be named.
        """
        columns = self._manifests.together(manifests, wanted, self.partition_type(manifests[0]))
        if columns is None or _problem(columns, manifests[0].content) is not None:
            return None
        return None if columns.column("sequence_number").null_count else columns

    def spec(self, manifest: mf.ManifestFile) -> PartitionSpec:
        """The partition spec of a manifest."""
        try:
            return self.metadata.spec(manifest.partition_spec_id)
        except errors.NoSuchObjectError as error:
            raise errors.CorruptFileError(manifest.manifest_path, f"the table has no spec for it: {error}") from None

    def partition_type(self, manifest: mf.ManifestFile) -> StructType:
        """The type of the partition tuples of a manifest for the scan; lost source columns are looked for in older schemas."""
        known = self._partition_types.get(manifest.partition_spec_id)
        if known is None:
            known = partition_type(self.spec(manifest), self.schema, *self.metadata.schemas_newest_first)
            self._partition_types[manifest.partition_spec_id] = known
        return known


def _checked(columns: mf.ManifestColumns, manifest: mf.ManifestFile) -> mf.ManifestColumns:
    """The entries, if they are of the kind that the manifest is for and have what every file has."""
    if (problem := _problem(columns, manifest.content)) is not None:
        raise errors.CorruptFileError(manifest.manifest_path, problem)
    return columns


def _problem(columns: mf.ManifestColumns, content: mf.ManifestContent) -> str | None:
    is_data = content is mf.ManifestContent.DATA
    # What is no kind of file at all was refused where it was read.
    if ((columns.column("content").to_numpy() == 0) != is_data).any():
        return f"it is a manifest of {'data' if is_data else 'delete'} files and holds other ones"
    for name in ("file_path", "record_count", "file_size_in_bytes"):
        if columns.column(name).null_count:
            return f"{columns.column(name).null_count} entries have no {name}"
    return None


def decoding_threads(manifests: int, workers: int) -> int:
    """How many threads decode one manifest: as many as processors, unless there are manifests enough to keep them busy."""
    processors = os.cpu_count() or 1
    return min(workers, processors) if manifests <= 2 * processors else 1
