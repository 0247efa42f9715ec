"""What values, bounds and metrics say nothing to a reader, since their column has been replaced by one of another type.

A table that takes the place of another keeps the ids of its columns by their names, and with them those of its partition
fields, whatever types they have now (Java's rule). Branches, tags and snapshots of before stay, with what was written then.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from icefloe.expressions import Statistics
from icefloe.manifests import ManifestFile
from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionField, PartitionSpec, partition_type, transforms as tr
from icefloe.schema import IcebergType, Schema, StructType, UnknownType, is_promotion


@dataclass(frozen=True, slots=True)
class ReplacedColumns:
    """The columns of a table, as seen by a reader who has them in the types of `schema`."""

    metadata: TableMetadata
    schema: Schema
    _known: dict[tuple[int, int | None], bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def columns(self, ids: Iterable[int], manifest: ManifestFile) -> frozenset[int]:
        """Those of the columns that files of the manifest may have in a type that the reader's cannot hold."""
        schema_id = self._schema_of_manifest(manifest)
        return frozenset(each for each in ids if self._differs(each, schema_id))

    def fields(self, spec: PartitionSpec, manifest: ManifestFile) -> frozenset[int]:
        """The partition fields that are made of such columns."""
        unlike = self.columns((each.source_id for each in spec.fields), manifest)
        return frozenset(each.field_id for each in spec.fields if each.source_id in unlike)

    def fields_ever(self, spec: PartitionSpec) -> frozenset[int]:
        """The partition fields that some file of the table may have in such a type."""
        return frozenset(each.field_id for each in spec.fields if self._differs(each.source_id, None))

    def types(self, spec: PartitionSpec, manifest: ManifestFile) -> Mapping[int, IcebergType]:
        """The types in which the manifest has these fields, if the snapshot that added it is known."""
        schema_id = self._schema_of_manifest(manifest)
        if schema_id is None or not self.fields(spec, manifest):
            return {}
        return differing_types(partition_type(spec, self.metadata.schema(schema_id)), partition_type(spec, self.schema))

    def is_alike(self, ids: Iterable[int], snapshot_ids: Any) -> npt.NDArray[np.bool_]:
        """For files that these snapshots added, an array, whether they have the columns in a type that the reader's can hold."""
        doubtful = [each for each in ids if self._differs(each, None)]
        if not doubtful:
            return np.ones(len(snapshot_ids), np.bool_)
        schema_ids = map(self._schema_of_snapshot, snapshot_ids.to_pylist())
        return np.array(
            [not any(map(partial(self._differs, schema_id=each), doubtful)) for each in schema_ids], np.bool_
        )

    def _schema_of_manifest(self, manifest: ManifestFile) -> int | None:
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
        found = self._known.get((field_id, schema_id))
        if found is None:
            wanted = self.schema.fields_by_id.get(field_id)
            chosen = self.metadata.schemas if schema_id is None else (self.metadata.schema(schema_id),)
            known = (each.fields_by_id.get(field_id) for each in chosen) if wanted is not None else ()
            found = wanted is not None and any(
                each is not None and not is_promotion(each.field_type, wanted.field_type) for each in known
            )
            self._known[field_id, schema_id] = found
        return found


def differing_types(written: StructType, wanted: StructType) -> dict[int, IcebergType]:
    """The types of the partition fields whose values the wanted type cannot hold, by id; both are of one spec."""
    return {
        old.field_id: old.field_type
        for old, new in zip(written.fields, wanted.fields, strict=True)
        if not isinstance(old.field_type, UnknownType)
        and not isinstance(new.field_type, UnknownType)
        and not is_promotion(old.field_type, new.field_type)
    }


def without_values(spec: PartitionSpec, field_ids: Collection[int]) -> PartitionSpec:
    """The spec with nothing known of the values of these fields."""
    if not field_ids:
        return spec
    return PartitionSpec(
        *(
            PartitionField(each.source_ids, each.field_id, tr.VoidTransform(), each.name)
            if each.field_id in field_ids
            else each
            for each in spec.fields
        ),
        spec_id=spec.spec_id,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PartialStatistics:
    """Statistics of files in which some columns count as unknown."""

    known: Statistics
    unknown: frozenset[int]

    @property
    def size(self) -> int:
        """How many files there are."""
        return self.known.size

    @property
    def record_counts(self) -> Any:
        """Rows per file."""
        return self.known.record_counts

    def value_counts(self, field_id: int) -> Any | None:
        """Values of the column."""
        return None if field_id in self.unknown else self.known.value_counts(field_id)

    def null_counts(self, field_id: int) -> Any | None:
        """Nulls of the column."""
        return None if field_id in self.unknown else self.known.null_counts(field_id)

    def nan_counts(self, field_id: int) -> Any | None:
        """NaNs of the column."""
        return None if field_id in self.unknown else self.known.nan_counts(field_id)

    def lower_bounds(self, field_id: int, kind: IcebergType) -> Any | None:
        """At most the least value of the column."""
        return None if field_id in self.unknown else self.known.lower_bounds(field_id, kind)

    def upper_bounds(self, field_id: int, kind: IcebergType) -> Any | None:
        """At least the greatest value of the column."""
        return None if field_id in self.unknown else self.known.upper_bounds(field_id, kind)
