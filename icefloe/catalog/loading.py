"""Decides which kind of catalog a name and its properties mean."""

from icefloe.catalog.catalog import Catalog
from icefloe.catalog.configuration import CONFIGURATION_FILE, catalog_properties, known_catalogs
from icefloe.catalog.hadoop import HadoopCatalog
from icefloe.catalog.memory import MemoryCatalog
from icefloe.catalog.sql import SqlCatalog
from icefloe.errors import InvalidPropertyError

_KINDS: dict[str, type[Catalog]] = {
    "sql": SqlCatalog,
    "jdbc": SqlCatalog,
    "hadoop": HadoopCatalog,
    "memory": MemoryCatalog,
}


def load_catalog(name: str = "default", **properties: object) -> Catalog:
    """The catalog of that name, from arguments, environment and `~/.icefloe.toml`: see `catalog.configuration`.

    `type` is `sql` (with `uri`), `hadoop` or `memory`; `warehouse` is where new tables go. All other properties, like
    `s3.endpoint`, are for the storage.
    """
    given: object = name
    if not isinstance(given, str) or not given.strip():
        raise InvalidPropertyError(f"the name of a catalog is a text, not {given!r}")
    found = catalog_properties(name, properties)
    kind = found.get("type", "").lower() or _kind_of_uri(found.get("uri", ""))
    if kind == "rest":
        raise InvalidPropertyError(
            f"catalog {name!r} is of type 'rest', which is not supported yet; sql, hadoop and memory are"
        )
    if kind not in _KINDS:
        raise InvalidPropertyError(_unknown_kind(name, kind, bool(found)))
    return _KINDS[kind](name, found)


def _kind_of_uri(uri: str) -> str:
    scheme = uri.removeprefix("jdbc:").partition(":")[0].partition("+")[0].lower()
    if scheme in ("sqlite", "postgresql", "postgres"):
        return "sql"
    return "rest" if scheme in ("http", "https") else ""


def _unknown_kind(name: str, kind: str, configured: bool) -> str:
    if kind:
        return f"catalog {name!r} is of type {kind!r}; known types are sql, hadoop and memory"
    if configured:
        return f"catalog {name!r} has no type; set `type` to sql, hadoop or memory"
    known = ", ".join(sorted(known_catalogs())) or "none"
    return (
        f"nothing is known of catalog {name!r}: give `type`, `uri` and `warehouse`, or name it in {CONFIGURATION_FILE};"
        f" that file has: {known}"
    )
