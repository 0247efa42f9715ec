"""Which names in calls of Spark's own API are ours, and the frames behind them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession, functions

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.spark.gateway import Gateway
from icefloe.spark.sql.context import ReadSource, SqlContext
from icefloe.spark.sql.names import Names, Place, Source
from icefloe.spark.sql.nodes import items
from icefloe.spark.sql.view_plans import names_temporary, refresh_view
from icefloe.spark.user_side import quoted_name

_SNAPSHOT_ID, _AS_OF, _BRANCH, _TAG = "snapshot-id", "as-of-timestamp", "branch", "tag"
_VERSION, _TIMESTAMP = "versionasof", "timestampasof"
_CHOOSING = (_SNAPSHOT_ID, _AS_OF, _BRANCH, _TAG, _VERSION, _TIMESTAMP)
_BETWEEN = ("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp")


@dataclass(frozen=True)
class DropInNames:
    """The names of one Spark session; `first` is the catalog of names without one, where Iceberg's format is asked for."""

    spark: SparkSession
    names: Names
    read: ReadSource
    first: str

    def parts(self, name: str) -> tuple[str, ...]:
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
            return self.read(_chosen(source, options, self.spark), ())
        place = None if len(parts) == 1 and self.names.current is None else self.names.table(parts, default=default)
        if place is not None and place.catalog.view_exists(place.parts):
            return self.spark.sql(f"TABLE {'.'.join(map(quoted_name, (place.catalog.name, *place.parts)))}")
        if parts[0] in self.names.catalogs or default is not None:
            raise NoSuchTableError(f"no table or view {show(parts)} in the catalogs of icefloe")
        return None

    def target(self, name: str, default: str | None = None) -> Place | None:
        """The place of a table to write to, whether it exists or not; None if it is not in a catalog of ours."""
        parts = self.parts(name)
        if len(parts) == 1 and default is None and self.names.current is None:
            return None
        return self.names.table(parts, default=default)


def _chosen(source: Source, options: Mapping[str, str], spark: SparkSession) -> Source:
    """The source at the snapshot that options choose, by Iceberg's names or by Spark's."""
    lower = {key.lower(): value for key, value in options.items()}
    for key in _BETWEEN:
        if key in lower:
            raise InvalidInputError(f"option {key!r} is not there; use table.scan_changes for rows between snapshots")
    given = [key for key in _CHOOSING if key in lower]
    if len(given) > 1 or (given and (source.ref or source.snapshot_id or source.as_of)):
        raise InvalidInputError(
            f"{show(source.identifier)}: only one may choose the snapshot, and there is {', '.join(given)}"
        )
    for key in given:
        text = lower[key]
        match key:
            case "branch" | "tag":
                return replace(source, ref=text)
            case "timestampasof":
                return replace(source, as_of=_millis(text, spark))
            case "versionasof" if not text.lstrip("-").isdigit():
                return replace(source, ref=text)
            case _:
                number = _number(key, text)
                return replace(source, as_of=number) if key == _AS_OF else replace(source, snapshot_id=number)
    return source


def _number(key: str, text: str) -> int:
    if not text.lstrip("-").isdigit():
        raise InvalidInputError(f"option {key!r} is {text!r}; it must be a whole number")
    return int(text)


def _millis(text: str, spark: SparkSession) -> int:
    (row,) = spark.range(1).select(functions.unix_millis(functions.lit(text).try_cast("timestamp"))).collect()
    if row[0] is None:
        raise InvalidInputError(f"option 'timestampAsOf' is {text!r}; write it as 2026-01-31 12:00:00")
    return int(row[0])
