"""How Python reaches the JVM of a classic Spark session: the few py4j idioms that the other modules share."""

import json
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType


class Returned:
    """Java objects that Python returned to Java a moment ago.

    What Python lets go of, py4j forgets, even if Java has not yet looked up what it was given: it would then find null. So
    whatever a callback returns is to be held a little longer.
    """

    def __init__(self, seconds: float = 60) -> None:
        self._seconds = seconds
        self._held: deque[tuple[float, Any]] = deque()
        self._lock = threading.Lock()

    def __call__(self, made: Any) -> Any:
        now = time.monotonic()
        with self._lock:
            self._held.append((now, made))
            while self._held[0][0] < now - self._seconds:
                self._held.popleft()
        return made


_STARTING = threading.Lock()
"""PySpark would start two callback servers for two threads."""


@dataclass(frozen=True)
class Gateway:
    """The JVM behind one session; `callbacks()` first where Spark is to call Python."""

    spark: SparkSession

    @property
    def jvm(self) -> Any:
        """The root of all Java packages."""
        return self.spark._jvm

    def callbacks(self) -> "Gateway":
        """The same, with py4j's callback server running."""
        with _STARTING:
            ensure_callback_server_started(self.spark.sparkContext._gateway)
        return self

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala `Seq`."""
        return self.jvm.scala.jdk.javaapi.CollectionConverters.asScala(self.list(items)).toSeq()

    def list(self, items: Iterable[Any]) -> Any:
        """A Java list."""
        made = self.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made

    def array(self, kind: Any, items: Iterable[Any]) -> Any:
        """A Java array of a class."""
        held = tuple(items)
        made = self.spark.sparkContext._gateway.new_array(kind, len(held))
        for index, item in enumerate(held):
            made[index] = item
        return made

    def cut(self, kind: Any, items: Any, start: int, end: int) -> Any:
        """Part of a Java array of a class, from one place to before another."""
        made = self.spark.sparkContext._gateway.new_array(kind, end - start)
        self.jvm.java.lang.System.arraycopy(items, start, made, 0, end - start)
        return made

    def type(self, kind: DataType) -> Any:
        """Spark's type on the JVM."""
        return self.jvm.org.apache.spark.sql.types.DataType.fromJson(kind.json())

    def load_class(self, name: str) -> Any:
        """The `Class` of a name, by the loader that knows Spark's."""
        loader = self.jvm.java.lang.Thread.currentThread().getContextClassLoader()
        return self.jvm.java.lang.Class.forName(name, True, loader)

    def expression(self, column: Column) -> Any:
        """The Catalyst expression of a column."""
        return self.jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)

    def column(self, expression: Any) -> Column:
        """The column of a Catalyst expression."""
        return Column(self.jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def static_invoke(self, class_name: str, method: str, result: DataType, *arguments: Column) -> Column:
        """A call of a static Java method in generated code, for values that are not null."""
        invoke = self.jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
            self.load_class(class_name),
            self.jvm.org.apache.spark.sql.types.DataType.fromJson(json.dumps(result.jsonValue())),
            method,
            self.seq(self.expression(argument) for argument in arguments),
            self.seq(()),
            True,
            False,
            True,
            self.jvm.scala.Option.empty(),
        )
        return self.column(invoke)

    def frame(self, plan_or_dataset: Any) -> DataFrame:
        """The DataFrame of a Java `Dataset`."""
        return DataFrame(plan_or_dataset, self.spark)
