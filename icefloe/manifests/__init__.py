"""Manifests: which files a snapshot holds, in columns."""

from icefloe.manifests.arrow_values import to_internal, value_array_type
from icefloe.manifests.columns import ManifestColumns, columns_of, columns_of_files
from icefloe.manifests.entry_codec import (
    ALL_COLUMNS,
    ALWAYS,
    BOUNDS,
    COLUMN_TYPES,
    DATA_FILE_ID,
    ENTRY_COLUMNS,
    EVERYTHING,
    FILE_COLUMNS,
    PARTITION_ID,
    WITHOUT_METRICS,
    Wanted,
    column_field,
    metric_field,
    wanted,
)
from icefloe.manifests.inheritance import assign_first_row_ids, assign_sequence_numbers, inherit
from icefloe.manifests.list_codec import (
    MANIFEST_TABLE,
    decode_manifest_list,
    decode_manifest_table,
    encode_manifest_list,
    inline_manifests,
    manifest_table,
    manifests_in,
    read_manifest_list,
)
from icefloe.manifests.metrics import MetricColumns, list_offsets
from icefloe.manifests.of_snapshot import ManifestCache, SnapshotManifests, error_of_snapshot, list_place
from icefloe.manifests.reader import Read, decode_manifest, opened_manifest, read_manifest
from icefloe.manifests.relocation import relocated_list, relocated_manifest, with_paths, with_text_bounds
from icefloe.manifests.sealing import (
    is_encrypted,
    key_of_file,
    key_of_manifest,
    list_key,
    open_file,
    plain_size,
    range_reader,
    sealed,
    sealed_file,
    statistics_reader,
    unsealed,
)
from icefloe.manifests.summaries import (
    SummaryColumns,
    count_entries,
    min_sequence_number,
    summarize,
    summarize_partitions,
)
from icefloe.manifests.values import (
    MAP_METRICS,
    UNASSIGNED_SEQUENCE_NUMBER,
    UNKNOWN_SIZE,
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    Metric,
    PartitionFieldSummary,
)
from icefloe.manifests.writer import ManifestFormat, StatsForm, write_manifest, write_manifests
