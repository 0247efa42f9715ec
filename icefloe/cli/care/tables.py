"""Decides which tables a command works on that takes a table, a namespace, or nothing for the whole catalog; and how it reports."""

from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from typing import Any

from icefloe.catalog import parse_namespace, show_table
from icefloe.cli.invocation import Invocation, NamedTable


def chosen_tables(run: Invocation, text: str | None) -> Iterator[NamedTable]:
    """The table of that name, or all tables of the namespace, or of the catalog."""
    if text is not None:
        parsed = None if "." not in text and "/" not in text else run.parse(text)
        if parsed is not None and (parsed.location is not None or parsed.version is not None):
            yield run.table(text)
            return
        namespace = parse_namespace(text)
        if not run.catalog.namespace_exists(namespace) or (len(namespace) > 1 and run.catalog.table_exists(namespace)):
            yield run.table(text)
            return
        waiting = [namespace]
    else:
        waiting = sorted(run.catalog.list_namespaces())
    while waiting:
        current = waiting.pop(0)
        for identifier in run.catalog.list_tables(current):
            yield run.table(show_table(identifier))
        waiting = [*sorted(run.catalog.list_namespaces(current)), *waiting]


def counts(result: Any) -> dict[str, Any]:
    """What a procedure returned, as a record; what has a size of its own only by its number."""
    if not is_dataclass(result) or isinstance(result, type):
        return {"result": str(result)}
    plain = {name: value for name, value in asdict(result).items() if not name.startswith("_")}
    return {name: value for name, value in plain.items() if isinstance(value, str | int | float | tuple | dict | None)}
