"""`df.write`, `df.writeTo` and `df.mergeInto` on a session whose calls know our catalogs; our own writes and merges run them."""

# ruff: noqa: A002, N802, N803 - the names are Spark's

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql.merge import MergeIntoWriter
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, TableAlreadyExistsError
from icefloe.spark.drop_in.reader import ICEBERG, DropInNames, Options, Settings, table_name
from icefloe.spark.merging import MergeBuilder, Values
from icefloe.spark.sql.conditions import predicate_of
from icefloe.spark.sql.context import plan_of
from icefloe.spark.sql.names import ResolvedName
from icefloe.spark.store_assignment import store_assigned
from icefloe.spark.user_side import quoted_name
from icefloe.spark.writing import TableWrite

_Columns = str | Sequence[str] | None
_FORMATS = (ICEBERG, "parquet", "orc", "avro")
_OVERWRITE_MODE = "overwrite-mode"
_OVERWRITE_SETTING = "spark.sql.sources.partitionOverwriteMode"
_WITHOUT_EFFECT = ("check-ordering", "handle-timestamp-without-timezone", "path")
"""Options for the Java library that have no effect here."""


class DropInWriterV2(Options, DataFrameWriterV2):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """Spark's `writeTo` for a table of ours, without any of Spark's own code."""

    def __init__(self, frame: DataFrame, target: ResolvedName, names: DropInNames) -> None:
        self._frame = frame
        self._target, branch = names.with_branch(target)
        self._write = TableWrite(frame, self._target.catalog, self._target.parts, assign=store_assigned)
        if branch is not None:
            self.option("branch", branch)

    def using(self, provider: str) -> Self:
        """`iceberg`, or the file format of the new table."""
        self._write = self._write.using(_file_format(provider))
        return self

    def option(self, key: str, value: object) -> Self:
        """An option of the write, by Iceberg's name."""
        if key not in _WITHOUT_EFFECT:
            self._write = self._write.option(key, value)
        return self

    def tableProperty(self, property: str, value: str) -> Self:
        """A property of the new table."""
        if property == "location":
            self._write = self._write.location(value)
        else:
            self._write = self._write.table_property(property, value)
        return self

    def partitionedBy(self, col: str | Column, *cols: str | Column) -> Self:
        """The partitions of the new table, as columns or transforms of `pyspark.sql.functions.partitioning`."""
        self._write = self._write.partitioned_by(*(_term(column) for column in (col, *cols)))
        return self

    def clusterBy(self, col: str, *cols: str) -> Self:
        """Refused: Iceberg has no such clustering."""
        raise InvalidInputError(f"clusterBy {', '.join((col, *cols))}: Iceberg tables have partitions and a sort order")

    def create(self) -> None:
        """Create the table with the rows."""
        self._write.create()

    def replace(self) -> None:
        """Replace the table by the rows."""
        self._write.replace()

    def createOrReplace(self) -> None:
        """Create the table, or replace it if it exists."""
        self._write.create_or_replace()

    def append(self) -> None:
        """Add the rows."""
        self._write.append()

    def overwrite(self, condition: str | Column) -> None:
        """Replace the rows that match by these rows."""
        schema = self._target.load_table().schema()
        self._write.overwrite(predicate_of(condition, schema, self._frame.sparkSession))

    def overwritePartitions(self) -> None:
        """Replace the partitions that the rows fall in by the rows."""
        self._write.overwrite_partitions()


