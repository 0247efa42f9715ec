"""How Python reaches the JVM of a classic Spark session: the few py4j idioms that the other modules share."""

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from py4j.java_collections import JavaArray
from py4j.java_gateway import GatewayClient, JavaClass, JavaMember, JavaObject, JVMView
from pyspark import SparkContext
from pyspark.errors import utils as call_sites
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType

from icefloe.bounded_cache import BoundedCache

T = TypeVar("T")


class Returned:
    """Java objects that Python has just returned to Java.

    py4j forgets an object as soon as Python drops it, even if Java has not yet looked it up: Java would then see null. So
    whatever a callback returns is held a little longer.
    """

    def __init__(self, seconds: float = 60) -> None:
        self._seconds = seconds
        self._held: deque[tuple[float, JavaObject]] = deque()
        self._lock = threading.Lock()

    def __call__(self, value: JavaObject) -> JavaObject:
        now = time.monotonic()
        with self._lock:
            self._held.append((now, value))
            while self._held[0][0] < now - self._seconds:
                self._held.popleft()
        return value


def is_at_least(spark: SparkSession, version: tuple[int, int]) -> bool:
    """Whether a session's Spark is of a version or newer."""
    match = re.match(r"(\d+)\.(\d+)", str(spark.version))
    return match is None or tuple(map(int, match.groups())) >= version


@contextmanager
def active(spark: SparkSession) -> Iterator[None]:
    """A session as the active one of this thread, where Spark looks for settings and names."""
    sessions = Gateway(spark).jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def analyzed(frame: DataFrame) -> JavaObject:
    """The plan of a frame, after analysis."""
    return frame._jdf.queryExecution().analyzed()


def items(sequence: JavaObject) -> list[JavaObject]:
    """The elements of a Scala `Seq`."""
    return [sequence.apply(index) for index in range(sequence.size())]


class Packages:
    """Java's packages by name: the JVM is asked only when a member of a class is looked up.

    py4j asks about each part of a name, each time. Here names in lower case are packages, and others are classes, which
    are cached with their members.
    """

    def __init__(self, client: GatewayClient, path: str) -> None:
        self._client = client
        self._path = path

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        if not name[:1].isupper() and "$" not in name:
            return Packages(self._client, path)
        return _cached(self._client, path, lambda: _Class(path, self._client))


class _Class(JavaClass):  # type: ignore[misc]  # py4j is Any to mypy
    """A Java class that looks up each of its members once."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


class Roots:
    """A session's `jvm`, with `Packages` at the roots that we use."""

    def __init__(self, view: JVMView) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return Packages(self._view._gateway_client, name) if name in _ROOTS else getattr(self._view, name)


_FUNCTIONS = "org.apache.spark.sql.functions"
"""A class, despite its lower-case first letter."""
_ROOTS = ("java", "scala", "org")
_CLASSES: MutableMapping[GatewayClient, dict[str, JavaClass]] = WeakKeyDictionary()
"""Classes by name, for each connection to a JVM."""


def _cached(client: GatewayClient, name: str, load: Callable[[], JavaClass]) -> JavaClass:
    known = _CLASSES.setdefault(client, {})
    value = known.get(name)
    if value is None:
        value = known[name] = load()
    return value


_OBJECTS: MutableMapping[GatewayClient, BoundedCache[Hashable, Any]] = WeakKeyDictionary()
"""Immutable Java objects by key, for each connection to a JVM."""
_MOST_OBJECTS = 1000
_OBJECTS_LOCK = threading.Lock()

_STARTING = threading.Lock()
"""PySpark would start two callback servers for two threads."""


_RECORDS = "_enable_debugging_cache"
"""Where PySpark keeps whether it records call sites, for all threads."""


class _CallSites:
    """How many threads run our code, and what PySpark's switch was before the first of them."""

    lock = threading.Lock()
    users = 0
    before: bool | None = None


@contextmanager
def without_call_sites() -> Iterator[None]:
    """Create columns without sending their call sites to the JVM: PySpark does so for its messages about the
    user's own columns, by eight calls. The switch is off for all threads while any of our code runs."""
    with _CallSites.lock:
        if not _CallSites.users:
            _CallSites.before = getattr(call_sites, _RECORDS, None)
            setattr(call_sites, _RECORDS, False)
        _CallSites.users += 1
    try:
        yield
    finally:
        with _CallSites.lock:
            _CallSites.users -= 1
            if not _CallSites.users:
                setattr(call_sites, _RECORDS, _CallSites.before)


