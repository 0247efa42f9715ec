"""Which manifests may hold rows of a metadata table that match a filter, from the manifest list alone.

A filter on partition fields is asked of the partition summaries, one on `content` and `spec_id` of what the list says.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import expressions as ex, manifests as mf, parallel, partitioning as pt, planning
from icefloe.inspect.request import MetadataRequest
from icefloe.partitioning import transforms as tr
from icefloe.schema import IcebergType, Schema, StructType
from icefloe.storage import identity

_MOST_BYTES_KEPT = 16 << 20
"""Of manifests as they are in files."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownValues:
    """Rows, or groups of them, that are known to be within bounds in some columns; the rest is not known.

    `bounds` are the least and the greatest values by field id; a column whose two bounds are one array holds just that.
    """

    size: int
    bounds: Mapping[int, tuple[pa.Array, pa.Array]]

    @property
    def record_counts(self) -> pa.Array:
        """One row each will do: none is empty."""
        return pa.array(np.ones(self.size, np.int64))

    def value_counts(self, field_id: int) -> pa.Array | None:
        """One value each, where it is known."""
        return self.record_counts if self._is_constant(field_id) else None

    def null_counts(self, field_id: int) -> pa.Array | None:
        """Whether the one value is null."""
        return self.bounds[field_id][0].is_null().cast(pa.int64()) if self._is_constant(field_id) else None

    def nan_counts(self, _: int) -> pa.Array | None:
        """Not known."""
        return None

    def lower_bounds(self, field_id: int, _: IcebergType) -> pa.Array | None:
        """The least values."""
        return self.bounds[field_id][0] if field_id in self.bounds else None

    def upper_bounds(self, field_id: int, _: IcebergType) -> pa.Array | None:
        """The greatest values."""
        return self.bounds[field_id][1] if field_id in self.bounds else None

    def _is_constant(self, field_id: int) -> bool:
        return field_id in self.bounds and self.bounds[field_id][0] is self.bounds[field_id][1]


SourcedManifest = tuple[planning.ManifestSource, mf.ManifestFile]
"""A manifest, and where it comes from."""


def manifests_to_read(
    request: MetadataRequest,
    partition: StructType,
    is_needed: Callable[[mf.ManifestFile], bool],
    struct: str = "",
) -> list[SourcedManifest]:
    """The manifests of the snapshots, in order and each once, that are needed and may hold a row that matches.

    `partition` is the table's partition type, `struct` names the one that the columns of files are in, with a dot.
    """
    if request.manifests is not None:
        sources = {snapshot_id: request.source(snapshot_id) for snapshot_id, _ in request.manifests}
        return [(sources[snapshot_id], manifest) for snapshot_id, manifest in request.manifests]
    sourced = [pair for pair in _manifests_of(request) if is_needed(pair[1])]
    if sum(manifest.manifest_length for _, manifest in sourced) > _MOST_BYTES_KEPT:
        # They are read once; what plans have read stays in memory.
        sourced = [(replace(source, cache=None), manifest) for source, manifest in sourced]
    if not request.is_filtered or not sourced:
        return sourced
    return list(compress(sourced, _might_match(request, [manifest for _, manifest in sourced], partition, struct)))


def _manifests_of(request: MetadataRequest) -> Iterator[SourcedManifest]:
    seen: set[str] = set()
    sources = [request.source(snapshot.snapshot_id) for snapshot in request.snapshots]

    def read(index: int) -> Sequence[mf.ManifestFile]:
        return sources[index].manifests(request.snapshots[index])

    for source, manifests in zip(sources, parallel.in_order(read, range(len(sources)), request.workers), strict=True):
        for manifest in manifests:
            if (name := identity(manifest.manifest_path)) not in seen:
                seen.add(name)
                yield source, manifest


def _might_match(
    request: MetadataRequest, manifests: Sequence[mf.ManifestFile], partition: StructType, struct: str
) -> ex.Mask:
    mask = ex.might_match(request.bound, _listed(request.schema, manifests, struct))
    ids = partition_field_ids(request.schema, partition, f"{struct}partition")
    replaced = planning.ReplacedColumns(request.metadata, request.metadata.schema())
    by_spec: dict[tuple[pt.PartitionSpec, frozenset[int]], list[int]] = {}
    for index, manifest in enumerate(manifests):
        # One without a spec is kept: reading it says what is wrong.
        if spec := request.metadata.specs_by_id.get(manifest.partition_spec_id):
            by_spec.setdefault((spec, replaced.fields(spec, manifest)), []).append(index)
    for (spec, unlike), indices in by_spec.items():
        known = {key: value for key, value in ids.items() if key not in unlike}
        mask[indices] &= _by_summaries(request, spec, known, [manifests[index] for index in indices])
    return mask


def partition_field_ids(schema: Schema, partition: StructType, name: str) -> dict[int, int]:
    """The ids that partition fields have among the columns of a metadata table, by their own."""
    field_id = schema.find_id(name)
    if field_id is None:
        return {}
    struct = schema.fields_by_id[field_id].field_type
    assert isinstance(struct, StructType)
    return {field.field_id: column.field_id for field, column in zip(partition.fields, struct.fields, strict=True)}


def _listed(schema: Schema, manifests: Sequence[mf.ManifestFile], struct: str) -> KnownValues:
    is_data = pa.array([manifest.content is mf.ManifestContent.DATA for manifest in manifests], pa.bool_())
    data, positions, equality = (pa.scalar(int(content), pa.int32()) for content in mf.FileContent)
    content = pc.if_else(is_data, data, positions), pc.if_else(is_data, data, equality)
    spec_ids = pa.array([manifest.partition_spec_id for manifest in manifests], pa.int32())
    known = {f"{struct}content": content, f"{struct}spec_id": (spec_ids, spec_ids)}
    by_id = {schema.find_id(name): bounds for name, bounds in known.items()}
    return KnownValues(len(manifests), {key: bounds for key, bounds in by_id.items() if key is not None})


def _by_summaries(
    request: MetadataRequest, spec: pt.PartitionSpec, ids: Mapping[int, int], manifests: Sequence[mf.ManifestFile]
) -> ex.Mask:
    # The partition column seen as a spec of its own: each field of the tuple is what it is.
    fields = [
        pt.PartitionField(ids[field.field_id], field.field_id, tr.IdentityTransform(), field.name)
        if field.field_id in ids
        else pt.PartitionField(-1 - index, field.field_id, tr.VoidTransform(), field.name)
        for index, field in enumerate(spec.fields)
    ]
    projected = ex.inclusive_projection(request.bound, pt.PartitionSpec(*fields, spec_id=spec.spec_id), request.schema)
    return ex.partitions_might_match(projected, mf.SummaryColumns(manifests))
