"""Which catalogs the settings of a Spark session name, as people have them for Iceberg's jar: `spark.sql.catalog.<name>.*`."""

from collections.abc import Mapping

from icefloe.errors import InvalidPropertyError

_PREFIXES = ("spark.sql.catalog.", "spark.icefloe.catalog.")
_DEFAULT = "spark.sql.defaultCatalog"
_SPARKS_OWN = "spark_catalog"
_KINDS = {"jdbccatalog": "sql", "hadoopcatalog": "hadoop", "inmemorycatalog": "memory", "restcatalog": "rest"}


def catalogs_in(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The properties of each catalog by its name; the session's default catalog comes first.

    A catalog counts if its class is Iceberg's, or if the settings are ours; `catalog-impl` says the type where it is one
    that we have, too.
    """
    catalogs: dict[str, dict[str, str]] = {}
    classes: dict[str, str] = {}
    for key, value in settings.items():
        prefix = next((known_prefix for known_prefix in _PREFIXES if key.startswith(known_prefix)), None)
        if prefix is None:
            continue
        name, _, rest = key.removeprefix(prefix).partition(".")
        if rest:
            catalogs.setdefault(name, {})[rest] = value
        else:
            classes[name] = value
    known = {
        name: _with_type(name, properties)
        for name, properties in catalogs.items()
        if name != _SPARKS_OWN and ("iceberg" in classes.get(name, "iceberg").lower())
    }
    first = settings.get(_DEFAULT)
    return dict(sorted(known.items(), key=lambda item: item[0] != first))


def _with_type(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    held = dict(properties)
    implementation = held.pop("catalog-impl", None)
    if implementation is None or "type" in held:
        return held
    catalog_type = _KINDS.get(implementation.rpartition(".")[2].lower())
    if catalog_type is None:
        raise InvalidPropertyError(
            f"catalog {name!r} is of class {implementation}, which only the Java library has; set `type` to sql or hadoop"
        )
    return {"type": catalog_type, **held}
