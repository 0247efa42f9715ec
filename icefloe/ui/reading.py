"""Decides how much of a stream of rows a page reads: so many rows, and for so long."""

import time
from dataclasses import dataclass

import pyarrow as pa

SECONDS = 20.0
"""After so long a page shows the rows that came by then."""


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of a stream."""

    table: pa.Table
    is_whole: bool
    """Whether the stream has no further rows."""
    is_late: bool
    """Whether time was up before there were enough."""
    seconds: float

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return int(self.table.nbytes)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self.table.schema.names)

    @property
    def numbers(self) -> list[bool]:
        """Of each column, whether it is one of numbers."""
        return [
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
            for kind in self.table.schema.types
        ]

    def rows(self) -> list[list[object]]:
        """The values, row by row."""
        columns = [column.to_pylist() for column in self.table.columns]
        return [list(values) for values in zip(*columns, strict=True)] if columns else []


def first_rows(reader: pa.RecordBatchReader, most: int, seconds: float = SECONDS) -> FirstRows:
    """The first rows of a stream, which is closed then."""
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
