"""Tables selected by an optional name of a table or namespace, and the results of procedures as records."""

from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from typing import Any

from icefloe.catalog import parse_namespace, show_table
from icefloe.cli.invocation import Invocation, NamedTable


def chosen_tables(run: Invocation, text: str | None) -> Iterator[NamedTable]:
    """Return the named table, or all tables of the named namespace or, without a name, of the catalog."""
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
    """Return the result of a procedure as a record, with collections replaced by their length."""
    if not is_dataclass(result) or isinstance(result, type):
        return {"result": str(result)}
    plain = {name: value for name, value in asdict(result).items() if not name.startswith("_")}
    return {name: value for name, value in plain.items() if isinstance(value, str | int | float | tuple | dict | None)}
