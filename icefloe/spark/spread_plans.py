"""Plans of very large tables: tasks of a cluster read and prune the data manifests (`read.data-planning-mode`).

Delete manifests are read by the driver, since each file needs to know the deletes of all of them.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from icefloe import properties as props
from icefloe.manifests import ManifestFile
from icefloe.planning import ManifestPruning, PrunedFiles, Spread, TableScan
from icefloe.spark.task_abilities import is_local, reaches_manifests, tasks_know_us

logger = logging.getLogger("icefloe.spark")

MOST_BYTES_HERE = 512 << 20
"""Manifests that this process reads within seconds. More are left to tasks by the mode `auto` if the cluster is larger."""


def spread_of(spark: SparkSession, scan: TableScan) -> Spread | None:
    """What has tasks prune the manifests of a scan; None if this process always does it."""
    known = {**scan.metadata.properties, **scan.options}
    mode = props.DATA_PLANNING_MODE.of(known)
    is_asked = mode == "distributed"
    if mode == "local" or (is_local(spark) and not is_asked) or not reaches_manifests(scan.metadata):
        return None
    return _ByTasks(spark, props.SPLIT_METADATA_SIZE.of(known), is_always=is_asked)


@dataclass(frozen=True)
class _ByTasks:
    """Whether to leave manifests to tasks, and how."""

    spark: SparkSession
    bytes_of_task: int
    is_always: bool

    def __call__(self, pruning: ManifestPruning, manifests: Sequence[ManifestFile]) -> Iterator[PrunedFiles] | None:
        if len(manifests) < 2 or not (self.is_always or self._is_worth_it(manifests)) or not tasks_know_us(self.spark):
            return None
        groups = list(_groups(manifests, self.bytes_of_task))
        try:
            jobs = self.spark.sparkContext.parallelize(groups, len(groups))
            pruned: list[PrunedFiles] = jobs.flatMap(_Task(pruning)).collect()
            return iter(pruned)
        except Exception as error:  # noqa: BLE001  # this process finds out what is wrong with a file, and says it well
            logger.warning("tasks failed to plan, so this process does: %s", str(error).partition("\n")[0])
            return None

    def _is_worth_it(self, manifests: Sequence[ManifestFile]) -> bool:
        is_large = sum(manifest.manifest_length for manifest in manifests) > MOST_BYTES_HERE
        return is_large and self.spark.sparkContext.defaultParallelism >= 2 * (os.cpu_count() or 1)


@dataclass(frozen=True)
class _Task:
    """What a task does: from manifests to the files of each that are needed."""

    pruning: ManifestPruning

    def __call__(self, manifests: Iterable[ManifestFile]) -> Iterator[PrunedFiles]:
        return map(self.pruning.files_to_send, manifests)


def _groups(manifests: Iterable[ManifestFile], size: int) -> Iterator[tuple[ManifestFile, ...]]:
    """Neighbours of about so many bytes together."""
    group: list[ManifestFile] = []
    weight = 0
    for manifest in manifests:
        if group and weight + manifest.manifest_length > size:
            yield tuple(group)
            group, weight = [], 0
        group.append(manifest)
        weight += manifest.manifest_length
    if group:
        yield tuple(group)
