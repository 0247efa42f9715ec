"""One run of a plan: reads manifests, gives out batches or tasks, counts, and reports when it ends, however it ends."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import pyarrow.compute as pc

from icefloe import expressions as ex, manifests as mf, parallel
from icefloe.planning.batches import ScanBatch, batch_of
from icefloe.planning.delete_files import WANTED_OF_DELETES, DeleteFiles, choose_delete_files
from icefloe.planning.delete_index import DeleteIndex
from icefloe.planning.manifest_pruning import ManifestPart, ManifestPruning, PrunedFiles, live_entries
from icefloe.planning.options import ScanOptions
from icefloe.planning.pruning import Pruner, shown_filter
from icefloe.planning.reading import ManifestSource, decoding_threads
from icefloe.planning.report import Reporter, ScanCounts, ScanReport, deliver
from icefloe.planning.tasks import FileScanTask

Spread = Callable[[ManifestPruning, Sequence[mf.ManifestFile]], Iterator[PrunedFiles] | None]
"""Has manifests pruned elsewhere, such as by tasks of a cluster, and gives what is left of each in order; None to do it here."""


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
    spread: Spread | None = None
    """Who may prune data manifests in place of this process."""
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
                yield from batch.first(enough).tasks()
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
    results = _results(request, pruner, of_data, index)
    try:
        for batch, own_counts in results:
            counts.add(own_counts)
            if batch is not None:
                yield batch
    finally:
        results.close()


def _results(
    request: PlanRequest, pruner: Pruner, manifests: Sequence[mf.ManifestFile], index: DeleteIndex | None
) -> Generator[tuple[ScanBatch | None, ScanCounts], None, None]:
    """The files that are needed with their deletes, manifest by manifest or of several together."""
    keys = () if index is None else index.metric_ids
    pruning = ManifestPruning(pruner, request.entries, request.keep_metrics, request.metrics_of, keys)
    workers, has_limit = request.options.workers, request.limit is not None

    def batch(pruned: PrunedFiles) -> tuple[ScanBatch | None, ScanCounts]:
        survivors, counts = pruned
        if survivors is None:
            return None, counts
        deletes = None if index is None else index.match(survivors)
        return batch_of(survivors, deletes, request.keep_metrics, bool(request.metrics_of)), counts

    if request.spread is not None and not has_limit:
        elsewhere = request.spread(pruning, manifests)
        if elsewhere is not None:
            yield from map(batch, elsewhere)
            return
    threads = decoding_threads(len(manifests), workers)
    # A limit is mostly reached with the first manifest, so the others are not read ahead at once.
    parts, first = (list(map(ManifestPart, manifests)), 1) if has_limit else (pruning.parts(manifests), None)
    yield from parallel.in_order(
        lambda part: batch(pruning.files(part, threads)), parts, workers, "icefloe-planning", first=first
    )


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
