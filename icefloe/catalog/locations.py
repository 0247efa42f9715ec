"""Decides where a table goes that is created without a location, and which catalog properties are for the storage."""

import itertools
import re
import uuid
from collections.abc import Mapping

from icefloe import properties as props
from icefloe.catalog.identifiers import Identifier
from icefloe.errors import InvalidLocationError
from icefloe.metadata import strip_trailing_slash
from icefloe.storage import Storage, absolute_location

UNIQUE_TABLE_LOCATION = "unique-table-location"
"""Property that puts a suffix of its own behind every default location, as in the Java library."""

_OF_ALL_CATALOGS = {"type", "uri", "warehouse", UNIQUE_TABLE_LOCATION}
_OF_SQL_CATALOGS = {"schema_version", "init_catalog_tables", "echo", "pool_pre_ping"}
_OWN_PREFIXES = ("jdbc.", "table-default.", "table-override.")
_UNSAFE = re.compile(r'[/\\?#%*:|"<>]')


def warehouse_of(name: str, properties: Mapping[str, str]) -> str | None:
    """The warehouse as an absolute location; a bare path becomes `file:///...`."""
    warehouse = properties.get("warehouse")
    if warehouse is None:
        return None
    if not warehouse.strip():
        raise InvalidLocationError(f"the warehouse of catalog {name!r} is empty; give a path or a location")
    return strip_trailing_slash(absolute_location(warehouse))


def storage_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are for files: all that are not for the catalog itself."""
    own = _OF_ALL_CATALOGS | _OF_SQL_CATALOGS
    return {key: value for key, value in properties.items() if key not in own and not key.startswith(_OWN_PREFIXES)}


def folder_name(part: str) -> str:
    """A part of a name as a folder, which it cannot leave: what has a meaning in paths is percent-encoded."""
    safe = _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", part)
    return safe.replace(".", "%2E") if set(safe) == {"."} else safe


def namespace_folder(warehouse: str | None, namespace: Identifier) -> str | None:
    """`<warehouse>/<namespace>`, one folder for each part, as the Java library's JDBC catalog has it."""
    if warehouse is None:
        return None
    return "/".join((warehouse.rstrip("/"), *(folder_name(part) for part in namespace)))


def new_location(folder: str, name: str, properties: Mapping[str, str], storage: Storage) -> str:
    """Where a new table of that name goes, in the folder of its namespace.

    If the folder holds files already, left by a dropped or renamed table, the new table gets another one: two tables in one
    folder would take each other's files for leftovers.
    """
    location = f"{folder.rstrip('/')}/{folder_name(name)}"
    unique = props.property_as_bool(properties, UNIQUE_TABLE_LOCATION, False)
    if unique or any(itertools.islice(storage.list_prefix(location), 1)):
        return f"{location}-{uuid.uuid4().hex}"
    return location
