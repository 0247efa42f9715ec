"""Decides which properties a named catalog has: from `~/.icefloe.toml`, then the environment, then the arguments.

The file has one table for each catalog, `[catalog.lake]`; tables inside of it stand for dots in keys, so that
`s3.endpoint = "..."` is the property `s3.endpoint`. A variable is `ICEFLOE_CATALOG__<NAME>__<KEY>`, in which two
underscores in the key stand for a dot and one for a dash: `ICEFLOE_CATALOG__LAKE__S3__ACCESS_KEY_ID` is
`s3.access-key-id` of the catalog `lake`. Names of catalogs are compared without case, a dash as an underscore. What comes
later in this list wins, property by property.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from icefloe.errors import InvalidPropertyError

CONFIGURATION_FILE = "~/.icefloe.toml"
"""Where named catalogs are configured."""

_VARIABLE = "ICEFLOE_CATALOG__"


def catalog_properties(name: str, arguments: Mapping[str, object]) -> dict[str, str]:
    """All properties of the catalog, as texts."""
    given = {key: text for key, value in arguments.items() if (text := _text(key, value)) is not None}
    return {**_from_file(name), **_from_environment(name), **given}


def known_catalogs() -> tuple[str, ...]:
    """The names of the catalogs in the configuration file."""
    return tuple(_catalog_tables())


def _from_file(name: str) -> dict[str, str]:
    for known, table in _catalog_tables().items():
        if _same_name(known, name):
            return dict(_flat(table, f"catalog.{known}"))
    return {}


def _catalog_tables() -> Mapping[str, Mapping[str, Any]]:
    path = os.path.expanduser(CONFIGURATION_FILE)
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidPropertyError(f"{CONFIGURATION_FILE} cannot be read: {error}") from error
    tables = content.get("catalog", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise InvalidPropertyError(f"{CONFIGURATION_FILE}: catalogs are tables like [catalog.lake]")
    return tables


def _flat(table: Mapping[str, Any], place: str, prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, place, f"{prefix}{key}.")
        elif (text := _text(f"{place}.{prefix}{key}", value)) is not None:
            yield prefix + key, text


def _from_environment(name: str) -> dict[str, str]:
    found = {}
    for variable, value in os.environ.items():
        if not variable.upper().startswith(_VARIABLE):
            continue
        catalog, separator, key = variable[len(_VARIABLE) :].partition("__")
        if separator and key and _same_name(catalog, name):
            found[key.lower().replace("__", ".").replace("_", "-")] = value
    return found


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
