"""One run of a plan: reads manifests, gives out batches or tasks, counts, and reports when it ends, however it ends."""

import time
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Self

import numpy as np
import pyarrow.compute as pc

from icefloe import expressions as ex, manifests as mf, parallel
from icefloe.planning.batches import ScanBatch, batch_of
from icefloe.planning.delete_files import WANTED_OF_DELETES, DeleteFiles, choose_delete_files
from icefloe.planning.delete_index import DeleteIndex
from icefloe.planning.options import ScanOptions
from icefloe.planning.pruning import Pruner, shown_filter
from icefloe.planning.reading import ManifestSource, decoding_threads
from icefloe.planning.report import Reporter, ScanCounts, ScanReport, deliver
from icefloe.planning.tasks import FileScanTask

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
class PlanRequest:
    """All that a plan needs: where manifests are, which rows are wanted, and which entries count."""

    source: ManifestSource
    bound: ex.Expression
    options: ScanOptions
    manifests: Callable[[], Sequence[mf.ManifestFile]]
    entries: Callable[[mf.ManifestColumns], ex.Mask] = live_entries
    needs_live: bool = True
    """Whether data manifests without live entries hold nothing of interest."""
    with_deletes: bool = True
    whole_files: bool = False
    """Whether all rows of the files are read, those that do not match included: all their deletes are needed then."""
    keep_metrics: bool = False
    limit: int | None = None
    metrics_of: tuple[int, ...] = ()
    """Columns whose metrics are wanted in batches, besides those that the filter needs."""
    share_deletes: Callable[[Callable[[], DeleteIndex]], DeleteIndex] | None = None
    """Given how the deletes are gathered, says what they are: plans of parts of one snapshot, with one filter, share them."""


class Progress:
    """How far a plan is; it outlives the plan."""

    def __init__(self, request: PlanRequest, projected: tuple[str, ...], reporter: Reporter, table: str = "") -> None:
        self.request = request
        self.projected = projected
        self.reporter = reporter
        self.table = table
        self.counts = ScanCounts()
        self.is_complete = False
        self._started = time.perf_counter()
        self._first: float | None = None
        self._seconds: float | None = None

    def report(self) -> ScanReport:
        """What was done so far."""
        source = self.request.source
        return ScanReport(
            source.metadata.table_uuid,
            source.snapshot_id,
            source.schema.schema_id,
            shown_filter(self.request.bound),
            self.projected,
            replace(self.counts),
            time.perf_counter() - self._started if self._seconds is None else self._seconds,
            self._first,
            self.is_complete,
            self.table,
            source.metadata.location,
            source.schema,
        )

    def start(self) -> None:
        """Time runs from here."""
        self._started = time.perf_counter()

    def take(self, batch: ScanBatch) -> None:
        """Count what is given out."""
        if self._first is None:
            self._first = time.perf_counter() - self._started
        counts = self.counts
        counts.result_data_files += len(batch)
        counts.result_bytes += pc.sum(batch.files.column("file_size_in_bytes")).as_py() or 0
        counts.files_without_residual += batch.without_residual
        deletes, delete_bytes = batch.deletes_and_bytes
        counts.result_delete_files += deletes
        counts.result_delete_bytes += delete_bytes

    def finish(self) -> None:
        """Time stops, and the report goes out."""
        self._seconds = time.perf_counter() - self._started
        deliver(self.report(), self.reporter)


