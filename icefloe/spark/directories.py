"""Files with their constants in the form that Spark lists them, and which of them match a predicate: computed in the JVM.

A call from Python for each file would be slow. So paths and sizes reach Hadoop in one call, as Hadoop's own
messages; constants reach Catalyst in one call, in the serialization format of Spark and Java; and method handles put Spark's
own methods together once, which Java then calls for each file.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaObject
from pyspark.sql import types as spark_types

from icefloe.partitioning import minimal_big_endian, unscaled
from icefloe.schema import Value, types
from icefloe.spark.gateway import Gateway

_DIRECTORY = "org.apache.spark.sql.execution.datasources.PartitionDirectory"
_INTERNAL_ROW = "org.apache.spark.sql.catalyst.InternalRow"
_UNSAFE_ROW = "org.apache.spark.sql.catalyst.expressions.UnsafeRow"
_STATUS = "org.apache.hadoop.fs.FileStatus"
_BLOCK = 128 << 20
_WORD = 8
_BITS = 64
_LAYOUTS = {
    "boolean": "=?",
    "integer": "=i",
    "date": "=i",
    "long": "=q",
    "timestamp": "=q",
    "timestamp_ntz": "=q",
    "float": "=f",
    "double": "=d",
}
"""How values that fit a word are packed."""
_LONG_DIGITS = 18
"""Decimals of more digits than fit a long are kept as bytes."""
_DECIMAL_BYTES = 16
_MOST_OF_SHORT_BLOCK = 255

# Java Object Serialization Specification, 6.4: the stream's marks, and the first number of an object in it.
_HEADER = b"\xac\xed\x00\x05"
_OBJECT, _ARRAY, _CLASS, _REFERENCE, _END, _NULL = b"\x73", b"\x75", b"\x72", b"\x71", b"\x78", b"\x70"
_SHORT_BLOCK, _LONG_BLOCK = b"\x77", b"\x7a"
_SERIALIZABLE, _EXTERNALIZABLE = b"\x02", b"\x0c"
_CLASS_OF_ROWS = struct.pack(">i", 0x7E0002)
"""The third object in the stream, after the array's class and the array."""

# -- files


def file_statuses(gateway: Gateway, files: Iterable[tuple[str, int]]) -> JavaArray:
    """A Java array of `FileStatus`, one for each location and length."""
    messages = [_message(location, length) for location, length in files]
    blob = struct.pack(">i", len(messages)) + b"".join(messages)
    jvm = gateway.jvm
    writables = jvm.org.apache.hadoop.io.ArrayWritable(gateway.load_class(_STATUS))
    writables.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(blob)))
    statuses = gateway.new_array(jvm.org.apache.hadoop.fs.FileStatus, len(messages))
    jvm.java.lang.System.arraycopy(writables.get(), 0, statuses, 0, len(messages))
    return statuses


def hadoop_location(location: str) -> str:
    """A location as Hadoop's `Path` takes it: literally, as locations of tables are, and never relative to a default store."""
    scheme, colon, _ = location.partition(":")
    return location if colon and "/" not in scheme else f"file:{location}"


def _message(location: str, length: int) -> bytes:
    """A FileStatusProto: a file, its path, length, replication and block size."""
    path = hadoop_location(location).encode()
    body = b"\x08\x02\x12" + _varint(len(path)) + path + b"\x18" + _varint(length) + b"\x50\x01\x58" + _varint(_BLOCK)
    return struct.pack(">i", len(body)) + body


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes((*encoded, number))


