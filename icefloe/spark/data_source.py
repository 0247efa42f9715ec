"""Tables as Spark's format `icefloe`: `spark.read.format("icefloe").load("shop.orders")`, and the same with `readStream`.

It is a data source in Python, so it runs on every kind of session with the public API only. Spark plans and reads it in
processes of their own, which know the catalogs by their properties. A stream reads what append commits added, in the order
of the snapshots; its offsets are the ids of the newest snapshots that were read.
"""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession, types as spark_types
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from icefloe import errors, metadata as md, planning, properties as props
from icefloe.catalog import Catalog, load_catalog
from icefloe.data import ReadContext
from icefloe.schema import Schema
from icefloe.spark.arrow_engine import nullable, shown_batches, without_unknown
from icefloe.spark.gateway import Gateway, active
from icefloe.spark.spark_sessions import is_classic
from icefloe.spark.types import PLAIN, user_schema
from icefloe.table import DataScan, Table

FORMAT = "icefloe"
CATALOG = "catalog"
CATALOG_PROPERTY = "catalog."
SNAPSHOT_ID = "snapshot-id"
REFS = ("ref", "branch", "tag")
AS_OF = "as-of-timestamp"
FROM_TIMESTAMP = "stream-from-timestamp"
SKIP_DELETES = "streaming-skip-delete-snapshots"
SKIP_OVERWRITES = "streaming-skip-overwrite-snapshots"
_PATH = "path"
_EVERYWHERE = (_PATH, CATALOG, *REFS)
_BATCH = (*_EVERYWHERE, SNAPSHOT_ID, AS_OF)
_STREAM = (*_EVERYWHERE, FROM_TIMESTAMP, SKIP_DELETES, SKIP_OVERWRITES)
_IS_INSTALLED = "DATA_SOURCE_ALREADY_EXISTS"
"""What Spark 4.0 says if it knows the format by `pyspark_icefloe`."""
_OFFSET = "snapshot-id"
_BEFORE_ALL = -1
_SWITCHES = {str(md.Operation.DELETE): SKIP_DELETES, str(md.Operation.OVERWRITE): SKIP_OVERWRITES}


class TableSource(DataSource):  # type: ignore[misc]  # PySpark is Any to mypy
    """Tables of the catalogs that the options name: `catalog`, and its properties behind `catalog.`."""

    catalogs: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Properties of catalogs that need no options, by name; names without a catalog are in the first one."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> spark_types.StructType:
        """The columns of the table, as of the chosen snapshot, without those of type unknown."""
        return nullable(user_schema(without_unknown(_chosen_scan(self._table(), self.options).projection())))

    def reader(self, schema: spark_types.StructType) -> "TableReader":
        """The rows of one snapshot."""
        _check_names(self.options, _BATCH)
        scan = _chosen_scan(self._table(), self.options)
        columns = _planned_columns(scan.projection(), schema)
        tasks = scan.plan_tasks()
        context = ReadContext(scan.metadata.without_history(), scan.file_storage)
        return TableReader([ReadPart(task, columns, context) for task in tasks])

    def streamReader(self, schema: spark_types.StructType) -> "TableStream":  # noqa: N802  # Spark's name
        """The rows that commits append."""
        _check_names(self.options, _STREAM)
        columns = _planned_columns(self._table().schema(), schema)
        return TableStream(type(self), dict(self.options), columns)

    def writer(self, *_: object) -> NoReturn:
        """Refused: a data source in Python would write every row through Python, and not know what a retry has written."""
        raise _read_only()

    def streamWriter(self, *_: object) -> NoReturn:  # noqa: N802  # Spark's name
        """Refused, as `writer` is."""
        raise _read_only()

    def _table(self) -> Table:
        return _source_table(self.options, self.catalogs)


def _read_only() -> errors.InvalidInputError:
    return errors.InvalidInputError(
        f"the format {FORMAT} reads tables, and writes none; write with ice.write(df).to(name), or ice.write_stream(df).to(name)"
        " on a classic session, or with df.write and df.writeStream after icefloe.connect(..., drop_in=True)"
    )


@dataclass(frozen=True)
class ReadPart(InputPartition):  # type: ignore[misc]  # PySpark is Any to mypy
    """What one Spark task reads."""

    task: planning.CombinedScanTask
    columns: Schema
    context: ReadContext


class _PartReader:
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part, as Arrow batches of Spark's types."""
        # Without parts, Spark asks for a single empty one.
        if not isinstance(partition, ReadPart):
            return iter(())
        return shown_batches(partition.task, partition.columns, partition.context, PLAIN)


class TableReader(_PartReader, DataSourceReader):  # type: ignore[misc]  # PySpark is Any to mypy
    """The rows of a planned scan."""

    def __init__(self, parts: list[ReadPart]) -> None:
        self._parts = parts

    def partitions(self) -> list[InputPartition]:
        """What each Spark task reads."""
        return list(self._parts)

    def __reduce__(self) -> tuple[type, tuple[list[ReadPart]]]:
        # Executors get their parts from Spark, one each.
        return TableReader, ([],)


