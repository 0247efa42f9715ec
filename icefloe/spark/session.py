"""A Spark session that knows catalogs: tables by name become DataFrames, and DataFrames go into tables."""

import datetime as dt
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import expr

from icefloe import errors, metadata as md, planning
from icefloe.catalog import Catalog
from icefloe.expressions import Expression
from icefloe.maintenance import OptionValue
from icefloe.spark.auditing import branch_to_read, destination
from icefloe.spark.changes import fields_to_show
from icefloe.spark.drop_in.reader import DropInNames
from icefloe.spark.drop_in.session import install
from icefloe.spark.engine import read_scan
from icefloe.spark.jvm import door
from icefloe.spark.loading import load_again
from icefloe.spark.merging import MergeBuilder, assignments_of
from icefloe.spark.metadata_frames import metadata_frame
from icefloe.spark.row_level import TargetTable
from icefloe.spark.row_statements import delete_rows, update_rows
from icefloe.spark.spark_sessions import is_classic
from icefloe.spark.sql.context import mentioned_metadata
from icefloe.spark.sql.names import Source
from icefloe.spark.sql.parser import door_of, with_default
from icefloe.spark.sql.temporary_views import Origin
from icefloe.spark.streaming.source import stream_of
from icefloe.spark.streaming.writer import StreamWriter
from icefloe.spark.writing import FrameWriter
from icefloe.streaming import READ_MODE, ReadMode
from icefloe.table import DataScan, Table

_REPORTS_KEPT = 100
_DEFAULT_CATALOG = "spark.sql.defaultCatalog"
_SPARKS_OWN = "spark_catalog"
_ALL = ("*",)


class ReportKeeper:
    """Keeps the newest scan reports, and hands them to the reporter of the table's catalog."""

    def __init__(self, kept: deque[planning.ScanReport], inner: planning.Reporter) -> None:
        self._kept = kept
        self._inner = inner

    def report(self, report: planning.ScanReport) -> None:
        """Keep a report and hand it on."""
        self._kept.append(report)
        self._inner.report(report)

    def __reduce__(self) -> tuple[type, tuple[()]]:
        # Executors plan nothing, so nothing of it goes along.
        return planning.LoggingReporter, ()


