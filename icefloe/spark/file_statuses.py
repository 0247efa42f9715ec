"""How the paths and sizes of many files reach Hadoop in one call: as Hadoop's own messages."""

import struct
from collections.abc import Iterable
from typing import Any

from icefloe.spark.gateway import Gateway

_BLOCK = 128 << 20
_STATUS = "org.apache.hadoop.fs.FileStatus"


def file_statuses(gateway: Gateway, files: Iterable[tuple[str, int]]) -> Any:
    """A Java array of `FileStatus`, one for each location and length."""
    messages = [_message(location, length) for location, length in files]
    blob = struct.pack(">i", len(messages)) + b"".join(messages)
    jvm = gateway.jvm
    held = jvm.org.apache.hadoop.io.ArrayWritable(gateway.load_class(_STATUS))
    held.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(blob)))
    statuses = gateway.spark.sparkContext._gateway.new_array(jvm.org.apache.hadoop.fs.FileStatus, len(messages))
    jvm.java.lang.System.arraycopy(held.get(), 0, statuses, 0, len(messages))
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
