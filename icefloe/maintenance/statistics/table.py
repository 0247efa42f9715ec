"""Statistics of a table: which columns get a sketch of their distinct values, and the Puffin file that holds the sketches."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit as cm, errors, metadata as md, planning, properties as props
from icefloe.commit import Ownership, delete_own
from icefloe.data import ReadContext, read_task
from icefloe.formats.metrics import leaves
from icefloe.formats.puffin.compression import ZSTD
from icefloe.formats.puffin.files import Blob, PuffinWriter
from icefloe.formats.theta import ThetaBuilder, ThetaSketch, unite
from icefloe.formats.theta_codec import THETA_BLOB, encode_sketch
from icefloe.maintenance.engines import MaintenanceEngine, engine_of
from icefloe.maintenance.files.reachable import statistics_in
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.progress import Listener, Stage, listener_or_bar
from icefloe.schema import NestedField, Schema, types
from icefloe.storage import Storage, identity

NDV = "ndv"
"""The property of a blob that says how many distinct values a column has."""

_LEAST_PART_BYTES = 16 << 20
_MOST_PARTS = 512
"""Parts of a table that are read each at once: each makes a sketch for each column, 32 KiB or less."""


@dataclass(frozen=True, slots=True)
class ComputedTableStats:
    """The statistics file of a snapshot; None of a table without snapshots, or rows in any."""

    statistics_file: str | None = None
    """Where the file is: the column of Java's procedure."""
    snapshot_id: int | None = None
    distinct_counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    """About how many distinct values each column has, by name; exact up to 4,096."""


def compute_table_stats(
    table: MaintainedTable,
    snapshot_id: int | None = None,
    columns: Sequence[str] | None = None,
    *,
    engine: object | None = None,
    progress: Listener | None = None,
) -> ComputedTableStats:
    """Sketch columns of a snapshot in one pass, and commit the file of sketches."""
    metadata, runner = table.refresh().metadata, engine_of(engine)
    chosen = metadata.current_snapshot_id if snapshot_id is None else snapshot_id
    scan = planning.TableScan(metadata, table.storage, snapshot_id=chosen)
    snapshot = scan.snapshot()
    fields = _columns(scan.schema, columns)
    if snapshot is None:
        return ComputedTableStats()
    scan = replace(scan, selected_fields=tuple(scan.schema.names_by_id[field.field_id] for field in fields))
    sketches = _sketches(scan, [field.field_id for field in fields], runner, listener_or_bar(progress))
    change = _statistics_file(metadata, snapshot, sketches)
    with table.transaction() as tx:
        tx.add(change)
        done = tx.commit()
    _delete_replaced(done, snapshot.snapshot_id, table.storage)
    counts = {scan.schema.names_by_id[field_id]: int(sketch.estimate) for field_id, sketch in sketches.items()}
    return ComputedTableStats(change.location, snapshot.snapshot_id, counts)


# -- which columns


def _columns(schema: Schema, names: Sequence[str] | None) -> list[NestedField]:
    """The fields of these names, or all columns at the top that have a primitive type."""
    if names is None:
        fields = [field for field in schema.fields if isinstance(field.field_type, types.PrimitiveType)]
    else:
        if isinstance(names, str):
            raise errors.InvalidInputError(f"columns is the text {names!r}; give a list of names")
        fields = [_column(schema, name) for name in dict.fromkeys(names)]
    if not fields:
        raise errors.InvalidInputError("there are no columns to compute statistics of; name columns of primitive types")
    return fields


def _column(schema: Schema, name: str) -> NestedField:
    field = schema.find_field(name)
    if not isinstance(field.field_type, types.PrimitiveType):
        raise errors.InvalidInputError(
            f"column {name!r} is of type {field.field_type}; statistics are of primitive types"
        )
    if any(
        isinstance(around.field_type, types.ListType | types.MapType) for around in schema.ancestors(field.field_id)
    ):
        raise errors.InvalidInputError(f"column {name!r} is inside of a list or a map; statistics have one value a row")
    return field


# -- the pass


