"""Key metadata, version 1, as fields 131 and 519 hold it: a version byte, and an Avro record without a container.

The record is `encryption_key` (bytes), `aad_prefix` (null or bytes) and `file_length` (null or long). The spec leaves the form
to implementations; this is the one of the Java library.
"""

from icefloe.encryption.file_keys import FileKey
from icefloe.encryption.gcm import KEY_LENGTHS
from icefloe.errors import CorruptFileError

VERSION = 1
_MOST_BYTES = 1 << 16
"""Longer metadata is not that of a key."""


def encode_key_metadata(key: FileKey) -> bytes:
    """The bytes that stand for a key, in clear: they belong into files that are encrypted themselves."""
    prefix = b"\x02" + _bytes(key.aad_prefix) if key.aad_prefix else b"\x00"
    length = b"\x00" if key.file_length is None else b"\x02" + _long(key.file_length)
    return bytes([VERSION]) + _bytes(key.key) + prefix + length


def decode_key_metadata(data: bytes, location: str) -> FileKey:
    """The key that the bytes stand for, which are about the file at the location."""
    if not data or len(data) > _MOST_BYTES:
        raise CorruptFileError(location, f"its key metadata has {len(data)} bytes")
    if data[0] != VERSION:
        raise CorruptFileError(
            location, f"its key metadata is of version {data[0]}; this library knows version {VERSION} alone"
        )
    reader = _Reader(data, location)
    key = reader.bytes()
    prefix = reader.bytes() if reader.is_present() else b""
    length = reader.long() if reader.is_present() else None
    if reader.position != len(data) or (length is not None and length < 0) or len(key) not in KEY_LENGTHS:
        raise CorruptFileError(location, "its key metadata is not what version 1 of that says")
    return FileKey(key, prefix, length)


def _long(number: int) -> bytes:
    """Avro's zigzag and variable-length coding."""
    rest, out = number << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


class _Reader:
    """Reads one value after the other; errors never quote what is read."""

    def __init__(self, data: bytes, location: str) -> None:
        self._data = data
        self._location = location
        self.position = 1

    def long(self) -> int:
        result = shift = 0
        while True:
            if self.position >= len(self._data) or shift > 63:
                raise self._broken()
            byte = self._data[self.position]
            self.position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result >> 1 ^ -(result & 1)

    def is_present(self) -> bool:
        """The branch of a union of null and something."""
        branch = self.long()
        if branch not in (0, 1):
            raise self._broken()
        return branch == 1

    def bytes(self) -> bytes:
        length = self.long()
        if not 0 <= length <= len(self._data) - self.position:
            raise self._broken()
        self.position += length
        return self._data[self.position - length : self.position]

    def _broken(self) -> CorruptFileError:
        return CorruptFileError(self._location, "its key metadata is cut off or is not that of a key")