class Session:
    """What `connect` returns: a Spark session and the catalogs that it reads and writes."""

    def __init__(
        self, spark: SparkSession, catalogs: Mapping[str, Catalog], *, owns_spark: bool = False, drop_in: bool = False
    ) -> None:
        self.spark = spark
        self.catalogs = dict(catalogs)
        self._owns_spark = owns_spark
        self._reports: deque[planning.ScanReport] = deque(maxlen=_REPORTS_KEPT)
        self._door = door_of(spark, self.catalogs, self._source_frame) if is_classic(spark) else None
        # Queries of streams run in clones, which are made before the first file is read.
        door.send_early(spark, "live_rows")
        self._undo: Callable[[], None] | None = None
        if drop_in:
            if self._door is None:
                raise errors.StateError("drop_in is for classic sessions; on Spark Connect use ice.table and ice.write")
            names = DropInNames(spark, self._door.names, self._source_frame, next(iter(self.catalogs)))
            self._undo = install(spark, names)
        self._default: str | None = None

    @property
    def catalog(self) -> Catalog:
        """The first catalog, which names without a catalog are in."""
        return next(iter(self.catalogs.values()))

    @property
    def reports(self) -> tuple[planning.ScanReport, ...]:
        """What the newest plans of this session considered and skipped, the newest last."""
        return tuple(self._reports)

    def load_table(self, name: str | Sequence[str]) -> Table:
        """The handle of a table, by its name with or without that of a catalog in front."""
        return load_again(*self.resolve(name))

    def resolve(self, name: str | Sequence[str]) -> tuple[Catalog, tuple[str, ...]]:
        """The catalog that a name means, and the name in it; the name of a catalog in front decides, if it is one."""
        parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
        checked: tuple[object, ...] = parts
        if not checked or not all(isinstance(part, str) and part for part in checked):
            raise errors.InvalidInputError(f"{name!r} is not the name of a table; give one such as 'shop.orders'")
        if len(parts) > 2 and parts[0] in self.catalogs:
            return self.catalogs[parts[0]], parts[1:]
        return self.catalog, parts

    def table(
        self,
        name: str | Sequence[str],
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of: int | dt.datetime | None = None,
        row_filter: str | Expression | None = None,
        selected_fields: Sequence[str] = _ALL,
        options: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """The rows of a table as a lazy DataFrame: later filters and selections still choose files and columns.

        Args:
            name: the table, with or without the name of a catalog in front.
            snapshot_id: read this snapshot.
            ref: read this branch or tag.
            as_of: read the snapshot that was current at this time, in milliseconds or as a datetime with a zone.
            row_filter: only rows that match, as text or as an expression of `icefloe.expressions`.
            selected_fields: only these columns; metadata columns such as `_file` and `_row_id` may follow `"*"`.
            options: options of scans (docs/scans.md), and `read.engine` (docs/spark.md).

        >>> ice.table("shop.orders").filter("total > 15").select("id").orderBy("id").collect()
        [Row(id=2), Row(id=3)]
        """
        table = self.load_table(name)
        if snapshot_id is None and ref is None and as_of is None:
            ref = branch_to_read(self.spark, table)
        scan = table.scan(row_filter, selected_fields, snapshot_id=snapshot_id, ref=ref, as_of=as_of, options=options)
        frame = self.read(scan, ".".join(table.name()))
        if (snapshot_id, as_of, row_filter, options) == (None, None, None, None) and tuple(selected_fields) == _ALL:
            return self._with_origin(frame, Source(self.resolve(name)[0], table.name(), ref=ref), table, ())
        return frame

    def read(self, scan: DataScan, name: str | None = None) -> DataFrame:
        """The rows of a scan as a lazy DataFrame."""
        return read_scan(self.spark, replace(scan, reporter=ReportKeeper(self._reports, scan.reporter)), name)

    def changes(
        self,
        name: str | Sequence[str],
        after: int | None = None,
        until: int | None = None,
        *,
        updates: bool = False,
        net: bool = False,
        keys: Sequence[str] = (),
        branch: str | None = None,
        row_ids: bool = False,
    ) -> DataFrame:
        """The rows that were inserted and deleted after one snapshot and up to another, read and compared by executors.

        Args:
            name: the table, with or without the name of a catalog in front.
            after: the snapshot after which changes begin; without it, the beginning of the table.
            until: the last snapshot; without it, the newest one of the branch.
            updates: show a delete and an insert of one row as an update, by `keys`, the identifier fields, or row ids.
            net: show only what is left of all changes.
            keys: the columns that tell rows apart, for updates.
            branch: the branch that the snapshots are of.
            row_ids: show `_row_id`, too, by which rows of a table of v3 or newer are the same.

        >>> ice.changes("shop.orders").groupBy("_change_type").count().collect()
        [Row(_change_type='INSERT', count=3)]
        """
        table = self.load_table(name)
        fields = fields_to_show(table.metadata, row_ids)
        scan = table.scan_changes(after, until, None, fields, branch=branch, net_changes=net)
        return (scan.with_updates(keys) if updates or keys else scan).to_spark(self.spark)

    def read_stream(
        self, name: str | Sequence[str], options: Mapping[str, OptionValue] | None = None, *, changes: bool = False
    ) -> DataFrame:
        """A table as a streaming DataFrame: first what it holds, then what commits add, in micro-batches.

        Args:
            name: the table, with or without the name of a catalog in front.
            options: where the stream begins, what it shows and how much a micro-batch reads (docs/streaming.md).
            changes: show every insert, delete and update, with `_change_type`, `_change_ordinal` and `_commit_snapshot_id`.

        >>> ice.read_stream("shop.orders").isStreaming
        True
        """
        self._check_classic_for_streams()
        chosen = {**(options or {}), READ_MODE.key: ReadMode.CHANGES.value} if changes else options
        return stream_of(self.spark, self.load_table(name), chosen)

    def write(self, frame: DataFrame) -> FrameWriter:
        """A builder that writes a DataFrame to a table.

        >>> frame = ice.spark.createDataFrame([(4, "us", 40.0)], "id bigint, region string, total double")
        >>> snapshot = ice.write(frame).to("shop.orders").append()
        >>> ice.table("shop.orders").count()
        4
        """
        return FrameWriter(self.resolve, frame)

    def write_stream(self, frame: DataFrame) -> StreamWriter:
        """A builder that writes a streaming DataFrame to a table: each micro-batch is one commit, and is there once.

        >>> from tempfile import mkdtemp
        >>> ice.catalog.create_table("shop.copy", "id bigint, region string, total double").name()
        ('shop', 'copy')
        >>> stream = ice.read_stream("shop.orders")
        >>> query = ice.write_stream(stream).to("shop.copy").trigger(availableNow=True).start(mkdtemp())
        >>> query.awaitTermination()
        >>> ice.table("shop.copy").count()
        3
        """
        self._check_classic_for_streams()
        return StreamWriter(self.resolve, frame)

    def sql(
        self, text: str, args: Mapping[str, object] | Sequence[object] | None = None, **frames: object
    ) -> DataFrame:
        """Run a SQL text as `spark.sql` does; names without a catalog may be of tables in this session's first one.

        Args:
            text: a statement, or a script.
            args: values of its parameters, by name (`:since`) or by position (`?`).
            frames: DataFrames that the text names in braces.

        >>> ice.sql("SELECT region, sum(total) AS total FROM shop.orders GROUP BY region ORDER BY region").collect()
        [Row(region='eu', total=40.0), Row(region='us', total=20.0)]
        """
        if self._door is None:
            raise errors.StateError(
                "Spark Connect has no JVM at hand, which SQL on tables needs; use ice.table and ice.write"
            )
        text = with_default(text, next(iter(self.catalogs)))
        return self._door.sql(self.spark.sql, *((text,) if args is None else (text, args)), **frames)

    def merge(self, name: str | Sequence[str]) -> MergeBuilder:
        """Merge rows into a table.

        >>> changes = ice.spark.createDataFrame([(1, "eu", 11.0), (9, "us", 90.0)], "id bigint, region string, total double")
        >>> merge = ice.merge("shop.orders").using(changes, "t.id = s.id").when_matched_update().when_not_matched_insert()
        >>> snapshot = merge.execute()
        >>> ice.table("shop.orders").filter("id in (1, 9)").orderBy("id").select("total").collect()
        [Row(total=11.0), Row(total=90.0)]
        """
        self._check_classic()
        return MergeBuilder(self.spark, self.load_table(name))

    def delete(
        self,
        name: str | Sequence[str],
        condition: str | Column,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> md.Snapshot | None:
        """Delete the rows for which a condition is true, as Spark evaluates it.

        Args:
            name: the table.
            condition: SQL, with functions and subqueries as Spark has them, or a column of Spark.
            branch: the branch to change, instead of `main`.
            snapshot_properties: properties for the summary of the new snapshot.

        >>> snapshot = ice.delete("shop.orders", "total < 15")
        >>> ice.table("shop.orders").count()
        2
        """
        target = self._target(name, branch, snapshot_properties, str(condition))
        return delete_rows(target, expr(condition) if isinstance(condition, str) else condition)

    def update(
        self,
        name: str | Sequence[str],
        values: Mapping[str, object],
        condition: str | Column | None = None,
        *,
        branch: str | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> md.Snapshot | None:
        """Set columns to new values in the rows for which a condition is true, or in all rows.

        Args:
            name: the table.
            values: new values by column: SQL as text, columns of Spark, or constants.
            condition: SQL, or a column of Spark.
            branch: the branch to change, instead of `main`.
            snapshot_properties: properties for the summary of the new snapshot.

        >>> snapshot = ice.update("shop.orders", {"total": "total * 2"}, "region = 'us'")
        >>> ice.table("shop.orders").filter("id = 2").select("total").collect()
        [Row(total=40.0)]
        """
        target = self._target(name, branch, snapshot_properties, f"{condition} {values}")
        column = expr(condition) if isinstance(condition, str) else condition
        return update_rows(target, assignments_of(values) or (), column)

    def _target(
        self, name: str | Sequence[str], branch: str | None, properties: Mapping[str, str] | None, text: str
    ) -> TargetTable:
        """The table of a change, which may mention metadata columns in its text."""
        self._check_classic()
        table = self.load_table(name)
        to = destination(self.spark, table, branch, properties)
        mentioned = mentioned_metadata(text)
        return TargetTable(self.spark, table, to.branch, to.snapshot_properties, metadata_columns=mentioned)

    def _check_classic(self) -> None:
        if self._door is None:
            raise errors.StateError(
                "Spark Connect has no JVM at hand, which changes of rows by Spark need; use the calls of the table itself"
            )

    def _check_classic_for_streams(self) -> None:
        if self._door is None:
            raise errors.StateError(
                "Spark Connect has no JVM at hand, which streams of changes and streams into tables need; use a"
                " classic session, or spark.readStream.format('icefloe') for rows that are appended"
            )

    def _source_frame(self, source: Source, metadata_columns: Sequence[str] = ()) -> DataFrame:
        table = source.load_table()
        if source.metadata_table is None:
            is_newest, ref = source.snapshot_id is None and source.as_of is None, source.ref
            if is_newest and ref is None:
                ref = branch_to_read(self.spark, table)
            columns = ("*", *metadata_columns)
            scan = table.scan(None, columns, snapshot_id=source.snapshot_id, ref=ref, as_of=source.as_of)
            frame = self.read(scan, ".".join(source.identifier))
            newest = Source(source.catalog, source.identifier, ref=ref)
            return self._with_origin(frame, newest, table, metadata_columns) if is_newest else frame
        about = table.inspect.scan(source.metadata_table, source.snapshot_id, ref=source.ref, as_of=source.as_of)
        return metadata_frame(self.spark, about, ".".join((*source.identifier, source.metadata_table)))

    def _with_origin(
        self, frame: DataFrame, source: Source, table: Table, metadata_columns: Sequence[str]
    ) -> DataFrame:
        """The frame with its origin, so that views of it stay current."""
        if self._door is None:
            return frame
        return self._door.with_origin(frame, Origin.of(source, table, tuple(metadata_columns)))

    def take_default(self) -> None:
        """If the session's default catalog is one of ours, make it current; Spark has no class to load for it."""
        if self._door is None:
            return
        default = self.spark.conf.get(_DEFAULT_CATALOG, "")
        if default in self.catalogs:
            self._door.names.current = (default, ())
            self.spark.conf.set(_DEFAULT_CATALOG, _SPARKS_OWN)
            self._default = default

    def stop(self) -> None:
        """Undo `drop_in` and what was done about the default catalog, and stop the Spark session if `connect` started it."""
        if self._undo is not None:
            self._undo()
        if self._door is not None and self._default is not None:
            self._door.names.current = None
            self.spark.conf.set(_DEFAULT_CATALOG, self._default)
            self._default = None
        if self._owns_spark:
            self.spark.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Session(catalogs {', '.join(self.catalogs)}; Spark {self.spark.version})"
