"""Which manifests may hold rows of a metadata table that match a filter, from the manifest list alone.

A filter on partition fields is asked of the partition summaries, one on `content` and `spec_id` of what the list says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from icefloe.expressions import Mask, inclusive_projection, might_match, partitions_might_match
from icefloe.inspect.request import MetadataRequest
from icefloe.manifests import FileContent, ManifestContent, ManifestFile, SummaryColumns
from icefloe.partitioning import PartitionField, PartitionSpec, transforms as tr
from icefloe.planning import ReplacedColumns
from icefloe.schema import IcebergType, Schema, StructType


@dataclass(frozen=True, slots=True, eq=False)
class KnownValues:
    """Rows, or groups of them, that are known to be within bounds in some columns; the rest is not known.

    `bounds` are the least and the greatest values by field id; a column whose two bounds are one array holds just that.
    """

    size: int
    bounds: Mapping[int, tuple[Any, Any]]

    @property
    def record_counts(self) -> Any:
        """One row each will do: none is empty."""
        return pa.array(np.ones(self.size, np.int64))

    def value_counts(self, field_id: int) -> Any | None:
        """One value each, where it is known."""
        return self.record_counts if self._is_constant(field_id) else None

    def null_counts(self, field_id: int) -> Any | None:
        """Whether the one value is null."""
        return self.bounds[field_id][0].is_null().cast(pa.int64()) if self._is_constant(field_id) else None

    def nan_counts(self, _: int) -> Any | None:
        """Not known."""
        return None

    def lower_bounds(self, field_id: int, _: IcebergType) -> Any | None:
        """The least values."""
        return self.bounds[field_id][0] if field_id in self.bounds else None

    def upper_bounds(self, field_id: int, _: IcebergType) -> Any | None:
        """The greatest values."""
        return self.bounds[field_id][1] if field_id in self.bounds else None

    def _is_constant(self, field_id: int) -> bool:
        return field_id in self.bounds and self.bounds[field_id][0] is self.bounds[field_id][1]


def prune_manifests(
    request: MetadataRequest, manifests: Sequence[ManifestFile], partition: StructType, around: str = ""
) -> list[ManifestFile]:
    """The manifests that may hold a row that matches.

    `partition` is the table's partition type, `around` names the struct that the columns of files are in, with a dot.
    """
    if not request.is_filtered or not manifests:
        return list(manifests)
    kept = might_match(request.bound, _listed(request.schema, manifests, around))
    ids = partition_field_ids(request.schema, partition, f"{around}partition")
    replaced = ReplacedColumns(request.metadata, request.metadata.schema())
    by_spec: dict[tuple[PartitionSpec, frozenset[int]], list[int]] = {}
    for place, manifest in enumerate(manifests):
        # One without a spec is kept: reading it says what is wrong.
        if spec := request.metadata.specs_by_id.get(manifest.partition_spec_id):
            by_spec.setdefault((spec, replaced.fields(spec, manifest)), []).append(place)
    for (spec, unlike), places in by_spec.items():
        known = {key: value for key, value in ids.items() if key not in unlike}
        kept[places] &= _by_summaries(request, spec, known, [manifests[place] for place in places])
    return [manifest for manifest, keep in zip(manifests, kept, strict=True) if keep]


def partition_field_ids(schema: Schema, partition: StructType, name: str) -> dict[int, int]:
    """The ids that partition fields have among the columns of a metadata table, by their own."""
    place = schema.find_id(name)
    if place is None:
        return {}
    kind = schema.fields_by_id[place].field_type
    assert isinstance(kind, StructType)
    return {field.field_id: column.field_id for field, column in zip(partition.fields, kind.fields, strict=True)}


def _listed(schema: Schema, manifests: Sequence[ManifestFile], around: str) -> KnownValues:
    is_data = [manifest.content is ManifestContent.DATA for manifest in manifests]
    lowest = pa.array([int(FileContent.DATA if each else FileContent.POSITION_DELETES) for each in is_data], pa.int32())
    highest = pa.array(
        [int(FileContent.DATA if each else FileContent.EQUALITY_DELETES) for each in is_data], pa.int32()
    )
    spec_ids = pa.array([manifest.partition_spec_id for manifest in manifests], pa.int32())
    known = {f"{around}content": (lowest, highest), f"{around}spec_id": (spec_ids, spec_ids)}
    found = {schema.find_id(name): bounds for name, bounds in known.items()}
    return KnownValues(len(manifests), {key: bounds for key, bounds in found.items() if key is not None})


def _by_summaries(
    request: MetadataRequest, spec: PartitionSpec, ids: Mapping[int, int], manifests: Sequence[ManifestFile]
) -> Mask:
    # The partition column seen as a spec of its own: each field of the tuple is what it is.
    fields = [
        PartitionField(ids[field.field_id], field.field_id, tr.IdentityTransform(), field.name)
        if field.field_id in ids
        else PartitionField(-1 - place, field.field_id, tr.VoidTransform(), field.name)
        for place, field in enumerate(spec.fields)
    ]
    projected = inclusive_projection(request.bound, PartitionSpec(*fields, spec_id=spec.spec_id), request.schema)
    return partitions_might_match(projected, SummaryColumns(manifests))
