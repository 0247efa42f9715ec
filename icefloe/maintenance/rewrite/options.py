"""The options of `rewrite_data_files` beside those of sizes: their names, defaults and limits, as in Java where it has them."""

from icefloe import properties as props
from icefloe.maintenance.options import Option, fraction, optional
from icefloe.maintenance.rewrite.file_sizes import SIZE_OPTIONS

_positive = props.whole_number(1)
_count = props.whole_number(0)
_duration = props.whole_number(0, props.MAX_LONG)

MAX_FILES: props.Property[int | None] = props.Property("max-files-to-rewrite", None, optional(_positive))
DELETE_FILE_THRESHOLD = props.Property("delete-file-threshold", props.MAX_INT, _count)
DELETE_RATIO_THRESHOLD = props.Property("delete-ratio-threshold", 0.3, fraction(0, 1))
OUTPUT_SPEC_ID: props.Property[int | None] = props.Property("output-spec-id", None, optional(_count))
REWRITE_OLD_SPECS = props.Property("rewrite-old-specs", False, props.property_as_bool)
REWRITE_STALE_ORDER = props.Property("rewrite-stale-sort-order", False, props.property_as_bool)
MIN_PARTITION_AGE_MS = props.Property("min-partition-age-ms", 0, _duration)
COOLDOWN_MS = props.Property("rewrite-cooldown-ms", 0, _duration)
JOB_ORDERS = ("none", "bytes-asc", "bytes-desc", "files-asc", "files-desc")
JOB_ORDER = props.Property("rewrite-job-order", "none", props.one_of(*JOB_ORDERS))
CONCURRENT_GROUPS = props.Property("max-concurrent-file-group-rewrites", 5, _positive)
PARTIAL_PROGRESS = props.Property("partial-progress.enabled", False, props.property_as_bool)
MAX_COMMITS = props.Property("partial-progress.max-commits", 10, _positive)
MAX_FAILED_COMMITS: props.Property[int | None] = props.Property(
    "partial-progress.max-failed-commits", None, optional(_count)
)
STARTING_NUMBER = props.Property("use-starting-sequence-number", True, props.property_as_bool)
REMOVE_DANGLING = props.Property("remove-dangling-deletes", False, props.property_as_bool)
COMPRESSION_FACTOR = props.Property("compression-factor", 1.0, fraction(0))
SHUFFLE_PARTITIONS = props.Property("shuffle-partitions-per-file", 1, _positive)
MIN_OVERLAP_DEPTH: props.Property[float | None] = props.Property("min-overlap-depth", None, optional(fraction(0)))

REWRITE_OPTIONS: tuple[Option, ...] = (
    *SIZE_OPTIONS,
    MAX_FILES,
    DELETE_FILE_THRESHOLD,
    DELETE_RATIO_THRESHOLD,
    OUTPUT_SPEC_ID,
    REWRITE_OLD_SPECS,
    REWRITE_STALE_ORDER,
    MIN_PARTITION_AGE_MS,
    COOLDOWN_MS,
    JOB_ORDER,
    CONCURRENT_GROUPS,
    PARTIAL_PROGRESS,
    MAX_COMMITS,
    MAX_FAILED_COMMITS,
    STARTING_NUMBER,
    REMOVE_DANGLING,
)
"""The options of every strategy."""
SORT_OPTIONS: tuple[Option, ...] = (COMPRESSION_FACTOR, SHUFFLE_PARTITIONS, MIN_OVERLAP_DEPTH)
"""The options of a rewrite that sorts."""
