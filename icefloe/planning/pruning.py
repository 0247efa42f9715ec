"""Which manifests and files may hold a matching row, and what is left to ask of the rows of each (spec: Scan Planning).

All files of a manifest are asked at once, in columns: first their distinct partitions, then the metrics of those columns
that the partition does not decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pyarrow as pa

from icefloe import errors, expressions as ex, manifests as mf
from icefloe.partitioning import PartitionSpec, transforms as tr
from icefloe.planning.options import ScanOptions
from icefloe.planning.partitions import Numbers, PartitionGroups, group_partitions
from icefloe.planning.reading import ManifestSource, PartialStatistics, differing_types, without_values
from icefloe.planning.report import ScanCounts

_View = tuple[int, frozenset[int]]
"""A spec, and those of its fields whose values are of a type that the filter does not speak of."""

_EVERY_ROW = ex.AlwaysTrue()


class SpecFilter:
    """A row filter as seen through one partition spec."""

    def __init__(self, bound: ex.Expression, spec: PartitionSpec) -> None:
        self.residuals = ex.Residuals(bound, spec)
        self.inclusive = self.residuals.inclusive()
        self.strict = self.residuals.strict()
        self.metric_ids = tuple(sorted(_undecided_ids(bound, spec)))


def _undecided_ids(bound: ex.Expression, spec: PartitionSpec) -> set[int]:
    """The columns whose metrics can tell more than the partition does: all but those that are partition values."""
    decided = {field.source_id for field in spec.fields if isinstance(field.transform, tr.IdentityTransform)}
    return {reference.field_id for reference in ex.bound_references(bound)} - decided


@dataclass(frozen=True, slots=True, eq=False)
class Survivors:
    """Files of one manifest that may hold a matching row; `residual_of` says which residual is that of each file."""

    files: mf.ManifestColumns
    groups: PartitionGroups
    residuals: tuple[ex.Expression, ...]
    residual_of: Numbers


class Pruner:
    """One row filter, bound to the schema of the scan, over all specs of the table."""

    def __init__(self, bound: ex.Expression, source: ManifestSource, options: ScanOptions) -> None:
        self.bound = bound
        self.source = source
        self.options = options
        self._by_spec: dict[_View, SpecFilter] = {}
        self._column_ids = frozenset(reference.field_id for reference in ex.bound_references(bound))

    def __reduce__(self) -> tuple[type["Pruner"], tuple[ex.Expression, ManifestSource, ScanOptions]]:
        return Pruner, (self.bound, self.source, self.options)

    def of_spec(self, manifest: mf.ManifestFile) -> SpecFilter:
        """The filter as seen through the manifest's spec, by what the list says of it."""
        return self._filter(self._view(manifest))

    def of_values(self, manifest: mf.ManifestFile, columns: mf.ManifestColumns) -> SpecFilter:
        """The filter as seen through the manifest's spec, for its partition values."""
        unlike = differing_types(columns.partition_type, self.source.partition_type(manifest))
        return self._filter((manifest.partition_spec_id, frozenset(unlike)))

    def kind(self, manifest: mf.ManifestFile) -> tuple[_View, frozenset[int]]:
        """What the filter may say of a manifest's entries depends on: those of equal kind can be asked together."""
        return self._view(manifest), self.source.replaced.columns(self._column_ids, manifest)

    def _view(self, manifest: mf.ManifestFile) -> _View:
        spec = self.source.spec(manifest)
        return spec.spec_id, self.source.replaced.fields(spec, manifest)

    def _filter(self, view: _View) -> SpecFilter:
        seen = self._by_spec.get(view)
        if seen is None:
            spec_id, unlike = view
            seen = SpecFilter(self.bound, without_values(self.source.metadata.spec(spec_id), unlike))
            self._by_spec[view] = seen
        return seen

    def metric_ids(self, manifest: mf.ManifestFile) -> tuple[int, ...]:
        """The columns whose metrics this filter needs from a manifest."""
        if not self.options.prune_metrics and not self.options.drop_residuals:
            return ()
        return self.of_spec(manifest).metric_ids

    def prune_manifests(
        self, manifests: Sequence[mf.ManifestFile], counts: ScanCounts, needs_live: bool = True
    ) -> list[mf.ManifestFile]:
        """The manifests that may hold a file with a matching row, a live one unless removed ones are wanted too."""
        if not self.options.prune_manifests:
            return list(manifests)
        live = [manifest for manifest in manifests if manifest.has_live_files or not needs_live]
        counts.manifests_skipped_empty += len(manifests) - len(live)
        by_spec: dict[_View, list[int]] = {}
        for index, manifest in enumerate(live):
            by_spec.setdefault(self._view(manifest), []).append(index)
        might_match = np.zeros(len(live), bool)
        for view, indices in by_spec.items():
            summaries = mf.SummaryColumns([live[index] for index in indices])
            might_match[indices] = ex.partitions_might_match(self._filter(view).inclusive, summaries)
        counts.manifests_skipped_by_partition += len(live) - int(might_match.sum())
        return list(compress(live, might_match))

    def prune_files(
        self, manifest: mf.ManifestFile, columns: mf.ManifestColumns, is_wanted: ex.Mask, counts: ScanCounts
    ) -> Survivors | None:
        """The files among those wanted that may hold a matching row; None if there are none."""
        rows = np.flatnonzero(is_wanted)
        counts.data_files += len(rows)
        if not len(rows):
            return None
        files = _at(columns, rows)
        groups = group_partitions(files)
        if isinstance(self.bound, ex.AlwaysTrue):
            return Survivors(files, groups, (_EVERY_ROW,), np.zeros(len(files), np.int64))
        rows, residuals, residual_of = self._by_partition(self.of_values(manifest, files), groups)
        counts.data_files_skipped_by_partition += len(files) - len(rows)
        is_kept, residual_of = self._by_metrics(manifest, files, rows, residuals, residual_of)
        counts.data_files_skipped_by_metrics += len(rows) - int(is_kept.sum())
        rows = rows[is_kept]
        if not len(rows):
            return None
        # Only now, and once: most columns of most files are never looked at.
        return Survivors(_at(files, rows), groups.at(rows), residuals, residual_of[is_kept])

    def keep_partitions(self, manifest: mf.ManifestFile, groups: PartitionGroups) -> ex.Mask:
        """Which partitions may hold a matching row."""
        if not self.options.prune_partitions:
            return np.ones(len(groups), bool)
        return _partition_mask(self.of_values(manifest, groups.rows).inclusive, groups.rows)

    def _by_partition(
        self, spec: SpecFilter, groups: PartitionGroups
    ) -> tuple[Numbers, tuple[ex.Expression, ...], Numbers]:
        """The files whose partitions may hold a matching row, the different residuals, and which is that of each file."""
        maybe = np.ones(len(groups), bool)
        if self.options.prune_partitions:
            maybe = _partition_mask(spec.inclusive, groups.rows)
        residuals, group_residual = self._residuals(spec, groups, maybe)
        rows = np.flatnonzero(maybe[groups.of])
        return rows, residuals, group_residual[groups.of[rows]]

    def _residuals(
        self, spec: SpecFilter, groups: PartitionGroups, maybe: ex.Mask
    ) -> tuple[tuple[ex.Expression, ...], Numbers]:
        """The different residuals, the first of which is that of every row, and the one of each partition."""
        if not self.options.drop_residuals:
            return (_EVERY_ROW, self.bound), np.ones(len(groups), np.int64)
        number: dict[ex.Expression, int] = {_EVERY_ROW: 0}
        by_identity: dict[int, int] = {}
        residual_of = np.zeros(len(groups), np.int64)
        for group in np.flatnonzero(maybe & ~_partition_mask(spec.strict, groups.rows)).tolist():
            left = spec.residuals.of(groups.tuples[group])
            # Most partitions leave the very same predicate, and large ones take long to compare.
            if id(left) not in by_identity:
                by_identity[id(left)] = number.setdefault(left, len(number))
            residual_of[group] = by_identity[id(left)]
        return tuple(number), residual_of

    def _by_metrics(
        self,
        manifest: mf.ManifestFile,
        files: mf.ManifestColumns,
        rows: Numbers,
        residuals: tuple[ex.Expression, ...],
        residual_of: Numbers,
    ) -> tuple[ex.Mask, Numbers]:
        """Which of the files at `rows` may hold a matching row, and the residual of each."""
        unlike = self.source.replaced.columns(self._column_ids, manifest)
        is_kept = np.ones(len(rows), bool)
        left = residual_of.copy()
        for index, residual in enumerate(residuals):
            if isinstance(residual, ex.AlwaysTrue):
                continue
            asked = np.flatnonzero(residual_of == index)
            if not len(asked):
                continue
            known = _statistics(files, rows[asked])
            answers = ex.FileAnswers(
                PartialStatistics(known, lambda field_id: field_id not in unlike) if unlike else known
            )
            if self.options.prune_metrics:
                is_kept[asked] = answers.might_match(residual)
            if self.options.drop_residuals:
                left[asked[answers.must_match(residual)]] = 0
        return is_kept, left


