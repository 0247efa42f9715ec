"""`df.mergeInto` on a session whose calls know our catalogs: Spark's clauses, run by our merge."""

# ruff: noqa: N802 - the names are Spark's

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.merge import MergeIntoWriter

from icefloe.errors import InvalidInputError
from icefloe.spark.drop_in.names import DropInNames
from icefloe.spark.drop_in.writers import with_branch
from icefloe.spark.merging import MergeBuilder, Values
from icefloe.spark.sql.names import Place

_ALIAS = "SubqueryAlias"


class DropInMerge(MergeIntoWriter):  # type: ignore[misc]  # PySpark is Any to mypy
    """Spark's `mergeInto` for a table of ours. Columns of the table are `t.c` by its last name, those of the source by its alias."""

    def __init__(self, frame: DataFrame, place: Place, condition: Column, names: DropInNames) -> None:
        place, branch = with_branch(place, names)
        self._named = place.parts[-1]
        self._merge = MergeBuilder(
            frame.sparkSession,
            place.catalog.load_table(place.parts),
            frame,
            condition,
            self._named,
            _alias(frame),
            branch=branch,
        )

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

    def _values(self, assignments: Mapping[str, Any]) -> Values:
        """By columns of the table, which may be named with it."""
        columns = {field.name.lower() for field in self._merge.table.schema().fields}
        prefix = f"{self._named}."
        return {
            name.removeprefix(prefix) if self._named.lower() not in columns else name: value
            for name, value in assignments.items()
        }


class _OnTarget:
    def __init__(
        self,
        writer: DropInMerge,
        condition: Column | None,
        update: Callable[..., MergeBuilder],
        delete: Callable[..., MergeBuilder],
    ) -> None:
        self._writer, self._condition, self._update, self._delete = writer, condition, update, delete

    def updateAll(self) -> DropInMerge:
        """Every column from the source's of the same name."""
        return self._writer._with(self._update(None, self._condition))

    def update(self, assignments: Mapping[str, Any]) -> DropInMerge:
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


class _OnSource:
    def __init__(self, writer: DropInMerge, condition: Column | None, insert: Callable[..., MergeBuilder]) -> None:
        self._writer, self._condition, self._insert = writer, condition, insert

    def insertAll(self) -> DropInMerge:
        """Every column from the source's of the same name."""
        return self._writer._with(self._insert(None, self._condition))

    def insert(self, assignments: Mapping[str, Any]) -> DropInMerge:
        """The columns that are named; the others get their defaults."""
        return self._writer._with(self._insert(self._writer._values(assignments), self._condition))


def _alias(frame: Any) -> str | None:
    """The alias of the source."""
    plan = frame._jdf.queryExecution().logical()
    return str(plan.alias()) if plan.nodeName() == _ALIAS else None
