"""`icefloe list` and `icefloe tree`: namespaces, tables and views by name."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from icefloe.catalog import Catalog, parse_namespace, show_table
from icefloe.cli.completing import complete_namespace
from icefloe.cli.invocation import Invocation, invocation
from icefloe.metadata import summary as totals
from icefloe.shown import size

Parent = Annotated[str | None, typer.Argument(metavar="[NAMESPACE]", autocompletion=complete_namespace)]
Long = Annotated[bool, typer.Option("-l", "--long", help="Also show the kind, and rows, files and size of tables.")]


@dataclass(frozen=True, slots=True)
class Entry:
    """A namespace, table or view."""

    identifier: tuple[str, ...]
    kind: str
    depth: int

    @property
    def name(self) -> str:
        """The full name."""
        return show_table(self.identifier)


def list_names(
    ctx: typer.Context,
    parent: Parent = None,
    recursive: Annotated[bool, typer.Option("--recursive", "-r", help="List the contents of namespaces, too.")] = False,
    long: Long = False,
) -> None:
    """List namespaces, tables and views."""
    with invocation(ctx) as run:
        entries = list(_entries(run.catalog, _parent(parent), is_deep=recursive))
        rows = [_row(run, entry, long) for entry in entries]
        if long or run.options.output != "text":
            run.out.rows(rows, ("name", "kind", *(("rows", "files", "size") if long else ())), _shown(rows))
        else:
            run.out.lines(entry.name for entry in entries)


def tree(ctx: typer.Context, parent: Parent = None, long: Long = False) -> None:
    """Show namespaces, tables and views as a tree."""
    with invocation(ctx) as run:
        entries = list(_entries(run.catalog, _parent(parent), is_deep=True))
        rows = [_row(run, entry, long) for entry in entries]
        if run.options.output != "text":
            run.out.rows(rows)
            return
        run.out.lines([run.out.heading(parent or run.catalog_name)])
        run.out.lines(_branches(entries, _shown(rows) if long else None))


def _parent(text: str | None) -> tuple[str, ...]:
    return () if not text else parse_namespace(text)


def _entries(catalog: Catalog, parent: tuple[str, ...], is_deep: bool, depth: int = 0) -> Iterator[Entry]:
    if parent:
        yield from (Entry(each, "table", depth) for each in catalog.list_tables(parent))
        yield from (Entry(each, "view", depth) for each in catalog.list_views(parent))
    for namespace in sorted(catalog.list_namespaces(parent)):
        yield Entry(namespace, "namespace", depth)
        if is_deep:
            yield from _entries(catalog, namespace, is_deep, depth + 1)


def _row(run: Invocation, entry: Entry, is_long: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"name": entry.name, "kind": entry.kind}
    if is_long:
        row |= {"rows": None, "files": None, "size": None}
    if is_long and entry.kind == "table":
        snapshot = run.catalog.load_table(entry.identifier).current_snapshot()
        said = {} if snapshot is None or snapshot.summary is None else snapshot.summary.properties
        for name, key in (
            ("rows", totals.TOTAL_RECORDS),
            ("files", totals.TOTAL_DATA_FILES),
            ("size", totals.TOTAL_FILES_SIZE),
        ):
            row[name] = int(said[key]) if key in said else 0 if snapshot is None else None
    return row


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def text(row: dict[str, Any], name: str) -> str:
        value = row.get(name)
        return "" if value is None else size(value) if name == "size" else f"{value:,}" if name != "kind" else value

    return [{name: row[name] if name == "name" else text(row, name) for name in row} for row in rows]


def _branches(entries: list[Entry], details: list[dict[str, Any]] | None) -> Iterator[str]:
    is_last = [all(other.depth != entry.depth for other in _siblings(entries, at)) for at, entry in enumerate(entries)]
    above: list[bool] = []
    for at, entry in enumerate(entries):
        above = [*above[: entry.depth], is_last[at]]
        lines = "".join("    " if last else "│   " for last in above[:-1])
        mark = "/" if entry.kind == "namespace" else " (view)" if entry.kind == "view" else ""
        more = ""
        if details is not None and entry.kind == "table":
            more = f"  {details[at]['rows'] or '?'} rows, {details[at]['files'] or '?'} files, {details[at]['size'] or '?'}"
        yield f"{lines}{'└── ' if is_last[at] else '├── '}{entry.identifier[-1]}{mark}{more}"


def _siblings(entries: list[Entry], at: int) -> Iterator[Entry]:
    """Return the following entries of the same namespace."""
    for other in entries[at + 1 :]:
        if other.depth < entries[at].depth:
            return
        yield other
