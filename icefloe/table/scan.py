"""Scans as a handle gives them: what planning chooses, with ways to read the rows."""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from icefloe import errors, planning
from icefloe.data import changes, scanning
from icefloe.progress import Listener
from icefloe.rows import engine_named
from icefloe.table.polars import lazy_frame

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class DataScan(planning.TableScan):
    """A scan with its rows as Arrow, or for another library. The methods that refine it return a new scan.

    >>> table.scan().filter("region = 'eu'").select("id").with_limit(5).to_arrow().to_pylist()
    [{'id': 1}, {'id': 3}]
    """

    def to_arrow(self, progress: Listener | None = None) -> pa.Table:
        """All rows as a `pyarrow.Table`.

        Args:
            progress: called for each file; without it, a bar is shown where a person looks and the work has taken two seconds.
        """
        return scanning.to_arrow(self, progress)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches, in bounded memory."""
        return scanning.to_arrow_batch_reader(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream for any library of Arrow's PyCapsule interface, such as DuckDB or Polars; each call scans anew."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, progress: Listener | None = None, **options: object) -> "pd.DataFrame":
        """All rows as a pandas DataFrame; `progress` is that of `to_arrow`, and the options are Arrow's."""
        _installed("pandas")
        return self.to_arrow(progress).to_pandas(**options)

    def to_polars(self, progress: Listener | None = None) -> "pl.DataFrame":
        """All rows as a polars DataFrame."""
        return _installed("polars").from_arrow(self.to_arrow(progress))

    def to_polars_lazy(self) -> "pl.LazyFrame":
        """The rows as a lazy query of polars: its columns, filters and limit reach the planner, and what they leave out is not read.

        >>> query = table.scan().to_polars_lazy().filter(pl.col("region") == "eu").select("id")
        >>> query.collect()["id"].to_list()
        [1, 3]
        """
        return lazy_frame(self, _installed("polars"))

    def to_duckdb(
        self, name: str, connection: "duckdb.DuckDBPyConnection | None" = None
    ) -> "duckdb.DuckDBPyConnection":
        """The rows as a view of that name in a DuckDB connection, a new one if none is given; the connection."""
        connected: duckdb.DuckDBPyConnection = _installed("duckdb").connect() if connection is None else connection
        connected.register(name, self.to_arrow())
        return connected

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """The rows as a lazy DataFrame of a Spark session."""
        return engine_named("spark").scan(self, spark)

    def count(self, progress: Listener | None = None) -> int:
        """How many rows there are, from metadata alone where that is exact."""
        return scanning.count(self, progress)


@dataclass(frozen=True)
class ChangesScan(planning.ChangelogScan):
    """Changes between snapshots as rows, with `_change_type`, `_change_ordinal` and `_commit_snapshot_id`."""

    def to_arrow(self, progress: Listener | None = None) -> pa.Table:
        """All changes as a `pyarrow.Table`; `progress` is called with the rows that are read so far."""
        return changes.changes_to_arrow(self, progress)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """The changes as a stream of Arrow batches."""
        return changes.changes_to_reader(self)

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """The changes as a lazy DataFrame of a Spark session, read and compared by its executors."""
        return engine_named("spark").changes(self, spark)


def _installed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise errors.NotInstalledError(
            f"{package} is not installed; `pip install {package}` makes this work, `to_arrow` works without it"
        ) from None
