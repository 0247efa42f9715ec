"""Locations where orphan file removal is refused: folders that do not belong to the table, or that contain another table.

Files of another table are not referenced by this one, so only their location tells that they are not orphan files.
"""

import gzip
import json
import logging
import re
from collections.abc import Iterable, Iterator

from icefloe import commit as cm, errors, metadata as md, parallel
from icefloe.commit import Ownership
from icefloe.maintenance.maintained_table import MaintainedTable
from icefloe.storage import Storage, identity, is_beneath, parse_location

LOG = logging.getLogger(__name__)

DAY_MS = 86_400_000
_FIRST_BYTES = 4_096
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([^"]*)"')
_READERS = 8


def check_age(older_than_ms: int, now_ms: int, *, force: bool) -> None:
    """Raise an error if files may be so young that they are not committed yet."""
    if not force and now_ms - older_than_ms < DAY_MS:
        raise errors.InvalidInputError(
            "older_than is less than 24 hours ago, which could delete files of running writers; force=True allows it"
        )


def checked_location(table: MaintainedTable, location: str | None, *, force: bool) -> str:
    """Return the location to search: the table's own, or one within its folders."""
    metadata = table.metadata
    cm.check_collectable(metadata)
    chosen = location or metadata.location
    if chosen is None:
        raise errors.InvalidInputError("the table has no location; give the location to search")
    chosen = chosen.rstrip("/") or "/"
    parsed, surroundings = parse_location(chosen), table.surroundings
    if parsed.path.strip("/") == "":
        raise errors.InvalidInputError(
            f"location {chosen!r} is the root of the storage; give the location of the table"
        )
    warehouse = None if surroundings is None else surroundings.warehouse
    if warehouse is not None and (identity(chosen) == identity(warehouse) or is_beneath(chosen, warehouse)):
        raise errors.InvalidInputError(
            f"location {chosen!r} is or contains the warehouse; give the location of the table"
        )
    folders = Ownership.of(metadata, table.metadata_location).folders
    if not force and not any(identity(chosen) == identity(each) or is_beneath(each, chosen) for each in folders):
        raise errors.InvalidInputError(
            f"location {chosen!r} does not belong to the table, whose locations are {', '.join(map(repr, folders))};"
            " force=True allows it"
        )
    return chosen


def check_alone(surroundings: cm.Surroundings | None, location: str) -> None:
    """Raise an error if another table of the catalog is under the location."""
    for name, metadata_location in () if surroundings is None else surroundings.other_tables():
        if is_beneath(location, metadata_location):
            raise errors.ValidationError(
                f"table {name} is also under {location!r}: its files would be taken for orphan files; give a location that"
                " only this table uses"
            )
        around = metadata_location.rpartition("/metadata/")[0]
        if around and is_beneath(around, location):
            LOG.warning(
                "%s is under table %s, whose orphan file removal would delete files of this table", location, name
            )


def check_metadata_files(metadata: md.TableMetadata, locations: Iterable[str], storage: Storage) -> set[str]:
    """Raise an error if a metadata file belongs to another table; return those of unknown tables."""
    unknown: set[str] = set()
    for location, table_uuid in parallel.in_order(lambda each: (each, _table_uuid(each, storage)), locations, _READERS):
        if table_uuid is None:
            unknown.add(location)
        elif table_uuid.lower() != (metadata.table_uuid or "").lower():
            raise errors.ValidationError(
                f"{location} is the metadata of another table, {table_uuid}: its files would be taken for orphan files; give a"
                " location that only this table uses"
            )
    return unknown


def _table_uuid(location: str, storage: Storage) -> str | None:
    try:
        for data in _parts(location, storage):
            match = _UUID.search(data)
            if match is not None:
                return match[1].decode()
    except (errors.StorageError, OSError, EOFError, ValueError) as error:
        LOG.warning("%s is kept, as its table is unknown: %s", location, error)
    return None


def _parts(location: str, storage: Storage) -> Iterator[bytes]:
    """Yield the first bytes, where writers put the id, then the whole file."""
    head = storage.read_range(location, 0, min(_FIRST_BYTES, storage.stat(location).size))
    is_packed = head[:2] == b"\x1f\x8b"
    if not is_packed:
        yield head
    whole = storage.read(location)
    # Parse the whole document, so that text in a column comment is not taken for the id.
    document = json.loads(gzip.decompress(whole) if is_packed else whole)
    if isinstance(document, dict) and isinstance(document.get("table-uuid"), str):
        yield json.dumps({"table-uuid": document["table-uuid"]}).encode()
