"""Options of a read, of `spark.read` or behind a name in SQL: which snapshot of a table is read, or what came between two."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession, functions

from icefloe.catalog import show
from icefloe.errors import InvalidInputError
from icefloe.spark.appends import END, START, appended_rows
from icefloe.spark.sql.context import constant
from icefloe.spark.sql.names import Names, Parts, ResolvedName, Source
from icefloe.sql.changelog import changes_by_options

_CHOOSING = ("snapshot-id", "as-of-timestamp", "branch", "tag", "versionasof", "timestampasof")
_TIMES = ("start-timestamp", "end-timestamp")
CHANGES = "changes"
"""Behind a table's name: the changes between the snapshots that options choose."""


def appended_between(source: Source, options: Mapping[str, str], spark: SparkSession) -> DataFrame | None:
    """The rows that were appended between the snapshots that options name; None if they name none."""
    lower = _lower(options)
    if not source.is_whole or not any(key in lower for key in (START, END)):
        return None
    return appended_rows(spark, source.load_table(), lower)


def table_of_changes(name: Parts, names: Names, default: str | None = None) -> Source | None:
    """The table whose changes a name means; None if it does not end so."""
    if len(name) == 1 or name[-1].lower() != CHANGES:
        return None
    source = names.source(name[:-1], default=default)
    return source if source is not None and source.is_whole else None


def changes_between(source: Source, options: Mapping[str, str], spark: SparkSession) -> DataFrame:
    """The changes of a table between the snapshots or times that options name."""
    between = {key: value for key, value in _lower(options).items() if key in (START, END, *_TIMES)}
    return changes_by_options(source.load_table(), between).to_spark(spark)


def no_clause_for_changes(table: ResolvedName) -> InvalidInputError:
    """That Spark's own ways to changes need a catalog in the JVM, and what to use instead."""
    catalog, name = table.catalog.name, show(table.parts)
    return InvalidInputError(
        f"CHANGES of {table} cannot be read by this clause or call; {table}.{CHANGES} has them between the snapshots that options"
        f" choose, CALL {catalog}.system.create_changelog_view(table => '{name}') makes a view of them, and ice.changes and"
        " ice.read_stream(..., changes=True) read them"
    )


def chosen(source: Source, options: Mapping[str, str], spark: SparkSession) -> Source:
    """The source at the snapshot that options choose, by Iceberg's names or by Spark's."""
    lower = _lower(options)
    for key in (START, END, *_TIMES):
        if key in lower:
            raise InvalidInputError(
                f"option {key!r} chooses among the changes of a table, and between snapshots also among its rows; read"
                f" {show(source.identifier)}.{CHANGES} with it, or leave it out"
            )
    choosing = [key for key in _CHOOSING if key in lower]
    if len(choosing) > 1 or (choosing and (source.ref or source.snapshot_id or source.as_of)):
        raise InvalidInputError(
            f"{show(source.identifier)}: only one may choose the snapshot, and there is {', '.join(choosing)}"
        )
    for key in choosing:
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


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in options.items()}


def _millis(text: str, spark: SparkSession) -> int:
    millis = constant(functions.unix_millis(functions.lit(text).try_cast("timestamp")), spark)
    if millis is None:
        raise InvalidInputError(f"option 'timestampAsOf' is {text!r}; write it as 2026-01-31 12:00:00")
    return int(millis)
