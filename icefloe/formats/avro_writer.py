"""How rows become an Avro file: ids in its schema, blocks that can be read apart, and the metrics of what was written."""

import json
import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from icefloe import errors, properties as props
from icefloe.avro import CODECS, SYNC_SIZE, avro_schema_of, container_block, container_header, deflate
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.arrow_types import conform
from icefloe.formats.avro_columns import file_record, iceberg_schema
from icefloe.formats.avro_encoding import encode_rows
from icefloe.formats.field_ids import check_written_ids
from icefloe.formats.file_writing import JUST_WRITTEN, FileWriter, Sink, WrittenFile

BLOCK_BYTES = 1 << 18
"""About how many bytes of rows one block holds before it is compressed."""

_LEVELS = {"deflate": (9, 0, 9), "zstandard": (1, -7, 22)}
"""Default, lowest and highest level; the defaults are Java's."""

_SLICE_ROWS = 1 << 16
_SLICE_BYTES = 1 << 26


class AvroFileWriter(FileWriter):
    """Writes block by block."""

    def _open(self, sink: Sink) -> None:
        self._avro_codec, self._level = self._codec_and_level()
        self._sync = os.urandom(SYNC_SIZE)
        self._seen = MetricsCollector(self.schema, self._modes)
        self._sink = sink
        self._written = self._raw = 0
        self._waiting: list[memoryview] = []
        self._waiting_bytes = self._waiting_rows = 0
        document = avro_schema_of(self.schema)
        record = file_record(json.dumps(document), JUST_WRITTEN)
        check_written_ids(iceberg_schema(record, JUST_WRITTEN), self.schema, JUST_WRITTEN)
        self._put(container_header(document, self._metadata, self._avro_codec, self._sync))
        self._header = self._written

    @property
    def bytes_written(self) -> int:
        shrinking = (self._written - self._header) / self._raw if self._raw else 1.0
        return self._written + int(self._waiting_bytes * shrinking)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        batch = conform(batch, self.schema)
        pieces = [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()
        encoded = [encode_rows(part, self.schema) for piece in pieces for part in _slices(piece)]
        self._seen.add(batch)
        for rows in encoded:
            self._take(rows)

    def close(self) -> WrittenFile:
        """Write what waits, and say what the file holds. The sink is left open."""
        self._flush()
        # Blocks are many and small: any place in the file is as good as any other to split it at.
        return WrittenFile(self._seen.metrics(), (), self._written)

    def _take(self, rows: pa.BinaryArray) -> None:
        """Add encoded rows to what waits, and write every block that gets full."""
        _, offset_buffer, data_buffer = rows.buffers()
        offsets = np.frombuffer(offset_buffer, np.int32, len(rows) + 1, rows.offset * 4)
        data = memoryview(b"" if data_buffer is None else data_buffer)
        start = 0
        while start < len(rows):
            full = int(np.searchsorted(offsets, int(offsets[start]) + BLOCK_BYTES - self._waiting_bytes, "left"))
            stop = min(max(full, start + 1), len(rows))
            part = data[int(offsets[start]) : int(offsets[stop])]
            self._waiting.append(part)
            self._waiting_bytes += len(part)
            self._waiting_rows += stop - start
            if self._waiting_bytes >= BLOCK_BYTES:
                self._flush()
            start = stop

    def _flush(self) -> None:
        if self._waiting_rows:
            packed = deflate(self._avro_codec, b"".join(self._waiting), self._level)
            self._put(container_block(self._waiting_rows, packed, self._sync))
            self._raw += self._waiting_bytes
            self._waiting, self._waiting_bytes, self._waiting_rows = [], 0, 0

    def _codec_and_level(self) -> tuple[str, int]:
        """Avro's name of the codec that the table's properties ask for, and the level where there is one."""
        text, name = self._codec(props.AVRO_COMPRESSION, CODECS)
        if name not in _LEVELS:
            return name, 0
        default, lowest, highest = _LEVELS[name]
        level = default
        if props.AVRO_COMPRESSION_LEVEL.of(self._properties) is not None:
            level = props.property_as_int(self._properties, props.AVRO_COMPRESSION_LEVEL.key, default)
        if not lowest <= level <= highest:
            raise errors.InvalidPropertyError(
                f"property {props.AVRO_COMPRESSION_LEVEL.key!r} is {level}; {text} takes {lowest} to {highest}"
            )
        return name, level

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self._written += len(data)


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces small enough for the 32-bit offsets of their bytes, and for little memory."""
    pieces = max(1, -(-batch.num_rows // _SLICE_ROWS), -(-batch.nbytes // _SLICE_BYTES))
    rows = max(1, -(-batch.num_rows // pieces))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
