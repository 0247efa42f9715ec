"""How Python reaches the JVM of a classic Spark session: the few py4j idioms that the other modules share."""

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaClass, JavaMember
from pyspark import SparkContext
from pyspark.errors import utils as call_sites
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType

from icefloe.bounded_cache import BoundedCache


class Returned:
    """Java objects that Python has just returned to Java.

    What Python lets go of, py4j forgets, even if Java has not yet looked up what it was given: it would then find null. So
    whatever a callback returns is to be held a little longer.
    """

    def __init__(self, seconds: float = 60) -> None:
        self._seconds = seconds
        self._held: deque[tuple[float, Any]] = deque()
        self._lock = threading.Lock()

    def __call__(self, value: Any) -> Any:
        now = time.monotonic()
        with self._lock:
            self._held.append((now, value))
            while self._held[0][0] < now - self._seconds:
                self._held.popleft()
        return value


def is_at_least(spark: Any, version: tuple[int, int]) -> bool:
    """Whether a session's Spark is at least of a version."""
    match = re.match(r"(\d+)\.(\d+)", str(spark.version))
    return match is None or tuple(map(int, match.groups())) >= version


@contextmanager
def active(spark: Any) -> Iterator[None]:
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


class Packages:
    """Java's packages by their names: nothing is asked of the JVM until something in a class is wanted.

    py4j asks about each part of a name, each time. Here parts in small letters are packages, and others are classes, which
    are kept with their members.
    """

    def __init__(self, client: Any, path: str) -> None:
        self._client = client
        self._path = path

    def __getattr__(self, name: str) -> Any:
        path = f"{self._path}.{name}"
        if not name[:1].isupper() and "$" not in name:
            return Packages(self._client, path)
        return _kept(self._client, path, lambda: _Class(path, self._client))


class _Class(JavaClass):  # type: ignore[misc]  # py4j is Any to mypy
    """A Java class that looks up each of its members once."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            self.__dict__[name] = member
        return member


class Roots:
    """What a session's `jvm` gives, with `Packages` at the roots that we use."""

    def __init__(self, view: Any) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return Packages(self._view._gateway_client, name) if name in _ROOTS else getattr(self._view, name)


_FUNCTIONS = "org.apache.spark.sql.functions"
"""A class, despite its lower-case first letter."""
_ROOTS = ("java", "scala", "org")
_KEPT: MutableMapping[Any, dict[str, Any]] = WeakKeyDictionary()
"""Classes by name, for each connection to a JVM."""


def _kept(client: Any, name: str, make: Callable[[], Any]) -> Any:
    known = _KEPT.setdefault(client, {})
    value = known.get(name)
    if value is None:
        value = known[name] = make()
    return value


_MADE: MutableMapping[Any, BoundedCache[Any, Any]] = WeakKeyDictionary()
"""Immutable Java objects by key, for each connection to a JVM."""
_MOST_MADE = 1000
_MAKING = threading.Lock()

_STARTING = threading.Lock()
"""PySpark would start two callback servers for two threads."""


class _CallSites:
    """Whether PySpark records where each column was created, for all threads: off while any of our code runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._working = 0
        self._before: bool | None = None

    def enter(self) -> None:
        with self._lock:
            if not self._working:
                self._before = getattr(call_sites, _NOTED, None)
                setattr(call_sites, _NOTED, False)
            self._working += 1

    def leave(self) -> None:
        with self._lock:
            self._working -= 1
            if not self._working:
                setattr(call_sites, _NOTED, self._before)


_NOTED = "_enable_debugging_cache"
_SITES = _CallSites()


@contextmanager
def without_call_sites() -> Iterator[None]:
    """Create columns without sending their call sites to the JVM: PySpark does so for its messages about the
    user's own columns, by eight calls."""
    _SITES.enter()
    try:
        yield
    finally:
        _SITES.leave()


def col(name: str) -> Column:
    """The column of a name by one call to the JVM; PySpark's own function asks for its class and its method each time."""
    return Column(_functions().col(name))


def lit(value: str | float | bool | None) -> Column:
    """The column of a plain value, by one call."""
    return Column(_functions().lit(value))


def when(condition: Column, value: Column) -> Column:
    """A value where a condition is true, by one call."""
    return Column(_functions().when(condition._jc, value._jc))


def _functions() -> Any:
    client = SparkContext._active_spark_context._jvm._gateway_client
    return _kept(client, _FUNCTIONS, lambda: _Class(_FUNCTIONS, client))


