"""Decides what the pages are about: catalogs by name, and which of their names and tables a visitor gets to see."""

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
"""How many names a search looks through in each catalog."""
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
        """The name as users write it, without its catalog."""
        return show(self.identifier)


@dataclass(frozen=True, slots=True)
class _Names:
    at: float
    names: Sequence[Name]
    is_whole: bool


@dataclass(frozen=True)
class Site:
    """The catalogs that pages show, and what is allowed on them."""

    catalogs: Mapping[str, Catalog]
    sources: Mapping[str, Mapping[str, tuple[str, str]]] = field(default_factory=dict)
    """Of each catalog its properties as they may be shown, with where each comes from."""
    is_writable: bool = False
    """Whether pages may start maintenance and move branches."""
    shows_rows: bool = True
    """Whether data and delete files are opened. Who writes a table names its files, so that a server must not read for others
    what they may not read themselves."""
    jobs: Jobs = field(default_factory=Jobs)
    _known: BoundedCache[str, _Names] = field(default_factory=lambda: BoundedCache(64), repr=False)

    def shown_catalogs(self, visitor: Visitor) -> list[str]:
        """The catalogs that a visitor sees."""
        return [name for name in self.catalogs if visitor.sees_catalog(name)]

    def check_rows(self) -> None:
        """Fail unless rows are shown."""
        if not self.shows_rows:
            raise errors.ForbiddenError(
                "this server opens no data files for the page: read rows with a client, which has its own rights"
            )

    def catalog(self, visitor: Visitor, name: str) -> Catalog:
        """A catalog by name."""
        if name not in self.catalogs or not visitor.sees_catalog(name):
            raise errors.NoSuchObjectError(f"there is no catalog {name!r} here")
        return self.catalogs[name]

    def namespaces(self, visitor: Visitor, catalog: str, parent: Identifier = ()) -> Sequence[Identifier]:
        """The namespaces directly in another, or at the top."""
        return visitor.visible(catalog, self.catalog(visitor, catalog).list_namespaces(parent), NAMESPACE)

    def check_namespace(self, visitor: Visitor, catalog: str, namespace: Identifier) -> None:
        """Fail unless a namespace is there and shown."""
        known = self.catalog(visitor, catalog)
        if not visitor.visible(catalog, [namespace], NAMESPACE) or not known.namespace_exists(namespace):
            raise errors.NoSuchNamespaceError(f"there is no namespace {show(namespace)} in catalog {catalog!r}")

    def tables(self, visitor: Visitor, catalog: str, namespace: Identifier) -> Sequence[Identifier]:
        """The tables of a namespace."""
        return visitor.visible(catalog, self.catalog(visitor, catalog).list_tables(namespace), TABLE)

    def views(self, visitor: Visitor, catalog: str, namespace: Identifier) -> Sequence[Identifier]:
        """The views of a namespace; none where catalogs keep none."""
        return visitor.visible(catalog, _views(self.catalog(visitor, catalog), namespace), VIEW)

    def table(self, visitor: Visitor, catalog: str, identifier: Identifier) -> Table:
        """A table, if the visitor may read it."""
        known = self.catalog(visitor, catalog)
        visitor.check_read(catalog, identifier, TABLE)
        return known.load_table(identifier)

    def view(self, visitor: Visitor, catalog: str, identifier: Identifier) -> View:
        """A view, if the visitor may read it."""
        known = self.catalog(visitor, catalog)
        visitor.check_read(catalog, identifier, VIEW)
        return known.load_view(identifier)

    def search(self, visitor: Visitor, text: str, most: int) -> tuple[list[Name], bool]:
        """Tables and views whose names hold all words of a text, and whether all names were looked at."""
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
        """Begin no work any more, and close all catalogs."""
        self.jobs.close()
        for catalog in self.catalogs.values():
            catalog.close()


def _all_names(catalog_name: str, catalog: Catalog) -> _Names:
    """The names of a catalog, as many as a search looks through, and as come in the time that it has."""
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
