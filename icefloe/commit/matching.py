"""Which manifests and files a predicate on rows concerns: may hold a matching row, or hold matching rows only.

Each part of the predicate is asked of the partition values and of the statistics, and the better answer counts.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import pyarrow as pa

from icefloe import expressions as ex
from icefloe.commit.partitions import Mask, as_mask
from icefloe.manifests import WITHOUT_METRICS, ManifestColumns, ManifestFile, SummaryColumns, Wanted, wanted
from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionSpec
from icefloe.planning import ReplacedColumns, differing_types, without_values
from icefloe.schema import Schema

FilterInput = ex.Expression | str | bool
Leaf = Callable[[ex.Expression, ManifestColumns], Mask]


@dataclass(frozen=True)
class RowFilter:
    """A predicate on the rows of a table, bound to its schema. Not slotted, for what is computed once."""

    metadata: TableMetadata
    bound: ex.Expression

    @cached_property
    def _replaced(self) -> ReplacedColumns:
        return ReplacedColumns(self.metadata, self._schema)

    @staticmethod
    def of(predicate: FilterInput, metadata: TableMetadata, *, case_sensitive: bool = True) -> "RowFilter":
        """The predicate, from text or as a value, over the table's current schema."""
        if isinstance(predicate, bool):
            predicate = ex.AlwaysTrue() if predicate else ex.AlwaysFalse()
        return RowFilter(metadata, ex.bind(ex.as_expression(predicate), metadata.schema(), case_sensitive))

    def __str__(self) -> str:
        return str(self.bound)

    @property
    def is_nothing(self) -> bool:
        """Whether no row can match."""
        return isinstance(self.bound, ex.AlwaysFalse)

    @property
    def wanted(self) -> Wanted:
        """All columns of a manifest, and the metrics that the other questions need."""
        return replace(wanted(field_ids=_field_ids(self.bound)), columns=WITHOUT_METRICS.columns)

    def may_be_in(self, manifest: ManifestFile) -> bool:
        """Whether the manifest's summaries allow for a file with a matching row."""
        if manifest.partitions is None:
            return not self.is_nothing
        spec = self.metadata.spec(manifest.partition_spec_id)
        spec = without_values(spec, self._replaced.fields(spec, manifest))
        projected = ex.inclusive_projection(self.bound, spec, self._schema)
        return bool(ex.partitions_might_match(projected, SummaryColumns([manifest]))[0])

    def might(self, files: ManifestColumns) -> Mask:
        """Which files may hold a matching row."""
        return self._inclusive(files) & self._ask(self.bound, files, self._might_leaf)

    def must(self, files: ManifestColumns) -> Mask:
        """Which files hold matching rows only; a file without rows is one of them if its partition matches."""
        return self._inclusive(files) & self._ask(self.bound, files, self._must_leaf)

    def may_hold(self, files: ManifestColumns) -> Mask:
        """Which files are in a partition that may hold a matching row; delete files, too, for which no statistics speak."""
        return self._inclusive(files)

    def _inclusive(self, files: ManifestColumns) -> Mask:
        return _matching_partitions(ex.inclusive_projection(self.bound, self._spec(files), self._schema), files)

    def _spec(self, files: ManifestColumns) -> PartitionSpec:
        """The spec of the files, with nothing known of values that are not of their column's type."""
        spec = self.metadata.spec(files.spec_id)
        return without_values(spec, differing_types(files.partition_type, self.metadata.partition_type(spec.spec_id)))

    @property
    def _schema(self) -> Schema:
        return self.metadata.schema()

    def _ask(self, part: ex.Expression, files: ManifestColumns, leaf: Leaf) -> Mask:
        match part:
            case ex.AlwaysTrue():
                return np.ones(len(files), bool)
            case ex.AlwaysFalse():
                return np.zeros(len(files), bool)
            case ex.And():
                return reduce(np.logical_and, (self._ask(child, files, leaf) for child in part.children))
            case ex.Or():
                return reduce(np.logical_or, (self._ask(child, files, leaf) for child in part.children))
            case _:
                return leaf(part, files)

    def _might_leaf(self, part: ex.Expression, files: ManifestColumns) -> Mask:
        by_partition = _matching_partitions(ex.inclusive_projection(part, self._spec(files), self._schema), files)
        return by_partition & (ex.might_match(part, files) | ~self._tells(part, files))

    def _must_leaf(self, part: ex.Expression, files: ManifestColumns) -> Mask:
        by_partition = _matching_partitions(ex.strict_projection(part, self._spec(files), self._schema), files)
        return by_partition | (ex.must_match(part, files) & self._tells(part, files))

    def _tells(self, part: ex.Expression, files: ManifestColumns) -> Mask:
        """Whether the metrics of each file are those of the columns that the predicate speaks of."""
        return self._replaced.is_alike(_field_ids(part), files.column("snapshot_id"))


def _field_ids(expression: ex.Expression) -> list[int]:
    return [reference.field_id for reference in ex.bound_references(expression)]


def _matching_partitions(expression: ex.Expression, files: ManifestColumns) -> Mask:
    if isinstance(expression, ex.AlwaysTrue):
        return np.ones(len(files), bool)
    if isinstance(expression, ex.AlwaysFalse):
        return np.zeros(len(files), bool)
    matching = ex.mask(expression, files.partition_table)
    return as_mask(matching.combine_chunks() if isinstance(matching, pa.ChunkedArray) else matching)
