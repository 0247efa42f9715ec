"""Decides who may choose where files go: the server chooses, others need to manage the place that they name.

What the server gives to clients, and what it reads and deletes for them, follows from the locations of a table. Whoever could
set these freely would reach the files of others by them.
"""

import itertools
from collections.abc import Iterable, Mapping

from icefloe import properties as props
from icefloe.catalog import Identifier
from icefloe.errors import InvalidLocationError
from icefloe.metadata import TableMetadata, ViewMetadata, updates as up
from icefloe.server.auth.protocols import Privilege
from icefloe.server.calls import Call
from icefloe.storage import absolute_location, is_beneath

NAMESPACE_LOCATION = "location"
"""The property of a namespace that says where its tables go."""

_PATHS = (props.DATA_PATH, props.METADATA_PATH, props.OBJECT_STORAGE_PATH, props.FOLDER_STORAGE_PATH)


def require_place(call: Call, identifier: Identifier, location: str) -> None:
    """Fail if the caller may not put a table or view at a location that the server would not choose for it."""
    if not call.served.is_own_place(identifier, location):
        require_folder(call, identifier[:-1], location)


def require_new_place(call: Call, identifier: Identifier, location: str) -> None:
    """The same for a table that is not there yet: its creator may write there, so no files of others may be there either."""
    is_own = call.served.is_own_place(identifier, location)
    if not is_own or any(itertools.islice(call.served.catalog.storage.list_prefix(absolute_location(location)), 1)):
        require_folder(call, identifier[:-1], location)


def require_folder(call: Call, namespace: Identifier, location: str) -> None:
    """Fail unless the caller manages the namespace whose folder a location is in, or else the warehouse."""
    folder = call.served.namespace_folder(namespace) if namespace else None
    call.check(Privilege.MANAGE, namespace if folder is not None and _is_in(folder, location) else ())


def require_updates(call: Call, identifier: Identifier, updates: Iterable[up.TableUpdate | up.ViewUpdate]) -> None:
    """Fail if the caller may not set the locations that updates set."""
    for update in updates:
        match update:
            case up.SetLocationUpdate(location):
                require_place(call, identifier, location)
            case up.SetPropertiesUpdate(properties):
                require_paths(call, identifier, properties)
            case _:
                pass


def require_paths(call: Call, identifier: Identifier, properties: Mapping[str, str]) -> None:
    """Fail if the caller may not set the properties that say where files go, and which of them may be deleted."""
    if props.GC_FOREIGN_FILES.of(properties):
        call.check(Privilege.MANAGE, ())
    for known in _PATHS:
        path = known.of(properties)
        if path is not None and not call.served.is_in_own_place(identifier, path):
            require_folder(call, identifier[:-1], path)


def require_content(call: Call, identifier: Identifier, metadata: TableMetadata | ViewMetadata) -> None:
    """Fail if the caller may not register what a metadata file says: that counts as if a commit said it."""
    if metadata.location is not None:
        require_place(call, identifier, metadata.location)
    require_paths(call, identifier, metadata.properties)


def require_namespace_place(call: Call, namespace: Identifier, properties: Mapping[str, str]) -> None:
    """Fail if the caller may not say where the tables of a namespace go: the folder is looked for in the one around it."""
    location = properties.get(NAMESPACE_LOCATION)
    if location is not None:
        require_folder(call, namespace[:-1], location)


def _is_in(folder: str, location: str) -> bool:
    try:
        return is_beneath(folder, location)
    except InvalidLocationError:
        return False
