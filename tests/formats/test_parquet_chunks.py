"""Row groups whose columns are encoded side by side: the files are, byte for byte, those that one thread writes."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from icefloe.formats.file_writing import HoldingSink, WrittenFile
from icefloe.formats.parquet import writer as parquet_writer
from icefloe.formats.parquet.chunks import ParquetChunksWriter
from icefloe.formats.parquet.footer import footer_of
from icefloe.formats.parquet.thrift_codec import ThriftReader, write_struct
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.schema import NestedField, Schema, schema_to_arrow
from icefloe.schema.types import DoubleType, LongType, StringType
from icefloe.versions import ALL_VERSIONS
from tests.formats.rows import tables_of
from tests.formats.test_parquet import storable
from tests.strategies import schemas

SCHEMA = Schema(
    NestedField(1, "id", LongType(), True),
    NestedField(2, "region", StringType()),
    NestedField(3, "amount", DoubleType()),
)
PAGES = {"write.parquet.page-row-limit": "20", "write.parquet.row-group-size-bytes": "2000"}


def rows(count: int) -> Any:
    values = [
        list(range(count)),
        [f"r{i % 7}" for i in range(count)],
        [None if i % 5 == 0 else i / 3 for i in range(count)],
    ]
    return pa.Table.from_arrays([pa.array(each) for each in values], names=["id", "region", "amount"])


def finished(table: Any, schema: Schema, properties: dict[str, str], shared: bool) -> tuple[bytes, WrittenFile]:
    sink = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_writer, "LEAST_BYTES", 0 if shared else 1 << 60)
        patch.setattr(parquet_writer, "encoding_threads", lambda: 2)
        writer = ParquetFileWriter(sink, schema, properties)
        for batch in table.to_batches(max_chunksize=30):
            writer.write(batch)
        done = writer.close()
    return sink.getvalue(), done


@pytest.mark.parametrize("codec", ["zstd", "snappy", "uncompressed"])
def test_files_of_several_threads_are_those_of_one(codec: str) -> None:
    properties = PAGES | {"write.parquet.compression-codec": codec}
    shared, alone = (finished(rows(500), SCHEMA, properties, each) for each in (True, False))
    assert pq.read_metadata(io.BytesIO(shared[0])).num_row_groups > 2
    assert shared == alone


@given(st.data())
def test_files_of_any_schema_are_those_of_one_thread(data: st.DataObject) -> None:
    schema = data.draw(schemas(max(ALL_VERSIONS)).filter(storable))
    table = data.draw(tables_of(schema))
    shared, alone = (finished(table, schema, {}, each) for each in (True, False))
    assert shared == alone


def test_footers_are_written_as_they_were_read() -> None:
    footer = footer_of(finished(rows(500), SCHEMA, PAGES, shared=False)[0])
    assert write_struct(ThriftReader(footer).struct()) == footer


class _Full(io.BytesIO):
    def write(self, data: Any, /) -> int:
        if self.tell() + len(data) > 300:
            raise OSError("no room")
        return super().write(data)


def test_a_sink_that_fails_says_so() -> None:
    options = {"compression": "none", "store_schema": False}
    writer = ParquetChunksWriter(HoldingSink(_Full()), schema_to_arrow(SCHEMA), options)
    with pytest.raises(OSError, match="no room"):
        writer.write_table(rows(500).cast(schema_to_arrow(SCHEMA)), 500)
