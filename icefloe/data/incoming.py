"""What may be written to a table: Arrow data in any of its forms, frames of other libraries, or a stream of batches."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow as pa

from icefloe.errors import InvalidValueError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame


class ArrowStream(Protocol):
    """Data of any library that gives it as a stream of Arrow's C interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


RowsInput: TypeAlias = "pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch | pa.Table] | pd.DataFrame | pl.DataFrame | pl.LazyFrame | DataFrame | ArrowStream"
"""Rows as users give them; frames of Spark are for its engine."""

_FORMS = (
    "a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or polars DataFrame, or an iterable of record batches"
)


def known_rows(data: Any) -> int | None:
    """How many rows there are, if that is known before they are read."""
    library = type(data).__module__.partition(".")[0]
    is_held = isinstance(data, pa.Table | pa.RecordBatch) or library in ("pandas", "polars")
    return len(data) if is_held and hasattr(data, "__len__") else None


def incoming_tables(data: Any) -> Iterator[pa.Table]:
    """The data as Arrow tables: one if it is in memory, one after the other if it is a stream."""
    # Of a library that need not be installed to ask.
    library = type(data).__module__.partition(".")[0]
    if isinstance(data, pa.Table):
        yield data
    elif isinstance(data, pa.RecordBatch):
        yield pa.Table.from_batches([data])
    elif isinstance(data, pa.RecordBatchReader):
        yield from (pa.Table.from_batches([batch]) for batch in data)
    elif library == "pandas":
        yield pa.Table.from_pandas(data, preserve_index=False)
    elif library == "polars":
        yield (data.collect() if hasattr(data, "collect") else data).to_arrow()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from incoming_tables(pa.RecordBatchReader.from_stream(data))
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        for part in data:
            if not isinstance(part, pa.RecordBatch | pa.Table):
                raise InvalidValueError(f"data holds {part!r:.80}, a {type(part).__name__}; give {_FORMS}")
            yield part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
    else:
        raise InvalidValueError(f"data is a {type(data).__name__}; give {_FORMS}")
