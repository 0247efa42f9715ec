"""The first rows of a stream, limited by number and time."""

import time
from dataclasses import dataclass

import pyarrow as pa

SECONDS = 20.0
"""Time limit in seconds, after which a page shows the rows read so far."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a stream."""

    table: pa.Table
    is_whole: bool
    """Whether the stream has no more rows."""
    is_late: bool
    """Whether the time limit was reached first."""
    seconds: float

    @property
    def nbytes(self) -> int:
        """Size in memory."""
        return int(self.table.nbytes)

    @property
    def names(self) -> list[str]:
        """Column names."""
        return list(self.table.schema.names)

    @property
    def numbers(self) -> list[bool]:
        """Whether each column is numeric."""
        return [
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            for kind in self.table.schema.types
        ]

    def rows(self) -> list[list[object]]:
        """Return the values, row by row."""
        columns = [column.to_pylist() for column in self.table.columns]
        return [list(values) for values in zip(*columns, strict=True)] if columns else []


def first_rows(reader: pa.RecordBatchReader, most: int, seconds: float = SECONDS) -> FirstRows:
    """Read the first rows of a stream and close it."""
    start = time.monotonic()
    batches, count, is_whole, is_late = list[pa.RecordBatch](), 0, True, False
    try:
        for batch in reader:
            if count + batch.num_rows > most:
                batches.append(batch.slice(0, most - count))
                is_whole = False
                break
            batches.append(batch)
            count += batch.num_rows
            if time.monotonic() - start > seconds:
                is_whole, is_late = False, True
                break
    finally:
        reader.close()
    return FirstRows(pa.Table.from_batches(batches, reader.schema), is_whole, is_late, time.monotonic() - start)