def col(name: str) -> Column:
    """The column of a name by one call to the JVM; PySpark's own function asks for its class and its method each time."""
    return Column(_functions().col(name))


def lit(value: str | float | bool | None) -> Column:
    """The column of a plain value, by one call."""
    return Column(_functions().lit(value))


def when(condition: Column, value: Column) -> Column:
    """A value where a condition is true, by one call."""
    return Column(_functions().when(condition._jc, value._jc))


def _functions() -> JavaClass:
    client = SparkContext._active_spark_context._jvm._gateway_client
    return _cached(client, _FUNCTIONS, lambda: _Class(_FUNCTIONS, client))


@dataclass(frozen=True)
class Gateway:
    """The JVM behind one session; `callbacks()` first where Spark is to call Python."""

    spark: SparkSession

    @property
    def jvm(self) -> Roots:
        """The root of all Java packages."""
        return Roots(self.spark._jvm)

    def callbacks(self) -> "Gateway":
        """The same, with py4j's callback server running."""
        with _STARTING:
            ensure_callback_server_started(self.spark.sparkContext._gateway)
        return self

    def cached(self, key: Hashable, create: Callable[[], T]) -> T:
        """An immutable Java object, created once for this key; the least recently used ones are dropped.

        Every call to the JVM takes a part of a millisecond, and a query would create most of its objects again.
        """
        with _OBJECTS_LOCK:
            known = _OBJECTS.setdefault(self.spark._jvm._gateway_client, BoundedCache(_MOST_OBJECTS))
        # Creating it may call back into Python and ask for the same key, so no lock is held.
        value: T | None = known.find(key)
        if value is None:
            value = create()
            known.keep(key, value)
        return value

    @property
    def expressions(self) -> Packages:
        """Catalyst's expressions."""
        return Packages(self.spark._jvm._gateway_client, "org.apache.spark.sql.catalyst.expressions")

    def none(self) -> JavaObject:
        """Scala's `None`."""
        return self.cached("none", lambda: self.jvm.scala.Option.empty())

    def seq(self, items: Iterable[object]) -> JavaObject:
        """A Scala `Seq`."""
        return self.jvm.scala.jdk.javaapi.CollectionConverters.asScala(self.list(items)).toSeq()

    def map(self, entries: Mapping[str, object]) -> JavaObject:
        """A Scala `Map`, which cannot be changed; one of texts alone is created once."""
        if all(isinstance(value, str) for value in entries.values()):
            return self.cached(("map", tuple(entries.items())), lambda: self._new_map(entries))
        return self._new_map(entries)

    def _new_map(self, entries: Mapping[str, object]) -> JavaObject:
        result = self.jvm.java.util.HashMap()
        for key, value in entries.items():
            result.put(key, value)
        return self.jvm.PythonUtils.toScalaMap(result)

    def list(self, items: Iterable[object]) -> JavaObject:
        """A Java list."""
        result = self.jvm.java.util.ArrayList()
        for item in items:
            result.add(item)
        return result

    def new_array(self, element_class: JavaClass, length: int) -> JavaArray:
        """An empty Java array of a class."""
        return self.spark.sparkContext._gateway.new_array(element_class, length)

    def array(self, element_class: JavaClass, items: Iterable[object]) -> JavaArray:
        """A Java array of a class."""
        elements = tuple(items)
        array = self.new_array(element_class, len(elements))
        for index, element in enumerate(elements):
            array[index] = element
        return array

    def texts(self, items: Sequence[str]) -> JavaArray:
        """A Java array of strings, by one call whatever their number."""
        if not items:
            return self.array(self.jvm.String, ())
        return self.jvm.java.util.regex.Pattern.compile("\0").split("\0".join(items))

    def type(self, data_type: DataType) -> JavaObject:
        """Spark's type on the JVM."""
        text = data_type.json()
        return self.cached(("type", text), lambda: self.jvm.org.apache.spark.sql.types.DataType.fromJson(text))

    def frame(self, dataset: JavaObject) -> DataFrame:
        """The DataFrame of a Java `Dataset`."""
        return DataFrame(dataset, self.spark)

    def frame_of(self, plan: JavaObject) -> DataFrame:
        """The DataFrame of a logical plan."""
        return self.frame(self.jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.spark._jsparkSession, plan))

    def named_plan(self, plan: JavaObject, name: Sequence[str]) -> JavaObject:
        """A logical plan under a name of one or more parts, whose last parts its columns can be qualified by."""
        return self.jvm.org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias(self.alias_identifier(name), plan)

    def alias_identifier(self, name: Sequence[str]) -> JavaObject:
        """A name of one or more parts, for plans."""
        *around, last = name
        alias = self.jvm.org.apache.spark.sql.catalyst.AliasIdentifier
        return self.cached(("alias", tuple(name)), lambda: alias(last, self.seq(around)))

    def named_frame(self, frame: DataFrame, name: Sequence[str]) -> DataFrame:
        """The same for a frame."""
        if len(name) == 1:
            return frame.alias(name[0])
        plan = self.named_plan(frame._jdf.queryExecution().logical(), name)
        return Gateway(frame.sparkSession).frame_of(plan)

    def load_class(self, name: str) -> JavaObject:
        """The `Class` of a name, by the loader that knows Spark's."""
        lang = self.jvm.java.lang
        return _cached(
            self.spark._jvm._gateway_client,
            f"class {name}",
            lambda: lang.Class.forName(name, True, lang.Thread.currentThread().getContextClassLoader()),
        )

    def module(self, name: str) -> JavaObject:
        """Scala's object of a name."""
        return self.cached(("module", name), lambda: self.load_class(name).getField("MODULE$").get(None))

    def parameters(self, owner: JavaObject, method: str) -> int:
        """How many parameters the method has, or the longest of that name; it is asked once, as that takes hundreds of calls."""

        def count() -> int:
            methods = owner.getClass().getMethods()
            return max(int(each.getParameterCount()) for each in methods if each.getName() == method)

        return self.cached(("parameters of", method), count)

    def rdd_plan(self, dataset: JavaObject, *, is_streaming: bool) -> JavaObject:
        """The rows of a dataset as a plan of their own, by the physical plan of now."""
        nodes = self.module("org.apache.spark.sql.execution.LogicalRDD$")
        # From 4.3 on there is one more argument.
        more = [False] * (self.parameters(nodes, "fromDataset") - 3)
        return nodes.fromDataset(dataset.queryExecution().toRdd(), dataset, is_streaming, *more)

    def expression(self, column: Column) -> JavaObject:
        """The Catalyst expression of a column."""
        return self.jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)

    def column(self, expression: JavaObject) -> Column:
        """The column of a Catalyst expression."""
        return Column(self.jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def alias(self, column: Column, name: str, metadata: Mapping[str, object]) -> Column:
        """The column under a name, with metadata."""
        text = json.dumps(dict(metadata))
        java_metadata = self.cached(
            ("metadata", text), lambda: self.jvm.org.apache.spark.sql.types.Metadata.fromJson(text)
        )
        return Column(getattr(column._jc, "as")(name, java_metadata))

    def static_invoke(self, class_name: str, method: str, result: DataType, *arguments: Column) -> Column:
        """A call of a static Java method in generated code, for values that are not null."""
        owner, inputs = self.load_class(class_name), self.seq(map(self.expression, arguments))
        static = self.expressions.objects.StaticInvoke
        return self.column(
            static(owner, self.type(result), method, inputs, self.seq(()), True, False, True, self.none())
        )

    def invoke(self, target: Column, method: str, result: DataType, *arguments: Column) -> Column:
        """A call of a method of a column's Java object in generated code, for values that are not null."""
        instance, inputs = self.expression(target), self.seq(map(self.expression, arguments))
        invoke = self.expressions.objects.Invoke
        return self.column(invoke(instance, method, self.type(result), inputs, self.seq(()), True, False, True))

    def never_null(self, column: Column) -> Column:
        """The column, declared never null to Spark."""
        return self.column(self.expressions.KnownNotNull(self.expression(column)))

    def nullable(self, column: Column) -> Column:
        """The same column, opaque to Spark's optimizer."""
        return self.column(self.expressions.KnownNullable(self.expression(column)))

    def with_fields(self, column: Column, dropped: Iterable[str], added: Iterable[tuple[str, Column]]) -> Column:
        """A struct without some of its fields and with others, null where it is null; Spark's optimizer sees through it."""
        changes = [self.expressions.DropField(name) for name in dropped]
        changes += [self.expressions.WithField(name, self.expression(column)) for name, column in added]
        return self.column(self.expressions.UpdateFields(self.expression(column), self.seq(changes)))