def partition_directories(
    gateway: Gateway, rows: Sequence[JavaObject], statuses: JavaArray, sizes: Sequence[int]
) -> JavaObject:
    """A Scala `Seq` of `PartitionDirectory`: each row of constants with the next files, as many as its size."""
    if len(sizes) < 2:
        apply = gateway.jvm.org.apache.spark.sql.execution.datasources.PartitionDirectory.apply
        return gateway.seq([apply(rows[0], statuses)] if sizes else ())
    handles = _Handles(gateway)
    ends = list(accumulate(sizes))
    start_of, end_of = (handles.of_array("[I", int_array(gateway, numbers)) for numbers in ([0, *ends[:-1]], ends))
    objects = "[Ljava.lang.Object;"
    cut = handles.static("java.util.Arrays", "copyOfRange", objects, objects, handles.int, handles.int)
    # apply(rows[i], copyOfRange(statuses, starts[i], ends[i]))
    apply = handles.static(_DIRECTORY, "apply", _DIRECTORY, _INTERNAL_ROW, f"[L{_STATUS};")
    cut = handles.typed(handles.bound(cut, statuses), f"[L{_STATUS};", handles.int, handles.int)
    directory_of = handles.tools.collectArguments(apply, 1, handles.filtered(cut, start_of, end_of))
    row_of = handles.typed(handles.of_array(f"[L{_INTERNAL_ROW};", rows), _INTERNAL_ROW, handles.int)
    # One index for all three arguments.
    same = int_array(gateway, [0, 0, 0])
    directory_of = handles.tools.permuteArguments(
        handles.filtered(directory_of, row_of), handles.method_type(_DIRECTORY, handles.int), same
    )
    directories = gateway.new_array(gateway.jvm.java.lang.Object, len(sizes))
    arrays = gateway.jvm.java.util.Arrays
    arrays.setAll(directories, handles.function("java.util.function.IntFunction", directory_of))
    return gateway.jvm.scala.jdk.javaapi.CollectionConverters.asScala(
        gateway.jvm.java.util.ArrayList(arrays.asList(directories))
    ).toSeq()


def true_indexes(gateway: Gateway, predicate: JavaObject, rows: JavaArray, count: int) -> list[int]:
    """The indexes of the rows for which an interpreted Catalyst predicate is true."""
    handles = _Handles(gateway)
    test = handles.tools.publicLookup().findVirtual(
        predicate.getClass(), "eval", handles.method_type(gateway.jvm.java.lang.Boolean.TYPE, _INTERNAL_ROW)
    )
    row_of = handles.typed(handles.of_array(f"[L{_INTERNAL_ROW};", rows), _INTERNAL_ROW, handles.int)
    is_true = handles.filtered(test.bindTo(predicate), row_of)
    is_true = handles.tools.explicitCastArguments(is_true, handles.method_type(handles.int, handles.int))
    answers = gateway.new_array(gateway.jvm.int, count)
    arrays = gateway.jvm.java.util.Arrays
    arrays.setAll(answers, handles.function("java.util.function.IntUnaryOperator", is_true))
    texts = str(arrays.toString(answers)).strip("[]").split(", ")
    return [index for index, text in enumerate(texts) if text == "1"]


def int_array(gateway: Gateway, numbers: Sequence[int]) -> JavaArray:
    """A Java array of ints."""
    array = gateway.new_array(gateway.jvm.int, len(numbers))
    gateway.jvm.java.nio.ByteBuffer.wrap(struct.pack(f">{len(numbers)}i", *numbers)).asIntBuffer().get(array)
    return array


