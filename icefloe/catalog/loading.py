"""Decides which catalog a name means: its properties from `~/.icefloe.toml`, then the environment, then the arguments.

The file has one table for each catalog, `[catalog.lake]`; tables inside of it stand for dots in keys, so that
`s3.endpoint = "..."` is the property `s3.endpoint`. A variable is `ICEFLOE_CATALOG__<NAME>__<KEY>`, in which two
underscores in the key stand for a dot and one for a dash: `ICEFLOE_CATALOG__LAKE__S3__ACCESS_KEY_ID` is
`s3.access-key-id` of the catalog `lake`. Names of catalogs are compared without case, a dash as an underscore. What comes
later in this list wins, property by property.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from icefloe.catalog.catalog import Catalog
from icefloe.catalog.hadoop import HadoopCatalog
from icefloe.catalog.memory import MemoryCatalog
from icefloe.catalog.rest.catalog import RestCatalog
from icefloe.catalog.sql import SqlCatalog
from icefloe.errors import InvalidPropertyError

CONFIGURATION_FILE = "~/.icefloe.toml"
"""Where named catalogs are configured."""

EMBEDDED_CATALOG, EMBEDDED_WAREHOUSE = "icefloe", "icefloe-warehouse"
"""The catalog of those who name none, and its folder."""

_VARIABLE = "ICEFLOE_CATALOG__"
_CLASSES: dict[str, type[Catalog]] = {
    "sql": SqlCatalog,
    "jdbc": SqlCatalog,
    "hadoop": HadoopCatalog,
    "memory": MemoryCatalog,
    "rest": RestCatalog,
}


def load_catalog(name: str = "default", **properties: object) -> Catalog:
    """The catalog of that name, from arguments, environment and `~/.icefloe.toml` (docs/catalogs.md).

    `type` is `rest` or `sql` (both with `uri`), `hadoop` or `memory`; `warehouse` is where new tables go, or, of a REST
    server, the name that it has for one. All other properties, like `s3.endpoint`, are for the storage.
    """
    given: object = name
    if not isinstance(given, str) or not given.strip():
        raise InvalidPropertyError(f"the name of a catalog is a text, not {given!r}")
    texts = catalog_properties(name, properties)
    catalog_type = texts.get("type", "").lower() or _type_of_uri(texts.get("uri", ""))
    if catalog_type not in _CLASSES:
        raise InvalidPropertyError(_unknown_type(name, catalog_type, bool(texts)))
    return _CLASSES[catalog_type](name, texts)


def embedded_catalog(warehouse: str | os.PathLike[str] | None = None) -> Catalog:
    """A catalog in SQLite with its tables beside it, in `./icefloe-warehouse` or the folder given."""
    folder = Path(EMBEDDED_WAREHOUSE if warehouse is None else warehouse).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return load_catalog(EMBEDDED_CATALOG, type="sql", uri=f"sqlite:///{folder / 'catalog.db'}", warehouse=str(folder))


def catalogs_of_file(path: str | os.PathLike[str]) -> dict[str, Catalog]:
    """All catalogs of a configuration file, by name; what the environment says of them counts, too."""
    return {
        name: load_catalog(name, **{**dict(_flat(table, f"catalog.{name}")), **_from_environment(name)})
        for name, table in _catalog_tables(os.fspath(path)).items()
    }


def _type_of_uri(uri: str) -> str:
    scheme = uri.removeprefix("jdbc:").partition(":")[0].partition("+")[0].lower()
    if scheme in ("sqlite", "postgresql", "postgres"):
        return "sql"
    return "rest" if scheme in ("http", "https") else ""


def _unknown_type(name: str, catalog_type: str, is_configured: bool) -> str:
    if catalog_type:
        return f"catalog {name!r} is of type {catalog_type!r}; known types are rest, sql, hadoop and memory"
    if is_configured:
        return f"catalog {name!r} has no type; set `type` to rest, sql, hadoop or memory"
    known = ", ".join(sorted(_catalog_tables())) or "none"
    return (
        f"nothing is known of catalog {name!r}: give `type`, `uri` and `warehouse`, or name it in {CONFIGURATION_FILE};"
        f" that file has: {known}"
    )


def catalog_properties(name: str, arguments: Mapping[str, object]) -> dict[str, str]:
    """All properties of the catalog, as texts."""
    texts = {key: text for key, value in arguments.items() if (text := _text(key, value)) is not None}
    return {**_from_file(name), **_from_environment(name), **texts}


def _from_file(name: str) -> dict[str, str]:
    for known, table in _catalog_tables().items():
        if _same_name(known, name):
            return dict(_flat(table, f"catalog.{known}"))
    return {}


def _catalog_tables(named: str = CONFIGURATION_FILE) -> Mapping[str, Mapping[str, object]]:
    try:
        with open(os.path.expanduser(named), "rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidPropertyError(f"{named} cannot be read: {error}") from error
    tables = content.get("catalog", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise InvalidPropertyError(f"{named}: catalogs are tables like [catalog.lake]")
    return tables


def _flat(table: Mapping[str, object], path: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, path, f"{prefix}{key}.")
        elif (text := _text(f"{path}.{prefix}{key}", value)) is not None:
            yield prefix + key, text


def _from_environment(name: str) -> dict[str, str]:
    properties = {}
    for variable, value in os.environ.items():
        if not variable.upper().startswith(_VARIABLE):
            continue
        catalog, separator, key = variable[len(_VARIABLE) :].partition("__")
        if separator and key and _same_name(catalog, name):
            properties[key.lower().replace("__", ".").replace("_", "-")] = value
    return properties


def _same_name(one: str, other: str) -> bool:
    return one.lower().replace("-", "_") == other.lower().replace("-", "_")


def _text(key: str, value: object) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case os.PathLike():
            return str(os.fspath(value))
        case _:
            raise InvalidPropertyError(
                f"property {key!r} has a value of type {type(value).__name__}; a text, number or truth value is expected"
            )
