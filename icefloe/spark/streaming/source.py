"""A table as a stream of Spark: Spark asks this object how far there is something to read, and for the rows of each micro-batch.

A micro-batch is a lazy relation over Spark's own Parquet reader, with the filters and columns of the query, as any other
scan. Only its files are those between two offsets. The columns are those that the table had when the query started.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession, functions as F, types as spark_types  # noqa: N812  # its usual name

from icefloe.data import CHANGE_COLUMNS, shown_columns
from icefloe.errors import IcefloeError, StateError
from icefloe.maintenance import OptionValue
from icefloe.manifests import ManifestColumns
from icefloe.metadata import MAIN_BRANCH, TableMetadata, branch
from icefloe.planning import ChangeType
from icefloe.schema import Schema, types
from icefloe.spark.arrow_engine import arrow_frame, nullable, without_unknown
from icefloe.spark.auditing import branch_to_read
from icefloe.spark.changes import fields_to_show, read_changes
from icefloe.spark.engine import clean_native_scan, native_scan
from icefloe.spark.gateway import Gateway, Returned
from icefloe.spark.jvm import door
from icefloe.spark.native_read import NativeScan
from icefloe.spark.scan_plan import OF_DATA
from icefloe.spark.streaming.runtime import StreamRuntime, with_short_errors
from icefloe.spark.types import mapping_of, user_schema
from icefloe.streaming import (
    NOTHING,
    UNLIMITED,
    FileTotals,
    Offset,
    Part,
    PartsPlanner,
    ReadMode,
    StreamSettings,
    StreamSteps,
    TableFiles,
    offset_from_text,
    stream_settings,
)
from icefloe.table import ChangesScan, DataScan, Table

_QUERY = "sql.streaming.queryId"
"""Spark's local property that has the id of a query. It stays the same from run to run, of which there is one at a time."""
_ALL_AVAILABLE = "ReadAllAvailable"


@dataclass(frozen=True)
class StreamedTable:
    """What is streamed: a table, with the settings of the stream and the schema of the query."""

    spark: SparkSession
    table: Table
    name: str
    settings: StreamSettings
    schema_id: int

    @property
    def is_changes(self) -> bool:
        """Whether changes are shown, not rows."""
        return self.settings.mode is ReadMode.CHANGES

    def scan(self) -> DataScan:
        """All rows of the table as it is known now, under the columns of the query."""
        return replace(
            self.table.scan(selected_fields=self._fields, ref=self.settings.branch), metadata=self.metadata()
        )

    def changes(self, first: int | None, last: int | None) -> ChangesScan:
        """The changes after a snapshot and up to another."""
        scan = self.table.scan_changes(first, last, selected_fields=self._fields, branch=self.settings.branch)
        scan = replace(scan, metadata=self.metadata())
        if self.settings.is_net:
            return scan.with_net_changes()
        return scan.with_updates() if self.settings.pairs_updates else scan

    @property
    def _fields(self) -> tuple[str, ...]:
        return fields_to_show(self.table.metadata, self.settings.shows_row_ids)

    def metadata(self) -> TableMetadata:
        """The table's metadata with the query's schema as the current one; an error if rows cannot be read under it."""
        metadata = self.table.metadata
        if metadata.current_schema_id == self.schema_id:
            return metadata
        own = metadata.schemas_by_id.get(self.schema_id)
        if own is None:
            raise StateError(f"the schema that the query of {self.name} started with is gone; {_RESTART}")
        for field_id, field in own.fields_by_id.items():
            now = metadata.schema().fields_by_id.get(field_id)
            if now is not None and _type(now) != _type(field):
                raise StateError(
                    f"column {own.names_by_id[field_id]!r} of {self.name} is of type {now.field_type} now, and was"
                    f" {field.field_type} when the query started; {_RESTART}"
                )
        return metadata.evolve(current_schema_id=self.schema_id)

    @property
    def files(self) -> TableFiles:
        """The files of its snapshots."""
        return TableFiles(self.metadata(), self.table.storage, self.scan().cache)

    @property
    def steps(self) -> StreamSteps:
        """The steps of the stream over the table as it is known now."""
        return StreamSteps(self.table.metadata, self.settings, self.files, self.name)


_RESTART = "restart the query from its checkpoint to go on with the table's columns of now"


def _type(field: types.NestedField) -> str:
    """The type, without the fields inside, which may have other names and are compared by themselves."""
    nested = isinstance(field.field_type, types.NestedType)
    return type(field.field_type).__name__ if nested else str(field.field_type)


