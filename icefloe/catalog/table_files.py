"""Decides where tables, views and their metadata files go, what metadata files are called, and when old ones may go."""

import itertools
import logging
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from icefloe import commit as cm, errors, metadata as md, properties as props
from icefloe.bounded_cache import BoundedCache
from icefloe.catalog.identifiers import Identifier, show
from icefloe.catalog.seals import Seal, check_seal, seal_of
from icefloe.commit import Ownership, delete_own
from icefloe.encryption import KMS_PREFIXES, Keyring, kms_of
from icefloe.storage import Storage, absolute_location, identity

Document = TypeVar("Document", md.TableMetadata, md.ViewMetadata)

LOG = logging.getLogger("icefloe.catalog")

UNIQUE_TABLE_LOCATION = "unique-table-location"
"""Property that puts a suffix of its own behind every default location, as in the Java library."""

_OF_ALL_CATALOGS = {"type", "uri", "warehouse", UNIQUE_TABLE_LOCATION}
_OF_SQL_CATALOGS = {"schema_version", "init_catalog_tables", "echo", "pool_pre_ping"}
_OWN_PREFIXES = ("jdbc.", "table-default.", "table-override.")
_OF_REST_CATALOGS = (
    "audience",
    "auth.",
    "credential",
    "gcp.auth.",
    "header.",
    "namespace-separator",
    "oauth2-",
    "prefix",
    "resource",
    "rest-",
    "rest.",
    "scan-planning-mode",
    "scope",
    "snapshot-loading-mode",
    "ssl.",
    "token",
    "urn:",
    "view-",
)
"""How properties begin that are for the connection to a REST catalog, its credentials among them."""
_BYTES_KEPT = 8 << 20
"""As values, they take about ten times as much memory."""
_UNSAFE = re.compile(r'[/\\?#%*:|"<>]')


def warehouse_of(name: str, properties: Mapping[str, str]) -> str | None:
    """The warehouse as an absolute location; a bare path becomes `file:///...`."""
    warehouse = properties.get("warehouse")
    if warehouse is None:
        return None
    if not warehouse.strip():
        raise errors.InvalidLocationError(f"the warehouse of catalog {name!r} is empty; give a path or a location")
    return md.strip_trailing_slash(absolute_location(warehouse))


def storage_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are for files: all that are not for the catalog itself."""
    own, prefixes = _OF_ALL_CATALOGS | _OF_SQL_CATALOGS, _OWN_PREFIXES + _OF_REST_CATALOGS + KMS_PREFIXES
    return {key: value for key, value in properties.items() if key not in own and not key.startswith(prefixes)}


def keyring_of(properties: Mapping[str, str]) -> Keyring | None:
    """The keys of encrypted tables, if the properties name a KMS."""
    kms = kms_of(properties)
    return None if kms is None else Keyring(kms)


def folder_name(part: str) -> str:
    """A part of a name as a folder, which it cannot leave: what has a meaning in paths is percent-encoded."""
    safe = _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", part)
    return safe.replace(".", "%2E") if set(safe) == {"."} else safe


def namespace_folder(warehouse: str | None, namespace: Sequence[str]) -> str | None:
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


def read_table_metadata(storage: Storage, location: str) -> md.TableMetadata:
    """The table metadata in a file; if it names no table location, that is derived from the file's own."""
    return _read(storage, location, md.decode_metadata_file).located(location)


def read_view_metadata(storage: Storage, location: str) -> md.ViewMetadata:
    """The view metadata in a file."""
    return _read(storage, location, md.decode_view_file)


class ReadMetadata:
    """Metadata files that a catalog has read: one that is read again is decoded only if its bytes are others."""

    def __init__(self) -> None:
        self._known: BoundedCache[str, tuple[bytes, md.TableMetadata]] = BoundedCache(
            _BYTES_KEPT, lambda known: len(known[0])
        )

    def read(self, storage: Storage, location: str, seal: Seal | None) -> md.TableMetadata:
        """The table metadata in a file, which must be the one that the catalog keeps the seal of."""
        data = storage.read(location)
        known = self._known.find(location)
        if known is None or known[0] != data:
            known = data, _decoded(data, storage, location, md.decode_metadata_file).located(location)
            self._known.keep(location, known)
        check_seal(known[1], data, seal, location)
        return known[1]


