"""Rows that wait on disk until they are needed, so that memory does not grow with their number."""

import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Self

import pyarrow as pa

_IN_MEMORY = 1 << 20
"""Bytes up to which no file is made."""


class Spool:
    """Rows of one schema: first all are written, then they are read, as often as needed.

    A `with` block, or `close`, gives the disk back.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._rows = 0
        # Closed by `close`.
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="icefloe-rows-")  # noqa: SIM115
        self._writer: pa.RecordBatchStreamWriter | None = pa.ipc.new_stream(self._file, schema)

    def __len__(self) -> int:
        return self._rows

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Take rows in; not after the first read."""
        assert self._writer is not None
        if rows.num_rows:
            self._writer.write(rows)
            self._rows += int(rows.num_rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order in which they came; one reader at a time."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)

    def close(self) -> None:
        """Forget the rows, and give the disk back."""
        self._file.close()

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_class: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
