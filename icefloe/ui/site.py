"""The catalogs that the pages show, restricted to what a visitor may see."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icefloe import errors
from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import Catalog, Identifier, View, show
from icefloe.table import Table
from icefloe.ui.jobs import Jobs
from icefloe.ui.visitors import NAMESPACE, TABLE, VIEW, Visitor

MOST_NAMES = 20_000
"""Maximum number of names that a search covers in each catalog."""
_FRESH_SECONDS = 30
_SEARCH_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Name:
    """A table or view of a catalog."""

    catalog: str
    identifier: Identifier
    noun: str

    @property
    def text(self) -> str:
        """The name without the catalog."""
        return show(self.identifier)


@dataclass(frozen=True, slots=True)
class _Names:
    at: float
    names: Sequence[Name]
    is_whole: bool


@dataclass(frozen=True)
class Site:
    """The catalogs that pages show, and what is allowed."""

    catalogs: Mapping[str, Catalog]
    sources: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    """Properties of each catalog, secrets masked, with their sources."""
    is_writable: bool = False
    """Whether pages may start maintenance and move branches."""
    shows_rows: bool = True
    """Whether data and delete files are opened. Writers of a table decide which files it references, so a server must not
    read files on behalf of visitors who may not read them."""
    jobs: Jobs = field(default_factory=Jobs)
    _known: BoundedCache[str, _Names] = field(default_factory=lambda: BoundedCache(64), repr=False)

    def shown_catalogs(self, visitor: Visitor) -> list[str]:
        """Return the catalogs that a visitor may see."""
        return [name for name in self.catalogs if visitor.sees_catalog(name)]

    def check_rows(self) -> None:
        """Raise an error unless rows are shown."""
        if not self.shows_rows:
            raise errors.ForbiddenError(
                "this server does not show rows in the page; use a client with its own credentials"
            )

    def catalog(self, visitor: Visitor, name: str) -> Catalog:
        """Return a catalog by name."""
        if name not in self.catalogs or not visitor.sees_catalog(name):
            raise errors.NoSuchObjectError(f"no catalog {name!r}")
        return self.catalogs[name]

    def namespaces(self, visitor: Visitor, catalog: str, parent: Identifier = ()) -> Sequence[Identifier]:
        """Return the child namespaces of a namespace, or the top-level ones."""
        return visitor.visible(catalog, self.catalog(visitor, catalog).list_namespaces(parent), NAMESPACE)

    def check_namespace(self, visitor: Visitor, catalog: str, namespace: Identifier) -> None:
        """Raise an error unless a namespace exists and is visible."""
        known = self.catalog(visitor, catalog)
        if not visitor.visible(catalog, [namespace], NAMESPACE) or not known.namespace_exists(namespace):
            raise errors.NoSuchNamespaceError(f"no namespace {show(namespace)} in catalog {catalog!r}")

    def tables(self, visitor: Visitor, catalog: str, namespace: Identifier) -> Sequence[Identifier]:
        """Return the tables of a namespace."""
        return visitor.visible(catalog, self.catalog(visitor, catalog).list_tables(namespace), TABLE)

    def views(self, visitor: Visitor, catalog: str, namespace: Identifier) -> Sequence[Identifier]:
        """Return the views of a namespace; none if the catalog does not support views."""
        return visitor.visible(catalog, _views(self.catalog(visitor, catalog), namespace), VIEW)

    def table(self, visitor: Visitor, catalog: str, identifier: Identifier) -> Table:
        """Return a table, if the visitor may read it."""
        known = self.catalog(visitor, catalog)
        visitor.check_read(catalog, identifier, TABLE)
        return known.load_table(identifier)

    def view(self, visitor: Visitor, catalog: str, identifier: Identifier) -> View:
        """Return a view, if the visitor may read it."""
        known = self.catalog(visitor, catalog)
        visitor.check_read(catalog, identifier, VIEW)
        return known.load_view(identifier)

    def search(self, visitor: Visitor, text: str, most: int) -> tuple[list[Name], bool]:
        """Return tables and views whose names contain all words of a text, and whether all names were searched."""
        words, matches, is_whole = text.lower().split(), list[Name](), True
        for catalog in self.shown_catalogs(visitor):
            known = self._names(catalog)
            is_whole = is_whole and known.is_whole
            hits = [name for name in known.names if all(word in name.text.lower() for word in words)]
            for noun in (TABLE, VIEW):
                own = {name.identifier: name for name in hits if name.noun == noun}
                matches += [own[identifier] for identifier in visitor.visible(catalog, list(own), noun)]
        return sorted(matches, key=lambda name: (len(name.text), name.text))[:most], is_whole

    def _names(self, catalog: str) -> _Names:
        known = self._known.find(catalog)
        if known is None or time.monotonic() - known.at > _FRESH_SECONDS:
            known = _all_names(catalog, self.catalogs[catalog])
            self._known.keep(catalog, known)
        return known

    def close(self) -> None:
        """Start no further jobs and close all catalogs."""
        self.jobs.close()
        for catalog in self.catalogs.values():
            catalog.close()


def _all_names(catalog_name: str, catalog: Catalog) -> _Names:
    """Return the names of a catalog, within the limits of number and time for a search."""
    waiting, names = deque(catalog.list_namespaces()), list[Name]()
    end = time.monotonic() + _SEARCH_SECONDS
    while waiting and len(names) <= MOST_NAMES and time.monotonic() < end:
        namespace = waiting.popleft()
        names += [Name(catalog_name, identifier, TABLE) for identifier in catalog.list_tables(namespace)]
        names += [Name(catalog_name, identifier, VIEW) for identifier in _views(catalog, namespace)]
        waiting += catalog.list_namespaces(namespace)
    return _Names(time.monotonic(), names[:MOST_NAMES], not waiting and len(names) <= MOST_NAMES)


def _views(catalog: Catalog, namespace: Identifier) -> list[Identifier]:
    try:
        return catalog.list_views(namespace)
    except errors.UnsupportedOperationError:
        return []