def _at(files: mf.ManifestColumns, rows: Numbers) -> mf.ManifestColumns:
    """The files at these positions, which are in order and different."""
    return files if len(rows) == len(files) else files.take(pa.array(rows))


def _statistics(files: mf.ManifestColumns, rows: Numbers) -> mf.ManifestColumns:
    """The files at these positions with nothing but their metrics."""
    plain = {name: files.columns[name] for name in ("record_count",) if name in files.columns}
    return _at(replace(files, columns=plain, partition={}), rows)


def _partition_mask(projected: ex.Expression, rows: mf.ManifestColumns) -> ex.Mask:
    """For each partition, whether the predicate, which is bound to the partition type, holds."""
    if isinstance(projected, ex.AlwaysTrue | ex.AlwaysFalse):
        return np.full(len(rows), isinstance(projected, ex.AlwaysTrue))
    answer = ex.mask(projected, rows.partition_table)
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    return np.asarray(answer.to_numpy(zero_copy_only=False))


def sequence_numbers(files: mf.ManifestColumns) -> Numbers:
    """The data sequence number of each file."""
    column = files.column("sequence_number")
    if column.null_count:
        raise errors.CorruptFileError(
            files.location, f"{column.null_count} entries have no sequence number and are not new, so they inherit none"
        )
    return np.asarray(column.to_numpy(zero_copy_only=False))


def shown_filter(expression: ex.Expression) -> str:
    """The predicate with its constants left out."""
    match expression:
        case ex.And():
            return f"({' and '.join(map(shown_filter, expression.children))})"
        case ex.Or():
            return f"({' or '.join(map(shown_filter, expression.children))})"
        case ex.Predicate():
            return f"{type(expression).__name__}({expression.term})"
        case _:
            return str(expression)
