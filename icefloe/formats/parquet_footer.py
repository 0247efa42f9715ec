"""Annotations that pyarrow cannot write, put into the footer of a Parquet file that it is about to finish.

pyarrow writes a variant as a plain group, and knows geographies with spherical edges only. Readers that go by the
annotation (Java Iceberg, Spark, DuckDB) would not see what the columns are, so their schema elements get their logical type
added (Parquet: LogicalTypes). Thrift's compact protocol is walked only as far as the schema; all other bytes stay.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from icefloe.schema.types import DEFAULT_CRS, EDGE_ALGORITHMS, GeographyType

_MAGIC = b"PAR1"
_STRUCT, _LIST, _SET, _MAP, _BINARY, _DOUBLE, _BYTE = 12, 9, 10, 11, 8, 7, 3
_BOOLEANS = (1, 2)
_SCHEMA, _FIELD_ID, _LOGICAL_TYPE = 2, 9, 10

VARIANT_ANNOTATION = bytes.fromhex("0c20 13 01 00 00")
"""LogicalType is a union; its member 16 is VariantType, whose member 1 is the version of the encoding: 1."""


def geography_annotation(kind: GeographyType) -> bytes:
    """Member 18 of the union: the CRS, unless it is the default, and the algorithm by its number."""
    crs = kind.crs.encode()
    has_crs = kind.crs != DEFAULT_CRS
    name = b"\x18" + _varint(len(crs)) + crs if has_crs else b""
    algorithm = _varint(EDGE_ALGORITHMS.index(kind.algorithm) << 1)
    return b"\x0c\x24" + name + (b"\x15" if has_crs else b"\x25") + algorithm + b"\x00\x00"


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


class Sink(Protocol):
    """Where bytes of a file go, in order."""

    def write(self, data: bytes, /) -> object:
        """Append the bytes."""
        ...


class FooterSink:
    """A writable file that passes bytes on until `hold`, and then keeps them until `release` has annotated them.

    Once the sink has failed it gets nothing more, and the file cannot be finished.
    """

    def __init__(self, sink: Sink) -> None:
        self.written = 0
        self.closed = False
        self._sink = sink
        self._held: list[bytes] | None = None
        self._problem: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Append the bytes to the sink, or to what is held."""
        if self._held is not None:
            self._held.append(bytes(data))
        elif self._problem is None:
            # After an error nothing goes to the sink any more: pyarrow's writer still ends the file when it is collected.
            try:
                self._sink.write(data)
            except BaseException as problem:
                self._problem = problem
                raise
        self.written += len(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return self.written

    def flush(self) -> None:
        """Nothing waits here but the footer."""

    def hold(self) -> None:
        """Keep what comes from now on."""
        self._held = []

    def release(self, annotations: Mapping[int, bytes]) -> None:
        """Pass on what was held, with the columns of these field ids annotated."""
        if self._problem is not None:
            raise self._problem
        held = b"".join(self._held or [])
        tail = annotate(held, annotations) if annotations else held
        self._held = None
        self._sink.write(tail)
        self.written += len(tail) - len(held)


def annotate(tail: bytes, annotations: Mapping[int, bytes]) -> bytes:
    """The end of a Parquet file, footer and all, with these logical types on the columns of these field ids."""
    length = int.from_bytes(tail[-8:-4], "little")
    start = len(tail) - 8 - length
    if tail[-4:] != _MAGIC or start < 0:
        raise AssertionError("the writer ended the file without a footer")
    footer = _annotate(tail[start:-8], annotations)
    return tail[:start] + footer + len(footer).to_bytes(4, "little") + _MAGIC


def _annotate(footer: bytes, annotations: Mapping[int, bytes]) -> bytes:
    reader = _Reader(footer)
    parts: list[bytes] = []
    copied = 0
    for field, kind in reader.fields():
        if field != _SCHEMA:
            reader.skip(kind)
            continue
        count, _ = reader.list_header()
        for _ in range(count):
            end, last_field, field_id = _element(reader)
            if field_id is not None and field_id in annotations and last_field < _LOGICAL_TYPE:
                # Before the byte that ends the element; fields are numbered by the difference to the one before.
                header = bytes([(_LOGICAL_TYPE - last_field) << 4 | _STRUCT])
                parts += [footer[copied:end], header, annotations[field_id]]
                copied = end
        break
    return b"".join([*parts, footer[copied:]])


def _element(reader: "_Reader") -> tuple[int, int, int | None]:
    """Where a schema element ends, its last field, and its field id."""
    last_field, field_id = 0, None
    for field, kind in reader.fields():
        last_field = field
        if field == _FIELD_ID:
            field_id = reader.integer()
        else:
            reader.skip(kind)
    return reader.at - 1, last_field, field_id


class _Reader:
    """A walk over bytes of Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data

    def byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """The field number and type of each field of a struct; whoever asks must read or skip its value."""
        field = 0
        while (header := self.byte()) != 0:
            field = field + (header >> 4) if header >> 4 else self.integer()
            yield field, header & 0x0F

    def list_header(self) -> tuple[int, int]:
        header = self.byte()
        count = header >> 4
        return (self.varint() if count == 15 else count), header & 0x0F

    def skip(self, kind: int, in_list: bool = False) -> None:
        if kind in _BOOLEANS:
            self.at += 1 if in_list else 0
        elif kind == _BYTE:
            self.at += 1
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self.varint()
            self.at += length
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            count, inner = self.list_header()
            for _ in range(count):
                self.skip(inner, in_list=True)
        elif kind == _MAP:
            self._skip_map()
        else:
            self.varint()

    def _skip_map(self) -> None:
        count = self.varint()
        kinds = self.byte() if count else 0
        for _ in range(count):
            self.skip(kinds >> 4, in_list=True)
            self.skip(kinds & 0x0F, in_list=True)
