"""Where orphans are not looked for: in folders that are not the table's, or that another table lives in.

A file of another table is needed by nobody here, so that nothing but its place tells that it is not an orphan.
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator

from icefloe import commit as cm, errors, metadata as md, parallel
from icefloe.maintenance.files.ownership import LOG, Ownership
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.storage import Storage, identity, is_beneath, parse_location

DAY_MS = 86_400_000
_FIRST_BYTES = 4_096
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([^"]*)"')
_READERS = 8


def check_age(older_than_ms: int, now_ms: int, *, force: bool) -> None:
    """Refuse files so young that somebody may still be about to commit them."""
    if not force and now_ms - older_than_ms < DAY_MS:
        raise errors.InvalidInputError(
            "older_than is less than 24 hours ago: files that are being written could be deleted; force=True allows it"
        )


def checked_location(table: MaintainedTable, location: str | None, *, force: bool) -> str:
    """The location to look at: the table's own, or one in the folders that it names."""
    metadata = table.metadata
    cm.check_collectable(metadata)
    chosen = location or metadata.location
    if chosen is None:
        raise errors.InvalidInputError("the table has no location; give the one to look at")
    chosen = chosen.rstrip("/") or "/"
    parsed, surroundings = parse_location(chosen), table.surroundings
    if parsed.path.strip("/") == "":
        raise errors.InvalidInputError(f"location {chosen!r} is the root of a store; give the location of the table")
    warehouse = None if surroundings is None else surroundings.warehouse
    if warehouse is not None and (identity(chosen) == identity(warehouse) or is_beneath(chosen, warehouse)):
        raise errors.InvalidInputError(
            f"location {chosen!r} is the warehouse, or around it; give the location of the table"
        )
    folders = Ownership.of(metadata, table.metadata_location).folders
    if not force and not any(identity(chosen) == identity(each) or is_beneath(each, chosen) for each in folders):
        raise errors.InvalidInputError(
            f"location {chosen!r} is not one of the table's, which are {', '.join(map(repr, folders))};"
            " force=True looks there all the same"
        )
    return chosen


def check_alone(surroundings: cm.Surroundings | None, location: str) -> None:
    """Refuse a location that another table of the catalog lives in."""
    for name, metadata_location in () if surroundings is None else surroundings.other_tables():
        if is_beneath(location, metadata_location):
            raise errors.ValidationError(
                f"table {name} lives beneath {location!r}, too: its files would be taken for orphans; give a location that"
                " is this table's alone"
            )
        around = metadata_location.rpartition("/metadata/")[0]
        if around and is_beneath(around, location):
            LOG.warning(
                "%s lies beneath table %s, whose removal of orphans would delete files of this table", location, name
            )


def check_metadata_files(metadata: md.TableMetadata, locations: Iterable[str], storage: Storage) -> set[str]:
    """Refuse if one of these metadata files is of another table; those that cannot be told to be ours."""
    unknown: set[str] = set()
    for location, table_uuid in parallel.in_order(lambda each: (each, _table_uuid(each, storage)), locations, _READERS):
        if table_uuid is None:
            unknown.add(location)
        elif table_uuid.lower() != (metadata.table_uuid or "").lower():
            raise errors.ValidationError(
                f"{location} is the metadata of another table, {table_uuid}: its files would be taken for orphans; give a"
                " location that is this table's alone"
            )
    return unknown


def _table_uuid(location: str, storage: Storage) -> str | None:
    try:
        for data in _parts(location, storage):
            match = _UUID.search(data)
            if match is not None:
                return match[1].decode()
    except (errors.StorageError, OSError, EOFError, ValueError) as error:
        LOG.warning("%s stays, as nobody knows whose metadata it is: %s", location, error)
    return None


def _parts(location: str, storage: Storage) -> Iterator[bytes]:
    """The first bytes, where writers put the id, and then all of them."""
    head = storage.read_range(location, 0, min(_FIRST_BYTES, storage.stat(location).size))
    is_packed = head[:2] == b"\x1f\x8b"
    if not is_packed:
        yield head
    whole = storage.read(location)
    # In a document that is whole, so that no text in a column's comment is taken for the id.
    document = json.loads(gzip.decompress(whole) if is_packed else whole)
    if isinstance(document, dict) and isinstance(document.get("table-uuid"), str):
        yield json.dumps({"table-uuid": document["table-uuid"]}).encode()
