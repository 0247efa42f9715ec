"""`MERGE` as a Python call: `ice.merge("shop.orders").using(df, "t.id = s.id").when_matched_update().execute()`.

Conditions and values are texts or Columns over the aliases `t`, the target, and `s`, the source, unless others are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession, functions as F  # noqa: N812  # its usual name

from icefloe import errors, metadata as md
from icefloe.spark.auditing import destination
from icefloe.spark.row_level import TargetTable
from icefloe.spark.row_merge import Action, Clause, Merge, merge_rows
from icefloe.spark.row_statements import Assignment
from icefloe.spark.sql.context import mentioned_metadata
from icefloe.spark.user_side import quoted_name
from icefloe.streaming import StreamBatch
from icefloe.table import Table

Condition: TypeAlias = str | Column
Values: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class MergeBuilder:
    """A merge built clause by clause; each call returns a new one, and `execute` runs it."""

    spark: SparkSession
    table: Table
    source: DataFrame | None = None
    on: Condition | Sequence[str] | None = None
    target_alias: str = "t"
    source_alias: str | None = "s"
    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    by_source: tuple[Clause, ...] = ()
    evolves: bool = False
    branch: str | None = None
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    batch: StreamBatch | None = None

    def using(
        self, source: DataFrame, on: Condition | Sequence[str], *, target_alias: str = "t", source_alias: str = "s"
    ) -> "MergeBuilder":
        """The rows to merge, and the condition that a row of each fit together, or the columns that must be equal."""
        return replace(self, source=source, on=on, target_alias=target_alias, source_alias=source_alias)

    def when_matched_update(self, values: Values | None = None, condition: Condition | None = None) -> "MergeBuilder":
        """Update the target row: the columns named, or all of them from the source."""
        return replace(self, matched=_with(self.matched, Action.UPDATE, condition, values))

    def when_matched_delete(self, condition: Condition | None = None) -> "MergeBuilder":
        """Delete the target row."""
        return replace(self, matched=_with(self.matched, Action.DELETE, condition))

    def when_not_matched_insert(
        self, values: Values | None = None, condition: Condition | None = None
    ) -> "MergeBuilder":
        """Add a row for a source row that no target row matches: the columns named, or all of them."""
        return replace(self, not_matched=_with(self.not_matched, Action.INSERT, condition, values))

    def when_not_matched_by_source_update(self, values: Values, condition: Condition | None = None) -> "MergeBuilder":
        """Update a target row that no source row matches."""
        return replace(self, by_source=_with(self.by_source, Action.UPDATE, condition, values))

    def when_not_matched_by_source_delete(self, condition: Condition | None = None) -> "MergeBuilder":
        """Delete a target row that no source row matches."""
        return replace(self, by_source=_with(self.by_source, Action.DELETE, condition))

    def with_schema_evolution(self) -> "MergeBuilder":
        """Add the columns of the source that the table lacks, and widen types, in the same commit."""
        return replace(self, evolves=True)

    def to_branch(self, branch: str) -> "MergeBuilder":
        """Merge into a branch."""
        return replace(self, branch=branch)

    def with_snapshot_properties(self, properties: Mapping[str, str]) -> "MergeBuilder":
        """Extra properties for the summary of the snapshot."""
        return replace(self, snapshot_properties={**self.snapshot_properties, **properties})

    def once(self, query_id: str, batch_id: int) -> "MergeBuilder":
        """Merge a micro-batch of a streaming query, as `foreachBatch` is given it, once, however often it is run."""
        return replace(self, batch=StreamBatch(query_id, batch_id))

    def execute(self) -> md.Snapshot | None:
        """Run the merge in one commit; None if it changed nothing, or is a batch that is in the table already."""
        if self.source is None or self.on is None:
            raise errors.InvalidInputError("a merge needs a source: call using(df, condition) before execute()")
        merge = Merge(
            self._condition(self.on),
            self.matched,
            self.not_matched,
            self.by_source,
            (self.target_alias,),
            None if self.source_alias is None else (self.source_alias,),
            self.evolves,
        )
        to = destination(self.spark, self.table, self.branch)
        target = TargetTable(
            self.spark,
            self.table,
            to.branch,
            {
                **to.snapshot_properties,
                **self.snapshot_properties,
                **({} if self.batch is None else self.batch.summary),
            },
            metadata_columns=mentioned_metadata(f"{merge}"),
            batch=self.batch,
        )
        try:
            return merge_rows(target, self.source, merge)
        except errors.AlreadyCommittedError:
            return None

    def _condition(self, on: Condition | Sequence[str]) -> Column:
        if isinstance(on, str | Column):
            return _as_column(on)
        if not on:
            raise errors.InvalidInputError("a merge joins by at least one column")
        pairs = [
            F.col(f"{self.target_alias}.{quoted_name(name)}") == F.col(f"{self.source_alias}.{quoted_name(name)}")
            for name in on
        ]
        return reduce(Column.__and__, pairs)


def _with(
    clauses: tuple[Clause, ...], action: Action, condition: Condition | None, values: Values | None = None
) -> tuple[Clause, ...]:
    """The clauses and one more."""
    column = None if condition is None else _as_column(condition)
    return (*clauses, Clause(action, column, assignments_of(values)))


def _as_column(condition: Condition) -> Column:
    return F.expr(condition) if isinstance(condition, str) else condition


def assignments_of(values: Values | None) -> tuple[Assignment, ...] | None:
    """Texts are SQL, as in `{"total": "t.total + s.total"}`; other Python values are constants."""
    if values is None:
        return None
    return tuple(
        Assignment(tuple(name.split(".")), _as_column(value) if isinstance(value, str | Column) else F.lit(value))
        for name, value in values.items()
    )
