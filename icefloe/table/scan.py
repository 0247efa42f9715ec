"""Scans of a table handle: planning, with ways to read the rows."""

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
    """A scan that returns rows as Arrow data or for other libraries. Methods that refine it return a new scan.

    >>> table.scan().filter("region = 'eu'").select("id").with_limit(5).to_arrow().to_pylist()
    [{'id': 1}, {'id': 3}]
    """

    def to_arrow(self, progress: Listener | None = None) -> pa.Table:
        """Read all rows into a `pyarrow.Table`.

        Args:
            progress: called for each file; by default a progress bar is shown on terminals and in notebooks after two seconds.
        """
        return scanning.to_arrow(self, progress)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of Arrow batches, in bounded memory."""
        return scanning.to_arrow_batch_reader(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows through Arrow's PyCapsule interface, as used by DuckDB or Polars; each call starts a new scan."""
        return self.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self, *, progress: Listener | None = None, **options: object) -> "pd.DataFrame":
        """Read all rows into a pandas DataFrame; `progress` is as in `to_arrow`, `options` go to `pyarrow.Table.to_pandas`."""
        _installed("pandas")
        return self.to_arrow(progress).to_pandas(**options)

    def to_polars(self, progress: Listener | None = None) -> "pl.DataFrame":
        """Read all rows into a Polars DataFrame."""
        return _installed("polars").from_arrow(self.to_arrow(progress))

    def to_polars_lazy(self) -> "pl.LazyFrame":
        """Return the rows as a Polars LazyFrame, with columns, filters and limit pushed down to scan planning.

        >>> query = table.scan().to_polars_lazy().filter(pl.col("region") == "eu").select("id")
        >>> query.collect()["id"].to_list()
        [1, 3]
        """
        return lazy_frame(self, _installed("polars"))

    def to_duckdb(
        self, name: str, connection: "duckdb.DuckDBPyConnection | None" = None
    ) -> "duckdb.DuckDBPyConnection":
        """Register the rows as a view in a DuckDB connection, by default a new one, and return the connection."""
        connected: duckdb.DuckDBPyConnection = _installed("duckdb").connect() if connection is None else connection
        connected.register(name, self.to_arrow())
        return connected

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """Return the rows as a lazy Spark DataFrame."""
        return engine_named("spark").scan(self, spark)

    def count(self, progress: Listener | None = None) -> int:
        """Count the rows, from metadata alone where that is exact."""
        return scanning.count(self, progress)


@dataclass(frozen=True)
class ChangesScan(planning.ChangelogScan):
    """Changes between snapshots as rows, with `_change_type`, `_change_ordinal` and `_commit_snapshot_id`."""

    def to_arrow(self, progress: Listener | None = None) -> pa.Table:
        """Read all changes into a `pyarrow.Table`; `progress` is called with the number of rows read so far."""
        return changes.changes_to_arrow(self, progress)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the changes as a stream of Arrow batches."""
        return changes.changes_to_reader(self)

    def to_spark(self, spark: "SparkSession") -> "DataFrame":
        """Return the changes as a lazy Spark DataFrame, computed by the executors."""
        return engine_named("spark").changes(self, spark)


def _installed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise errors.NotInstalledError(
            f"{package} is not installed; run `pip install {package}`, or use `to_arrow`"
        ) from None
