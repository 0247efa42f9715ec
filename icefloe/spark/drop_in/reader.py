"""`spark.read` and `spark.table` on a session whose calls know our catalogs, and which names in such calls are ours."""

# ruff: noqa: A002, N803 - the names are Spark's

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql.readwriter import DataFrameReader, OptionUtils
from pyspark.sql.types import StructType

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.spark.appends import END, START, appended_rows
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.changes import check_branch
from icefloe.spark.sql.context import ReadSource, SqlContext, constant
from icefloe.spark.sql.names import Names, Parts, ResolvedName, Source
from icefloe.spark.sql.nodes import items
from icefloe.spark.sql.temporary_views import names_temporary, refresh_view
from icefloe.sql.changelog import changes_by_options

ICEBERG = "iceberg"
"""The format under which tables are read and written by name."""
_CHOOSING = ("snapshot-id", "as-of-timestamp", "branch", "tag", "versionasof", "timestampasof")
_TIMES = ("start-timestamp", "end-timestamp")
CHANGES = "changes"
"""Behind a table's name: the changes between the snapshots that options choose."""


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
        lower = {key.lower(): value for key, value in options.items()}
        if source is not None and source.is_whole and any(key in lower for key in (START, END)):
            return appended_rows(self.spark, source.load_table(), lower)
        if source is not None:
            return self.read(_chosen(source, options, self.spark), ())
        of_changes = self.names.source(parts[:-1], default=default) if parts[-1].lower() == CHANGES else None
        if of_changes is not None and of_changes.is_whole:
            between = {key: value for key, value in lower.items() if key in (START, END, *_TIMES)}
            return changes_by_options(of_changes.load_table(), between).to_spark(self.spark)
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

    def with_branch(self, target: ResolvedName) -> tuple[ResolvedName, str | None]:
        """The table, and the branch that its name ends with: `orders.branch_audit`."""
        source = self.names.source(target.full)
        if source is None or source.identifier == target.parts:
            return target, None
        if source.ref is None:
            raise InvalidInputError(f"{show(target.parts)} cannot be written to; name the table, or a branch of it")
        check_branch(source)
        return ResolvedName(target.catalog, source.identifier), source.ref


def _chosen(source: Source, options: Mapping[str, str], spark: SparkSession) -> Source:
    """The source at the snapshot that options choose, by Iceberg's names or by Spark's."""
    lower = {key.lower(): value for key, value in options.items()}
    for key in (START, END, *_TIMES):
        if key in lower:
            raise InvalidInputError(
                f"option {key!r} chooses among the changes of a table, and between snapshots also among its rows; read"
                f" {show(source.identifier)}.{CHANGES} with it, or leave it out"
            )
    chosen = [key for key in _CHOOSING if key in lower]
    if len(chosen) > 1 or (chosen and (source.ref or source.snapshot_id or source.as_of)):
        raise InvalidInputError(
            f"{show(source.identifier)}: only one may choose the snapshot, and there is {', '.join(chosen)}"
        )
    for key in chosen:
        text = lower[key]
        match key:
            case "branch" | "tag":
                return replace(source, ref=text)
            case "timestampasof":
                return replace(source, as_of=_millis(text, spark))
            case "versionasof" if not text.lstrip("-").isdigit():
                return replace(source, ref=text)
            case _ if not text.lstrip("-").isdigit():
                raise InvalidInputError(f"option {key!r} is {text!r}; it must be a whole number")
            case "as-of-timestamp":
                return replace(source, as_of=int(text))
            case _:
                return replace(source, snapshot_id=int(text))
    return source


def _millis(text: str, spark: SparkSession) -> int:
    millis = constant(functions.unix_millis(functions.lit(text).try_cast("timestamp")), spark)
    if millis is None:
        raise InvalidInputError(f"option 'timestampAsOf' is {text!r}; write it as 2026-01-31 12:00:00")
    return int(millis)


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
