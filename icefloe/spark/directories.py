"""What Spark reads as one list of files with their constants, and which of them a predicate keeps: computed inside the JVM.

Calls from Python cost the more the more files there are. Method handles put Spark's own methods together once, and Java then
calls them for each file.
"""

import struct
from collections.abc import Sequence
from typing import Any

from icefloe.spark.gateway import Gateway

_SOURCES = "org.apache.spark.sql.execution.datasources"
_DIRECTORY = f"{_SOURCES}.PartitionDirectory"
_ROW = "org.apache.spark.sql.catalyst.InternalRow"
_STATUS = "org.apache.hadoop.fs.FileStatus"


def partition_directories(gateway: Gateway, rows: Any, statuses: Any, sizes: Sequence[int]) -> Any:
    """A Scala `Seq` of `PartitionDirectory`: each row of constants with as many of the files, in order, as its size says."""
    if len(sizes) < 2:
        apply = gateway.jvm.org.apache.spark.sql.execution.datasources.PartitionDirectory.apply
        return gateway.seq([apply(rows[0], statuses)] if sizes else ())
    handles = _Handles(gateway)
    ends, end = [], 0
    for size in sizes:
        end += size
        ends.append(end)
    start_of, end_of = (handles.of_array("[I", int_array(gateway, numbers)) for numbers in ([0, *ends[:-1]], ends))
    cut = handles.static(
        "java.util.Arrays", "copyOfRange", "[Ljava.lang.Object;", "[Ljava.lang.Object;", handles.int, handles.int
    )
    # apply(rows[i], copyOfRange(statuses, starts[i], ends[i]))
    apply = handles.static(_DIRECTORY, "apply", _DIRECTORY, _ROW, f"[L{_STATUS};")
    cut = handles.typed(handles.bound(cut, statuses), f"[L{_STATUS};", handles.int, handles.int)
    directory_of = handles.tools.collectArguments(apply, 1, handles.filtered(cut, start_of, end_of))
    row_of = handles.typed(handles.of_array(f"[L{_ROW};", rows), _ROW, handles.int)
    directory_of = handles.same_argument(handles.filtered(directory_of, row_of), _DIRECTORY, 3)
    kept = gateway.spark.sparkContext._gateway.new_array(gateway.jvm.java.lang.Object, len(sizes))
    gateway.jvm.java.util.Arrays.setAll(kept, handles.function("java.util.function.IntFunction", directory_of))
    return gateway.jvm.scala.jdk.javaapi.CollectionConverters.asScala(
        gateway.jvm.java.util.ArrayList(gateway.jvm.java.util.Arrays.asList(kept))
    ).toSeq()


def true_places(gateway: Gateway, predicate: Any, rows: Any, count: int) -> list[int]:
    """The indexes of the rows for which an interpreted Catalyst predicate is true."""
    handles = _Handles(gateway)
    test = handles.tools.publicLookup().findVirtual(
        predicate.getClass(), "eval", handles.kind(gateway.jvm.java.lang.Boolean.TYPE, _ROW)
    )
    row_of = handles.typed(handles.of_array(f"[L{_ROW};", rows), _ROW, handles.int)
    asked = handles.filtered(test.bindTo(predicate), row_of)
    asked = handles.tools.explicitCastArguments(asked, handles.kind(handles.int, handles.int))
    answers = gateway.spark.sparkContext._gateway.new_array(gateway.jvm.int, count)
    gateway.jvm.java.util.Arrays.setAll(answers, handles.function("java.util.function.IntUnaryOperator", asked))
    texts = str(gateway.jvm.java.util.Arrays.toString(answers)).strip("[]").split(", ")
    return [index for index, text in enumerate(texts) if text == "1"]


def int_array(gateway: Gateway, numbers: Sequence[int]) -> Any:
    """A Java array of ints."""
    array = gateway.spark.sparkContext._gateway.new_array(gateway.jvm.int, len(numbers))
    gateway.jvm.java.nio.ByteBuffer.wrap(struct.pack(f">{len(numbers)}i", *numbers)).asIntBuffer().get(array)
    return array


class _Handles:
    """Method handles, with classes by their names."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.tools = gateway.jvm.java.lang.invoke.MethodHandles
        self.int = gateway.kept("int", lambda: gateway.jvm.java.lang.Integer.TYPE)

    def kind(self, result: Any, *arguments: Any) -> Any:
        """The type of a method."""

        def make() -> Any:
            classes = self._gateway.array(self._gateway.jvm.java.lang.Class, map(self._class, arguments))
            return self._gateway.jvm.java.lang.invoke.MethodType.methodType(self._class(result), classes)

        return self._gateway.kept(("method type", *map(self._named, (result, *arguments))), make)

    def static(self, owner: str, name: str, result: Any, *arguments: Any) -> Any:
        """A static method."""
        return self._gateway.kept(
            ("static", owner, name, *map(self._named, (result, *arguments))),
            lambda: self.tools.publicLookup().findStatic(self._class(owner), name, self.kind(result, *arguments)),
        )

    def typed(self, handle: Any, result: Any, *arguments: Any) -> Any:
        """The handle with casts to these types."""
        return handle.asType(self.kind(result, *arguments))

    def bound(self, handle: Any, first: Any) -> Any:
        """The handle with its first argument bound."""
        return self.tools.insertArguments(handle, 0, self._objects([first]))

    def of_array(self, class_name: str, array: Any) -> Any:
        """A handle from an index to the element of an array."""
        return self.bound(self.tools.arrayElementGetter(self._class(class_name)), array)

    def filtered(self, handle: Any, *filters: Any) -> Any:
        """The handle with its first arguments passed through functions."""
        handle_class = self._gateway.jvm.java.lang.invoke.MethodHandle
        return self.tools.filterArguments(handle, 0, self._gateway.array(handle_class, filters))

    def same_argument(self, handle: Any, result: str, count: int) -> Any:
        """The handle with one int for all its arguments."""
        places = int_array(self._gateway, [0] * count)
        return self.tools.permuteArguments(handle, self.kind(result, self.int), places)

    def function(self, interface: str, handle: Any) -> Any:
        """A Java function that calls the handle."""
        return self._gateway.jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self._class(interface), handle
        )

    def _named(self, named: Any) -> str:
        if isinstance(named, str):
            return named
        return "int" if named is self.int else str(named.getName())

    def _class(self, named: Any) -> Any:
        return self._gateway.load_class(named) if isinstance(named, str) else named

    def _objects(self, items: Sequence[Any]) -> Any:
        return self._gateway.array(self._gateway.jvm.java.lang.Object, items)
