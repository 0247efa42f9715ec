"""How a streaming DataFrame is written to a table by name: `ice.write_stream(df).to("shop.orders").start(checkpoint)`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError
from icefloe.metadata import TableMetadata
from icefloe.spark.distribution import FANOUT
from icefloe.spark.gateway import Gateway
from icefloe.spark.streaming.runtime import StreamRuntime
from icefloe.spark.streaming.sink import APPEND, COMPLETE, UPDATE, ChangesToApply, StreamTarget, TableSink
from icefloe.spark.writing import FANOUT_ENABLED, MERGE_APPEND, TableWrite

CHECKPOINT = "checkpointLocation"
_CHECKPOINT_SETTING = "spark.sql.streaming.checkpointLocation"
_TRIGGERS = "processingTime='1 minute', availableNow=True or once=True"


@dataclass(frozen=True)
class StreamWriter:
    """A streaming frame to write; `to` names the table."""

    resolve: Callable[[str | Sequence[str]], tuple[Catalog, tuple[str, ...]]]
    """The catalog that a name means, and the name in it."""
    frame: DataFrame

    def to(self, name: str | Sequence[str]) -> "StreamWrite":
        """The table of that name, which exists."""
        catalog, identifier = self.resolve(name)
        return StreamWrite(TableWrite(self.frame, catalog, identifier))


@dataclass(frozen=True)
class StreamWrite:
    """A query that writes to a table; each setting returns a new one, and `start` runs it."""

    write: TableWrite
    mode: str = APPEND
    changes: ChangesToApply | None = None
    query_name: str | None = None
    checkpoint: str | None = None
    trigger_of: Mapping[str, object] = field(default_factory=dict)

    def option(self, key: str, value: object) -> "StreamWrite":
        """An option by Iceberg's name: `branch`, `fanout-enabled`, `use-merge-append-for-streaming`, ..., `checkpointLocation`."""
        if key.lower() == CHECKPOINT.lower():
            return replace(self, checkpoint=str(value))
        return replace(self, write=self.write.option(key, value))

    def options(self, values: Mapping[str, object] | None = None, **more: object) -> "StreamWrite":
        """Several options."""
        write = self
        for key, value in {**(values or {}), **more}.items():
            write = write.option(key, value)
        return write

    def named(self, name: str) -> "StreamWrite":
        """A name of the query, as Spark shows it."""
        return replace(self, query_name=name)

    def trigger(self, **when: object) -> "StreamWrite":
        """When batches are run: `processingTime="1 minute"`, `availableNow=True` or `once=True`; without it, one after the other."""
        if len(when) != 1 or next(iter(when)) not in ("processingTime", "availableNow", "once"):
            raise InvalidInputError(f"a trigger is {_TRIGGERS}, not {when!r}")
        return replace(self, trigger_of=dict(when))

    def complete(self) -> "StreamWrite":
        """Each batch takes the place of all rows: for aggregates."""
        return replace(self, mode=COMPLETE, changes=None)

    def update(self, keys: Sequence[str] | None = None) -> "StreamWrite":
        """Each row takes the place of that with the same keys, or is added; without keys, those are the identifier fields."""
        return replace(self, mode=UPDATE, changes=ChangesToApply(_names(keys)))

    def apply_changes(
        self, keys: Sequence[str], *, sequence_by: str | None = None, deletes: str | None = None
    ) -> "StreamWrite":
        """Rows of a stream of changes, such as of another database: each is what a row is from then on.

        Args:
            keys: the columns that tell rows apart.
            sequence_by: a column that says which of two rows of one key is the newer one: within a batch, and against the table
                if that has the column too. Without it, a batch may have one row of a key.
            deletes: SQL that is true of a change that deletes its row; the change is `s`.
        """
        return replace(self, mode=APPEND, changes=ChangesToApply(_names(keys), sequence_by, deletes))

    def start(self, checkpoint: str | None = None) -> StreamingQuery:
        """Run the query.

        Args:
            checkpoint: the folder where Spark keeps how far the query is; it goes on from there when it is started again.
        """
        frame = self.write.frame
        if not frame.isStreaming:
            raise InvalidInputError("the frame is not a stream; ice.write writes it")
        location = checkpoint or self.location()
        gateway = Gateway(frame.sparkSession)
        self.write._check()
        target = StreamTarget(gateway, self.write, self.mode, self.changes)
        target = replace(target, write=_with_defaults(self.write, target.table().metadata))
        # An error of the table or of the keys is told here, not by a query that ends.
        target.check()
        query = StreamRuntime(gateway).start(
            frame,
            TableSink(target).for_spark(),
            checkpoint=location,
            mode=self.mode,
            trigger=_trigger(gateway, self.trigger_of),
            name=self.query_name,
        )
        return StreamingQuery(query)

    def location(self) -> str:
        """Where the checkpoint is: by the option, or by the name of the query and a setting of the session."""
        if self.checkpoint:
            return self.checkpoint
        folder = self.write.frame.sparkSession.conf.get(_CHECKPOINT_SETTING, None)
        if not folder or self.query_name is None:
            raise InvalidInputError(
                f"a query needs a checkpoint, by which each batch is in the table once: start(checkpoint), option {CHECKPOINT!r},"
                f" or the setting {_CHECKPOINT_SETTING} and a name of the query"
            )
        return f"{folder.rstrip('/')}/{self.query_name}"


def _with_defaults(write: TableWrite, metadata: TableMetadata) -> TableWrite:
    """The write of a micro-batch: its commit merges no manifests, and its rows are not sorted to save open files, if nobody says so."""
    if MERGE_APPEND not in write.settings:
        write = write.option(MERGE_APPEND, False)
    is_decided = FANOUT_ENABLED in write.settings or FANOUT in metadata.properties
    needs_none = metadata.spec().is_unpartitioned or metadata.sort_order().fields
    return write if is_decided or needs_none else write.option(FANOUT_ENABLED, True)


def _names(keys: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(keys, str):
        raise InvalidInputError(f"keys are a list of names, not the text {keys!r}")
    return tuple(keys or ())


def _trigger(gateway: Gateway, when: Mapping[str, object]) -> JavaObject:
    triggers = gateway.jvm.org.apache.spark.sql.streaming.Trigger
    if not when:
        return triggers.ProcessingTime("0 seconds")
    match dict(when):
        case {"availableNow": True}:
            return triggers.AvailableNow()
        case {"once": True}:
            return triggers.Once()
        case {"processingTime": str(interval)} if interval.strip():
            return triggers.ProcessingTime(interval.strip())
        case other:
            raise InvalidInputError(f"a trigger is {_TRIGGERS}, not {other!r}")
