"""What a table or view is at one moment, and the updates and requirements that change it."""

from icefloe.metadata.codec import decode_metadata_file, encode_metadata_file, metadata_from_json, metadata_to_json
from icefloe.metadata.creation import new_table_metadata
from icefloe.metadata.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType, branch, tag
from icefloe.metadata.snapshot import MetadataLogEntry, Operation, Snapshot, SnapshotLogEntry, Summary
from icefloe.metadata.table import TableMetadata

__all__ = [
    "MAIN_BRANCH",
    "MetadataLogEntry",
    "Operation",
    "Snapshot",
    "SnapshotLogEntry",
    "SnapshotRef",
    "SnapshotRefType",
    "Summary",
    "TableMetadata",
    "branch",
    "decode_metadata_file",
    "encode_metadata_file",
    "metadata_from_json",
    "metadata_to_json",
    "new_table_metadata",
    "tag",
]
