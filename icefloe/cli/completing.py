"""Decides which names complete what a user has typed: those of the configured catalog, as far as it answers at once."""

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import typer

_SECONDS = 2.0
"""How long a catalog may take, with what is imported for it; a local one takes a few tenths."""
_MOST = 500

Complete = Callable[[typer.Context, str], list[str]]


def _quietly(candidates: Callable[[Any, str], Iterable[str]]) -> Complete:
    """Names that begin as typed; none if the catalog cannot be asked, as a shell has no place for errors."""

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
            except Exception:  # noqa: BLE001 - in the middle of a line that is being typed
                return

        # A catalog that does not answer must not hold up the one who types; the process ends without it.
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
    """Namespaces with a dot behind them, and the tables and views of the one that is typed."""
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
def complete_catalog(ctx: Any, incomplete: str) -> Iterator[str]:  # noqa: ARG001 - the shape of all of them
    """The configured catalogs."""
    yield from _run(ctx).configuration.names()


@_quietly
def complete_namespace(ctx: Any, incomplete: str) -> Iterator[str]:
    """Namespaces."""
    from icefloe.catalog import show_table

    for namespace in _run(ctx).catalog.list_namespaces(tuple(incomplete.split(".")[:-1])):
        yield show_table(namespace)


@_quietly
def complete_ref(ctx: Any, incomplete: str) -> Iterator[str]:  # noqa: ARG001 - the shape of all of them
    """Branches and tags of the table that is named before."""
    yield from _run(ctx).table(ctx.params["name"]).table.refs()


@_quietly
def complete_column_table(ctx: Any, incomplete: str) -> Iterator[str]:  # noqa: ARG001 - the shape of all of them
    """Metadata tables."""
    from icefloe.inspect import TABLE_NAMES

    yield from TABLE_NAMES
