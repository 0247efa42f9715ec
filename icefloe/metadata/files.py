"""Where metadata files go, and their names, with version and compression (spec: Metastore Tables, File System Tables)."""

import re
from enum import StrEnum

from icefloe import properties as props
from icefloe.errors import InvalidLocationError
from icefloe.metadata.locations import is_absolute
from icefloe.metadata.table import TableMetadata


class MetadataCompression(StrEnum):
    """How a metadata file is compressed."""

    NONE = "none"
    GZIP = "gzip"


_NAME = re.compile(r"(?:.*/)?(?:v(?P<file>\d+)|(?P<store>\d+)-[^/]*?)(?P<gz>\.gz)?\.metadata\.json(?P<old_gz>\.gz)?")


def table_location(metadata: TableMetadata) -> str:
    """Where the table's files go; metadata that leaves it to the catalog must have been completed by that."""
    if metadata.location is None:
        raise InvalidLocationError("the table metadata has no location for new files; the catalog must supply one")
    return metadata.location


def metadata_folder(metadata: TableMetadata) -> str:
    """Where manifests, manifest lists and metadata files go (spec: Appendix F, Path Construction)."""
    configured = props.METADATA_PATH.of(metadata.properties)
    path = "metadata" if configured is None else configured.rstrip("/")
    # A path of a file system without a scheme is absolute, too.
    return path if is_absolute(path) or path.startswith("/") else f"{table_location(metadata)}/{path}"


def metadata_file_name(version: int, uuid: str, compression: MetadataCompression = MetadataCompression.NONE) -> str:
    """The name of the metadata file that becomes a table's version of that number: `00001-<uuid>.metadata.json`."""
    return f"{version:05d}-{uuid}{_extension(compression)}"


def versioned_file_name(version: int, compression: MetadataCompression = MetadataCompression.NONE) -> str:
    """The same for tables that a file system keeps without a catalog: `v1.metadata.json`."""
    return f"v{version}{_extension(compression)}"


def parse_metadata_version(location: str) -> int | None:
    """The version number in a metadata file's name or location; None if the name has none."""
    match = _NAME.fullmatch(location)
    # Twenty digits are no version number, and int() refuses really long ones in its own way.
    if match is None or len(digits := match["file"] or match["store"]) > 19:
        return None
    return int(digits)


def next_metadata_version(location: str | None) -> int:
    """The number of the version after the one at this location; 0 for a new table."""
    if location is None:
        return 0
    version = parse_metadata_version(location)
    # A foreign name carries no number; versions then count from the start again, as the uuid keeps names apart.
    return 0 if version is None else version + 1


def _extension(compression: MetadataCompression) -> str:
    return ".gz.metadata.json" if compression is MetadataCompression.GZIP else ".metadata.json"
