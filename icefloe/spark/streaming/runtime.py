"""Spark's classes for streams, which differ a little from one version to the next: asked by reflection, not by version."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefloe.errors import IcefloeError
from icefloe.spark.gateway import Gateway
from icefloe.spark.spark_sessions import hold_clones

T = TypeVar("T")
_STREAMING = "org.apache.spark.sql.execution.streaming"
_INTERRUPTED = re.compile(
    r"\bjava\.(lang\.Interrupted|io\.InterruptedIO|nio\.channels\.ClosedByInterrupt)Exception|\bJob \d+ cancelled\b"
)
"""How errors speak of a query that was stopped; rows may have words such as `cancelled`, too."""
_UNASSIGNED = "org.apache.spark.sql.catalyst.streaming.Unassigned$"
"""From 4.2 on sources have names; this says that Spark is to choose one."""


@dataclass(frozen=True)
class StreamRuntime:
    """The few calls by which Python objects take part in streaming queries."""

    gateway: Gateway

    def offset(self, text: str) -> JavaObject:
        """An offset with this text."""
        return self._package.SerializedOffset(text)

    def stream(self, source: object, schema: StructType) -> DataFrame:
        """The streaming DataFrame of a Python object that is Spark's `Source`."""
        gateway = self.gateway.callbacks()
        attributes = gateway.jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes(gateway.type(schema))
        names = [gateway.module(_UNASSIGNED)] if self._has(_UNASSIGNED) else []
        session = gateway.spark._jsparkSession
        relation = self._package.StreamingExecutionRelation(source, attributes, gateway.none(), *names, session)
        return gateway.frame_of(relation)

    def as_micro_batch(self, frame: DataFrame) -> JavaObject:
        """The rows of any DataFrame as those of a micro-batch; its physical plan is made now."""
        dataset = frame._jdf
        node = self.gateway.rdd_plan(dataset, is_streaming=True)
        return self.gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(dataset.sparkSession(), node)

    def session_of(self, dataset: JavaObject) -> SparkSession:
        """The session of a query, by one of its micro-batches."""
        return hold_clones(SparkSession(self.gateway.spark.sparkContext, dataset.sparkSession()))

    def start(
        self,
        frame: DataFrame,
        sink: object,
        *,
        checkpoint: str,
        mode: str,
        trigger: JavaObject,
        name: str | None,
    ) -> JavaObject:
        """A running query of a frame into a Python object that is Spark's `Sink`."""
        gateway = self.gateway.callbacks()
        jvm, none = gateway.jvm, gateway.none()
        modes = jvm.org.apache.spark.sql.streaming.OutputMode
        arguments = [
            jvm.scala.Option.apply(name),
            jvm.scala.Option.apply(checkpoint),
            frame._jdf,
            gateway.map({}),
            sink,
            {"append": modes.Append, "complete": modes.Complete, "update": modes.Update}[mode](),
            False,
            True,
            trigger,
            jvm.org.apache.spark.util.SystemClock(),
            none,
            none,
        ]
        manager = gateway.spark._jsparkSession.sessionState().streamingQueryManager()
        if gateway.parameters(manager, "startQuery") > len(arguments):
            # From 4.2 on the sink may have a name, too.
            arguments.insert(1, none)
        return manager.startQuery(*arguments)

    @property
    def _package(self) -> JavaObject:
        streaming = self.gateway.jvm.org.apache.spark.sql.execution.streaming
        # In 4.0 the classes are one package higher.
        return streaming.runtime if self._has(f"{_STREAMING}.runtime.StreamingExecutionRelation") else streaming

    def _has(self, name: str) -> bool:
        def look() -> bool:
            try:
                self.gateway.load_class(name)
            except (Py4JError, PySparkException):
                return False
            return True

        return self.gateway.cached(("has class", name), lambda: (look(),))[0]


def with_short_errors(work: Callable[[], T]) -> T:
    """Do what a query asks for. When it is stopped meanwhile, end in few words.

    Spark looks for an interruption in the text of an error, by a pattern that overflows its stack on pages of a trace. And it
    shows users the whole trace, in which a sentence of ours should not have to be searched for.
    """
    try:
        return work()
    except IcefloeError as error:
        raise error.with_traceback(None) from None
    except (Py4JError, PySparkException) as error:
        if _INTERRUPTED.search(str(error)) is not None:
            raise RuntimeError(
                "py4j.protocol.Py4JJavaError: An error occurred while calling a batch: java.lang.InterruptedException"
            ) from None
        raise
