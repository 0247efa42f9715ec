"""What may be set for one scan: split sizes over those of the table, threads, and each level of pruning on or off."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from icefloe import errors, properties as props

_MOST_WORKERS = 64


def default_workers() -> int:
    """Threads that read manifests: twice the processors, since they mostly wait for a store, at most 16."""
    return min(16, 2 * (os.cpu_count() or 1))


def _workers(properties: Mapping[str, str], key: str, default: int) -> int:
    workers = props.property_as_int(properties, key, default, at_least=0) or default_workers()
    return min(workers, _MOST_WORKERS)


PRUNE_MANIFESTS = props.Property("planning.prune-manifests", True, props.property_as_bool)
"""Skip manifests by counts and partition summaries."""
PRUNE_PARTITIONS = props.Property("planning.prune-partitions", True, props.property_as_bool)
"""Skip files by their partition."""
PRUNE_METRICS = props.Property("planning.prune-metrics", True, props.property_as_bool)
"""Skip files by the metrics of their columns."""
PRUNE_DELETES = props.Property("planning.prune-deletes", True, props.property_as_bool)
"""Skip delete files that the filter, or the metrics of a data file, rule out."""
DROP_RESIDUALS = props.Property("planning.drop-residuals", True, props.property_as_bool)
"""Ask nothing more of rows that partition or metrics already decide."""
WORKERS = props.Property("planning.workers", 0, _workers)
"""Threads that read manifests; 0 leaves it to the machine."""

PRUNING_SWITCHES = (PRUNE_MANIFESTS, PRUNE_PARTITIONS, PRUNE_METRICS, PRUNE_DELETES, DROP_RESIDUALS)
"""Every level of pruning; results are the same without any of them, only slower."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """The settings of one scan, read and checked."""

    prune_manifests: bool
    prune_partitions: bool
    prune_metrics: bool
    prune_deletes: bool
    drop_residuals: bool
    workers: int
    split_size: int
    split_lookback: int
    split_open_file_cost: int


def scan_options(options: Mapping[str, str], properties: Mapping[str, str]) -> ScanOptions:
    """What the options say, and where they are silent, the table's properties."""
    for key, value in options.items():
        option: tuple[object, object] = (key, value)
        if not all(isinstance(text, str) for text in option):
            raise errors.InvalidPropertyError(f"scan option {key!r} is {value!r}; keys and values must be text")
    known = {**properties, **options}
    cost = props.SPLIT_OPEN_FILE_COST.of(known)
    if cost < 0:
        raise errors.InvalidPropertyError(
            f"property {props.SPLIT_OPEN_FILE_COST.key!r} is {cost}; it must not be negative"
        )
    return ScanOptions(
        prune_manifests=PRUNE_MANIFESTS.of(options),
        prune_partitions=PRUNE_PARTITIONS.of(options),
        prune_metrics=PRUNE_METRICS.of(options),
        prune_deletes=PRUNE_DELETES.of(options),
        drop_residuals=DROP_RESIDUALS.of(options),
        workers=WORKERS.of(options),
        split_size=props.SPLIT_SIZE.of(known),
        split_lookback=props.SPLIT_LOOKBACK.of(known),
        split_open_file_cost=cost,
    )