@dataclass(frozen=True)
class SketchColumns:
    """What each task runs: files in, a sketch for each column out."""

    metadata: md.TableMetadata
    storage: Storage
    columns: Schema
    field_ids: tuple[int, ...]

    @cached_property
    def _context(self) -> ReadContext:
        return ReadContext(self.metadata, self.storage)

    def __call__(self, part: planning.CombinedScanTask) -> dict[int, ThetaSketch]:
        """The sketches of the rows of some files that are not deleted, by field id."""
        paths = {field.field_id: (field, path) for field, path in leaves(self.columns)}
        builders = {field_id: ThetaBuilder(paths[field_id][0].field_type) for field_id in self.field_ids}
        for task in part.tasks:
            for batch in read_task(task, self.columns, self._context):
                for field_id, builder in builders.items():
                    builder.update(_values(batch, paths[field_id][1]))
        return {field_id: builder.sketch() for field_id, builder in builders.items()}


def _values(batch: pa.RecordBatch, path: tuple[int, ...]) -> pa.Array:
    first, *rest = path
    return pc.struct_field(batch.column(first), rest) if rest else batch.column(first)


def _sketches(
    scan: planning.TableScan, field_ids: Sequence[int], engine: MaintenanceEngine, listener: Listener
) -> dict[int, ThetaSketch]:
    parts = _parts(scan)
    stage = Stage("sketch", len(parts), listener)
    work = SketchColumns(scan.metadata.without_history(), scan.storage, scan.projection(), tuple(field_ids))
    sketches = {field_id: ThetaSketch() for field_id in field_ids}
    for made in engine.map(work, parts):
        sketches = {field_id: unite((sketch, made[field_id])) for field_id, sketch in sketches.items()}
        stage.step()
    return sketches


def _parts(scan: planning.TableScan) -> list[planning.CombinedScanTask]:
    """The files of the scan in parts of about the same size, few enough for their sketches to be gathered."""
    tasks: list[planning.FileScanTask] = list(scan.plan_files())
    total = sum(task.size_bytes for task in tasks)
    settings = replace(scan.settings, split_size=max(_LEAST_PART_BYTES, -(-total // _MOST_PARTS)))
    return list(planning.pack_tasks(tasks, settings))


# -- the file


def _statistics_file(
    metadata: md.TableMetadata, snapshot: md.Snapshot, sketches: Mapping[int, ThetaSketch]
) -> cm.WriteStatistics:
    location = f"{md.metadata_folder(metadata)}/{snapshot.snapshot_id}-{uuid.uuid4()}.stats"
    data = bytearray()
    writer = PuffinWriter(data.extend, {"created-by": "icefloe"})
    blobs = list(_blobs(snapshot, sketches))
    for blob in blobs:
        writer.add(blob)
    footer = writer.finish()
    file = md.StatisticsFile(
        snapshot.snapshot_id,
        metadata.stored_path(location),
        len(data),
        footer.size,
        tuple(
            md.BlobMetadata(blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties)
            for blob in blobs
        ),
    )
    return cm.WriteStatistics(location, bytes(data), file)


def _blobs(snapshot: md.Snapshot, sketches: Mapping[int, ThetaSketch]) -> Iterator[Blob]:
    for field_id, sketch in sketches.items():
        yield Blob(
            THETA_BLOB,
            (field_id,),
            snapshot.snapshot_id,
            snapshot.sequence_number,
            encode_sketch(sketch),
            ZSTD,
            {NDV: str(int(sketch.estimate))},
        )


def _delete_replaced(done: cm.Committed, snapshot_id: int, storage: Storage) -> None:
    """Delete the file that the snapshot had before, if nothing names it any more and the table's files may be deleted."""
    before, after = (done.base or done.state).metadata, done.state.metadata
    if not props.GC_ENABLED.of(after.properties):
        return
    replaced = [before.resolve(file.statistics_path) for file in before.statistics if file.snapshot_id == snapshot_id]
    needed = statistics_in(after)
    unneeded = (location for location in replaced if identity(location) not in needed)
    delete_own(storage, Ownership.of(after, None, before), unneeded, "statistics that were computed anew")
