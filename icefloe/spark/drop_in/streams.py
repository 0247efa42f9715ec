"""`spark.readStream` and `df.writeStream` on a session whose calls know our catalogs; our own sources and sinks run them."""

# ruff: noqa: A002, N802, N803 - the names are Spark's

from collections.abc import Mapping
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamReader, DataStreamWriter, StreamingQuery
from pyspark.sql.types import StructType

from icefloe.errors import InvalidInputError
from icefloe.spark.drop_in.reader import ICEBERG, DropInNames, Settings, table_name
from icefloe.spark.sql.names import ResolvedName
from icefloe.spark.store_assignment import store_assigned
from icefloe.spark.streaming.source import stream_of
from icefloe.spark.streaming.writer import StreamWrite
from icefloe.spark.types import schema_of_query
from icefloe.spark.user_side import quoted_name
from icefloe.spark.writing import BRANCH, TableWrite

_FORMATS = (ICEBERG, "icefloe")
_KEYS = "upsert-keys"
_PATH = "path"
_WITHOUT_MEANING = frozenset(
    (
        "async-micro-batch-planning-enabled",
        "async-queue-preload-file-limit",
        "async-queue-preload-row-limit",
        "file-open-cost",
        "locality",
        "lookback",
        "split-size",
        "streaming-snapshot-polling-interval-ms",
    )
)
"""Options of the Java library that change how its streams are planned, and none of their rows."""


class DropInStreamReader(Settings, DataStreamReader):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """Spark's stream reader, which asks us first for tables, and for the formats `iceberg` and `icefloe`."""

    def __init__(self, spark: SparkSession, names: DropInNames) -> None:
        super().__init__(spark)
        self._names = names

    def table(self, tableName: str) -> DataFrame:
        """A table as a stream, of ours or of Spark's."""
        target = self._names.target(tableName)
        if target is None:
            return super().table(tableName)
        return self._stream(target)

    def changes(self, tableName: str) -> DataFrame:
        """Spark's own way to the changes of a table, for those of other catalogs."""
        self._names.check_not_ours(tableName)
        return super().changes(tableName)

    def load(
        self,
        path: str | None = None,
        format: str | None = None,
        schema: StructType | str | None = None,
        **options: object,
    ) -> DataFrame:
        """A stream of a path; of a table by its name if the format is `iceberg` or `icefloe`."""
        if (self._format if format is None else format.lower()) not in _FORMATS:
            return super().load(path, format, schema, **options)
        self.options(**options)
        target = self._names.target(table_name(path or self._options.get(_PATH)), self._names.first)
        assert target is not None, "a name with a default catalog is ours"
        return self._stream(target)

    def _stream(self, target: ResolvedName) -> DataFrame:
        target, branch = self._names.with_branch(target)
        options = {key: value for key, value in self._texts.items() if key != _PATH and key not in _WITHOUT_MEANING}
        return stream_of(self._spark, target.load_table(), options if branch is None else {**options, BRANCH: branch})


class DropInStreamWriter(Settings, DataStreamWriter):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """Spark's stream writer, which asks us first for tables, and for the formats `iceberg` and `icefloe`."""

    def __init__(self, frame: DataFrame, names: DropInNames) -> None:
        super().__init__(frame)
        self._frame = frame
        self._names = names
        self._mode = "append"
        self._name: str | None = None
        self._when: Mapping[str, object] = {}
        self._by: tuple[str, ...] = ()

    def outputMode(self, outputMode: str) -> Self:
        """`append`, `complete` or `update`."""
        self._mode = outputMode.lower()
        super().outputMode(outputMode)
        return self

    def queryName(self, queryName: str) -> Self:
        """The name of the query."""
        self._name = queryName
        super().queryName(queryName)
        return self

    def partitionBy(self, *cols: str) -> Self:
        """The partition columns of a table that does not exist yet."""
        self._by = tuple(cols)
        super().partitionBy(*cols)
        return self

    def trigger(self, **when: object) -> Self:
        """When batches are run."""
        self._when = {key: value for key, value in when.items() if value is not None}
        super().trigger(**when)
        return self

    def toTable(
        self,
        tableName: str,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: str | list[str] | None = None,
        queryName: str | None = None,
        **options: object,
    ) -> StreamingQuery:
        """Write to a table, of ours or of Spark's; one that does not exist is created with the frame's columns."""
        target = self._names.target(tableName)
        if target is None:
            return super().toTable(tableName, format, outputMode, partitionBy, queryName, **options)
        self._settings(format, outputMode, partitionBy, queryName, options)
        return self._start(target)

    def start(
        self,
        path: str | None = None,
        format: str | None = None,
        outputMode: str | None = None,
        partitionBy: str | list[str] | None = None,
        queryName: str | None = None,
        **options: object,
    ) -> StreamingQuery:
        """Write to a path; to a table by its name if the format is `iceberg` or `icefloe`."""
        if (self._format if format is None else format.lower()) not in _FORMATS:
            return super().start(path, format, outputMode, partitionBy, queryName, **options)
        self._settings(format, outputMode, partitionBy, queryName, options)
        target = self._names.target(table_name(path or self._options.get(_PATH)), self._names.first)
        assert target is not None, "a name with a default catalog is ours"
        return self._start(target)

    def _settings(
        self,
        format: str | None,
        mode: str | None,
        by: str | list[str] | None,
        name: str | None,
        options: Mapping[str, object],
    ) -> None:
        self.options(**options)
        if mode is not None:
            self.outputMode(mode)
        if by is not None:
            self.partitionBy(*([by] if isinstance(by, str) else by))
        if name is not None:
            self.queryName(name)
        if format is not None:
            self.format(format)

    def _start(self, target: ResolvedName) -> StreamingQuery:
        target, branch = self._names.with_branch(target)
        write = StreamWrite(TableWrite(self._frame, target.catalog, target.parts, assign=store_assigned))
        keys = self._options.get(_KEYS)
        if self._mode == "update":
            write = write.update([name.strip() for name in str(keys).split(",")] if keys else None)
        elif self._mode == "complete":
            write = write.complete()
        elif self._mode != "append":
            raise InvalidInputError(f"output mode {self._mode!r} is none of append, complete and update")
        write = write.options({key: value for key, value in self._options.items() if key not in (_PATH, _KEYS)})
        write = write if branch is None else write.option(BRANCH, branch)
        write = write.trigger(**self._when) if self._when else write
        write = write if self._name is None else write.named(self._name)
        if not target.table_exists():
            self._create(target, write)
        return write.start()

    def _create(self, target: ResolvedName, write: StreamWrite) -> None:
        """The table, if nothing that is known before it is there keeps the query from being started."""
        write.location()
        if write.changes is not None and not write.changes.keys:
            raise InvalidInputError(
                f"{target} does not exist, and rows of a new table are updated by keys: option {_KEYS!r}"
            )
        spec = [quoted_name(name) for name in self._by]
        target.catalog.create_table(target.parts, schema_of_query(self._frame.schema), partition_spec=spec)
