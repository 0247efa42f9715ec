"""Which names in a SQL text are ours: by their catalog, or by the catalog and namespace that are current."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from icefloe.catalog import Catalog, View, show
from icefloe.errors import InvalidInputError, NoSuchNamespaceError, NoSuchObjectError, NoSuchTableError
from icefloe.inspect import TABLE_NAMES
from icefloe.spark.loading import load_again
from icefloe.spark.user_side import quoted_name
from icefloe.table import Table

Parts = tuple[str, ...]
"""The parts of a name, outermost first."""
Home = tuple[str, Parts]
"""The catalog and namespace of ours that are current."""

_SELECTOR = re.compile(r"(?:branch|tag)_(.+)|snapshot_id_(\d+)|at_timestamp_(\d+)")


def quoted(name: Parts) -> str:
    """A name as Spark's parser reads it, whatever is in its parts."""
    return ".".join(map(quoted_name, name))


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """The name of a namespace, table or view, which may not exist, and the catalog of ours that it is in."""

    catalog: Catalog
    parts: Parts

    @property
    def full(self) -> Parts:
        """The name with that of its catalog in front."""
        return (self.catalog.name, *self.parts)

    def __str__(self) -> str:
        return show(self.full)

    @property
    def quoted(self) -> str:
        """The full name as Spark's parser reads it."""
        return quoted(self.full)

    def table_exists(self) -> bool:
        """Whether there is a table of the name."""
        return self.catalog.table_exists(self.parts)

    def is_table(self) -> bool:
        """The same, where a name that the catalog cannot store, such as a namespace with a dot, is none of a table."""
        try:
            return self.table_exists()
        except InvalidInputError:
            return False

    def find_table(self) -> Table | None:
        """The table, by one request to the catalog; None if there is none of the name."""
        try:
            return self.load_table()
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except InvalidInputError:
            if self.is_table():
                raise
            return None

    def view_exists(self) -> bool:
        """Whether there is a view of the name."""
        return self.catalog.view_exists(self.parts)

    def exists(self) -> bool:
        """Whether there is a table or view of the name."""
        return self.table_exists() or self.view_exists()

    def check_namespace(self) -> None:
        """Raise if there is no namespace of the name."""
        if not self.catalog.namespace_exists(self.parts):
            raise NoSuchNamespaceError(f"no namespace {show(self.parts)} in catalog {self.catalog.name!r}")

    def load_table(self) -> Table:
        """The table."""
        return load_again(self.catalog, self.parts)

    def load_view(self) -> View:
        """The view."""
        return self.catalog.load_view(self.parts)


@dataclass(frozen=True, slots=True)
class Source:
    """What a query reads: a table, perhaps at a ref, snapshot or time, or one of its metadata tables."""

    catalog: Catalog
    identifier: Parts
    metadata_table: str | None = None
    ref: str | None = None
    snapshot_id: int | None = None
    as_of: int | None = None
    table: Table | None = field(default=None, compare=False, repr=False)
    """The table as it was when its name was looked up, for the query that names it."""

    @property
    def is_newest(self) -> bool:
        """Whether nothing says which snapshot is read."""
        return self.ref is None and self.snapshot_id is None and self.as_of is None

    @property
    def is_whole(self) -> bool:
        """Whether it is the table by its own name, with nothing after it."""
        return self.metadata_table is None and self.is_newest

    def load_table(self) -> Table:
        """The table."""
        return load_again(self.catalog, self.identifier) if self.table is None else self.table


@dataclass
class Names:
    """The catalogs of a session, and where names without a catalog are looked up.

    `current` is what `USE` set, or None while Spark's own catalog is current; a default may take its place, which is how
    `ice.sql` finds tables of its first catalog.
    """

    catalogs: Mapping[str, Catalog]
    current: Home | None = None
    is_foreign: Callable[[str], bool] = field(default=lambda _: False, compare=False)
    """Whether a name is that of a catalog of Spark's, so that what begins with it is not in ours."""

    def home(self, default: str | None) -> Home | None:
        """The catalog and namespace that are current."""
        return self.current or (None if default is None else (default, ()))

    def namespace(self, parts: Parts, *, default: str | None = None) -> ResolvedName | None:
        """A namespace by the parts of its name; None if it is not ours."""
        if parts and parts[0] in self.catalogs:
            return ResolvedName(self.catalogs[parts[0]], parts[1:])
        home = self.home(default)
        if home is None or (not parts and not home[1]) or self._is_elsewhere(parts):
            return None
        return ResolvedName(self.catalogs[home[0]], parts or home[1])

    def table(self, parts: Parts, *, default: str | None = None) -> ResolvedName | None:
        """A table or view by the parts of its name, whether it exists or not; None if it is not ours."""
        if len(parts) > 2 and parts[0] in self.catalogs:
            return ResolvedName(self.catalogs[parts[0]], parts[1:])
        home = self.home(default)
        if len(parts) == 2 and parts[0] in self.catalogs and (home is None or home[0] != parts[0]):
            raise NoSuchObjectError(
                f"{'.'.join(parts)} has no namespace; write it as {parts[0]}.<namespace>.{parts[1]}"
            )
        if home is None or (len(parts) > 1 and self._is_elsewhere(parts)):
            return None
        return ResolvedName(self.catalogs[home[0]], (*home[1], *parts) if len(parts) == 1 else parts)

    def source(self, parts: Parts, *, default: str | None = None) -> Source | None:
        """What a relation of a query reads; None if it is not ours, or there is no such table."""
        sources = map(_source_of, self._candidates(parts, self.home(default)))
        return next((source for source in sources if source is not None), None)

    def _candidates(self, parts: Parts, home: Home | None) -> list[ResolvedName]:
        names = []
        if len(parts) > 1 and parts[0] in self.catalogs:
            names.append(ResolvedName(self.catalogs[parts[0]], parts[1:]))
        if home is not None and not (len(parts) > 1 and self._is_elsewhere(parts)):
            names += [ResolvedName(self.catalogs[home[0]], name) for name in (parts, (*home[1], *parts))]
        return [name for name in names if len(name.parts) > 1]

    def _is_elsewhere(self, parts: Parts) -> bool:
        return bool(parts) and parts[0] not in self.catalogs and self.is_foreign(parts[0])


def _source_of(name: ResolvedName) -> Source | None:
    if (table := name.find_table()) is not None:
        return Source(name.catalog, name.parts, table=table)
    around, suffix = ResolvedName(name.catalog, name.parts[:-1]), name.parts[-1]
    match = _SELECTOR.fullmatch(suffix)
    is_about = match is not None or suffix.lower() in TABLE_NAMES
    if len(around.parts) < 2 or not is_about or (table := around.find_table()) is None:
        return None
    if match is None:
        return Source(around.catalog, around.parts, suffix.lower(), table=table)
    ref, *numbers = match.groups()
    snapshot_id, as_of = (None if number is None else int(number) for number in numbers)
    return Source(around.catalog, around.parts, None, ref, snapshot_id, as_of, table)
