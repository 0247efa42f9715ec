"""What lies in the folder of a table: files that no snapshot knows, and files that one knows but that are not there."""

from icefloe.maintenance import reachable_files
from icefloe.table import Table


def stray_files(table: Table) -> set[str]:
    """Files that no snapshot of the table needs."""
    return _stored(table) - _needed(table)


def missing_files(table: Table) -> set[str]:
    """Files that some snapshot needs, but that are not there."""
    return _needed(table) - _stored(table)


def _stored(table: Table) -> set[str]:
    return {info.location for info in table.storage.list_prefix(table.location() or "")}


def _needed(table: Table) -> set[str]:
    return set(reachable_files(table.metadata, table.metadata_location, table.storage).all())
