"""The folder of one write: all of its files go there, and what is not part of its result is removed from there."""

import uuid
from collections.abc import Iterable

from icefloe.data.locations import data_folder
from icefloe.metadata.table import TableMetadata
from icefloe.storage import Storage


def new_folder(metadata: TableMetadata) -> str:
    """A folder under the table's data that no other write has."""
    return f"{data_folder(metadata)}/{uuid.uuid4()}"


def remove_folder(storage: Storage, folder: str) -> None:
    """Delete all that is beneath a folder, and the folders."""
    storage.delete([info.location for info in storage.list_prefix(folder)])
    for name in list(storage.list_folders(folder)):
        remove_folder(storage, f"{folder}/{name}")
    storage.remove_folder(folder)


def keep_only(storage: Storage, folder: str, kept: Iterable[str]) -> None:
    """Delete what is beneath a folder but for these files: tasks that were run twice may have written more."""
    wanted = set(kept)
    if not wanted:
        remove_folder(storage, folder)
        return
    storage.delete([info.location for info in storage.list_prefix(folder) if info.location not in wanted])
