"""Manifests: which files a snapshot holds, in columns."""

from icefloe.manifests.cache import ManifestCache
from icefloe.manifests.columns import ManifestColumns, columns_of
from icefloe.manifests.inheritance import assign_first_row_ids, assign_sequence_numbers, inherit
from icefloe.manifests.list_codec import (
    decode_manifest_list,
    encode_manifest_list,
    inline_manifests,
    read_manifest_list,
)
from icefloe.manifests.metrics import MetricColumns
from icefloe.manifests.reader import decode_manifest, read_manifest, read_manifests
from icefloe.manifests.summaries import SummaryColumns
from icefloe.manifests.values import (
    UNASSIGNED_SEQUENCE_NUMBER,
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    Metric,
    PartitionFieldSummary,
)
from icefloe.manifests.wanted import BOUNDS, COUNTS, EVERYTHING, WITHOUT_METRICS, Wanted, wanted
from icefloe.manifests.writer import ManifestFormat, StatsForm, write_manifest, write_manifests

__all__ = [
    "BOUNDS",
    "COUNTS",
    "EVERYTHING",
    "UNASSIGNED_SEQUENCE_NUMBER",
    "WITHOUT_METRICS",
    "DataFile",
    "EntryStatus",
    "FileContent",
    "ManifestCache",
    "ManifestColumns",
    "ManifestContent",
    "ManifestEntry",
    "ManifestFile",
    "ManifestFormat",
    "Metric",
    "MetricColumns",
    "PartitionFieldSummary",
    "StatsForm",
    "SummaryColumns",
    "Wanted",
    "assign_first_row_ids",
    "assign_sequence_numbers",
    "columns_of",
    "decode_manifest",
    "decode_manifest_list",
    "encode_manifest_list",
    "inherit",
    "inline_manifests",
    "read_manifest",
    "read_manifest_list",
    "read_manifests",
    "wanted",
    "write_manifest",
    "write_manifests",
]
