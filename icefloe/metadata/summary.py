"""How a snapshot's summary is computed: counts of what changed, and totals that follow from the one before.

The keys are those of the spec (Appendix F, Optional Snapshot Summary Fields); every value is text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from icefloe.errors import InvalidInputError, InvalidPropertyError
from icefloe.metadata.snapshot import Operation, Summary

ADDED_DATA_FILES = "added-data-files"
DELETED_DATA_FILES = "deleted-data-files"
TOTAL_DATA_FILES = "total-data-files"
ADDED_DELETE_FILES = "added-delete-files"
REMOVED_DELETE_FILES = "removed-delete-files"
TOTAL_DELETE_FILES = "total-delete-files"
ADDED_EQUALITY_DELETE_FILES = "added-equality-delete-files"
REMOVED_EQUALITY_DELETE_FILES = "removed-equality-delete-files"
ADDED_POSITION_DELETE_FILES = "added-position-delete-files"
REMOVED_POSITION_DELETE_FILES = "removed-position-delete-files"
ADDED_DVS = "added-dvs"
REMOVED_DVS = "removed-dvs"
ADDED_RECORDS = "added-records"
DELETED_RECORDS = "deleted-records"
TOTAL_RECORDS = "total-records"
ADDED_FILES_SIZE = "added-files-size"
REMOVED_FILES_SIZE = "removed-files-size"
TOTAL_FILES_SIZE = "total-files-size"
ADDED_POSITION_DELETES = "added-position-deletes"
REMOVED_POSITION_DELETES = "removed-position-deletes"
TOTAL_POSITION_DELETES = "total-position-deletes"
ADDED_EQUALITY_DELETES = "added-equality-deletes"
REMOVED_EQUALITY_DELETES = "removed-equality-deletes"
TOTAL_EQUALITY_DELETES = "total-equality-deletes"
DELETED_DUPLICATE_FILES = "deleted-duplicate-files"
CHANGED_PARTITION_COUNT = "changed-partition-count"
MANIFESTS_CREATED = "manifests-created"
MANIFESTS_KEPT = "manifests-kept"
MANIFESTS_REPLACED = "manifests-replaced"
ENTRIES_PROCESSED = "entries-processed"

WAP_ID = "wap.id"
PUBLISHED_WAP_ID = "published-wap-id"
SOURCE_SNAPSHOT_ID = "source-snapshot-id"
REPLACE_PARTITIONS = "replace-partitions"
PARTITION_SUMMARIES_INCLUDED = "partition-summaries-included"
CHANGED_PARTITION_PREFIX = "partitions."
OPERATION = "operation"

_TOTALS = (
    (TOTAL_DATA_FILES, ADDED_DATA_FILES, DELETED_DATA_FILES),
    (TOTAL_DELETE_FILES, ADDED_DELETE_FILES, REMOVED_DELETE_FILES),
    (TOTAL_RECORDS, ADDED_RECORDS, DELETED_RECORDS),
    (TOTAL_FILES_SIZE, ADDED_FILES_SIZE, REMOVED_FILES_SIZE),
    (TOTAL_POSITION_DELETES, ADDED_POSITION_DELETES, REMOVED_POSITION_DELETES),
    (TOTAL_EQUALITY_DELETES, ADDED_EQUALITY_DELETES, REMOVED_EQUALITY_DELETES),
)
_FILE_KEYS = (
    ("data_files", ADDED_DATA_FILES, DELETED_DATA_FILES),
    ("equality_delete_files", ADDED_EQUALITY_DELETE_FILES, REMOVED_EQUALITY_DELETE_FILES),
    ("position_delete_files", ADDED_POSITION_DELETE_FILES, REMOVED_POSITION_DELETE_FILES),
    ("delete_files", ADDED_DELETE_FILES, REMOVED_DELETE_FILES),
    ("deletion_vectors", ADDED_DVS, REMOVED_DVS),
    ("records", ADDED_RECORDS, DELETED_RECORDS),
    ("size_in_bytes", ADDED_FILES_SIZE, REMOVED_FILES_SIZE),
    ("position_deletes", ADDED_POSITION_DELETES, REMOVED_POSITION_DELETES),
    ("equality_deletes", ADDED_EQUALITY_DELETES, REMOVED_EQUALITY_DELETES),
)
"""The counts of files, and their keys if the files were added or removed."""


@dataclass(frozen=True, slots=True)
class FileCounts:
    """Files that a commit added, or removed, and what was in them; they add up with `+`."""

    data_files: int = 0
    records: int = 0
    position_delete_files: int = 0
    deletion_vectors: int = 0
    position_deletes: int = 0
    equality_delete_files: int = 0
    equality_deletes: int = 0
    size_in_bytes: int = 0

    @property
    def delete_files(self) -> int:
        """Delete files of every kind, including deletion vectors."""
        return self.position_delete_files + self.deletion_vectors + self.equality_delete_files

    def __add__(self, other: "FileCounts") -> "FileCounts":
        return FileCounts(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """What a commit changed in one partition."""

    added: FileCounts = FileCounts()
    removed: FileCounts = FileCounts()


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """All counts of a commit. None means not counted, and is left out of the summary.

    `partitions` has the counts per partition path; they are written out when they are no more than the limit.
    """

    added: FileCounts = FileCounts()
    removed: FileCounts = FileCounts()
    deleted_duplicate_files: int = 0
    changed_partition_count: int | None = None
    manifests_created: int | None = None
    manifests_kept: int | None = None
    manifests_replaced: int | None = None
    entries_processed: int | None = None
    partitions: Mapping[str, PartitionCounts] = field(default_factory=dict, hash=False)


def summarize(
    operation: Operation,
    counts: ChangeCounts,
    previous: Mapping[str, str] | None,
    extra: Mapping[str, str] | None = None,
    partition_limit: int = 0,
) -> Summary:
    """The summary of a new snapshot.

    `previous` is what the parent's summary holds: None when there is no parent, which starts all totals at 0; a total that a
    parent lacks, or that is not a number there, is left out. `extra` are the committer's own properties.
    """
    # What others deleted meanwhile comes with the files of a rewrite, and is deleted in them at once.
    records = counts.added.records - counts.added.position_deletes
    if operation is Operation.REPLACE and records > counts.removed.records:
        raise InvalidInputError(
            f"a replace adds {records} records and removes {counts.removed.records}; it must not add more"
        )
    metrics = dict(_metrics(counts, partition_limit))
    totals = dict(_totals(metrics, previous))
    computed = {OPERATION, *metrics, *totals}
    if taken := sorted(computed & (extra or {}).keys()):
        raise InvalidPropertyError(f"snapshot property {taken[0]!r} is computed and cannot be set")
    return Summary(operation, {**(extra or {}), **metrics, **totals})


def _metrics(counts: ChangeCounts, partition_limit: int) -> Iterable[tuple[str, str]]:
    yield from _file_metrics(counts.added, counts.removed)
    if counts.deleted_duplicate_files:
        yield DELETED_DUPLICATE_FILES, str(counts.deleted_duplicate_files)
    for key, value in (
        (CHANGED_PARTITION_COUNT, counts.changed_partition_count),
        (MANIFESTS_CREATED, counts.manifests_created),
        (MANIFESTS_KEPT, counts.manifests_kept),
        (MANIFESTS_REPLACED, counts.manifests_replaced),
        (ENTRIES_PROCESSED, counts.entries_processed),
    ):
        if value is not None:
            yield key, str(value)
    if 0 < len(counts.partitions) <= partition_limit:
        yield PARTITION_SUMMARIES_INCLUDED, "true"
        for path, partition in counts.partitions.items():
            if path:
                metrics = _file_metrics(partition.added, partition.removed)
                yield CHANGED_PARTITION_PREFIX + path, ",".join(f"{key}={value}" for key, value in metrics)


def _file_metrics(added: FileCounts, removed: FileCounts) -> Iterable[tuple[str, str]]:
    for field_name, added_key, removed_key in _FILE_KEYS:
        for key, counts in ((added_key, added), (removed_key, removed)):
            if value := getattr(counts, field_name):
                yield key, str(value)


def _totals(metrics: Mapping[str, str], previous: Mapping[str, str] | None) -> Iterable[tuple[str, str]]:
    for total, added, removed in _TOTALS:
        text = "0" if previous is None else previous.get(total, "")
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            continue
        value = int(text) + int(metrics.get(added, "0")) - int(metrics.get(removed, "0"))
        if value >= 0:
            yield total, str(value)