class DropInWriter(Settings, DataFrameWriter):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """Spark's `write`, which asks us first for tables, and for the format `iceberg`."""

    def __init__(self, frame: DataFrame, names: DropInNames) -> None:
        super().__init__(frame)
        self._names = names
        self._mode = "error"
        self._by: tuple[str, ...] = ()

    def mode(self, saveMode: str | None) -> Self:
        """What to do with an existing table."""
        if saveMode:
            self._mode = saveMode.lower()
        super().mode(saveMode)
        return self

    def partitionBy(self, *cols: str | Sequence[str]) -> Self:
        """The partition columns of a new table."""
        self._by = tuple(name for names in cols for name in ([names] if isinstance(names, str) else names))
        super().partitionBy(*cols)
        return self

    def saveAsTable(
        self,
        name: str,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: _Columns = None,
        **options: object,
    ) -> None:
        """Create, replace or append to a table, depending on the mode."""
        target = self._names.target(name)
        if target is None:
            super().saveAsTable(name, format, mode, partitionBy, **options)
            return
        self._settings(format, mode, partitionBy, options)
        exists = self._names.with_branch(target)[0].table_exists()
        if self._mode == "overwrite":
            self._new(target).create_or_replace()
        elif self._mode == "append" and exists:
            self._added(target).append()
        else:
            self._create(target, exists)

    def save(
        self,
        path: str | None = None,
        format: str | None = None,
        mode: str | None = None,
        partitionBy: _Columns = None,
        **options: object,
    ) -> None:
        """Write to a path; to a table by its name if the format is `iceberg`."""
        if (self._format if format is None else format.lower()) != ICEBERG:
            super().save(path, format, mode, partitionBy, **options)
            return
        self._settings(format, mode, partitionBy, options)
        target = self._names.target(table_name(path or self._options.get("path")), self._names.first)
        assert target is not None, "a name with a default catalog is ours"
        match self._mode:
            case "append":
                self._added(target).append()
            case "overwrite" if self._is_dynamic():
                self._added(target).overwrite_partitions()
            case "overwrite":
                self._added(target).overwrite()
            case _:
                self._create(target, target.table_exists())

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Add rows by the position of their columns."""
        target = self._names.target(tableName)
        if target is None:
            super().insertInto(tableName, overwrite)
            return
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        verb = "OVERWRITE" if self._mode == "overwrite" else "INTO"
        self._spark.sql(f"INSERT {verb} {target.quoted} SELECT * FROM {{icefloe_frame}}", icefloe_frame=self._df)

    def _settings(self, format: str | None, mode: str | None, by: _Columns, options: Mapping[str, object]) -> None:
        self.options(**options)
        self.mode(mode)
        if by is not None:
            self.partitionBy(by)
        if format is not None:
            self.format(format)

    def _is_dynamic(self) -> bool:
        mode = self._options.get(_OVERWRITE_MODE) or self._spark.conf.get(_OVERWRITE_SETTING, "static")
        return str(mode).lower() == "dynamic"

    def _added(self, target: ResolvedName) -> TableWrite:
        target, branch = self._names.with_branch(target)
        write = TableWrite(self._df, target.catalog, target.parts, assign=store_assigned)
        for key, value in self._options.items():
            if key not in (*_WITHOUT_EFFECT, _OVERWRITE_MODE):
                write = write.option(key, value)
        return write if branch is None else write.option("branch", branch)

    def _new(self, target: ResolvedName) -> TableWrite:
        write = self._added(target).using(_file_format(self._format or ICEBERG))
        return write.partitioned_by(*map(quoted_name, self._by)) if self._by else write

    def _create(self, target: ResolvedName, exists: bool) -> None:
        if not exists:
            self._new(target).create()
        elif self._mode != "ignore":
            raise TableAlreadyExistsError(
                f"table {show(target.parts)} already exists in catalog {target.catalog.name!r}; choose mode append or overwrite"
            )


class DropInMerge(MergeIntoWriter):  # type: ignore[misc]  # mypy knows nothing of PySpark
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


def _file_format(provider: str) -> str:
    if provider.lower() not in _FORMATS:
        raise InvalidInputError(f"format {provider!r} is none of a table here; give {', '.join(_FORMATS)}")
    return provider.lower()


def _term(term: str | Column) -> str:
    """A partition term: the name of a column, or the result of `partitioning.days(...)` and the like."""
    if isinstance(term, str):
        return quoted_name(term)
    return str(term._jc.node().sql())
