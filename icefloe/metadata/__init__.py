"""What a table or view is at one moment, and the updates and requirements that change it."""

from icefloe.metadata.apply import Applied, apply, apply_all, step, with_previous
from icefloe.metadata.apply_structure import add_spec
from icefloe.metadata.apply_view import apply_view_all
from icefloe.metadata.codec import (
    decode_metadata_file,
    encode_metadata_file,
    metadata_from_json,
    metadata_to_json,
    metadata_to_object,
)
from icefloe.metadata.creation import new_table_metadata
from icefloe.metadata.files import (
    MetadataCompression,
    metadata_file_name,
    next_metadata_version,
    parse_metadata_version,
    versioned_file_name,
)
from icefloe.metadata.limits import DEFAULT_LIMITS, Limits
from icefloe.metadata.locations import is_absolute, qualify, relativize, resolve_location, strip_trailing_slash
from icefloe.metadata.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType, branch, tag
from icefloe.metadata.retention import (
    RetentionDefaults,
    expired_refs,
    expired_snapshots,
    retention_defaults,
    unreferenced_snapshots,
)
from icefloe.metadata.snapshot import MetadataLogEntry, Operation, Snapshot, SnapshotLogEntry, Summary
from icefloe.metadata.table import BlobMetadata, EncryptedKey, PartitionStatisticsFile, StatisticsFile, TableMetadata
from icefloe.metadata.update_codec import (
    check_codable,
    requirement_to_json,
    table_requirement_from_json,
    table_update_from_json,
    update_to_json,
    view_requirement_from_json,
    view_update_from_json,
)
from icefloe.metadata.view import (
    OtherViewRepresentation,
    SQLViewRepresentation,
    ViewMetadata,
    ViewRepresentation,
    ViewVersion,
    ViewVersionLogEntry,
)
from icefloe.metadata.view_codec import decode_view_file, encode_view_file, view_from_json, view_to_json, view_to_object
