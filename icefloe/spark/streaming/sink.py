"""A table as the sink of a streaming query: each micro-batch is one commit, and is in the table once, however often it is run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession, Window, functions as F  # noqa: N812  # its usual name
from pyspark.sql.types import StructType

from icefloe.catalog import show
from icefloe.errors import InvalidInputError
from icefloe.metadata.summary import WAP_ID
from icefloe.spark.auditing import destination
from icefloe.spark.gateway import Gateway
from icefloe.spark.jvm import door
from icefloe.spark.loading import load_again
from icefloe.spark.merging import MergeBuilder
from icefloe.spark.micro_batch import MicroBatch
from icefloe.spark.spark_sessions import held_clone, hold_clones, is_on
from icefloe.spark.streaming.runtime import StreamRuntime, with_short_errors
from icefloe.spark.user_side import quoted_name
from icefloe.spark.writing import BRANCH, TableWrite
from icefloe.streaming import StreamBatch
from icefloe.table import Table

APPEND, COMPLETE, UPDATE = "append", "complete", "update"
_QUERY = "sql.streaming.queryId"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_STATE = "state info ["
"""How Spark's plans show any operator that has state."""
_RANK = "icefloe rank"


@dataclass(frozen=True)
class ChangesToApply:
    """Rows that say how a table changes: the newest of each key counts, and deletes its row if a condition is true."""

    keys: tuple[str, ...]
    sequence_by: str | None = None
    deletes: str | None = None


@dataclass(frozen=True)
class StreamTarget:
    """Where a query writes to, and how: all that a write of a frame says, without the frame."""

    gateway: Gateway
    write: TableWrite
    mode: str = APPEND
    changes: ChangesToApply | None = None

    @property
    def name(self) -> str:
        """The table's name."""
        return show(self.write.identifier)

    def table(self) -> Table:
        """The table as it is now."""
        return load_again(self.write.catalog, self.write.identifier)

    def check(self) -> None:
        """Fail if there is no such table, nothing to tell its rows by, or no place for many commits."""
        frame, table = self.write.frame, self.table()
        to = destination(frame.sparkSession, table, self.write.settings.get(BRANCH))
        if WAP_ID in to.snapshot_properties:
            raise InvalidInputError(
                f"spark.{WAP_ID} is {to.snapshot_properties[WAP_ID]!r}, which stages one commit, and a stream makes many; unset"
                " it, and write to a branch"
            )
        if self.changes is not None:
            known = _columns(table)
            for name in self._keys(self.changes, table):
                if name not in known:
                    raise InvalidInputError(f"{name!r} is no column of {self.name}; it has {', '.join(sorted(known))}")
            if (order := self.changes.sequence_by) is not None and order not in frame.columns:
                raise InvalidInputError(f"{order!r} is no column of the stream; it has {', '.join(frame.columns)}")

    def add(self, batch: DataFrame, query_id: str, number: int) -> None:
        """Commit a micro-batch, if it is not in the table."""
        write = replace(self.write, frame=batch).once(query_id, number)
        if self.changes is not None:
            self._merge(batch, self.changes).once(query_id, number).execute()
        elif self.mode == COMPLETE:
            write.overwrite()
        else:
            write.append()

    def has(self, spark: SparkSession, query_id: str, number: int) -> bool:
        """Whether a micro-batch is in the table, in the branch that a session writes to."""
        table = self.table()
        to = destination(spark, table, self.write.settings.get(BRANCH))
        return StreamBatch(query_id, number).is_in(table.metadata, to.branch)

    def _merge(self, batch: DataFrame, changes: ChangesToApply) -> MergeBuilder:
        table = self.table()
        keys = self._keys(changes, table)
        rows = batch if changes.sequence_by is None else _newest(batch, keys, changes.sequence_by, changes.deletes)
        merge = MergeBuilder(batch.sparkSession, table).using(rows, keys)
        if BRANCH in self.write.settings:
            merge = merge.to_branch(self.write.settings[BRANCH])
        is_newer: Column | None = None
        if changes.sequence_by is not None and changes.sequence_by in _columns(table):
            name = quoted_name(changes.sequence_by)
            is_newer = F.expr(f"t.{name} IS NULL OR s.{name} >= t.{name}")
        if changes.deletes is not None:
            gone = F.expr(changes.deletes)
            merge = merge.when_matched_delete(gone if is_newer is None else gone & is_newer)
            return merge.when_matched_update(None, is_newer).when_not_matched_insert(
                None, ~F.coalesce(gone, F.lit(False))
            )
        return merge.when_matched_update(None, is_newer).when_not_matched_insert()

    def _keys(self, changes: ChangesToApply, table: Table) -> Sequence[str]:
        if changes.keys:
            return changes.keys
        schema = table.schema()
        names = [schema.names_by_id[field_id] for field_id in sorted(schema.identifier_field_ids)]
        if not names:
            raise InvalidInputError(
                f"rows of {self.name} can be updated by keys only, and it has no identifier fields; name the keys"
            )
        return names


