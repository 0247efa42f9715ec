"""Decides which catalog a warehouse is, and keeps what is known of its metadata files, which never change.

A warehouse is named in `GET /v1/config`, and its name is the prefix of all paths from then on.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from icefloe.bounded_cache import BoundedCache
from icefloe.catalog import Catalog, ServedCatalog
from icefloe.commit import TableState
from icefloe.errors import InvalidPropertyError, NoSuchWarehouseError
from icefloe.metadata import TableMetadata
from icefloe.metadata.codec import metadata_to_json
from icefloe.metadata.view_codec import view_to_json
from icefloe.rest.paths_codec import decode_name, encode_name
from icefloe.rest.tables_codec import REFERENCED_SNAPSHOTS

_RESERVED = ("config", "oauth", "namespaces", "tables", "views", "transactions")


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A catalog under the name that clients know it by, with its metadata as it was read or committed."""

    name: str
    served: ServedCatalog
    texts: BoundedCache[tuple[str, str], bytes]
    """Metadata as JSON, by location and by which snapshots it has."""
    metadata: BoundedCache[str, TableMetadata] = field(repr=False)
    """Tables by metadata location, as commits need them."""

    @property
    def prefix(self) -> str:
        """Its name in paths."""
        return encode_name(self.name)

    def state_at(self, location: str) -> TableState:
        """The table at a metadata location."""
        metadata = self.metadata.find(location)
        if metadata is None:
            metadata = self.metadata.load(location, lambda: self.served.read_table(location))
        return TableState(metadata, location)

    def remember(self, state: TableState) -> TableState:
        """Keep a table as it was just committed, so that nobody reads its file."""
        self.metadata.keep(str(state.metadata_location), state.metadata)
        return state

    def table_text(self, location: str, snapshots: str) -> bytes:
        """The metadata of a table as JSON, with all snapshots or those that refs lead to."""
        text = self.texts.find((location, snapshots))
        if text is not None and _is_on_disk(location):
            # Next to nothing to ask for here: a table whose file is lost is not shown as if it were whole.
            self.served.catalog.storage.stat(location)
        return (
            text
            if text is not None
            else self.texts.load((location, snapshots), lambda: self._text(location, snapshots))
        )

    def view_text(self, location: str) -> bytes:
        """The metadata of a view as JSON."""
        return self.texts.load((location, ""), lambda: view_to_json(self.served.read_view(location)))

    def _text(self, location: str, snapshots: str) -> bytes:
        metadata = self.state_at(location).metadata
        if snapshots == REFERENCED_SNAPSHOTS:
            referenced = {ref.snapshot_id for ref in metadata.refs.values()}
            kept = tuple(snapshot for snapshot in metadata.snapshots if snapshot.snapshot_id in referenced)
            metadata = metadata.evolve(snapshots=kept)
        return metadata_to_json(metadata)


def _is_on_disk(location: str) -> bool:
    return location.startswith(("file:", "/"))


def _weight(metadata: TableMetadata) -> int:
    """About how much memory a table takes."""
    columns = sum(len(schema.fields_by_id) for schema in metadata.schemas)
    return 4096 + 2048 * len(metadata.snapshots) + 512 * columns + 256 * len(metadata.metadata_log)


def entity_tag(location: str, snapshots: str) -> str:
    """What a client keeps to ask whether a table has changed: it follows from the pointer alone."""
    return hashlib.sha256(f"{location},snapshots={snapshots}".encode()).hexdigest()[:32]


class Warehouses:
    """All warehouses of a server."""

    def __init__(self, catalogs: Mapping[str, Catalog], default: str | None, cache_bytes: int) -> None:
        if not catalogs:
            raise InvalidPropertyError("a server needs a catalog; the configuration names none")
        share = cache_bytes // 2 // len(catalogs)
        for name in catalogs:
            if name in _RESERVED:
                raise InvalidPropertyError(
                    f"a catalog cannot be served as {name!r}: paths of the protocol have that word"
                )
        self._by_name = {
            name: Warehouse(name, ServedCatalog(catalog), BoundedCache(share, len), BoundedCache(share, _weight))
            for name, catalog in catalogs.items()
        }
        if default is not None and default not in self._by_name:
            raise InvalidPropertyError(f"default-warehouse is {default!r}; the catalogs are {', '.join(catalogs)}")
        self._default = default or (next(iter(catalogs)) if len(catalogs) == 1 else None)

    @property
    def all(self) -> tuple[Warehouse, ...]:
        """Every warehouse."""
        return tuple(self._by_name.values())

    def named(self, name: str | None) -> Warehouse:
        """The warehouse of that name, or the default one for none."""
        chosen = name or self._default
        warehouse = None if chosen is None else self._by_name.get(chosen)
        if warehouse is None:
            raise NoSuchWarehouseError(
                "the server has several warehouses, and none is named; set `warehouse`"
                if chosen is None
                else f"Warehouse does not exist: {chosen}"
            )
        return warehouse

    def of_prefix(self, prefix: str) -> Warehouse:
        """The warehouse of a path."""
        return self.named(decode_name(prefix))

    def close(self) -> None:
        """Close all catalogs."""
        for warehouse in self.all:
            warehouse.served.catalog.close()
