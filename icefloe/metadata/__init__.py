"""What a table or view is at one moment, and the updates and requirements that change it."""

from icefloe.metadata.apply import Applied, apply_all, step
from icefloe.metadata.apply_structure import add_spec
from icefloe.metadata.apply_view import apply_view_all
from icefloe.metadata.codec import (
    decode_metadata_file,
    encode_metadata_file,
    pack_metadata_file,
    unpack_metadata_file,
)
from icefloe.metadata.creation import new_table_metadata
from icefloe.metadata.files import (
    MetadataCompression,
    metadata_file_name,
    metadata_folder,
    next_metadata_version,
    table_location,
    versioned_file_name,
)
from icefloe.metadata.graph import GraphNode, SnapshotGraph
from icefloe.metadata.limits import DEFAULT_LIMITS, Limits
from icefloe.metadata.locations import is_absolute, relativize, resolve_location, strip_trailing_slash
from icefloe.metadata.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType, branch, tag
from icefloe.metadata.retention import expired_refs, expired_snapshots, retention_defaults, unreferenced_snapshots
from icefloe.metadata.snapshot import Operation, Snapshot, SnapshotLogEntry
from icefloe.metadata.table import BlobMetadata, EncryptedKey, PartitionStatisticsFile, StatisticsFile, TableMetadata
from icefloe.metadata.update_codec import check_codable
from icefloe.metadata.view import SQLViewRepresentation, ViewMetadata, ViewVersion
from icefloe.metadata.view_codec import decode_view_file, encode_view_file
