"""Decides which catalog a name means: its kind, by the properties that configuration, environment and arguments give it."""

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from icefloe.catalog.catalog import Catalog
from icefloe.catalog.configuration import (
    HOME_FILE,
    PROJECT_FILE,
    Configuration,
    catalog_tables,
    find_configuration,
    flat,
    read_toml,
)
from icefloe.errors import InvalidPropertyError

EMBEDDED_CATALOG, EMBEDDED_WAREHOUSE = "icefloe", "icefloe-warehouse"
"""The catalog of those who name none, and its folder."""

_CLASSES = {
    "sql": "sql.SqlCatalog",
    "jdbc": "sql.SqlCatalog",
    "hadoop": "hadoop.HadoopCatalog",
    "memory": "memory.MemoryCatalog",
    "rest": "rest.catalog.RestCatalog",
}
"""Where the class of each type is: only the one in use is imported, since databases and HTTP take their time."""


def load_catalog(name: str = "default", **properties: object) -> Catalog:
    """The catalog of that name, from arguments, environment and configuration file (docs/catalogs.md).

    `type` is `rest` or `sql` (both with `uri`), `hadoop` or `memory`; `warehouse` is where new tables go, or, of a REST
    server, the name that it has for one. All other properties, like `s3.endpoint`, are for the storage.
    """
    return configured_catalog(find_configuration(), name, properties)


def configured_catalog(configuration: Configuration, name: str, properties: Mapping[str, object]) -> Catalog:
    """The catalog of that name in a configuration; arguments and environment count as everywhere."""
    given: object = name
    if not isinstance(given, str) or not given.strip():
        raise InvalidPropertyError(f"the name of a catalog must be a string, not {given!r}")
    texts = configuration.properties(name, properties)
    catalog_type = texts.get("type", "").lower() or _type_of_uri(texts.get("uri", ""))
    if catalog_type not in _CLASSES:
        raise InvalidPropertyError(_unknown_type(configuration, name, catalog_type, bool(texts)))
    return _class_of(catalog_type)(name, texts)


def embedded_catalog(warehouse: str | os.PathLike[str] | None = None) -> Catalog:
    """A catalog in SQLite with its tables beside it, in `./icefloe-warehouse` or the folder given."""
    folder = Path(EMBEDDED_WAREHOUSE if warehouse is None else warehouse).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return load_catalog(EMBEDDED_CATALOG, type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder))


def catalogs_of_file(path: str | os.PathLike[str]) -> dict[str, Catalog]:
    """All catalogs of a configuration file, by name; what the environment says of them counts, too."""
    place = os.fspath(path)
    tables = catalog_tables(read_toml(place), place) if os.path.exists(os.path.expanduser(place)) else {}
    said = Configuration(place, None, {name: dict(flat(table, f"catalog.{name}")) for name, table in tables.items()})
    return {name: configured_catalog(said, name, {}) for name in tables}


def _class_of(catalog_type: str) -> type[Catalog]:
    module, _, name = _CLASSES[catalog_type].rpartition(".")
    chosen: type[Catalog] = getattr(import_module(f"icefloe.catalog.{module}"), name)
    return chosen


def _type_of_uri(uri: str) -> str:
    scheme = uri.removeprefix("jdbc:").partition(":")[0].partition("+")[0].lower()
    if scheme in ("sqlite", "postgresql", "postgres"):
        return "sql"
    return "rest" if scheme in ("http", "https") else ""


def _unknown_type(configuration: Configuration, name: str, catalog_type: str, is_configured: bool) -> str:
    if catalog_type:
        return f"catalog {name!r} is of type {catalog_type!r}; known types are rest, sql, hadoop and memory"
    if is_configured:
        return f"catalog {name!r} has no type; set `type` to rest, sql, hadoop or memory"
    known = ", ".join(sorted(configuration.catalogs)) or "none"
    if configuration.path is None:
        place = f"name it in {PROJECT_FILE} or {HOME_FILE}; there is no such file"
    else:
        place = f"name it in {configuration.path}; that file has: {known}"
    return f"nothing is known of catalog {name!r}: give `type`, `uri` and `warehouse`, or {place}"


def catalog_properties(name: str, arguments: Mapping[str, object]) -> dict[str, str]:
    """All properties of the catalog, as texts."""
    return find_configuration().properties(name, arguments)