class _Handles:
    """Method handles, with classes by their names."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.tools = gateway.jvm.java.lang.invoke.MethodHandles
        self.int = gateway.cached("int", lambda: gateway.jvm.java.lang.Integer.TYPE)

    def method_type(self, result: JavaObject | str, *arguments: JavaObject | str) -> JavaObject:
        """The type of a method."""

        def create() -> JavaObject:
            classes = self._gateway.array(self._gateway.jvm.java.lang.Class, map(self._class, arguments))
            return self._gateway.jvm.java.lang.invoke.MethodType.methodType(self._class(result), classes)

        return self._gateway.cached(("method type", *map(self._name, (result, *arguments))), create)

    def static(self, owner: str, name: str, result: JavaObject | str, *arguments: JavaObject | str) -> JavaObject:
        """A static method."""
        return self._gateway.cached(
            ("static", owner, name, *map(self._name, (result, *arguments))),
            lambda: self.tools.publicLookup().findStatic(
                self._class(owner), name, self.method_type(result, *arguments)
            ),
        )

    def typed(self, handle: JavaObject, result: str, *arguments: JavaObject | str) -> JavaObject:
        """The handle with casts to these types."""
        return handle.asType(self.method_type(result, *arguments))

    def bound(self, handle: JavaObject, first: object) -> JavaObject:
        """The handle with its first argument bound."""
        return self.tools.insertArguments(handle, 0, self._gateway.array(self._gateway.jvm.java.lang.Object, [first]))

    def of_array(self, class_name: str, array: object) -> JavaObject:
        """A handle from an index to the element of an array."""
        return self.bound(self.tools.arrayElementGetter(self._class(class_name)), array)

    def filtered(self, handle: JavaObject, *filters: JavaObject) -> JavaObject:
        """The handle with its first arguments passed through functions."""
        handle_class = self._gateway.jvm.java.lang.invoke.MethodHandle
        return self.tools.filterArguments(handle, 0, self._gateway.array(handle_class, filters))

    def function(self, interface: str, handle: JavaObject) -> JavaObject:
        """A Java function that calls the handle."""
        return self._gateway.jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(
            self._class(interface), handle
        )

    def _name(self, java_class: JavaObject | str) -> str:
        if isinstance(java_class, str):
            return java_class
        return "int" if java_class is self.int else str(java_class.getName())

    def _class(self, java_class: JavaObject | str) -> JavaObject:
        return self._gateway.load_class(java_class) if isinstance(java_class, str) else java_class


# -- constants


def constant_rows(
    gateway: Gateway, data_types: Sequence[spark_types.DataType], rows: Sequence[Sequence[Value | None]]
) -> JavaArray:
    """A Java array of Catalyst rows of these Spark types, from plain values."""
    jvm = gateway.jvm
    uid = jvm.java.io.ObjectStreamClass.lookup(gateway.load_class(_UNSAFE_ROW)).getSerialVersionUID()
    blob = b"".join(_stream(int(uid), len(data_types), [unsafe_row(data_types, values) for values in rows]))
    return jvm.java.io.ObjectInputStream(jvm.java.io.ByteArrayInputStream(blob)).readObject()


def unsafe_row(data_types: Sequence[spark_types.DataType], values: Sequence[Value | None]) -> bytes:
    """A row in the form of Spark's `UnsafeRow`: a bit for each null, a word for each value, then the longer values."""
    nulls = bytearray((len(data_types) + _BITS - 1) // _BITS * _WORD)
    words, after = [], bytearray()
    start = len(nulls) + _WORD * len(data_types)
    for index, (data_type, value) in enumerate(zip(data_types, values, strict=True)):
        if value is None:
            nulls[index // 8] |= 1 << index % 8
        is_long_decimal = data_type.typeName() == "decimal" and data_type.precision > _LONG_DIGITS
        if value is None and not is_long_decimal:
            words.append(bytes(_WORD))
        elif (word := _word(data_type, value)) is not None:
            words.append(word.ljust(_WORD, b"\0"))
        else:
            content = b"" if value is None else _bytes(data_type, value)
            words.append(struct.pack("=q", start + len(after) << 32 | len(content)))
            # A long decimal has room for any other, so that it can be updated in place.
            after += content.ljust(_DECIMAL_BYTES if is_long_decimal else -(-len(content) // _WORD) * _WORD, b"\0")
    return b"".join((bytes(nulls), *words, bytes(after)))


def _word(data_type: spark_types.DataType, value: Value) -> bytes | None:
    """The value as a word, if it fits one."""
    if data_type.typeName() == "decimal" and data_type.precision <= _LONG_DIGITS:
        return struct.pack("=q", unscaled(value, types.DecimalType(data_type.precision, data_type.scale)))
    layout = _LAYOUTS.get(data_type.typeName())
    return None if layout is None else struct.pack(layout, value)


def _bytes(data_type: spark_types.DataType, value: Value) -> bytes:
    match data_type.typeName():
        case "string":
            return value if isinstance(value, bytes) else str(value).encode()
        case "binary":
            return bytes(value.bytes if hasattr(value, "bytes") else value)
        case "decimal":
            return minimal_big_endian(unscaled(value, types.DecimalType(data_type.precision, data_type.scale)))
        case _:
            raise AssertionError(f"no constant column is of type {data_type}")


def _stream(uid: int, width: int, rows: Sequence[bytes]) -> Iterator[bytes]:
    """An array of rows in Java's serialization format."""
    yield _HEADER + _ARRAY + _class(f"[L{_UNSAFE_ROW};", 0, _SERIALIZABLE) + struct.pack(">i", len(rows))
    for index, row in enumerate(rows):
        content = struct.pack(">ii", len(row), width) + row
        size = len(content)
        is_short = size <= _MOST_OF_SHORT_BLOCK
        yield _OBJECT + (_REFERENCE + _CLASS_OF_ROWS if index else _class(_UNSAFE_ROW, uid, _EXTERNALIZABLE))
        yield _SHORT_BLOCK + bytes((size,)) if is_short else _LONG_BLOCK + struct.pack(">i", size)
        yield content
        yield _END


def _class(name: str, uid: int, flags: bytes) -> bytes:
    encoded = name.encode()
    return _CLASS + struct.pack(">H", len(encoded)) + encoded + struct.pack(">q", uid) + flags + b"\0\0" + _END + _NULL
