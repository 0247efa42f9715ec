"""From data manifests to the files of them that a plan needs. It can be pickled, for tasks that do this elsewhere."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import numpy as np

from icefloe import expressions as ex, manifests as mf
from icefloe.planning.pruning import Pruner, Survivors
from icefloe.planning.report import ScanCounts

PrunedFiles = tuple[Survivors | None, ScanCounts]
"""The files that are needed, if there are any, and what was counted on the way to them."""

_OF_DATA = mf.ALWAYS | {
    "file_path",
    "file_format",
    "file_size_in_bytes",
    "key_metadata",
    "split_offsets",
    "sort_order_id",
}
_MOST_FILES_TOGETHER = 4096
"""More files are worth a thread of their own."""
_FOR_PRUNING = frozenset(mf.MAP_METRICS) - {mf.Metric.COLUMN_SIZES}


def live_entries(columns: mf.ManifestColumns) -> ex.Mask:
    """Entries that are part of the snapshot."""
    return np.asarray(columns.is_live.to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class ManifestPart:
    """What is looked at together: a data manifest, or entries of several that are alike to the filter."""

    manifest: mf.ManifestFile
    columns: mf.ManifestColumns | None = None
    manifests: int = 1


@dataclass(frozen=True, slots=True)
class ManifestPruning:
    """How data manifests of a plan are pruned."""

    pruner: Pruner
    entries: Callable[[mf.ManifestColumns], ex.Mask] = live_entries
    keep_metrics: bool = False
    metrics_of: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    """Columns whose metrics are wanted to find the deletes of files."""

    def parts(self, manifests: Sequence[mf.ManifestFile]) -> list[ManifestPart]:
        """The manifests in their order. Small ones in memory count as one, since each look takes a millisecond, whatever it is at."""
        if self.entries is not live_entries:
            # Others may ask which manifest entries are of.
            return list(map(ManifestPart, manifests))
        parts: list[ManifestPart] = []
        for _, run in groupby(self._runs(manifests), itemgetter(0)):
            alike = [manifest for _, manifest in run]
            columns = self.pruner.source.together(alike, self._wanted(alike[0])) if alike[1:] else None
            if columns is None:
                parts += map(ManifestPart, alike)
            else:
                parts.append(ManifestPart(alike[0], columns, len(alike)))
        return parts

    def files(self, part: ManifestPart, threads: int = 1) -> PrunedFiles:
        """The files of a part that are needed; threads may ask at once."""
        counts = ScanCounts(data_manifests_read=part.manifests)
        columns = part.columns
        if columns is None:
            columns = self.pruner.source.read(part.manifest, self._wanted(part.manifest), threads)
        return self.pruner.prune_files(part.manifest, columns, self.entries(columns), counts), counts

    def files_to_send(self, manifest: mf.ManifestFile) -> PrunedFiles:
        """The files of a manifest that are needed, with no more than the plan goes on to use."""
        survivors, counts = self.files(ManifestPart(manifest))
        if survivors is not None and not (self.keep_metrics or self.metrics_of or self.keys):
            plain = replace(survivors.files, metrics=mf.MetricColumns(len(survivors.files)), header=None)
            survivors = replace(survivors, files=plain)
        return survivors, counts

    def _runs(self, manifests: Sequence[mf.ManifestFile]) -> Iterator[tuple[tuple[int, Hashable], mf.ManifestFile]]:
        """Each manifest with what those have in common that may be looked at together."""
        run = files = 0
        for manifest in manifests:
            own = _file_count(manifest)
            files += own
            if files > _MOST_FILES_TOGETHER:
                run, files = run + 1, own
            yield (run, self.pruner.kind(manifest)), manifest

    def _wanted(self, manifest: mf.ManifestFile) -> mf.Wanted:
        """What is decoded of a manifest."""
        if self.keep_metrics:
            return mf.EVERYTHING
        field_ids = tuple(sorted({*self.pruner.metric_ids(manifest), *self.keys, *self.metrics_of}))
        metrics = _FOR_PRUNING | {mf.Metric.TIGHT_BOUNDS} if self.metrics_of else _FOR_PRUNING
        return mf.Wanted(frozenset(_OF_DATA), True, metrics if field_ids else frozenset(), field_ids)


def _file_count(manifest: mf.ManifestFile) -> int:
    """How many entries a manifest has, removed files included; many if that is not known before it is read."""
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    is_known = type(manifest) is mf.ManifestFile and None not in counts
    return sum(count or 0 for count in counts) if is_known else _MOST_FILES_TOGETHER
