"""Our rules in Spark's optimizer (icefloe/spark/jvm/optimizer.java).

A rule sees a query before its joins are chosen: it gets the files that the query needs, so that Spark knows how large they are,
fewer files where a LIMIT is soon reached, and counts and bounds where metadata answers a whole query. Another rule has files
left out by the keys of a join, once its smaller side is read. They ask the file index of a scan, and here are its answers.
Without Java, Spark asks for files later, and reads them.
"""

from collections.abc import MutableMapping
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from icefloe.expressions import conjunction
from icefloe.spark.directories import hadoop_location
from icefloe.spark.file_index import ScanFiles
from icefloe.spark.gateway import items
from icefloe.spark.jvm import door
from icefloe.spark.metadata_answers import Aggregate, as_text
from icefloe.spark.predicates import exact_filter, ranges_filter, table_filter, values_filter

MARK = "icefloe.scan"
"""The option by which rules know the relations of our scans."""
_INSTALLED: MutableMapping[SparkSession, bool] = WeakKeyDictionary()


def install(spark: SparkSession) -> None:
    """Give our rules to a session, if that was not done yet and Java may be used."""
    if spark in _INSTALLED or not door.is_on(spark):
        return
    entry = door.entry(spark, "optimizer")
    _INSTALLED[spark] = entry is not None
    if entry is not None:
        entry.install(spark._jsparkSession)


def text(spark: SparkSession, name: str) -> JavaObject | None:
    """The entry of another Java text, which rules ask for when a query first needs it."""
    return door.entry(spark, name)


def aggregates(files: ScanFiles, request: JavaObject) -> str | None:
    """Aggregates of all rows that match, if metadata tells them exactly."""
    asked = [Aggregate.parse(text, files.columns) for text in str(request.asked()).split("\0")]
    known = [aggregate for aggregate in asked if aggregate is not None]
    if files.aggregates is None or len(known) < len(asked):
        return None
    where = exact_filter(items(request.onColumns()), files.columns)
    values = None if where is None else files.aggregates(where, known)
    return None if values is None else "\0".join(map(as_text, values))


def groups(files: ScanFiles, request: JavaObject) -> str | None:
    """By which columns the files for the filters of a query are partitioned."""
    pushed = table_filter(items(request.onColumns()), files.columns, for_files_only=True)
    return None if files.groups is None else files.groups(files.plan(pushed))


def statistics(files: ScanFiles, request: JavaObject) -> JavaObject | None:
    """What is known of the rows in the files for the filters of a query, for the cost-based optimizer."""
    pushed = table_filter(items(request.onColumns()), files.columns, for_files_only=True)
    return None if files.statistics is None else files.statistics(pushed)


def narrowing(files: ScanFiles, request: JavaObject) -> str | None:
    """A text if values of a column are likely to leave out files."""
    field = files.columns.get(str(request.asked()))
    pushed = table_filter(items(request.onColumns()), files.columns, for_files_only=True)
    return "yes" if field is not None and files.narrows(field, pushed) else None


def locations_of_keys(files: ScanFiles, request: JavaObject) -> str | None:
    """Where files are that may have a row with a key of the other side of a join."""
    column, kind, count, *texts = str(request.asked()).split("\0")
    field = files.columns.get(column)
    # A text may have the character between texts in it.
    if field is None or len(texts) != int(count):
        return None
    values = ranges_filter(field, texts) if kind == "ranges" else values_filter(field, texts)
    if values is None:
        return None
    pushed = table_filter(items(request.onColumns()), files.columns, for_files_only=True)
    return "\0".join(hadoop_location(task.file.file_path) for task in files.plan(conjunction(pushed, values)))