def seal_of_file(storage: Storage, location: str) -> Seal | None:
    """What a catalog keeps of a metadata file that it takes as it is."""
    data = storage.read(location)
    return seal_of(_decoded(data, storage, location, md.decode_metadata_file), data)


def write_table_metadata(storage: Storage, metadata: md.TableMetadata, previous: str | None) -> str:
    """Write the metadata as the version after the file `previous`; the new file's location."""
    return write_sealed_metadata(storage, metadata, previous)[0]


def write_sealed_metadata(
    storage: Storage, metadata: md.TableMetadata, previous: str | None
) -> tuple[str, Seal | None]:
    """The same, and what the catalog must keep of the file."""
    folder = md.metadata_folder(metadata)
    if metadata.location_of_catalog and folder != f"{metadata.location}/metadata":
        raise errors.InvalidLocationError(
            f"the table has no location of its own and is located by its metadata folder, which cannot be {folder!r};"
            " set the location of the table first"
        )
    location = f"{folder}/{_new_name(previous, metadata.properties)}"
    data = md.encode_metadata_file(metadata, compression_for(metadata.properties))
    storage.write(location, data)
    return location, seal_of(metadata, data)


def write_view_metadata(storage: Storage, view: md.ViewMetadata, previous: str | None) -> str:
    """The same for a view."""
    folder = props.METADATA_PATH.of(view.properties) or f"{md.strip_trailing_slash(view.location)}/metadata"
    location = f"{md.strip_trailing_slash(folder)}/{_new_name(previous, view.properties)}"
    storage.write(location, md.encode_view_file(view, compression_for(view.properties)))
    return location


def compression_for(properties: props.Properties) -> md.MetadataCompression:
    """How new metadata files are compressed."""
    return md.MetadataCompression(props.METADATA_COMPRESSION.of(properties))


def delete_superseded(storage: Storage, base: cm.TableState, changed: md.TableMetadata) -> None:
    """After a commit: delete the metadata files that fell out of the log, if the table asks for that."""
    try:
        if not props.METADATA_DELETE_AFTER_COMMIT.of(changed.properties):
            return
        kept = {entry.metadata_file for entry in changed.metadata_log}
        logged = {identity(changed.resolve(path)) for path in kept}
        paths = [entry.metadata_file for entry in base.metadata.metadata_log if entry.metadata_file not in kept]
        old = [location for location in map(base.metadata.resolve, paths) if identity(location) not in logged]
    except errors.InvalidInputError as error:
        LOG.warning("old metadata files stay behind: %s", error)
        return
    if old:
        delete_own(storage, Ownership.of(changed, base.metadata_location, base.metadata), old, "superseded")


def _new_name(previous: str | None, properties: props.Properties) -> str:
    return md.metadata_file_name(md.next_metadata_version(previous), str(uuid.uuid4()), compression_for(properties))


def _read(storage: Storage, location: str, decode: Callable[[bytes, md.Limits], Document]) -> Document:
    return _decoded(storage.read(location), storage, location, decode)


def _decoded(data: bytes, storage: Storage, location: str, decode: Callable[[bytes, md.Limits], Document]) -> Document:
    try:
        return decode(data, storage.limits)
    except errors.UnsupportedVersionError as error:
        raise errors.UnsupportedVersionError(f"{location}: {error}") from error
    except errors.InvalidLocationError:
        raise
    except errors.InvalidInputError as error:
        raise errors.CorruptFileError(location, str(error)) from error
    except MemoryError:
        raise errors.CorruptFileError(location, f"its {len(data)} bytes exceed the available memory") from None


def check_purgeable(identifier: Identifier, metadata: md.TableMetadata) -> None:
    """Fail if the table says that its files may belong to others too, or may not be changed."""
    metadata.check_changeable()
    if not props.GC_ENABLED.of(metadata.properties):
        raise errors.ValidationError(
            f"table {show(identifier)} has {props.GC_ENABLED.key}=false: its files may belong to other tables and are"
            " not deleted; use drop_table to drop only the name"
        )
