"""Decides how DuckDB answers a query over tables: streams of rows that our scans have narrowed, and nothing else to read."""

import datetime as dt
import decimal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from icefloe import errors, expressions as ex
from icefloe.query.statement import Condition, Need, Statement, TableUse
from icefloe.schema import IcebergType, Schema, types
from icefloe.table import DataScan

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_OPERATORS: dict[str, Callable[[ex.Column, object], ex.Expression]] = {
    "=": lambda column, value: column == value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
}


@dataclass(frozen=True)
class Source:
    """A table in a query: how it is scanned."""

    use: TableUse
    scan: DataScan


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query may take; None is as much as there is."""

    memory: str | None = None
    """As DuckDB writes sizes, such as `1GB`."""
    threads: int | None = None


_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "python_enable_replacements": False,
}
"""Neither files nor servers, nor extensions, nor variables of this program."""


class Engine:
    """A DuckDB in memory that knows the tables of one query, and can open no file."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - it never changes
        given = {"memory_limit": limits.memory, "threads": limits.threads}
        config = {**_CLOSED, **{name: value for name, value in given.items() if value is not None}}
        self._connection = duckdb.connect(":memory:", config=config)
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET lock_configuration = true")

    def sources(self, statement: Statement, scan_of: Callable[[tuple[str, ...]], DataScan]) -> "dict[int, Source]":
        """The tables of a statement by the numbers of their uses, narrowed to what it needs; `scan_of` knows their names."""
        scans = {use.number: scan_of(use.parts) for use in statement.uses}
        needs = statement.needs({number: scan.schema.column_names for number, scan in scans.items()})
        return {use.number: Source(use, self.narrowed(scans[use.number], needs[use.number])) for use in statement.uses}

    def narrowed(self, scan: DataScan, need: Need) -> DataScan:
        """A scan of what is needed: its columns, and the rows that fulfil the conditions that we understand as DuckDB does."""
        if need.columns is not None:
            # A stream has at least one column, even if only rows are counted.
            scan = scan.select(*(need.columns or scan.schema.column_names[:1]))
        for condition in need.conditions:
            expression = self._expression(condition, scan.schema)
            if expression is not None:
                scan = scan.filter(expression)
        return scan

    def answer(self, statement: Statement, sources: Mapping[int, Source]) -> pa.RecordBatchReader:
        """The rows of a query, as a stream."""
        for source in sources.values():
            raw = f"{source.use.stand_in}_rows"
            self._connection.register(raw, source.scan)
            columns = ", ".join(_column(field) for field in source.scan.projection().fields)
            self._connection.execute(f'CREATE VIEW "{source.use.stand_in}" AS SELECT {columns} FROM "{raw}"')
        try:
            return self._connection.execute(statement.rewritten()).to_arrow_reader()
        except duckdb.Error as error:
            raise errors.InvalidInputError(f"DuckDB cannot run this query: {_without_stand_ins(str(error))}") from error

    def interrupt(self) -> None:
        """End what it does; whoever waits for rows gets an error."""
        self._connection.interrupt()

    def close(self) -> None:
        """Give back its memory."""
        self._connection.close()

    def _expression(self, condition: Condition, schema: Schema) -> ex.Expression | None:
        """A condition as our scans take it; None if it may mean something else here than in DuckDB."""
        field_type = schema.find_type(condition.column)
        column = ex.col(condition.column)
        match condition.operator:
            case "is null":
                return column.is_null()
            case "is not null":
                return column.not_null()
        values = [self._constant(text, field_type) for text in condition.constants]
        if any(value is None for value in values):
            return None
        if condition.operator == "in":
            return column.is_in(values)
        compared: ex.Expression = _OPERATORS[condition.operator](column, values[0])
        if isinstance(field_type, types.DoubleType) and condition.operator in (">", ">="):
            # For DuckDB, NaN is greater than any number.
            return ex.disjunction(compared, column.is_nan())
        return compared

    def _constant(self, text: str, field_type: IcebergType) -> object | None:
        """The value of a constant in the column's type, by DuckDB itself; None if that is not exactly what it compares with."""
        wanted = _comparable(field_type)
        if wanted is None:
            return None
        kind, cast = wanted
        try:
            row = self._connection.execute(
                f"SELECT typeof(l), CAST(l AS {cast}), CAST(l AS {cast}) = l FROM (SELECT {text} AS l)"
            ).fetchone()
        except duckdb.Error:
            return None
        if row is None or row[2] is not True or not _is_one_of(row[0], kind):
            return None
        value: object = row[1]
        if isinstance(value, float) and (value == 0 or value != value):
            # Zero has two signs, and NaN is compared in another way.
            return None
        return value if isinstance(value, bool | int | str | float | decimal.Decimal | dt.date | dt.datetime) else None


