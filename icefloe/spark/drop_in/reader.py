"""`spark.read` and `spark.table` on a session whose calls know our catalogs."""

# ruff: noqa: A002, N803 - the names are Spark's

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader

from icefloe.errors import InvalidInputError
from icefloe.spark.drop_in.names import DropInNames

ICEBERG = "iceberg"
"""The format under which tables are read and written by name."""


class DropInReader(DataFrameReader):  # type: ignore[misc]  # PySpark is Any to mypy
    """Spark's reader, which asks us first for tables, and for the format `iceberg`."""

    def __init__(self, spark: SparkSession, names: DropInNames) -> None:
        super().__init__(spark)
        self._names = names
        self._said: dict[str, str] = {}
        self._kind: str | None = None

    def format(self, source: str) -> "DropInReader":
        """The format to load."""
        self._kind = source.lower()
        super().format(source)
        return self

    def option(self, key: str, value: Any) -> "DropInReader":
        """An option, by Iceberg's name for tables of ours."""
        self._said[key] = str(value)
        super().option(key, value)
        return self

    def options(self, **options: Any) -> "DropInReader":
        """Several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def table(self, tableName: str) -> DataFrame:
        """A table, of ours or of Spark's."""
        frame = self._names.frame(tableName, self._said)
        return super().table(tableName) if frame is None else frame

    def load(self, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        """What is at a path; a table by its name if the format is `iceberg`."""
        source_format = self._kind if format is None else str(format).lower()
        if source_format != ICEBERG:
            return super().load(path, format, schema, **options)
        self.options(**options)
        frame = self._names.frame(table_name(path or self._said.get("path")), self._said, self._names.first)
        assert frame is not None, "a name with a default catalog is ours"
        return frame


def table_name(path: Any) -> str:
    """The name of a table, given as a path."""
    if not isinstance(path, str) or not path:
        raise InvalidInputError(f"{path!r:.100} is not the name of a table; give one such as 'catalog.shop.orders'")
    if "/" in path:
        raise InvalidInputError(
            f"{path!r} is a location, and tables are known by name; give it one in a catalog by register_table"
        )
    return path
