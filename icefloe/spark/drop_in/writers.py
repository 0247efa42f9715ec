"""`df.write` and `df.writeTo` on a session whose calls know our catalogs."""

# ruff: noqa: A002, N802, N803 - the names are Spark's

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2

from icefloe.catalog import show
from icefloe.errors import InvalidInputError, TableAlreadyExistsError
from icefloe.spark.drop_in.names import DropInNames
from icefloe.spark.drop_in.reader import ICEBERG, table_name
from icefloe.spark.sql.changes import check_branch
from icefloe.spark.sql.conditions import predicate_of
from icefloe.spark.sql.names import Place
from icefloe.spark.store_assignment import store_assigned
from icefloe.spark.types import mapping_of, user_schema
from icefloe.spark.user_side import quoted_name
from icefloe.spark.writing import TableWrite

_FORMATS = (ICEBERG, "parquet", "orc", "avro")
_DYNAMIC = "dynamic"
_OVERWRITE_MODE = "overwrite-mode"
_OVERWRITE_SETTING = "spark.sql.sources.partitionOverwriteMode"
_WITHOUT_EFFECT = ("check-ordering", "handle-timestamp-without-timezone", "path")
"""Options for the Java library that have no effect here."""


class DropInWriterV2(DataFrameWriterV2):  # type: ignore[misc]  # PySpark is Any to mypy
    """Spark's `writeTo` for a table of ours, without any of Spark's own code."""

    def __init__(self, frame: DataFrame, place: Place, names: DropInNames) -> None:
        self._frame = frame
        self._place, branch = with_branch(place, names)
        self._write = TableWrite(frame, self._place.catalog, self._place.parts, assign=store_assigned)
        if branch is not None:
            self.option("branch", branch)

    def using(self, provider: str) -> "DropInWriterV2":
        """`iceberg`, or the file format of the new table."""
        self._write = self._write.using(_file_format(provider))
        return self

    def option(self, key: str, value: Any) -> "DropInWriterV2":
        """An option of the write, by Iceberg's name."""
        if key not in _WITHOUT_EFFECT:
            self._write = self._write.option(key, value)
        return self

    def options(self, **options: Any) -> "DropInWriterV2":
        """Several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def tableProperty(self, property: str, value: str) -> "DropInWriterV2":
        """A property of the new table."""
        if property == "location":
            self._write = self._write.location(value)
        else:
            self._write = self._write.table_property(property, value)
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> "DropInWriterV2":
        """The partitions of the new table, as columns or transforms of `pyspark.sql.functions.partitioning`."""
        self._write = self._write.partitioned_by(*(_term(column) for column in (col, *cols)))
        return self

    def clusterBy(self, col: str, *cols: str) -> "DropInWriterV2":
        """Refused: Iceberg has no such clustering."""
        raise InvalidInputError(f"clusterBy {', '.join((col, *cols))}: Iceberg tables have partitions and a sort order")

    def create(self) -> None:
        """Create the table with the rows."""
        self._write.create()

    def replace(self) -> None:
        """Replace the table by the rows."""
        self._write.replace()

    def createOrReplace(self) -> None:
        """Create the table, or replace it if it exists."""
        self._write.create_or_replace()

    def append(self) -> None:
        """Add the rows."""
        self._write.append()

    def overwrite(self, condition: Any) -> None:
        """Replace the rows that match by these rows."""
        schema = self._place.catalog.load_table(self._place.parts).schema()
        session = self._frame.sparkSession
        columns = session.createDataFrame([], user_schema(schema, mapping_of(session)))
        self._write.overwrite(predicate_of(condition, columns))

    def overwritePartitions(self) -> None:
        """Replace the partitions that the rows fall in by the rows."""
        self._write.overwrite_partitions()


class DropInWriter(DataFrameWriter):  # type: ignore[misc]  # PySpark is Any to mypy
    """Spark's `write`, which asks us first for tables, and for the format `iceberg`."""

    def __init__(self, frame: DataFrame, names: DropInNames) -> None:
        super().__init__(frame)
        self._names = names
        self._kind: str | None = None
        self._how = "error"
        self._said: dict[str, Any] = {}
        self._by: tuple[str, ...] = ()

    def mode(self, saveMode: str | None) -> "DropInWriter":
        """What to do with an existing table."""
        if saveMode:
            self._how = saveMode.lower()
        super().mode(saveMode)
        return self

    def format(self, source: str) -> "DropInWriter":
        """The format of what is written."""
        self._kind = source.lower()
        super().format(source)
        return self

    def option(self, key: str, value: Any) -> "DropInWriter":
        """An option, by Iceberg's name for tables of ours."""
        self._said[key] = value
        super().option(key, value)
        return self

    def options(self, **options: Any) -> "DropInWriter":
        """Several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def partitionBy(self, *cols: Any) -> "DropInWriter":
        """The partition columns of a new table."""
        self._by = tuple(cols[0]) if len(cols) == 1 and isinstance(cols[0], list | tuple) else cols
        super().partitionBy(*cols)
        return self

    def saveAsTable(
        self,
        name: str,
        format: Any = None,
        mode: Any = None,
        partitionBy: Any = None,
        **options: Any,
    ) -> None:
        """Create, replace or append to a table, depending on the mode."""
        place = self._names.target(name)
        if place is None:
            super().saveAsTable(name, format, mode, partitionBy, **options)
            return
        self._settings(format, mode, partitionBy, options)
        exists = place.catalog.table_exists(with_branch(place, self._names)[0].parts)
        if self._how == "overwrite":
            self._new(place).create_or_replace()
        elif self._how == "append" and exists:
            self._added(place).append()
        else:
            self._create(place, exists)

    def save(
        self, path: Any = None, format: Any = None, mode: Any = None, partitionBy: Any = None, **options: Any
    ) -> None:
        """Write to a path; to a table by its name if the format is `iceberg`."""
        source_format = self._kind if format is None else str(format).lower()
        if source_format != ICEBERG:
            super().save(path, format, mode, partitionBy, **options)
            return
        self._settings(format, mode, partitionBy, options)
        place = self._names.target(table_name(path or self._said.get("path")), self._names.first)
        assert place is not None, "a name with a default catalog is ours"
        match self._how:
            case "append":
                self._added(place).append()
            case "overwrite" if self._is_dynamic():
                self._added(place).overwrite_partitions()
            case "overwrite":
                self._added(place).overwrite()
            case _:
                self._create(place, place.catalog.table_exists(place.parts))

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:
        """Add rows by the position of their columns."""
        place = self._names.target(tableName)
        if place is None:
            super().insertInto(tableName, overwrite)
            return
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        verb = "OVERWRITE" if self._how == "overwrite" else "INTO"
        name = ".".join(map(quoted_name, (place.catalog.name, *place.parts)))
        self._spark.sql(f"INSERT {verb} {name} SELECT * FROM {{icefloe_frame}}", icefloe_frame=self._df)

    def _settings(self, format: Any, mode: Any, by: Any, options: dict[str, Any]) -> None:
        self.options(**options)
        self.mode(mode)
        if by is not None:
            self.partitionBy(by)
        if format is not None:
            self.format(format)

    def _is_dynamic(self) -> bool:
        asked = self._said.get(_OVERWRITE_MODE) or self._spark.conf.get(_OVERWRITE_SETTING, "static")
        return str(asked).lower() == _DYNAMIC

    def _added(self, place: Place) -> TableWrite:
        place, branch = with_branch(place, self._names)
        write = TableWrite(self._df, place.catalog, place.parts, assign=store_assigned)
        for key, value in self._said.items():
            if key not in (*_WITHOUT_EFFECT, _OVERWRITE_MODE):
                write = write.option(key, value)
        return write if branch is None else write.option("branch", branch)

    def _new(self, place: Place) -> TableWrite:
        write = self._added(place).using(_file_format(self._kind or ICEBERG))
        return write.partitioned_by(*map(quoted_name, self._by)) if self._by else write

    def _create(self, place: Place, exists: bool) -> None:
        if not exists:
            self._new(place).create()
        elif self._how != "ignore":
            raise TableAlreadyExistsError(
                f"table {show(place.parts)} already exists in catalog {place.catalog.name!r}; choose mode append or overwrite"
            )


def with_branch(place: Place, names: DropInNames) -> tuple[Place, str | None]:
    """The table, and the branch that its name ends with: `orders.branch_audit`."""
    source = names.names.source((place.catalog.name, *place.parts))
    if source is None or source.identifier == place.parts:
        return place, None
    if source.ref is None:
        raise InvalidInputError(f"{show(place.parts)} cannot be written to; name the table, or a branch of it")
    check_branch(source)
    return Place(place.catalog, source.identifier), source.ref


def _file_format(provider: str) -> str:
    if provider.lower() not in _FORMATS:
        raise InvalidInputError(f"format {provider!r} is none of a table here; give {', '.join(_FORMATS)}")
    return provider.lower()


def _term(given: Any) -> str:
    """A partition term: the name of a column, or the result of `partitioning.days(...)` and the like."""
    if isinstance(given, str):
        return quoted_name(given)
    return str(given._jc.node().sql())
