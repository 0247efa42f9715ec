"""Decides whether a table's files may be deleted with its name, and deletes them after the name is gone."""

from icefloe import properties as props
from icefloe.errors import ValidationError
from icefloe.maintenance import Ownership, ReachableFiles, delete_own
from icefloe.metadata import TableMetadata
from icefloe.storage import Storage


def check_purgeable(metadata: TableMetadata, name: str) -> None:
    """Fail if the table says that its files may belong to others too."""
    if not props.GC_ENABLED.of(metadata.properties):
        raise ValidationError(
            f"table {name} has {props.GC_ENABLED.key}=false: its files may belong to other tables and are not deleted;"
            " drop_table drops the name alone"
        )


def delete_reachable(files: ReachableFiles, ownership: Ownership, storage: Storage) -> None:
    """Delete the table's own files, those first that others are found by last; what stays is noted in the log."""
    for group in (files.content, files.manifests, files.manifest_lists, files.statistics, files.metadata):
        delete_own(storage, ownership, group, "part of a purged table")