def _comparable(field_type: IcebergType) -> tuple[set[str], str] | None:
    """Which types of constants mean the same against a column, and DuckDB's name of the column's type."""
    match field_type:
        case types.BooleanType():
            return {"BOOLEAN"}, "BOOLEAN"
        case types.IntegerType():
            return _INTEGERS, "INTEGER"
        case types.LongType():
            return _INTEGERS, "BIGINT"
        case types.DoubleType():
            return {*_INTEGERS, "DECIMAL", "DOUBLE"}, "DOUBLE"
        case types.DecimalType():
            return {*_INTEGERS, "DECIMAL"}, f"DECIMAL({field_type.precision}, {field_type.scale})"
        case types.StringType():
            return {"VARCHAR"}, "VARCHAR"
        case types.DateType():
            return {"VARCHAR", "DATE", "TIMESTAMP"}, "DATE"
        case types.TimestampType():
            return {"VARCHAR", "DATE", "TIMESTAMP"}, "TIMESTAMP"
        case _:
            return None


def _is_one_of(name: str, kinds: set[str]) -> bool:
    return name.partition("(")[0] in kinds


def _column(field: types.NestedField) -> str:
    """A column of a table as the query sees it."""
    name = '"' + field.name.replace('"', '""') + '"'
    value = _kept(name, field.field_type)
    return name if value == name else f"{value} AS {name}"


def _kept(value: str, field_type: IcebergType) -> str:
    """A value that is the same, and that DuckDB compares itself.

    It hands comparisons with columns, and with fields of structs, to Arrow, for which NaN is greater than nothing. Two
    signs, which change nothing, keep it from that.
    """
    match field_type:
        case types.FloatType() | types.DoubleType():
            return f"-(-{value})"
        case types.StructType() if _has_floats(field_type):
            parts = (
                f"{text}: {_kept(f'struct_extract({value}, {text})', field.field_type)}"
                for field in field_type.fields
                for text in [_text(field.name)]
            )
            return f"CASE WHEN {value} IS NOT NULL THEN {{{', '.join(parts)}}} END"
        case _:
            return value


def _has_floats(struct: types.StructType) -> bool:
    return any(
        isinstance(field.field_type, types.FloatType | types.DoubleType)
        or (isinstance(field.field_type, types.StructType) and _has_floats(field.field_type))
        for field in struct.fields
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _without_stand_ins(text: str) -> str:
    return text.replace("_icefloe_", "table ")


def reports(sources: Mapping[int, Source]) -> Iterator[dict[str, Any]]:
    """What the scans of an answered query did."""
    for source in sources.values():
        report = source.scan.report
        counts = None if report is None else report.counts
        yield {
            "table": ".".join(source.use.parts),
            "columns": list(source.scan.projection().column_names),
            "filter": None if source.scan.row_filter is None else str(source.scan.row_filter),
            "data_files": None if counts is None else counts.data_files,
            "data_files_read": None if counts is None else counts.result_data_files,
            "manifests": None if counts is None else counts.data_manifests,
            "manifests_read": None if counts is None else counts.data_manifests_read,
        }
