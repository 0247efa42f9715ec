"""Decides which names complete what a user has typed: those of the configured catalog, as far as it answers at once."""

import time
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import typer

_SECONDS = 0.3
_MOST = 500

Complete = Callable[[typer.Context, str], list[str]]


def _quietly(candidates: Callable[[Any, str], Iterable[str]]) -> Complete:
    """Names that begin as typed; none if the catalog cannot be asked, as a shell has no place for errors."""

    @wraps(candidates)
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        start, names = time.monotonic(), []
        try:
            for name in candidates(ctx, incomplete):
                if name.startswith(incomplete):
                    names.append(name)
                if len(names) >= _MOST or time.monotonic() - start > _SECONDS:
                    break
        except Exception:  # noqa: BLE001 - in the middle of a line that is being typed
            return names
        return names

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

    catalog = _run(ctx).catalog
    parent = tuple(incomplete.split(".")[:-1])
    for namespace in catalog.list_namespaces(parent):
        yield f"{show_table(namespace)}."
    if parent:
        for identifier in (*catalog.list_tables(parent), *catalog.list_views(parent)):
            yield show_table(identifier)


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
