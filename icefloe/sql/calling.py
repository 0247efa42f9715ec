"""How a procedure is called: its parameters by name or by position, checked before anything happens, and rows as Arrow."""

import datetime as dt
import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

from icefloe.catalog import Catalog, Identifier, parse_identifier, show
from icefloe.errors import InvalidInputError, NoSuchObjectError, NoSuchTableError
from icefloe.table import Table

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Kind(Enum):
    """The types of parameters, as SQL names them."""

    STRING = "string"
    LONG = "bigint"
    INTEGER = "int"
    BOOLEAN = "boolean"
    TIMESTAMP = "timestamp"
    LONGS = "array<bigint>"
    STRINGS = "map<string, string>"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that a procedure takes."""

    name: str
    kind: Kind
    required: bool = False


@dataclass(frozen=True, slots=True)
class ForeignPartition:
    """Where files of a table that is not Iceberg's are, and what they have in common: values as text, by column."""

    location: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """A table of files that is not Iceberg's; without `partitions`, they are found by the folders of its location."""

    location: str
    file_format: str
    partition_columns: tuple[str, ...] = ()
    partitions: tuple[ForeignPartition, ...] | None = None


FindForeign = Callable[[Identifier], ForeignTable]
"""Finds a table outside of our catalogs by its name, or fails."""


def _no_foreign(name: Identifier) -> ForeignTable:
    raise NoSuchTableError(
        f"no table {show(name)} to add files of: there is no Spark here; write parquet.`folder`, orc or avro"
    )


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the catalog that it is in, the arguments that were given, and how tables of others are found."""

    catalog: Catalog
    arguments: Mapping[str, Any]
    namespace: tuple[str, ...] = ()
    find_foreign: FindForeign = _no_foreign

    def get(self, name: str) -> Any:
        """An argument, or None."""
        return self.arguments.get(name)

    def table(self) -> Table:
        """The table that the call is about."""
        return self.catalog.load_table(self.identifier())

    def identifier(self) -> Identifier:
        """Its name, with or without the catalog, in the current namespace if it has none."""
        return table_name(self.arguments["table"], self.catalog.name, self.namespace)


@dataclass(frozen=True)
class Procedure:
    """What can be called under a name."""

    name: str
    parameters: tuple[Parameter, ...]
    output: pa.Schema
    run: Callable[[Call], Iterable[tuple[Any, ...]]]

    def call(
        self,
        catalog: Catalog,
        positional: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
        namespace: tuple[str, ...] = (),
        find_foreign: FindForeign | None = None,
    ) -> pa.Table:
        """Run it; the rows that it gives back."""
        given = bind(self, positional, named or {})
        rows = list(self.run(Call(catalog, given, namespace, find_foreign or _no_foreign)))
        columns = zip(*rows, strict=True) if rows else ((),) * len(self.output)
        return pa.table(
            [pa.array(column, field.type) for column, field in zip(columns, self.output, strict=True)],
            schema=self.output,
        )


def bind(procedure: Procedure, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, each of its type; a problem names procedure, parameter and what would be right."""
    known = {parameter.name: parameter for parameter in procedure.parameters}
    usage = f"{procedure.name}({', '.join(_shown(each) for each in procedure.parameters)})"
    if len(positional) > len(known):
        raise InvalidInputError(f"{len(positional)} arguments are too many; call {usage}")
    given = dict(zip(known, positional, strict=False))
    for name, value in named.items():
        found = next((each for each in known if each.lower() == name.lower()), None)
        if found is None:
            raise InvalidInputError(f"{procedure.name} has no parameter {name!r}; call {usage}")
        if found in given:
            raise InvalidInputError(f"{found!r} is given twice; call {usage}")
        given[found] = value
    for parameter in procedure.parameters:
        if parameter.required and given.get(parameter.name) is None:
            raise InvalidInputError(f"{parameter.name!r} is missing; call {usage}")
    return {name: _converted(value, known[name], procedure.name) for name, value in given.items() if value is not None}


def table_name(text: str, catalog: str, namespace: tuple[str, ...] = ()) -> Identifier:
    """The parts of a table's name in a catalog."""
    parts = parse_identifier((*namespace, text) if "." not in text and namespace else text)
    return parts[1:] if len(parts) > 2 and parts[0] == catalog else parts


def unknown_procedure(name: str, known: Iterable[str]) -> NoSuchObjectError:
    """An error that names those that there are."""
    near = difflib.get_close_matches(name, list(known := sorted(known)), 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
    return NoSuchObjectError(f"no procedure {name!r}{hint}")


def _shown(parameter: Parameter) -> str:
    return f"{parameter.name} {parameter.kind.value}" + ("" if parameter.required else " optional")


def _converted(value: Any, parameter: Parameter, procedure: str) -> Any:
    match parameter.kind, value:
        case Kind.STRING, str():
            return value
        case Kind.BOOLEAN, bool():
            return value
        case ((Kind.LONG | Kind.INTEGER), int()) if not isinstance(value, bool):
            return value
        case Kind.TIMESTAMP, dt.datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (moment - _EPOCH) // dt.timedelta(milliseconds=1)
        case Kind.TIMESTAMP, str():
            return _converted(_timestamp(value, parameter, procedure), parameter, procedure)
        case Kind.LONGS, list() | tuple() if all(isinstance(each, int) for each in value):
            return tuple(value)
        case Kind.STRINGS, dict():
            return {str(key): None if each is None else str(each) for key, each in value.items()}
        case _:
            raise InvalidInputError(
                f"argument {parameter.name!r} of {procedure} is {value!r}; it must be of type {parameter.kind.value}"
            )


def _timestamp(text: str, parameter: Parameter, procedure: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInputError(
            f"argument {parameter.name!r} of {procedure} is {text!r}; write it as TIMESTAMP '2026-01-31 12:00:00'"
        ) from None
