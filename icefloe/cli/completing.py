"""Shell completion of names from the configured catalog, within a time limit."""

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import typer

_SECONDS = 2.0
"""Time limit for a catalog to answer, imports included; a local catalog takes a few tenths of a second."""
_MOST = 500

Complete = Callable[[typer.Context, str], list[str]]


def _quietly(candidates: Callable[[Any, str], Iterable[str]]) -> Complete:
    """Return names with the typed prefix; none if the catalog fails, as a shell has no place for errors."""

    @wraps(candidates)
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        matching: list[str] = []

        def look() -> None:
            try:
                for name in candidates(ctx, incomplete):
                    if name.startswith(incomplete):
                        matching.append(name)
                    if len(matching) >= _MOST:
                        break
            except Exception:  # noqa: BLE001 - errors must not disturb the command line being typed
                return

        # A catalog that does not answer must not block typing; the process exits without waiting for it.
        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        looking.join(_SECONDS)
        return list(matching)

    return complete


def _run(ctx: Any) -> Any:
    from icefloe.cli.invocation import Invocation
    from icefloe.cli.options import Options

    given = ctx.find_root().params
    return Invocation(Options(given.get("catalog"), config=given.get("config")), "completion")


@_quietly
def complete_table(ctx: Any, incomplete: str) -> Iterator[str]:
    """Complete namespaces, with a trailing dot, and the tables and views of the namespace typed so far."""
    from icefloe.catalog import show_table

    run = _run(ctx)
    name, at, _ = incomplete.rpartition("@")
    if at:
        for ref in run.table(name).table.refs():
            yield f"{name}@{ref}"
        return
    catalog = run.catalog
    parent = tuple(incomplete.split(".")[:-1])
    for namespace in catalog.list_namespaces(parent):
        yield f"{show_table(namespace)}."
    if parent:
        for identifier in (*catalog.list_tables(parent), *catalog.list_views(parent)):
            yield show_table(identifier)


@_quietly
def complete_catalog(ctx: Any, incomplete: str) -> Iterator[str]:  # noqa: ARG001 - common signature
    """Complete names of configured catalogs."""
    yield from _run(ctx).configuration.names()


@_quietly
def complete_namespace(ctx: Any, incomplete: str) -> Iterator[str]:
    """Namespaces."""
    from icefloe.catalog import show_table

    for namespace in _run(ctx).catalog.list_namespaces(tuple(incomplete.split(".")[:-1])):
        yield show_table(namespace)


@_quietly
def complete_ref(ctx: Any, incomplete: str) -> Iterator[str]:  # noqa: ARG001 - common signature
    """Complete branches and tags of the table given before."""
    yield from _run(ctx).table(ctx.params["name"]).table.refs()


@_quietly
def complete_column_table(ctx: Any, incomplete: str) -> Iterator[str]:  # noqa: ARG001 - common signature
    """Complete names of metadata tables."""
    from icefloe.inspect import TABLE_NAMES

    yield from TABLE_NAMES
