"""Rows in Avro containers: header and blocks, schemas as trees, and two interpreters that read and write rows as columns."""

from icefloe.avro.blocks import (
    CODECS,
    MAGIC,
    SYNC_SIZE,
    codec_named,
    container_block,
    container_header,
    deflate,
    zigzag,
)
from icefloe.avro.branches import Branch, Part, compile_rows
from icefloe.avro.choices import (
    Choice,
    Key,
    Take,
    TakeEach,
    TakeFields,
    TakeList,
    TakePairs,
    TakeRecords,
    TakeSpread,
    variant_parts,
)
from icefloe.avro.container import Container, open_container
from icefloe.avro.decode import Decoded, decode_tree
from icefloe.avro.encode import encode_rows
from icefloe.avro.file import AvroFile, Source
from icefloe.avro.iceberg_schema_codec import avro_name, avro_record, avro_schema_of, decimal_width, null_comes_second
from icefloe.avro.program import Program, UnknownShape, compile_program
from icefloe.avro.schema_codec import parse_avro_schema
