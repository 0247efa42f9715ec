"""How a procedure is called: its parameters by name or by position, checked before anything happens, and rows as Arrow."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from icefloe.catalog import Catalog, Identifier, parse_identifier, show
from icefloe.data import ForeignTable
from icefloe.errors import InvalidInputError, NoSuchTableError
from icefloe.formats.file_formats import DATA_FORMATS
from icefloe.storage import absolute_location
from icefloe.table import Table

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class ParameterType(Enum):
    """The types of parameters, as SQL names them."""

    STRING = "string"
    LONG = "bigint"
    INTEGER = "int"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    LONGS = "array<bigint>"
    STRINGS = "array<string>"
    MAP = "map<string, string>"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that a procedure takes."""

    name: str
    type: ParameterType
    required: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.type.value}" + ("" if self.required else " optional")


class ForeignCatalog(Protocol):
    """Tables outside of our catalogs, by name; a name without a namespace is in the current one."""

    def find(self, name: Identifier) -> ForeignTable:
        """A table, or `NoSuchTableError`."""

    def rename(self, name: Identifier, new: Identifier) -> None:
        """Give a table another name."""

    def drop(self, name: Identifier) -> None:
        """Drop a table, whose files stay unless they are managed."""

    def set_properties(self, name: Identifier, properties: Mapping[str, str]) -> None:
        """Set some properties of a table."""

    def remove_properties(self, name: Identifier, keys: Sequence[str]) -> None:
        """Remove some properties of a table, if it has them."""


Rows: TypeAlias = Iterable[tuple[object, ...]] | pa.Table
"""The rows that a procedure returns: a few as tuples, many in columns."""


class NoForeignTables:
    """Without Spark, there are no other tables."""

    def find(self, name: Identifier) -> ForeignTable:
        """Nothing."""
        raise NoSuchTableError(
            f"no table {show(name)}: this needs Spark; without it, use parquet.`folder`, orc or avro"
        )

    def rename(self, name: Identifier, new: Identifier) -> None:  # noqa: ARG002 - the same for every table
        """Nothing."""
        self.find(name)

    def drop(self, name: Identifier) -> None:
        """Nothing."""
        self.find(name)

    def set_properties(self, name: Identifier, properties: Mapping[str, str]) -> None:  # noqa: ARG002 - the same
        """Nothing."""
        self.find(name)

    def remove_properties(self, name: Identifier, keys: Sequence[str]) -> None:  # noqa: ARG002 - the same
        """Nothing."""
        self.find(name)


NO_FOREIGN = NoForeignTables()


def folder_named(source: Identifier) -> ForeignTable | None:
    """``parquet.`folder` ``: files by their location."""
    if len(source) != 2 or source[0].lower() not in DATA_FORMATS:
        return None
    return ForeignTable(absolute_location(source[1]), source[0].lower())


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the catalog that it is in, its arguments, and how tables outside of our catalogs are looked up.

    `engine` runs the heavy part of maintenance, such as the Spark session that the call came from; None is this process.
    """

    catalog: Catalog
    arguments: Mapping[str, Any]
    namespace: tuple[str, ...] = ()
    foreign: ForeignCatalog = NO_FOREIGN
    engine: object | None = None

    def get(self, name: str) -> Any:
        """An argument, or None."""
        return self.arguments.get(name)

    def table(self) -> Table:
        """The table that the call is about."""
        return self.catalog.load_table(self.identifier())

    def identifier(self) -> Identifier:
        """Its name, with or without the catalog, in the current namespace if it has none."""
        text: str = self.arguments["table"]
        parts = parse_identifier((*self.namespace, text) if "." not in text and self.namespace else text)
        return parts[1:] if len(parts) > 2 and parts[0] == self.catalog.name else parts


@dataclass(frozen=True)
class Procedure:
    """What can be called under a name."""

    name: str
    parameters: tuple[Parameter, ...]
    output: pa.Schema
    function: Callable[[Call], Rows]

    def run(self, call: Call) -> pa.Table:
        """The rows of a call."""
        rows = self.function(call)
        if isinstance(rows, pa.Table):
            return rows.cast(self.output)
        return pa.Table.from_pylist([dict(zip(self.output.names, row, strict=True)) for row in rows], self.output)


PROCEDURES: dict[str, Procedure] = {}
"""All procedures by name; each module of procedures adds its own."""


def procedure(
    output: pa.Schema, *parameters: Parameter, about_table: bool = True
) -> Callable[[Callable[[Call], Rows]], Callable[[Call], Rows]]:
    """Registers a procedure under the name of its function; the first parameter is the table that it is about, if it is."""

    def register(function: Callable[[Call], Rows]) -> Callable[[Call], Rows]:
        name = function.__name__.removeprefix("_")
        table = (Parameter("table", ParameterType.STRING, required=True),) if about_table else ()
        PROCEDURES[name] = Procedure(name, (*table, *parameters), output, function)
        return function

    return register


def longs(*names: str) -> pa.Schema:
    """Result columns of type `bigint`."""
    return pa.schema([pa.field(name, pa.int64()) for name in names])


def integers(*names: str) -> pa.Schema:
    """Result columns of type `int`."""
    return pa.schema([pa.field(name, pa.int32()) for name in names])


def bind(procedure: Procedure, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, each of its type; a problem names procedure, parameter and what would be right."""
    known = {parameter.name: parameter for parameter in procedure.parameters}
    usage = f"{procedure.name}({', '.join(map(str, procedure.parameters))})"
    if len(positional) > len(known):
        raise InvalidInputError(f"{len(positional)} arguments are too many; call {usage}")
    arguments = dict(zip(known, positional, strict=False))
    for name, value in named.items():
        parameter = next((parameter for parameter in known if parameter.lower() == name.lower()), None)
        if parameter is None:
            raise InvalidInputError(f"{procedure.name} has no parameter {name!r}; call {usage}")
        if parameter in arguments:
            raise InvalidInputError(f"{parameter!r} is given twice; call {usage}")
        arguments[parameter] = value
    for name in (parameter.name for parameter in procedure.parameters if parameter.required):
        if arguments.get(name) is None:
            raise InvalidInputError(f"{name!r} is missing; call {usage}")
    return {
        name: _converted(value, known[name], procedure.name) for name, value in arguments.items() if value is not None
    }


def _converted(value: Any, parameter: Parameter, procedure: str) -> Any:
    match parameter.type, value:
        case (ParameterType.STRING, str()) | (ParameterType.BOOLEAN, bool()):
            return value
        case ((ParameterType.LONG | ParameterType.INTEGER), int()) if not isinstance(value, bool):
            return value
        case ParameterType.TIMESTAMP, dt.datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (moment - _EPOCH) // dt.timedelta(milliseconds=1)
        case ParameterType.TIMESTAMP, str():
            return _converted(_timestamp(value, parameter, procedure), parameter, procedure)
        case ParameterType.LONGS, list() | tuple() if all(isinstance(item, int) for item in value):
            return tuple(value)
        case ParameterType.STRINGS, list() | tuple() if all(isinstance(item, str) for item in value):
            return tuple(value)
        case ParameterType.MAP, dict():
            return {str(key): None if item is None else str(item) for key, item in value.items()}
        case _:
            raise InvalidInputError(
                f"argument {parameter.name!r} of {procedure} is {value!r}; it must be of type {parameter.type.value}"
            )


def _timestamp(text: str, parameter: Parameter, procedure: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            f"argument {parameter.name!r} of {procedure} is {text!r}; write it as TIMESTAMP '2026-01-31 12:00:00'"
        ) from None