@dataclass(frozen=True)
class Gateway:
    """The JVM behind one session; `callbacks()` first where Spark is to call Python."""

    spark: SparkSession

    @property
    def jvm(self) -> Any:
        """The root of all Java packages."""
        return Roots(self.spark._jvm)

    def callbacks(self) -> "Gateway":
        """The same, with py4j's callback server running."""
        with _STARTING:
            ensure_callback_server_started(self.spark.sparkContext._gateway)
        return self

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """A Java object that never changes, created once for this key; the least recently used ones are dropped.

        Every call to the JVM takes a part of a millisecond, and a query would make most of its objects anew.
        """
        with _MAKING:
            known = _MADE.setdefault(self.spark._jvm._gateway_client, BoundedCache(_MOST_MADE))
        # Creating it may call back into Python and ask for the same key, so no lock is held.
        value = known.find(key)
        if value is None:
            value = make()
            known.keep(key, value)
        return value

    def none(self) -> Any:
        """Scala's `None`."""
        return self.kept("none", lambda: self.jvm.scala.Option.empty())

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala `Seq`."""
        return self.jvm.scala.jdk.javaapi.CollectionConverters.asScala(self.list(items)).toSeq()

    def list(self, items: Iterable[Any]) -> Any:
        """A Java list."""
        result = self.jvm.java.util.ArrayList()
        for item in items:
            result.add(item)
        return result

    def array(self, element_class: Any, items: Iterable[Any]) -> Any:
        """A Java array of a class."""
        held = tuple(items)
        array = self.spark.sparkContext._gateway.new_array(element_class, len(held))
        for index, item in enumerate(held):
            array[index] = item
        return array

    def texts(self, items: Sequence[str]) -> Any:
        """A Java array of strings, by one call however many they are."""
        if not items:
            return self.array(self.jvm.String, ())
        return self.jvm.java.util.regex.Pattern.compile("\0").split("\0".join(items))

    def type(self, data_type: DataType) -> Any:
        """Spark's type on the JVM."""
        text = data_type.json()
        return self.kept(("type", text), lambda: self.jvm.org.apache.spark.sql.types.DataType.fromJson(text))

    def named_plan(self, plan: Any, name: Sequence[str]) -> Any:
        """A logical plan under a name of one or more parts, by the last of which, or more, its columns can be qualified."""
        *around, last = name
        catalyst = self.jvm.org.apache.spark.sql.catalyst
        alias = self.kept(("alias", tuple(name)), lambda: catalyst.AliasIdentifier(last, self.seq(around)))
        return catalyst.plans.logical.SubqueryAlias(alias, plan)

    def named_frame(self, frame: DataFrame, name: Sequence[str]) -> DataFrame:
        """The same for a frame."""
        if len(name) == 1:
            return frame.alias(name[0])
        session = frame.sparkSession
        plan = self.named_plan(frame._jdf.queryExecution().logical(), name)
        dataset = self.jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
        return DataFrame(dataset, session)

    def load_class(self, name: str) -> Any:
        """The `Class` of a name, by the loader that knows Spark's."""
        lang = self.jvm.java.lang
        return _kept(
            self.spark._jvm._gateway_client,
            f"class {name}",
            lambda: lang.Class.forName(name, True, lang.Thread.currentThread().getContextClassLoader()),
        )

    def expression(self, column: Column) -> Any:
        """The Catalyst expression of a column."""
        return self.jvm.org.apache.spark.sql.classic.ExpressionUtils.expression(column._jc)

    def column(self, expression: Any) -> Column:
        """The column of a Catalyst expression."""
        return Column(self.jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))

    def alias(self, column: Column, name: str, metadata: Mapping[str, Any]) -> Column:
        """The column under a name, with metadata."""
        text = json.dumps(dict(metadata))
        java_metadata = self.kept(
            ("metadata", text), lambda: self.jvm.org.apache.spark.sql.types.Metadata.fromJson(text)
        )
        return Column(getattr(column._jc, "as")(name, java_metadata))

    def static_invoke(self, class_name: str, method: str, result: DataType, *arguments: Column) -> Column:
        """A call of a static Java method in generated code, for values that are not null."""
        invoke = self.jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
            self.load_class(class_name),
            self.type(result),
            method,
            self.seq(self.expression(argument) for argument in arguments),
            self.seq(()),
            True,
            False,
            True,
            self.none(),
        )
        return self.column(invoke)

    def invoke(self, target: Column, method: str, result: DataType, *arguments: Column) -> Column:
        """A call of a method of a column's Java object in generated code, for values that are not null."""
        invoke = self.jvm.org.apache.spark.sql.catalyst.expressions.objects.Invoke(
            self.expression(target),
            method,
            self.type(result),
            self.seq(self.expression(argument) for argument in arguments),
            self.seq(()),
            True,
            False,
            True,
        )
        return self.column(invoke)

    def never_null(self, column: Column) -> Column:
        """The column, declared never null to Spark."""
        return self.column(self.jvm.org.apache.spark.sql.catalyst.expressions.KnownNotNull(self.expression(column)))

    def nullable(self, column: Column) -> Column:
        """The same column, which Spark cannot look into."""
        return self.column(self.jvm.org.apache.spark.sql.catalyst.expressions.KnownNullable(self.expression(column)))

    def with_fields(self, column: Column, dropped: Iterable[str], added: Iterable[tuple[str, Column]]) -> Column:
        """A struct without some of its fields and with others, null where it is null; Spark sees through it."""
        expressions = self.jvm.org.apache.spark.sql.catalyst.expressions
        changes = [expressions.DropField(name) for name in dropped]
        changes += [expressions.WithField(name, self.expression(column)) for name, column in added]
        return self.column(expressions.UpdateFields(self.expression(column), self.seq(changes)))

    def frame(self, plan_or_dataset: Any) -> DataFrame:
        """The DataFrame of a Java `Dataset`."""
        return DataFrame(plan_or_dataset, self.spark)
