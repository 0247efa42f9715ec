"""The rows of a micro-batch as a frame, which need not become a plan of their own where all of them are written as they are."""

from functools import cached_property

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame
from pyspark.sql.types import StructType

from icefloe.spark.gateway import Gateway
from icefloe.spark.jvm import door


class MicroBatch(DataFrame):  # type: ignore[misc]  # mypy knows nothing of PySpark
    """What a sink is given, as a plain DataFrame in a session: whatever is done with it is no part of the streaming query."""

    def __init__(self, dataset: JavaObject, session: SparkSession) -> None:
        super().__init__(None, session)
        # The plan of the rows is made when it is asked for.
        del self.__dict__["_jdf"]
        self.dataset = dataset

    def with_schema(self, schema: StructType) -> "MicroBatch":
        """The same; Spark is not asked for its columns, which are known."""
        self.__dict__["schema"] = schema
        return self

    def planned_in(self, session: SparkSession) -> None:
        """Let a session plan these rows together with what is done with them, where that saves a copy of each."""
        entry = door.entry(self.sparkSession, "batch_rows")
        if entry is not None:
            entry.plan(session._jsparkSession, self._rows, self.dataset)

    @cached_property
    def _rows(self) -> JavaObject:
        """The rows as a plan."""
        return Gateway(self.sparkSession).rdd_plan(self.dataset, is_streaming=False)

    @cached_property
    def _jdf(self) -> JavaObject:
        gateway, plan = Gateway(self.sparkSession), self._rows
        return gateway.jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.sparkSession._jsparkSession, plan)
