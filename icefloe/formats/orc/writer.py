"""How rows become an ORC file: ids as type attributes, the table's settings, and the metrics of what was written."""

import pyarrow as pa
import pyarrow.orc as orc

from icefloe import properties as props
from icefloe.formats.array_metrics import MetricsCollector
from icefloe.formats.arrow_types import conform
from icefloe.formats.field_ids import check_written_ids
from icefloe.formats.file_writing import JUST_WRITTEN, FileWriter, HoldingSink, Sink, WrittenFile
from icefloe.formats.orc.arrays import to_orc, unsliced
from icefloe.formats.orc.footer import TailFile, parse_tail, with_metadata
from icefloe.formats.orc.schema_codec import columns_of_orc, orc_schema

_CODECS = {
    "zlib": "zlib",
    "zstd": "zstd",
    "snappy": "snappy",
    "lz4": "lz4",
    "none": "uncompressed",
    "uncompressed": "uncompressed",
}
_MAGIC_BYTES = 3
_COMPRESSION_BLOCK = 1 << 18
"""As the Java library has it."""


class OrcFileWriter(FileWriter):
    """Writes stripe by stripe."""

    def _open(self, sink: Sink) -> None:
        self._orc_schema = orc_schema(self.schema)
        self._seen = MetricsCollector(self.schema, self._modes)
        self._sink = HoldingSink(sink)
        self._writer = orc.ORCWriter(
            self._sink,
            compression=self._codec(props.ORC_COMPRESSION, _CODECS)[1],
            compression_block_size=_COMPRESSION_BLOCK,
            stripe_size=props.ORC_STRIPE_SIZE_BYTES.of(self._properties),
        )
        # pyarrow learns the schema of the file from the first rows; a file without rows has one too.
        self._writer.write(self._orc_schema.empty_table())
        self._raw = self._raw_flushed = self._flushed = 0

    @property
    def bytes_written(self) -> int:
        shrinking = self._flushed / self._raw_flushed if self._raw_flushed else 1.0
        return self._sink.written + int((self._raw - self._raw_flushed) * shrinking)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        batch = conform(batch, self.schema)
        pieces = [batch] if isinstance(batch, pa.RecordBatch) else batch.to_batches()
        stored = [self._stored(piece) for piece in pieces if piece.num_rows]
        self._seen.add(batch)
        for piece in stored:
            self._writer.write(pa.Table.from_batches([piece]))
            self._raw += piece.nbytes
            # The magic at the start says nothing of how rows shrink.
            if self._sink.written > max(self._flushed, _MAGIC_BYTES):
                self._flushed, self._raw_flushed = self._sink.written, self._raw

    def close(self) -> WrittenFile:
        """Write the last stripe and the footer, and say what the file holds. The sink is left open."""
        self._sink.hold()
        self._writer.close()
        tail = self._sink.release(lambda tail: with_metadata(tail, self._metadata))
        written = orc.ORCFile(TailFile(tail, self._sink.written))
        check_written_ids(columns_of_orc(written.schema).schema, self.schema, JUST_WRITTEN)
        footer = parse_tail(written.reader.serialized_file_tail(), JUST_WRITTEN)
        offsets = tuple(stripe.offset for stripe in footer.stripes)
        return WrittenFile(self._seen.metrics(), offsets, self._sink.written)

    def _stored(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            to_orc(unsliced(batch.column(i)), field.field_type, orc_field.type, field.name)
            for i, (field, orc_field) in enumerate(zip(self.schema.fields, self._orc_schema, strict=True))
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._orc_schema)
