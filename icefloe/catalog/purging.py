"""Decides when the files of a table may be deleted with it: they are its own, and no table of the catalog has them."""

from typing import TYPE_CHECKING

from icefloe import errors, metadata as md
from icefloe.catalog import table_files
from icefloe.catalog.identifiers import Identifier, show
from icefloe.maintenance import DeletedReachableFiles, delete_contents, reachable_contents
from icefloe.storage import absolute_location, identity

if TYPE_CHECKING:
    from icefloe.catalog.catalog import Catalog

_ATTEMPTS = 5


def purge(catalog: "Catalog", identifier: Identifier) -> None:
    """Drop a table with its files, which are collected before."""
    for _ in range(_ATTEMPTS):
        state = catalog._existing_table(identifier)
        table_files.check_purgeable(identifier, state.metadata)
        files = reachable_contents(state.metadata, state.metadata_location, catalog.storage)
        if catalog._drop_table(identifier, state):
            delete_contents(files, state.metadata, state.metadata_location, catalog.storage)
            return
    raise errors.CommitFailed(
        f"table {show(identifier)} is changing too fast to be purged; nothing was dropped or deleted"
    )


def delete_reachable(catalog: "Catalog", metadata_location: str) -> DeletedReachableFiles:
    """Delete the files of a table that the catalog does not have."""
    location = absolute_location(metadata_location)
    metadata = table_files.read_table_metadata(catalog.storage, location)
    table_files.check_purgeable((location,), metadata)
    _check_unused(catalog, location, metadata)
    files = reachable_contents(metadata, location, catalog.storage)
    return delete_contents(files, metadata, location, catalog.storage)


def _check_unused(catalog: "Catalog", location: str, metadata: md.TableMetadata) -> None:
    """Fail if the catalog has the table: its metadata file is then in the same folder."""
    folder = identity(location).rpartition("/")[0]
    for identifier, current in catalog._metadata_locations():
        if identity(current).rpartition("/")[0] != folder:
            continue
        if catalog._existing_table(identifier).metadata.table_uuid == metadata.table_uuid:
            raise errors.ValidationError(
                f"{location} belongs to table {show(identifier)} of catalog {catalog.name!r}; use purge_table to drop it with"
                " its files"
            )