class Plan:
    """Batches of a plan, made while they are asked for. Close it, or let go of it, to end its threads."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        # The generator knows nothing of this object, so that both go when the last reference to this one goes.
        self._batches = _run(progress)

    @property
    def report(self) -> ScanReport:
        """What was done so far."""
        return self._progress.report()

    def __iter__(self) -> Iterator[ScanBatch]:
        return self._batches

    def close(self) -> None:
        """End it: threads stop, and the report goes out if anything was done."""
        self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def tasks(self) -> Generator[FileScanTask, None, None]:
        """The tasks of all batches; it ends early once tasks that need no look at rows have as many as the limit asks for."""
        limit = self._progress.request.limit
        with self:
            if limit == 0:
                return
            for batch in self._batches:
                if limit is None:
                    yield from batch.tasks()
                    continue
                enough, rows = batch.rows_until(limit)
                yield from islice(batch.tasks(), enough)
                if rows >= limit:
                    return
                limit -= rows


def _run(progress: Progress) -> Generator[ScanBatch, None, None]:
    progress.start()
    batches = _pruned(progress)
    try:
        for batch in batches:
            progress.take(batch)
            yield batch
        progress.is_complete = True
    finally:
        batches.close()
        progress.finish()


def _pruned(progress: Progress) -> Generator[ScanBatch, None, None]:
    request, counts = progress.request, progress.counts
    pruner = Pruner(request.bound, request.source, request.options)
    of_data, of_deletes = _by_content(request.manifests())
    counts.data_manifests += len(of_data)
    counts.delete_manifests += len(of_deletes)
    of_data = pruner.prune_manifests(of_data, counts, request.needs_live)
    index: DeleteIndex | None = None
    if request.with_deletes and of_deletes and of_data:
        index = _shared(request, lambda: _delete_index(request, pruner, of_deletes, counts))
    wanted = partial(_wanted_of_data, request, pruner, index)
    work = _data_work(request, pruner, index, wanted, decoding_threads(len(of_data), request.options.workers))
    # A limit is mostly reached with the first manifest, so the others are not read ahead at once.
    first = None if request.limit is None else 1
    parts = _parts(request, pruner, of_data, wanted) if first is None else list(map(_Part, of_data))
    results = parallel.in_order(work, parts, request.options.workers, "icefloe-planning", first=first)
    try:
        for batch, own_counts in results:
            counts.add(own_counts)
            if batch is not None:
                yield batch
    finally:
        results.close()


def manifests_of_plan(request: PlanRequest) -> tuple[list[mf.ManifestFile], list[mf.ManifestFile]]:
    """The data manifests that the plan would read, and the delete manifests, of which it may read fewer."""
    of_data, of_deletes = _by_content(request.manifests())
    pruner = Pruner(request.bound, request.source, request.options)
    return pruner.prune_manifests(of_data, ScanCounts(), request.needs_live), of_deletes


def _by_content(manifests: Sequence[mf.ManifestFile]) -> tuple[list[mf.ManifestFile], list[mf.ManifestFile]]:
    of_data = [manifest for manifest in manifests if manifest.content is mf.ManifestContent.DATA]
    return of_data, [manifest for manifest in manifests if manifest.content is mf.ManifestContent.DELETES]


def _shared(request: PlanRequest, gather: Callable[[], DeleteIndex]) -> DeleteIndex:
    return gather() if request.share_deletes is None else request.share_deletes(gather)


def _delete_index(
    request: PlanRequest, pruner: Pruner, of_deletes: list[mf.ManifestFile], counts: ScanCounts
) -> DeleteIndex:
    manifests = pruner.prune_manifests(of_deletes, counts)
    threads = decoding_threads(len(manifests), request.options.workers)

    def work(manifest: mf.ManifestFile) -> tuple[DeleteFiles | None, ScanCounts]:
        own_counts = ScanCounts()
        columns = request.source.read(manifest, WANTED_OF_DELETES, threads)
        chosen = choose_delete_files(manifest, columns, pruner, own_counts, whole_files=request.whole_files)
        return chosen, own_counts

    parts = []
    for part, own_counts in parallel.in_order(work, manifests, request.options.workers, "icefloe-planning"):
        counts.add(own_counts)
        if part is not None:
            parts.append(part)
    return DeleteIndex(request.source.metadata, request.source.schema, parts, counts, request.options.prune_deletes)


@dataclass(frozen=True, slots=True)
class _Part:
    """What is looked at together: a data manifest, or entries of several that are alike to the filter."""

    manifest: mf.ManifestFile
    columns: mf.ManifestColumns | None = None
    manifests: int = 1


def _parts(
    request: PlanRequest,
    pruner: Pruner,
    manifests: Sequence[mf.ManifestFile],
    wanted: Callable[[mf.ManifestFile], mf.Wanted],
) -> list[_Part]:
    """The manifests in their order. Small ones in memory count as one, since each look takes a millisecond, whatever it is at."""
    parts: list[_Part] = []
    for _, run in groupby(_runs(manifests, pruner), itemgetter(0)):
        alike = [manifest for _, manifest in run]
        columns = request.source.together(alike, wanted(alike[0])) if alike[1:] else None
        if columns is None:
            parts += map(_Part, alike)
        else:
            parts.append(_Part(alike[0], columns, len(alike)))
    return parts


def _runs(
    manifests: Sequence[mf.ManifestFile], pruner: Pruner
) -> Iterator[tuple[tuple[int, Hashable], mf.ManifestFile]]:
    """Each manifest with what those have in common that may be looked at together."""
    run = files = 0
    for manifest in manifests:
        own = _file_count(manifest)
        files += own
        if files > _MOST_FILES_TOGETHER:
            run, files = run + 1, own
        yield (run, pruner.kind(manifest)), manifest


def _file_count(manifest: mf.ManifestFile) -> int:
    """How many entries a manifest has, removed files included; many if that is not known before it is read."""
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    is_known = type(manifest) is mf.ManifestFile and None not in counts
    return sum(count or 0 for count in counts) if is_known else _MOST_FILES_TOGETHER


def _wanted_of_data(
    request: PlanRequest, pruner: Pruner, index: DeleteIndex | None, manifest: mf.ManifestFile
) -> mf.Wanted:
    """What is decoded of a data manifest."""
    if request.keep_metrics:
        return mf.EVERYTHING
    keys = () if index is None else index.metric_ids
    field_ids = tuple(sorted({*pruner.metric_ids(manifest), *keys, *request.metrics_of}))
    metrics = _FOR_PRUNING | {mf.Metric.TIGHT_BOUNDS} if request.metrics_of else _FOR_PRUNING
    return mf.Wanted(frozenset(_OF_DATA), True, metrics if field_ids else frozenset(), field_ids)


def _data_work(
    request: PlanRequest,
    pruner: Pruner,
    index: DeleteIndex | None,
    wanted: Callable[[mf.ManifestFile], mf.Wanted],
    threads: int,
) -> Callable[[_Part], tuple[ScanBatch | None, ScanCounts]]:
    """From a part of the data manifests to the files of it that are needed; runs in threads."""

    def work(part: _Part) -> tuple[ScanBatch | None, ScanCounts]:
        counts = ScanCounts(data_manifests_read=part.manifests)
        manifest, columns = part.manifest, part.columns
        if columns is None:
            columns = request.source.read(manifest, wanted(manifest), threads)
        survivors = pruner.prune_files(manifest, columns, request.entries(columns), counts)
        if survivors is None:
            return None, counts
        deletes = None if index is None else index.match(survivors)
        return batch_of(survivors, deletes, request.keep_metrics, bool(request.metrics_of)), counts

    return work
