"""Decides whether a table's files may be deleted with its name, and deletes them after the name is gone."""

from icefloe.errors import ValidationError
from icefloe.maintenance.deleting import delete_quietly
from icefloe.maintenance.reachable import ReachableFiles
from icefloe.metadata.properties import GC_ENABLED
from icefloe.metadata.table import TableMetadata
from icefloe.storage.storage import Storage


def check_purgeable(metadata: TableMetadata, name: str) -> None:
    """Fail if the table says that its files may belong to others too."""
    if not GC_ENABLED.of(metadata.properties):
        raise ValidationError(
            f"table {name} has {GC_ENABLED.key}=false: its files may belong to other tables and are not deleted;"
            " drop_table drops the name alone"
        )


def delete_reachable(files: ReachableFiles, storage: Storage) -> None:
    """Delete the files, those first that others are found by last; what cannot be deleted is noted in the log."""
    for group in (files.content, files.manifests, files.manifest_lists, files.statistics, files.metadata):
        delete_quietly(storage, group, "part of a purged table")
