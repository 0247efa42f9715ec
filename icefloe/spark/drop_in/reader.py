"""`spark.read` and `spark.table` on a session whose calls know our catalogs, and which names in such calls are ours."""

# ruff: noqa: A002, N803 - the names are Spark's

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader, OptionUtils
from pyspark.sql.types import StructType

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.changes import check_branch
from icefloe.spark.sql.context import ReadSource, SqlContext
from icefloe.spark.sql.names import Names, Parts, ResolvedName
from icefloe.spark.sql.nodes import items
from icefloe.spark.sql.options import appended_between, changes_between, chosen, no_clause_for_changes, table_of_changes
from icefloe.spark.sql.temporary_views import names_temporary, refresh_view

ICEBERG = "iceberg"
"""The format under which tables are read and written by name."""


@dataclass(frozen=True)
class DropInNames:
    """The names of one Spark session; `first` is the catalog of names without one, where Iceberg's format is asked for."""

    spark: SparkSession
    names: Names
    read: ReadSource
    first: str

    def parts(self, name: str) -> Parts:
        """The parts of a name as Spark splits them."""
        parser = self.spark._jsparkSession.sessionState().sqlParser()
        return tuple(items(parser.parseMultipartIdentifier(name)))

    def frame(self, name: str, options: Mapping[str, str], default: str | None = None) -> DataFrame | None:
        """The rows of a table or view of ours; None if the name is not ours."""
        parts = self.parts(name)
        context = SqlContext(Gateway(self.spark), self.names, self.read)
        if names_temporary(parts, context):
            refresh_view(parts, context)
            return None
        source = self.names.source(parts, default=default)
        if source is not None:
            between = appended_between(source, options, self.spark)
            return self.read(chosen(source, options, self.spark), ()) if between is None else between
        of_changes = table_of_changes(parts, self.names, default)
        if of_changes is not None:
            return changes_between(of_changes, options, self.spark)
        target = None if len(parts) == 1 and self.names.current is None else self.names.table(parts, default=default)
        if target is not None and target.view_exists():
            return self.spark.sql(f"TABLE {target.quoted}")
        if parts[0] in self.names.catalogs or default is not None:
            raise NoSuchTableError(f"no table or view {show(parts)} in the catalogs of icefloe")
        return None

    def target(self, name: str, default: str | None = None) -> ResolvedName | None:
        """The name of a table to write to, whether it exists or not; None if it is not in a catalog of ours."""
        parts = self.parts(name)
        if len(parts) == 1 and default is None and self.names.current is None:
            return None
        return self.names.table(parts, default=default)

    def check_not_ours(self, name: str) -> None:
        """Fail if Spark is asked for the changes of a table in a catalog of ours, of which it knows nothing."""
        target = self.target(name)
        if target is not None and target.table_exists():
            raise no_clause_for_changes(target)

    def with_branch(self, target: ResolvedName) -> tuple[ResolvedName, str | None]:
        """The table, and the branch that its name ends with: `orders.branch_audit`."""
        source = self.names.source(target.full)
        if source is None or source.identifier == target.parts:
            return target, None
        if source.ref is None:
            raise InvalidInputError(f"{show(target.parts)} cannot be written to; name the table, or a branch of it")
        check_branch(source)
        return ResolvedName(target.catalog, source.identifier), source.ref


class Options(OptionUtils):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """A reader or writer of ours: it takes several options one by one."""

    def options(self, **options: object) -> Self:
        """Several options."""
        for key, value in options.items():
            self.option(key, value)
        return self


class Settings(Options):
    """A reader or writer that keeps its format and options, as they may be for a table of ours."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self._format: str | None = None
        self._options: dict[str, object] = {}

    def format(self, source: str) -> Self:
        """The format of what is read or written."""
        self._format = source.lower()
        super().format(source)
        return self

    def option(self, key: str, value: object) -> Self:
        """An option, by Iceberg's name for tables of ours."""
        self._options[key] = value
        super().option(key, value)
        return self

    @property
    def _texts(self) -> dict[str, str]:
        """The options as Spark takes them."""
        return {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in self._options.items()
        }


class DropInReader(Settings, DataFrameReader):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """Spark's reader, which asks us first for tables, and for the format `iceberg`."""

    def __init__(self, spark: SparkSession, names: DropInNames) -> None:
        super().__init__(spark)
        self._names = names

    def table(self, tableName: str) -> DataFrame:
        """A table, of ours or of Spark's."""
        frame = self._names.frame(tableName, self._texts)
        return super().table(tableName) if frame is None else frame

    def changes(self, tableName: str) -> DataFrame:
        """Spark's own way to the changes of a table, for those of other catalogs."""
        self._names.check_not_ours(tableName)
        return super().changes(tableName)

    def load(
        self,
        path: str | list[str] | None = None,
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: object,
    ) -> DataFrame:
        """What is at a path; a table by its name if the format is `iceberg`."""
        if (self._format if format is None else format.lower()) != ICEBERG:
            return super().load(path, format, schema, **options)
        self.options(**options)
        frame = self._names.frame(table_name(path or self._options.get("path")), self._texts, self._names.first)
        assert frame is not None, "a name with a default catalog is ours"
        return frame


def table_name(path: object) -> str:
    """The name of a table, given as a path."""
    if not isinstance(path, str) or not path:
        raise InvalidInputError(f"{path!r:.100} is not the name of a table; give one such as 'catalog.shop.orders'")
    if "/" in path:
        raise InvalidInputError(
            f"{path!r} is a location, and tables are known by name; give it one in a catalog by register_table"
        )
    return path
