"""Spark as an engine of tables: which data it takes, and which code writes and reads it."""

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from icefloe import properties as props
from icefloe.data import WriteRequest
from icefloe.errors import StateError
from icefloe.manifests import DataFile
from icefloe.spark.arrow_write import write_through_arrow
from icefloe.spark.native_write import why_not_native, write_natively
from icefloe.spark.reading import is_classic, read_scan
from icefloe.spark.shaping import error_in


class SparkEngine:
    """DataFrames of a Spark session: written by Spark's own writer where it can, else by ours on the executors."""

    def accepts(self, data: Any) -> bool:
        """Whether the data is a Spark DataFrame."""
        return isinstance(data, DataFrame)

    def write(self, data: Any, request: WriteRequest) -> list[DataFile]:
        """Write the frame as data files of the table. On an error, no file is left behind."""
        if props.ENCRYPTION_KEY_ID.of(request.metadata.properties) is not None:
            raise StateError("the table is encrypted; data files of encrypted tables cannot be written yet")
        spark = data.sparkSession
        native = is_classic(spark) and why_not_native(spark, request.metadata) is None
        try:
            return (write_natively if native else write_through_arrow)(data, request)
        except (PySparkException, Py4JJavaError) as problem:
            error = error_in(problem)
            if error is None:
                raise
            raise error from problem

    def scan(self, scan: Any, session: Any) -> Any:
        """The rows of a scan as a lazy DataFrame."""
        return read_scan(session, scan)
