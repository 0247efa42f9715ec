"""Which names in a SQL text are ours: by their catalog, or by the catalog and namespace that are current."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError, NoSuchObjectError
from icefloe.inspect import TABLE_NAMES

_SELECTORS = {
    "branch": re.compile(r"branch_(.+)"),
    "tag": re.compile(r"tag_(.+)"),
    "snapshot_id": re.compile(r"snapshot_id_(\d+)"),
    "as_of": re.compile(r"at_timestamp_(\d+)"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace, or something in it, in one of our catalogs."""

    catalog: Catalog
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """What a query reads: a table, perhaps at a ref, snapshot or time, or one of its metadata tables."""

    catalog: Catalog
    identifier: tuple[str, ...]
    metadata_table: str | None = None
    ref: str | None = None
    snapshot_id: int | None = None
    as_of: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is the table by its own name, with nothing after it."""
        return self.metadata_table is None and self.ref is None and self.snapshot_id is None and self.as_of is None


@dataclass
class Names:
    """The catalogs of a session, and where names without a catalog are looked up.

    `current` is what `USE` set, or None while Spark's own catalog is current; a default may take its place, which is how
    `ice.sql` finds tables of its first catalog.
    """

    catalogs: Mapping[str, Catalog]
    current: tuple[str, tuple[str, ...]] | None = None
    is_foreign: Callable[[str], bool] = field(default=lambda _: False, compare=False)
    """Whether a name is that of a catalog of Spark's, so that what begins with it is not in ours."""

    def home(self, default: str | None) -> tuple[str, tuple[str, ...]] | None:
        """The catalog and namespace that are current."""
        return self.current or (None if default is None else (default, ()))

    def place(self, parts: tuple[str, ...], *, default: str | None = None) -> Place | None:
        """A namespace by the parts of its name; None if it is not ours."""
        if parts and parts[0] in self.catalogs:
            return Place(self.catalogs[parts[0]], parts[1:])
        home = self.home(default)
        if home is None or (not parts and not home[1]) or self._is_elsewhere(parts):
            return None
        return Place(self.catalogs[home[0]], parts or home[1])

    def table(self, parts: tuple[str, ...], *, default: str | None = None) -> Place | None:
        """A table or view by the parts of its name, whether it exists or not; None if it is not ours."""
        if len(parts) > 2 and parts[0] in self.catalogs:
            return Place(self.catalogs[parts[0]], parts[1:])
        home = self.home(default)
        if len(parts) == 2 and parts[0] in self.catalogs and (home is None or home[0] != parts[0]):
            raise NoSuchObjectError(
                f"{'.'.join(parts)} has no namespace; write it as {parts[0]}.<namespace>.{parts[1]}"
            )
        if home is None or (len(parts) > 1 and self._is_elsewhere(parts)):
            return None
        return Place(self.catalogs[home[0]], (*home[1], *parts) if len(parts) == 1 else parts)

    def _is_elsewhere(self, parts: tuple[str, ...]) -> bool:
        return bool(parts) and parts[0] not in self.catalogs and self.is_foreign(parts[0])

    def source(self, parts: tuple[str, ...], *, default: str | None = None) -> Source | None:
        """What a relation of a query reads; None if it is not ours, or there is no such table."""
        home = self.home(default)
        for place in self._candidates(parts, home):
            source = _in_catalog(place)
            if source is not None:
                return source
        return None

    def _candidates(self, parts: tuple[str, ...], home: tuple[str, tuple[str, ...]] | None) -> list[Place]:
        places = []
        if len(parts) > 1 and parts[0] in self.catalogs:
            places.append(Place(self.catalogs[parts[0]], parts[1:]))
        if home is not None and not (len(parts) > 1 and self._is_elsewhere(parts)):
            places.append(Place(self.catalogs[home[0]], parts))
            places.append(Place(self.catalogs[home[0]], (*home[1], *parts)))
        return [place for place in places if len(place.parts) > 1]


def _in_catalog(place: Place) -> Source | None:
    catalog, parts = place.catalog, place.parts
    if exists(Place(catalog, parts)):
        return Source(catalog, parts)
    base, last = parts[:-1], parts[-1]
    if len(base) < 2 or not exists(Place(catalog, base)):
        return None
    if last.lower() in TABLE_NAMES:
        return Source(catalog, base, last.lower())
    for selector, pattern in _SELECTORS.items():
        match = pattern.fullmatch(last)
        if match is not None:
            text = match[1]
            return Source(
                catalog,
                base,
                ref=text if selector in ("branch", "tag") else None,
                snapshot_id=int(text) if selector == "snapshot_id" else None,
                as_of=int(text) if selector == "as_of" else None,
            )
    return None


def exists(place: Place) -> bool:
    """Whether the table exists; a name that its catalog cannot store, such as a namespace with a dot, does not."""
    try:
        return place.catalog.table_exists(place.parts)
    except InvalidInputError:
        return False