class TableStream(_PartReader, DataSourceStreamReader):  # type: ignore[misc]  # PySpark is Any to mypy
    """Rows that commits append, from one snapshot to another."""

    def __init__(self, source: type[TableSource], options: Mapping[str, str], columns: Schema) -> None:
        self._source = source
        self._options = options
        self._columns = columns

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name
        """Before all snapshots; `stream-from-timestamp` is asked when they are read."""
        return {_OFFSET: _BEFORE_ALL}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802  # Spark's name, and the form that all its versions take
        """The head of the branch."""
        head = self._table().metadata.snapshot_of_ref(_ref(self._options))
        return {_OFFSET: _BEFORE_ALL if head is None else head.snapshot_id}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """What each Spark task reads of the appends after one offset and up to another."""
        if start == end:
            return []
        first = None if start[_OFFSET] == _BEFORE_ALL else start[_OFFSET]
        table = self._table()
        scan = planning.IncrementalAppendScan(
            table.metadata, table.storage, first, end[_OFFSET], branch=_ref(self._options)
        )
        context = ReadContext(table.metadata.without_history(), table.storage)
        return [
            ReadPart(task, self._columns, context)
            for after, until in _runs(scan.snapshots(), first, self._options)
            for task in replace(scan, from_snapshot_id=after, to_snapshot_id=until).plan_tasks()
        ]

    def _table(self) -> Table:
        return _source_table(self._options, self._source.catalogs)


def _runs(
    snapshots: list[md.Snapshot], first: int | None, options: Mapping[str, str]
) -> Iterator[tuple[int | None, int]]:
    """The range of snapshots to read, from after one up to another: all from a time on, if none of them must be refused."""
    since = _number(options, FROM_TIMESTAMP)
    index = 0
    while since is not None and index < len(snapshots) and snapshots[index].timestamp_ms < since:
        index += 1
    for snapshot in snapshots[index:]:
        _check_streamed(snapshot, options)
    if index < len(snapshots):
        yield (snapshots[index - 1].snapshot_id if index else first), snapshots[-1].snapshot_id


def _check_streamed(snapshot: md.Snapshot, options: Mapping[str, str]) -> None:
    """Appends are read, and replaces change no rows; other snapshots are only skipped if an option says so."""
    switch = _SWITCHES.get(snapshot.operation or "")
    if switch is not None and not props.property_as_bool(options, switch, False):
        raise errors.StateError(
            f"snapshot {snapshot.snapshot_id} is of operation {snapshot.operation}, which a stream of appends cannot show;"
            f" set option {switch} to true to pass over such snapshots"
        )


# -- options


def _source_table(options: Mapping[str, str], catalogs: Mapping[str, Mapping[str, str]]) -> Table:
    """The table that the options name."""
    name = options.get(_PATH)
    parts = tuple((name or "").split("."))
    if not all(parts) or "/" in parts[0]:
        raise errors.InvalidInputError(f"{name!r} is not the name of a table; load one such as 'shop.orders'")
    prefix = len(CATALOG_PROPERTY)
    properties = {key[prefix:]: value for key, value in options.items() if key.startswith(CATALOG_PROPERTY)}
    chosen = options.get(CATALOG)
    if chosen is None and len(parts) > 2 and parts[0] in catalogs:
        chosen, parts = parts[0], parts[1:]
    if chosen is None:
        chosen = next(iter(catalogs), "default") if not properties else "default"
    return load_catalog(chosen, **{**catalogs.get(chosen, {}), **properties}).load_table(parts)


def _chosen_scan(table: Table, options: Mapping[str, str]) -> DataScan:
    """The scan of the snapshot that the options choose."""
    return table.scan(snapshot_id=_number(options, SNAPSHOT_ID), ref=_ref(options), as_of=_number(options, AS_OF))


def _planned_columns(projection: Schema, schema: spark_types.StructType) -> Schema:
    """The columns to read; an error if they are no longer those of Spark's schema."""
    readable = without_unknown(projection)
    if [field.name for field in readable.fields] != list(schema.names):
        raise errors.StateError(
            f"the table has the columns {', '.join(readable.column_names)}, and the query was planned for {', '.join(schema.names)}"
        )
    return readable


def _ref(options: Mapping[str, str]) -> str | None:
    named = [options[name] for name in REFS if name in options]
    if len(named) > 1:
        raise errors.InvalidPropertyError(f"options {', '.join(REFS)} all name the ref to read; give one of them")
    return named[0] if named else None


def _number(options: Mapping[str, str], key: str) -> int | None:
    text = options.get(key)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise errors.InvalidPropertyError(f"option {key!r} is {text!r}; it must be a whole number") from None


def _check_names(options: Mapping[str, str], known: tuple[str, ...]) -> None:
    for key in options:
        if key not in known and not key.startswith(CATALOG_PROPERTY):
            raise errors.InvalidPropertyError(
                f"unknown option {key!r} of format {FORMAT}; it has {', '.join(known)}, catalog.*"
            )


# -- registration


def register_format(spark: SparkSession, catalogs: Mapping[str, Catalog] | None = None) -> None:
    """Register the format `icefloe`, with catalogs for which no options are needed.

    Catalogs in memory are left out, for they are there in this process only. Spark 4.0 does not let a session replace a format
    that it found among the installed packages: there the format keeps asking for its catalogs by options, or by the
    configuration of icefloe.
    """
    known = {
        name: {key: str(value) for key, value in catalog.properties.items()}
        for name, catalog in (catalogs or {}).items()
        if catalog.properties.get("type") != "memory"
    }
    # A class of its own goes to Spark's processes by value, and the catalogs with it.
    source = type("BoundSource", (TableSource,), {"catalogs": known})
    with active(spark) if is_classic(spark) else nullcontext():
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            if error.getCondition() != _IS_INSTALLED:
                raise
    if is_classic(spark):
        _look_once(Gateway(spark))


def _look_once(gateway: Gateway) -> None:
    """Have Spark look for formats among installed packages no more where that has failed.

    It does so by a process of Python, and where that lacks PySpark it would again with each clone of the session, of which our
    statements make several.
    """
    with suppress(Py4JError, PySparkException):
        manager = gateway.module("org.apache.spark.sql.execution.datasources.DataSourceManager$")
        if manager.dataSourceBuilders().isEmpty():
            getattr(manager, "dataSourceBuilders_$eq")(gateway.jvm.scala.Option.apply(gateway.map({})))
