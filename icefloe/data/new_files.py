"""How a new file of rows is written: as it is, or encrypted with a key of its own if the table is."""

from dataclasses import replace
from typing import Any

from icefloe import metadata as md
from icefloe.encryption import FileKey, KeyedSink, SealingSink, encode_key_metadata, key_length_of
from icefloe.errors import EncryptionError
from icefloe.formats.file_formats import AVRO, PARQUET
from icefloe.formats.file_writing import WrittenFile


class NewFile:
    """A file that is being written to an output: `sink` is for the writer of its format, `finish` for what that says at its end."""

    def __init__(self, output: Any, file_format: str, metadata: md.TableMetadata) -> None:
        """`output` takes the bytes that are stored."""
        length, kind = key_length_of(metadata), file_format.lower()
        self._key = None if length is None else FileKey.new(length)
        self._stream: SealingSink | None = None
        self.sink: Any = output
        if self._key is None:
            return
        if kind == PARQUET:
            self.sink = KeyedSink(output, self._key)
        elif kind == AVRO:
            self.sink = self._stream = SealingSink(output, self._key)
        else:
            raise EncryptionError(
                f"files of format {file_format!r} cannot be encrypted; the table's must be parquet or avro"
            )

    def finish(self, done: WrittenFile) -> tuple[WrittenFile, bytes | None]:
        """What the file is as it is stored, and its key metadata; called before the output is closed."""
        if self._key is None:
            return done, None
        if self._stream is not None:
            done = replace(done, file_size_in_bytes=self._stream.finish())
        return done, encode_key_metadata(self._key.of_length(done.file_size_in_bytes))