def _columns(table: Table) -> set[str]:
    return {field.name for field in table.schema().fields}


def _newest(batch: DataFrame, keys: Sequence[str], sequence_by: str, deletes: str | None) -> DataFrame:
    """The last row of each key; of two at the same place one that does not delete, as a row goes before another comes."""
    order = [F.col(quoted_name(sequence_by)).desc_nulls_last()]
    if deletes is not None:
        order.append(F.coalesce(F.expr(deletes), F.lit(False)).asc())
    latest = Window.partitionBy(*map(quoted_name, keys)).orderBy(*order)
    ranked = batch.alias("s").withColumn(_RANK, F.row_number().over(latest))
    return ranked.where(F.col(quoted_name(_RANK)) == 1).drop(_RANK)


@dataclass(frozen=True)
class GivenBatch:
    """A micro-batch as Spark gives it: its `Dataset`, and the ids of its query and of the session of that."""

    dataset: JavaObject
    query_id: str
    session_id: str


class TableSink:
    """Spark's `Sink` over a table."""

    def __init__(self, target: StreamTarget) -> None:
        self._target = target
        self._gateway = target.gateway
        self._runtime = StreamRuntime(target.gateway)
        self._stateful: dict[str, bool] = {}
        """Whether queries have state, which all their batches have in common."""
        self._sessions: dict[str, SparkSession] = {}
        """The session of the query that runs, by its id, with adaptive execution as the user has it."""
        self._schemas: dict[str, StructType] = {}
        """The columns of the query that runs, by the id of its session."""

    # -- what Spark asks

    def addBatch(self, number: int, data: JavaObject) -> None:  # noqa: N802  # Spark's name
        """One micro-batch; again after a failure, with the same number and rows."""
        # Spark's thread of the query calls us, and is called back on: its local properties are those of the query.
        query_id = str(self._gateway.spark.sparkContext.getLocalProperty(_QUERY))
        given = GivenBatch(data, query_id, str(data.sparkSession().sessionUUID()))
        with_short_errors(lambda: self._add(number, given))

    def name(self) -> str:
        """As reports of progress show it."""
        return self.toString()

    def toString(self) -> str:  # noqa: N802  # Java's name
        """As reports of progress show it."""
        return f"icefloe[{self._target.name}]"

    def hashCode(self) -> int:  # noqa: N802  # Java's name
        """By identity."""
        return id(self) & 0x7FFFFFFF

    def equals(self, other: object) -> bool:
        """By identity."""
        return other is self

    class Java:
        """What py4j makes of it."""

        implements = ("org.apache.spark.sql.execution.streaming.Sink",)

    # -- parts

    def for_spark(self) -> object:
        """What Spark is given: a sink in Java that asks this one, or this one where there is no such Java."""
        entry = door.entry(self._gateway.spark, "streams")
        return self if entry is None else entry.sink(SinkCalls(self), self.toString())

    def _add(self, number: int, given: GivenBatch) -> None:
        query_id, session = given.query_id, self._session(given)
        batch = MicroBatch(given.dataset, session).with_schema(self._schema(given))
        if self._has_state(given) and self._target.has(session, query_id, number):
            # What the query remembers must have seen the batch, too.
            batch.write.format("noop").mode("overwrite").save()
            return
        self._target.add(batch, query_id, number)

    def _session(self, given: GivenBatch) -> SparkSession:
        """The session that all batches of a run of a query are written in."""
        key = given.session_id
        if key not in self._sessions:
            own = self._runtime.session_of(given.dataset)
            adapts = is_on(self._gateway.spark, _ADAPTIVE)
            if is_on(own, _ADAPTIVE) != adapts:
                # Some queries run without adaptive execution, and would write a small file for each part of a shuffle.
                own = hold_clones(held_clone(own, {_ADAPTIVE: str(adapts).lower()}))
            # That of an earlier run is not needed any more.
            self._sessions = {key: own}
        return self._sessions[key]

    def _schema(self, given: GivenBatch) -> StructType:
        key = given.session_id
        if key not in self._schemas:
            self._schemas = {key: StructType.fromJson(json.loads(given.dataset.schema().json()))}
        return self._schemas[key]

    def _has_state(self, given: GivenBatch) -> bool:
        if given.query_id not in self._stateful:
            plan = str(given.dataset.queryExecution().executedPlan().toString())
            self._stateful[given.query_id] = _STATE in plan
        return self._stateful[given.query_id]


class SinkCalls:
    """What a sink in Java (icefloe/spark/jvm/streams.java) calls, with all that is to be known of a batch."""

    def __init__(self, sink: TableSink) -> None:
        self._sink = sink

    def apply(self, known: str, dataset: JavaObject) -> None:
        """One micro-batch: its number, the id of its query and that of the session."""
        number, query_id, session_id = known.split("\0")
        with_short_errors(lambda: self._sink._add(int(number), GivenBatch(dataset, query_id, session_id)))

    class Java:
        """What py4j makes of it."""

        implements = ("java.util.function.BiFunction",)
