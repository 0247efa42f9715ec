"""Pages of catalogs, namespaces and views, the search, and the about page."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from starlette.responses import Response

from icefloe import __version__, errors, parallel
from icefloe.catalog import Identifier
from icefloe.metadata import SQLViewRepresentation
from icefloe.rest.paths_codec import encode_name, encode_namespace
from icefloe.ui.asking import Page, pager
from icefloe.ui.figures import Sign, Totals, glance, totals_of
from icefloe.ui.properties import shown_properties
from icefloe.ui.visitors import NAMESPACE, TABLE

PAGE_ROWS = 50
_THREADS = 8
_RESULTS = 100


@dataclass(frozen=True, slots=True)
class TableLine:
    """A table in the list of a namespace; without totals if it cannot or may not be read."""

    identifier: Identifier
    totals: Totals | None = None
    changed_ms: int | None = None
    operation: str | None = None
    format_version: int | None = None
    sign: Sign | None = None
    problem: str | None = None


def home(page: Page) -> Response:
    """Show all catalogs."""
    names = page.site.shown_catalogs(page.visitor)
    if len(names) == 1:
        return catalog_page(page, names[0])
    lines = [_catalog_line(page, name) for name in names]
    return page.render("home.html", catalogs=lines)


def _catalog_line(page: Page, name: str) -> dict[str, object]:
    try:
        count: int | None = len(page.site.namespaces(page.visitor, name))
        problem = None
    except errors.IcefloeError as error:
        count, problem = None, str(error)
    kind = type(page.site.catalogs[name]).__name__.removesuffix("Catalog").lower()
    return {"name": name, "kind": kind, "namespaces": count, "problem": problem}


def catalog(page: Page) -> Response:
    """Show the namespaces of a catalog."""
    return catalog_page(page, page.name("catalog"))


def catalog_page(page: Page, name: str) -> Response:
    """Show the namespaces of a catalog by name."""
    namespaces = page.site.namespaces(page.visitor, name)
    first = page.number("from")
    shown = namespaces[first : first + PAGE_ROWS]
    counted = _in_threads(partial(_namespace_line, page, name), shown)
    pages = pager(first, PAGE_ROWS, len(namespaces), lambda start: page.link("c", encode_name(name), **{"from": start}))
    return page.render("catalog.html", catalog=name, namespaces=counted, pager=pages, total=len(namespaces))


def _namespace_line(page: Page, catalog: str, namespace: Identifier) -> dict[str, object]:
    return {
        "name": namespace,
        "tables": len(page.site.tables(page.visitor, catalog, namespace)),
        "views": len(page.site.views(page.visitor, catalog, namespace)),
        "namespaces": len(page.site.namespaces(page.visitor, catalog, namespace)),
    }


def namespace(page: Page) -> Response:
    """Show the tables, views and child namespaces of a namespace."""
    name, levels = page.name("catalog"), page.namespace
    page.site.check_namespace(page.visitor, name, levels)
    tables = page.site.tables(page.visitor, name, levels)
    wanted = page.query("q").lower()
    if wanted:
        tables = [identifier for identifier in tables if wanted in identifier[-1].lower()]
    first = page.number("from")
    lines = _in_threads(partial(_table_line, page, name), tables[first : first + PAGE_ROWS])
    here = ("c", encode_name(name), encode_namespace(levels))
    pages = pager(first, PAGE_ROWS, len(tables), lambda start: page.link(*here, q=page.query("q"), **{"from": start}))
    may_read = page.visitor.may_read(name, levels, NAMESPACE)
    properties = page.site.catalogs[name].load_namespace_properties(levels) if may_read else {}
    return page.render(
        "namespace.html",
        catalog=name,
        namespace=levels,
        inner=page.site.namespaces(page.visitor, name, levels),
        tables=lines,
        views=page.site.views(page.visitor, name, levels),
        properties=shown_properties(properties),
        pager=pages,
        total=len(tables),
        wanted=page.query("q"),
    )


def _table_line(page: Page, catalog: str, identifier: Identifier) -> TableLine:
    if not page.visitor.may_read(catalog, identifier, TABLE):
        return TableLine(identifier)
    try:
        table = page.site.table(page.visitor, catalog, identifier)
    except errors.IcefloeError as error:
        return TableLine(identifier, problem=str(error))
    snapshot = table.current_snapshot()
    now = totals_of(snapshot)
    return TableLine(
        identifier,
        now,
        table.metadata.last_updated_ms,
        None if snapshot is None else snapshot.operation,
        table.format_version,
        glance(table.metadata, now),
    )


def _in_threads(work: Callable[[Identifier], object], names: Sequence[Identifier]) -> list[object]:
    return list(parallel.in_order(work, names, _THREADS, "icefloe-ui-list"))


def view(page: Page) -> Response:
    """Show a view: its queries, columns and versions."""
    name, identifier = page.name("catalog"), (*page.namespace, page.name("view"))
    shown = page.site.view(page.visitor, name, identifier)
    metadata = shown.metadata
    versions = [
        {
            "id": version.version_id,
            "at": version.timestamp_ms,
            "is_current": version.version_id == metadata.current_version_id,
            "queries": [each for each in version.representations if isinstance(each, SQLViewRepresentation)],
        }
        for version in sorted(metadata.versions, key=lambda version: version.version_id, reverse=True)
    ]
    return page.render(
        "view.html",
        catalog=name,
        identifier=identifier,
        view=shown,
        versions=versions,
        fields=shown.schema().fields,
        properties=shown_properties(metadata.properties),
    )


def search(page: Page) -> Response:
    """Search tables and views by words in their names."""
    text = page.query("q")
    names, is_whole = page.site.search(page.visitor, text, _RESULTS) if text else ([], True)
    return page.render("search.html", text=text, names=names, is_whole=is_whole, most=_RESULTS)


def about(page: Page) -> Response:
    """Show versions and the configuration of catalogs, with possible secrets masked."""
    import jinja2
    import numpy as np
    import pyarrow as pa
    import starlette

    versions = {
        "icefloe": __version__,
        "Python": platform.python_version(),
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
        "Starlette": starlette.__version__,
        "Jinja": jinja2.__version__,
    }
    shown = page.site.shown_catalogs(page.visitor)
    sources = {name: page.site.sources.get(name, {}) for name in shown}
    return page.render("about.html", versions=versions, sources=sources)
