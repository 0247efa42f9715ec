"""What makes a file a candidate of a rewrite whatever its size, and what keeps it from being one: specs, orders, deletes, times."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import commit as cm, errors, expressions as ex, manifests as mf, planning
from icefloe.maintenance.options import Options
from icefloe.maintenance.rewrite import options as opt
from icefloe.maintenance.rewrite.file_sizes import FileSizes
from icefloe.maintenance.rewrite.strategies import ColumnOrder, Strategy
from icefloe.maintenance.statistics.partition_counts import CommitTimes, PartitionCounts, count_partitions, range_field
from icefloe.progress import silent
from icefloe.schema import IcebergType


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files of a snapshot are candidates."""

    sizes: FileSizes
    output_spec_id: int
    old_specs: bool
    """Whether files of other specs are."""
    most_deletes: int
    most_deleted: float
    order_id: int | None = None
    """Files that do not have this order are."""
    overlapping: frozenset[planning.PartitionKey] = frozenset()
    """All files of these partitions are."""
    young: frozenset[planning.PartitionKey] = frozenset()
    """No file of these partitions is."""
    recent: frozenset[int] = frozenset()
    """Snapshots of maintenance whose files are none by their size."""

    def is_due(self, batch: planning.ScanBatch) -> ex.Mask:
        """Which files are candidates, whatever their size and deletes."""
        due = _of_partitions(batch, self.overlapping)
        if self.order_id is not None:
            has_order = pc.fill_null(pc.equal(batch.files.column("sort_order_id"), self.order_id), False)
            due |= ~np.asarray(has_order)
        return due | (self.old_specs and batch.files.spec_id != self.output_spec_id)

    def is_recent(self, files: mf.ManifestColumns) -> ex.Mask:
        """Which files maintenance has written so lately that their size is no reason."""
        if not self.recent:
            return np.zeros(len(files), np.bool_)
        return np.asarray(pc.is_in(files.column("snapshot_id"), value_set=pa.array(sorted(self.recent), pa.int64())))

    def is_young(self, batch: planning.ScanBatch) -> ex.Mask:
        """Which files are of partitions that are left alone."""
        return _of_partitions(batch, self.young)


def _of_partitions(batch: planning.ScanBatch, keys: Collection[planning.PartitionKey]) -> ex.Mask:
    if not keys:
        return np.zeros(len(batch), np.bool_)
    of_batch = batch.groups.keys()
    return np.array([key in keys for key in of_batch], np.bool_)[batch.groups.of]


def choice_of(
    scan: planning.TableScan, sizes: FileSizes, output_spec_id: int, strategy: Strategy, options: Options
) -> Choice:
    """What the options say of the snapshot of a scan; manifests are read if one is about whole partitions."""
    times = CommitTimes.of(scan.metadata)
    now, age, depth = cm.now_ms(), opt.MIN_PARTITION_AGE_MS.of(options), opt.MIN_OVERLAP_DEPTH.of(options)
    field = None if depth is None else _overlapping_field(strategy)
    counts = PartitionCounts(sizes, times, field)
    if age or depth is not None:
        _count(scan, counts)
    depths = np.nan_to_num(counts.overlap_depths())
    return Choice(
        sizes,
        output_spec_id,
        opt.REWRITE_OLD_SPECS.of(options),
        opt.DELETE_FILE_THRESHOLD.of(options),
        opt.DELETE_RATIO_THRESHOLD.of(options),
        _order_id(scan, strategy) if opt.REWRITE_STALE_ORDER.of(options) else None,
        counts.keys_where(depths >= depth) if depth is not None else frozenset(),
        counts.keys_where(counts.column("changed_ms") > now - age) if age else frozenset(),
        frozenset(made for made, time in times.maintained.items() if time > now - opt.COOLDOWN_MS.of(options)),
    )


def _count(scan: planning.TableScan, counts: PartitionCounts) -> None:
    parent = cm.Parent(scan.metadata, cm.Workbench(scan.storage, cm.Caches(), cm.now_ms), scan.snapshot())
    count_partitions(parent, parent.manifests(), counts, silent)


def _order_id(scan: planning.TableScan, strategy: Strategy) -> int:
    order = scan.metadata.sort_order() if strategy.order is None else strategy.order.stored
    if order.is_unsorted:
        wanted = "without an order" if strategy.order is None else f"by {strategy.order.text!r}"
        raise errors.InvalidInputError(
            f"option {opt.REWRITE_STALE_ORDER.key!r} is given to a rewrite {wanted}; files tell by an id of the table's"
            " sort orders how they are sorted, so sort by one of those, or make it one (`update_sort_order`)"
        )
    return order.order_id


def _overlapping_field(strategy: Strategy) -> tuple[int, IcebergType]:
    order = strategy.order
    field = range_field(order.order, order.schema) if isinstance(order, ColumnOrder) else None
    if field is None:
        raise errors.InvalidInputError(
            f"option {opt.MIN_OVERLAP_DEPTH.key!r} needs a sort order that begins with a column, whose bounds files have,"
            f" and not {'no order' if order is None else repr(order.text)}"
        )
    return field
