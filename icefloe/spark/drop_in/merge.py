"""`df.mergeInto` on a session whose calls know our catalogs: Spark's clauses, run by our merge."""

# ruff: noqa: N802 - the names are Spark's

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.merge import MergeIntoWriter

from icefloe.errors import InvalidInputError
from icefloe.spark.drop_in.reader import DropInNames
from icefloe.spark.merging import MergeBuilder, Values
from icefloe.spark.sql.context import plan_of
from icefloe.spark.sql.names import ResolvedName


class DropInMerge(MergeIntoWriter):  # type: ignore[misc]  # PySpark is Any to mypy
    """Spark's `mergeInto` for a table of ours. Columns of the table are `t.c` by its last name, those of the source by its alias."""

    def __init__(self, frame: DataFrame, target: ResolvedName, condition: Column, names: DropInNames) -> None:
        target, branch = names.with_branch(target)
        self._named, table, plan = target.parts[-1], target.load_table(), plan_of(frame)
        alias = str(plan.alias()) if plan.nodeName() == "SubqueryAlias" else None
        self._merge = MergeBuilder(frame.sparkSession, table, frame, condition, self._named, alias, branch=branch)

    def whenMatched(self, condition: Column | None = None) -> "_OnTarget":
        """The action for a target row that a source row matches."""
        return _OnTarget(self, condition, self._merge.when_matched_update, self._merge.when_matched_delete)

    def whenNotMatched(self, condition: Column | None = None) -> "_OnSource":
        """The action for a source row that no target row matches."""
        return _OnSource(self, condition, self._merge.when_not_matched_insert)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> "_WithoutSource":
        """The action for a target row that no source row matches."""
        merge = self._merge
        return _WithoutSource(
            self, condition, merge.when_not_matched_by_source_update, merge.when_not_matched_by_source_delete
        )

    def withSchemaEvolution(self) -> "DropInMerge":
        """Add the columns of the source that the table lacks."""
        return self._with(self._merge.with_schema_evolution())

    def merge(self) -> None:
        """Run the merge in one commit."""
        self._merge.execute()

    def _with(self, merge: MergeBuilder) -> "DropInMerge":
        self._merge = merge
        return self

    def _values(self, assignments: Mapping[str, Column]) -> Values:
        """By columns of the table, which may be named with it."""
        columns = {field.name.lower() for field in self._merge.table.schema().fields}
        prefix = f"{self._named}."
        return {
            name.removeprefix(prefix) if self._named.lower() not in columns else name: value
            for name, value in assignments.items()
        }


@dataclass
class _OnTarget:
    _writer: DropInMerge
    _condition: Column | None
    _update: Callable[..., MergeBuilder]
    _delete: Callable[..., MergeBuilder]

    def updateAll(self) -> DropInMerge:
        """Every column from the source's of the same name."""
        return self._writer._with(self._update(None, self._condition))

    def update(self, assignments: Mapping[str, Column]) -> DropInMerge:
        """The columns that are named."""
        return self._writer._with(self._update(self._writer._values(assignments), self._condition))

    def delete(self) -> DropInMerge:
        """Delete the row."""
        return self._writer._with(self._delete(self._condition))


class _WithoutSource(_OnTarget):
    def updateAll(self) -> DropInMerge:
        """There is no row to take values from."""
        raise InvalidInputError(
            "whenNotMatchedBySource().updateAll(): no row of the source matches, so there is none to take values from; use update({...})"
        )


@dataclass
class _OnSource:
    _writer: DropInMerge
    _condition: Column | None
    _insert: Callable[..., MergeBuilder]

    def insertAll(self) -> DropInMerge:
        """Every column from the source's of the same name."""
        return self._writer._with(self._insert(None, self._condition))

    def insert(self, assignments: Mapping[str, Column]) -> DropInMerge:
        """The columns that are named; the others get their defaults."""
        return self._writer._with(self._insert(self._writer._values(assignments), self._condition))