def stream_of(spark: SparkSession, table: Table, options: Mapping[str, OptionValue] | None) -> DataFrame:
    """A table as a streaming DataFrame, by the options of a stream."""
    settings = stream_settings(options)
    settings = settings if settings.branch else replace(settings, branch=branch_to_read(spark, table))
    name = ".".join(table.name())
    streamed = StreamedTable(spark, table, name, settings, table.metadata.current_schema_id)
    source = TableStreamSource(streamed)
    return StreamRuntime(Gateway(spark)).stream(source.for_spark(), source.columns)


class TableStreamSource:
    """Spark's `Source` over a table. Queries of one DataFrame share it, each with an end of its own."""

    def __init__(self, streamed: StreamedTable) -> None:
        self._streamed = streamed
        self._gateway = Gateway(streamed.spark)
        self._runtime = StreamRuntime(self._gateway)
        self._returned = Returned()
        self._ends: dict[str | None, Offset] = {}
        """Where the runs of queries with `Trigger.AvailableNow` end."""
        self._lock = threading.Lock()
        self.columns = _shown_columns(streamed)

    # -- what Spark asks of a Source

    def schema(self) -> JavaObject:
        """The columns."""
        return self._returned(self._gateway.type(self.columns))

    def getOffset(self) -> JavaObject:  # noqa: N802  # Spark's name
        """Never asked: there are limits."""
        raise AssertionError("Spark asks latestOffset of a source with limits")

    def getBatch(self, start: JavaObject, end: JavaObject) -> JavaObject:  # noqa: N802  # Spark's name
        """The rows between two offsets. After a restart Spark asks for the last batch again, and does not read it."""
        first = None if start.isEmpty() else str(start.get().json())
        return with_short_errors(lambda: self._batch(first, str(end.json())))

    def _batch(self, start: str | None, end: str) -> JavaObject:
        first = None if start is None else offset_from_text(start)
        last = offset_from_text(end)
        assert last is not None, "an offset of ours or of Java's that is the end of a batch"
        if last.snapshot_id not in self._streamed.table.metadata.snapshots_by_id:
            self._refresh()
        return self._returned(_Batch(self._streamed, self._runtime, first, last).dataset())

    def commit(self, end: JavaObject) -> None:
        """Nothing is kept of what was read."""

    def stop(self) -> None:
        """A run of a query ends; another one may go on."""
        with self._lock:
            self._ends.pop(self._query(), None)

    # -- SparkDataStream

    def initialOffset(self) -> JavaObject:  # noqa: N802  # Spark's name
        """Never asked of a Source."""
        raise AssertionError("Spark asks initialOffset of other streams")

    def deserializeOffset(self, text: str) -> JavaObject:  # noqa: N802  # Spark's name
        """The offset of a text."""
        return self._returned(self._runtime.offset(text))

    # -- SupportsAdmissionControl

    def getDefaultReadLimit(self) -> JavaObject:  # noqa: N802  # Spark's name
        """How much a batch reads; all limits are ours, so Spark only learns whether there are any."""
        return self._returned(self._limit())

    def _limit(self) -> JavaObject:
        limits = self._gateway.jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit
        none = self._streamed.settings.limits == UNLIMITED
        return limits.allAvailable() if none else limits.maxFiles(2**31 - 1)

    def latestOffset(self, start: JavaObject | None, limit: JavaObject) -> JavaObject | None:  # noqa: N802  # Spark's name
        """The end of the next batch; what it starts with if nothing is new."""
        # `Trigger.Once` asks for all that there is.
        is_all = limit.getClass().getSimpleName() == _ALL_AVAILABLE
        after = None if start is None else str(start.json())
        found = with_short_errors(lambda: self._latest(after, is_all))
        return start if found is None else self._returned(self._runtime.offset(found))

    def _latest(self, start: str | None, is_all: bool) -> str | None:
        after = None if start is None else offset_from_text(start)
        self._refresh()
        limits = UNLIMITED if is_all else self._streamed.settings.limits
        end = self._streamed.steps.next(after, limits, self._end())
        return None if end is None or end == after else end.to_text()

    def reportLatestOffset(self) -> JavaObject | None:  # noqa: N802  # Spark's name
        """The newest offset, for Spark's reports of progress."""
        head = self._head()
        return None if head is None else self._returned(self._runtime.offset(head.to_text()))

    # -- SupportsTriggerAvailableNow

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """A query with this trigger reads what is there now, and ends."""
        self._refresh()
        with self._lock:
            self._ends[self._query()] = self._head() or Offset(NOTHING, 0, is_complete=True)

    # -- ReportsSourceMetrics

    def metrics(self, latest: JavaObject) -> JavaObject:
        """What is still to be read, for Spark's reports of progress."""
        result = self._gateway.jvm.java.util.HashMap()
        for key, value in self._metrics(str(latest.get().json()) if latest.isPresent() else None).items():
            result.put(key, str(value))
        return self._returned(result)

    def _metrics(self, latest: str | None) -> dict[str, int]:
        try:
            return self._behind(None if latest is None else offset_from_text(latest))
        except IcefloeError:
            # A query whose snapshots have expired says so where it reads.
            return {}

    def _behind(self, after: Offset | None) -> dict[str, int]:
        parts, files = self._streamed.steps.behind(after), self._streamed.files
        totals = [self._left(files, part) for part in parts]
        return {
            "snapshotsBehind": len(parts),
            "filesBehind": sum(total.files for total in totals),
            "rowsBehind": sum(total.rows for total in totals),
            "bytesBehind": sum(total.bytes for total in totals),
        }

    def _left(self, files: TableFiles, part: Part) -> FileTotals:
        if part.is_whole:
            return files.totals(part.snapshot, part.is_full_load)
        left = files.sizes(part.snapshot, part.is_full_load)[part.first :]
        return FileTotals(len(left), sum(rows for rows, _ in left), sum(size for _, size in left))

    # -- java.lang.Object

    def toString(self) -> str:  # noqa: N802  # Java's name
        """As reports of progress show it."""
        return f"icefloe[{self._streamed.name}]"

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """By identity."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """By identity."""
        return other is self

    class Java:
        """What py4j makes of it."""

        implements = (
            "org.apache.spark.sql.execution.streaming.Source",
            "org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow",
            "org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics",
        )

    # -- parts

    def for_spark(self) -> object:
        """What Spark is given: a source in Java that asks this one, or this one where there is no such Java."""
        entry = door.entry(self._streamed.spark, "streams")
        if entry is None:
            return self
        return entry.source(SourceAnswers(self), self.toString(), self._gateway.type(self.columns), self._limit())

    def _refresh(self) -> None:
        """Look at the table as it is now; an error if it cannot be read under the query's columns any more."""
        with self._lock:
            self._streamed.table.refresh()
        self._streamed.metadata()

    def _head(self) -> Offset | None:
        head = self._streamed.table.metadata.snapshot_of_ref(self._streamed.settings.branch)
        return None if head is None else Offset(head.snapshot_id, 0, is_complete=True)

    def _query(self) -> str | None:
        # Spark's thread of the query calls us, and is called back on: its local properties are those of the query.
        query: str | None = self._streamed.spark.sparkContext.getLocalProperty(_QUERY)
        return query

    def _end(self) -> Offset | None:
        with self._lock:
            return self._ends.get(self._query())


