"""Annotations that pyarrow cannot write, put into the footer of a Parquet file that it is about to finish.

pyarrow writes a variant as a plain group, and knows geographies with spherical edges only. Readers that go by the
annotation (Java Iceberg, Spark, DuckDB) would not see what the columns are, so their schema elements get their logical type
added (Parquet: LogicalTypes). Thrift's compact protocol is walked only as far as the schema; all other bytes stay.
"""

from collections.abc import Mapping

import pyarrow as pa

from icefloe.encryption import FileKey
from icefloe.formats.parquet.encryption import open_footer, with_footer
from icefloe.formats.parquet.thrift_codec import STRUCT, ThriftReader, write_varint
from icefloe.schema import types

MAGIC = b"PAR1"
"""With which Parquet files begin and end."""

_SCHEMA, _FIELD_ID, _LOGICAL_TYPE = 2, 9, 10

VARIANT_ANNOTATION = bytes.fromhex("0c20 13 01 00 00")
"""LogicalType is a union; its member 16 is VariantType, whose member 1 is the version of the encoding: 1."""


def geography_annotation(kind: types.GeographyType) -> bytes:
    """Member 18 of the union: the CRS, unless it is the default, and the algorithm by its number."""
    crs = kind.crs.encode()
    has_crs = kind.crs != types.DEFAULT_CRS
    name = b"\x18" + write_varint(len(crs)) + crs if has_crs else b""
    algorithm = write_varint(types.EDGE_ALGORITHMS.index(kind.algorithm) << 1)
    return b"\x0c\x24" + name + (b"\x15" if has_crs else b"\x25") + algorithm + b"\x00\x00"


def annotate(tail: bytes, annotations: Mapping[int, bytes], key: FileKey | None = None) -> bytes:
    """The end of a Parquet file, footer and all, with these logical types on the columns of these field ids.

    The footer of a file with a key is opened and sealed again.
    """
    if not annotations:
        return tail
    if key is not None:
        plain, crypto = open_footer(tail, key)
        return with_footer(tail, _annotate(plain, annotations), crypto, key)
    before = footer_of(tail)
    footer = _annotate(before, annotations)
    return tail[: -len(before) - 8] + footer + len(footer).to_bytes(4, "little") + MAGIC


def footer_of(file: bytes | pa.Buffer) -> bytes:
    """The Thrift bytes of the footer of a Parquet file that was just written, or of the end of one."""
    data = memoryview(file)
    length = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - length
    if bytes(data[-4:]) != MAGIC or start < 0:
        raise AssertionError("the writer ended the file without a footer")
    return bytes(data[start:-8])


def _annotate(footer: bytes, annotations: Mapping[int, bytes]) -> bytes:
    reader = ThriftReader(footer)
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
                header = bytes([(_LOGICAL_TYPE - last_field) << 4 | STRUCT])
                parts += [footer[copied:end], header, annotations[field_id]]
                copied = end
        break
    return b"".join([*parts, footer[copied:]])


def _element(reader: ThriftReader) -> tuple[int, int, int | None]:
    """Where a schema element ends, its last field, and its field id."""
    last_field, field_id = 0, None
    for field, kind in reader.fields():
        last_field = field
        if field == _FIELD_ID:
            field_id = reader.integer()
        else:
            reader.skip(kind)
    return reader.at - 1, last_field, field_id