class SourceAnswers:
    """What a source in Java (icefloe/spark/jvm/streams.java) asks: questions and answers are texts, which take no calls of their own."""

    def __init__(self, source: TableStreamSource) -> None:
        self._source = source

    def apply(self, question: str, text: str | None) -> JavaObject | str | None:
        """The answer about an offset, or about two of them for a batch."""
        return with_short_errors(lambda: self._answer(question, text))

    def _answer(self, question: str, text: str | None) -> JavaObject | str | None:
        source = self._source
        match question:
            case "batch":
                assert text is not None, "a batch has an end"
                start, _, end = text.partition("\0")
                return source._batch(start or None, end)
            case "latest" | "latest of all":
                return source._latest(text, question == "latest of all")
            case "head":
                head = source._head()
                return None if head is None else head.to_text()
            case "metrics":
                return "\0".join(f"{key}\0{value}" for key, value in source._metrics(text).items())
            case "prepare":
                source.prepareForTriggerAvailableNow()
            case "stop":
                source.stop()
            case _:
                raise AssertionError(question)
        return None

    class Java:
        """What py4j makes of it."""

        implements = ("java.util.function.BiFunction",)


@dataclass(frozen=True)
class _Batch:
    """The rows between two offsets."""

    streamed: StreamedTable
    runtime: StreamRuntime
    first: Offset | None
    last: Offset

    def dataset(self) -> JavaObject:
        """As Spark's `Dataset` of a micro-batch."""
        if self.streamed.is_changes:
            return self._planned_now(self._changes)
        native = self._native()
        if native is None:
            return self._planned_now(self._arrow)
        return replace(native, is_streaming=True).frame()._jdf

    def _native(self) -> NativeScan | None:
        """The batch with Spark's own reader, lazily; None if Arrow must read the table's files."""
        spark, name = self.streamed.spark, f"{self.streamed.name} {self._range}"
        if not self.last.is_full_load:
            # What later commits deleted does not matter to rows that were appended.
            return clean_native_scan(spark, self.streamed.scan(), self._planner, self._entries(), name)
        known = self._of_snapshot()
        native = native_scan(spark, known, name)
        return None if native is None else replace(native, scan=replace(known, planner=self._planner))

    def _entries(self) -> Iterator[ManifestColumns]:
        """Of the files of the batch; none if its snapshots have expired."""
        files = self.streamed.files
        with suppress(IcefloeError):
            for part in self._parts():
                yield from files.entries(part, OF_DATA)

    def _arrow(self) -> DataFrame:
        scan = self._of_snapshot() if self.last.is_full_load else self.streamed.scan()
        return arrow_frame(self.streamed.spark, replace(scan, planner=self._planner), mapping_of(self.streamed.spark))

    def _of_snapshot(self) -> DataScan:
        """All rows of the snapshot of a full load, under the query's columns; of nothing, if it has expired."""
        scan, snapshot_id = self.streamed.scan(), self.last.snapshot_id
        known = snapshot_id if snapshot_id in scan.metadata.snapshots_by_id else None
        refs = {} if known is None else {MAIN_BRANCH: branch(known)}
        return replace(scan, metadata=scan.metadata.evolve(current_snapshot_id=known, refs=refs), ref=None)

    @property
    def _planner(self) -> PartsPlanner:
        """Plans the files of the batch, which are looked up when it plans."""
        return PartsPlanner(self.streamed.files, _LazyParts(self._parts))

    @property
    def _range(self) -> str:
        """What distinguishes the batch from all others of the table, whose relations have the same columns."""
        first = f"after {self.last.started_after}" if self.first is None else _place(self.first)
        return f"{first}..{_place(self.last)} {self.streamed.settings.mode}"

    def _parts(self) -> list[Part]:
        return self.streamed.steps.parts(self.first, self.last)

    def _changes(self) -> DataFrame:
        """The changes of the batch; all rows of a full load are inserts."""
        spark, parts = self.streamed.spark, self._parts()
        if self.last.is_full_load:
            native = self._native()
            values = (str(ChangeType.INSERT), 0, self.last.snapshot_id)
            columns = zip(CHANGE_COLUMNS, user_schema(Schema(*CHANGE_COLUMNS)).fields, values, strict=True)
            rows = self._arrow() if native is None else native.frame()
            return rows.withColumns({own.name: F.lit(value).cast(shown.dataType) for own, shown, value in columns})
        if not parts:
            return spark.createDataFrame([], _shown_columns(self.streamed))
        begin = self.last.started_after if self.first is None else self.first.snapshot_id
        first = None if begin in (None, NOTHING) else begin
        return read_changes(spark, self.streamed.changes(first, parts[-1].snapshot.snapshot_id))

    def _planned_now(self, frame: Callable[[], DataFrame]) -> JavaObject:
        """A frame that has to be planned now; if it cannot be, the query fails when it reads it, not before."""
        try:
            return self.runtime.as_micro_batch(frame())
        except IcefloeError as error:
            columns = _shown_columns(self.streamed)
            failing = [
                F.raise_error(F.lit(str(error))).cast(field.dataType).alias(field.name) for field in columns.fields
            ]
            return self.runtime.as_micro_batch(self.streamed.spark.range(1).select(*failing))


@dataclass(frozen=True)
class _LazyParts:
    """Parts that are looked up when files are planned."""

    look_up: Callable[[], list[Part]]

    def __iter__(self) -> Iterator[Part]:
        return iter(self.look_up())


def _place(offset: Offset) -> str:
    marks = (" loaded" if offset.is_full_load else "", "" if offset.is_complete else " and on")
    return f"{offset.snapshot_id}+{offset.position}{''.join(marks)}"


def _shown_columns(streamed: StreamedTable) -> spark_types.StructType:
    mapping = mapping_of(streamed.spark)
    if not streamed.is_changes:
        return nullable(user_schema(streamed.scan().projection(), mapping))
    shown = shown_columns(streamed.changes(None, None))
    return nullable(user_schema(without_unknown(Schema(*shown.fields, *CHANGE_COLUMNS)), mapping))
