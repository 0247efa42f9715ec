"""The known table properties, their defaults, and how their text is parsed.

Keys and defaults are those of the Java library. Unknown keys are kept and ignored.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Generic, TypeVar

from icefloe.errors import IncompatibleChangeError, InvalidPropertyError
from icefloe.versions import DEFAULT_VERSION, Feature, check_version, require

Value = TypeVar("Value")
Properties = Mapping[str, str]

MIB = 1024 * 1024
MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1

FORMAT_VERSION = "format-version"

_ALMOST = 0.92
"""From which likeness on a key is taken for a misspelt one: two letters exchanged, or another dash."""
RESERVED = frozenset(
    (
        FORMAT_VERSION,
        "uuid",
        "snapshot-count",
        "current-snapshot-summary",
        "current-snapshot-id",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    )
)
"""Keys that steer creation or describe the table; they are never stored."""

_INTEGER = re.compile(r"[+-]?[0-9]+")


def property_as_int(properties: Properties, key: str, default: int, at_least: int = -MAX_INT - 1) -> int:
    """A property that is a 32-bit number."""
    return _integer(properties, key, default, at_least, MAX_INT)


def property_as_long(properties: Properties, key: str, default: int) -> int:
    """A property that is a 64-bit number."""
    return _integer(properties, key, default, -MAX_LONG - 1, MAX_LONG)


def property_as_bool(properties: Properties, key: str, default: bool) -> bool:
    """A property that is `true` or `false`, in any case."""
    if (text := properties.get(key)) is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise InvalidPropertyError(f"property {key!r} is {text!r}; it must be true or false")
    return text.strip().lower() == "true"


def property_as_float(properties: Properties, key: str, default: float) -> float:
    """A property that is a number with a fraction."""
    if (text := properties.get(key)) is None:
        return default
    try:
        return float(text)
    except ValueError:
        raise InvalidPropertyError(f"property {key!r} is {text!r}; it must be a number") from None


def property_as_choice(properties: Properties, key: str, default: str, choices: Collection[str]) -> str:
    """A property that is one of a few words, in any case."""
    if (text := properties.get(key)) is None:
        return default
    if text.strip().lower() not in choices:
        raise InvalidPropertyError(f"property {key!r} is {text!r}; it must be one of {', '.join(choices)}")
    return text.strip().lower()


def _integer(properties: Properties, key: str, default: int, at_least: int, at_most: int) -> int:
    if (text := properties.get(key)) is None:
        return default
    match = _INTEGER.fullmatch(text.strip())
    # Text of more than 20 digits is out of any range; int() would refuse the really long ones in its own way.
    if match is None or len(match[0]) > 20 or not at_least <= int(match[0]) <= at_most:
        raise InvalidPropertyError(
            f"property {key!r} is {text!r}; it must be a whole number from {at_least} to {at_most}"
        )
    return int(match[0])


@dataclass(frozen=True, slots=True)
class Property(Generic[Value]):
    """A known property: its key, its default, and how to read it from a table's properties."""

    key: str
    default: Value
    read: Callable[[Properties, str, Value], Value]

    def of(self, properties: Properties) -> Value:
        """The value in the properties, or the default."""
        return self.read(properties, self.key, self.default)


def whole_number(at_least: int, at_most: int = MAX_INT) -> Callable[[Properties, str, int], int]:
    """How a whole number in a range is read."""
    return lambda properties, key, default: _integer(properties, key, default, at_least, at_most)


_count, _positive, _positive_long = whole_number(0), whole_number(1), whole_number(1, MAX_LONG)


def one_of(*choices: str) -> Callable[[Properties, str, str], str]:
    """How one of a few words is read."""
    return lambda properties, key, default: property_as_choice(properties, key, default, choices)


def _text(properties: Properties, key: str, default: str) -> str:
    return properties.get(key, default)


def _optional_text(properties: Properties, key: str, default: str | None) -> str | None:
    return properties.get(key, default)


def _optional_word(*choices: str) -> Callable[[Properties, str, str | None], str | None]:
    return lambda properties, key, default: (
        property_as_choice(properties, key, default or "", choices) if key in properties else default
    )


_KEY_LENGTHS = (16, 24, 32)


def _key_length(properties: Properties, key: str, default: int) -> int:
    length = _integer(properties, key, default, 1, MAX_INT)
    if length not in _KEY_LENGTHS:
        raise InvalidPropertyError(f"property {key!r} is {length}; AES keys have 16, 24 or 32 bytes")
    return length


_FILE_FORMATS = ("parquet", "avro", "orc")
_MODES = ("copy-on-write", "merge-on-read")
_ISOLATION = ("serializable", "snapshot")
_DISTRIBUTION = ("none", "hash", "range")
_PLANNING = ("auto", "local", "distributed")

COMMIT_NUM_RETRIES = Property("commit.retry.num-retries", 4, _count)
COMMIT_MIN_WAIT_MS = Property("commit.retry.min-wait-ms", 100, _count)
COMMIT_MAX_WAIT_MS = Property("commit.retry.max-wait-ms", 60_000, _count)
COMMIT_TOTAL_TIMEOUT_MS = Property("commit.retry.total-timeout-ms", 1_800_000, _count)
COMMIT_STATUS_NUM_RETRIES = Property("commit.status-check.num-retries", 3, _count)
COMMIT_STATUS_MIN_WAIT_MS = Property("commit.status-check.min-wait-ms", 1_000, _count)
COMMIT_STATUS_MAX_WAIT_MS = Property("commit.status-check.max-wait-ms", 60_000, _count)
COMMIT_STATUS_TOTAL_TIMEOUT_MS = Property("commit.status-check.total-timeout-ms", 1_800_000, _count)
MANIFEST_TARGET_SIZE_BYTES = Property("commit.manifest.target-size-bytes", 8 * MIB, _positive_long)
MANIFEST_MIN_COUNT_TO_MERGE = Property("commit.manifest.min-count-to-merge", 100, _count)
MANIFEST_MERGE_ENABLED = Property("commit.manifest-merge.enabled", True, property_as_bool)

WRITE_FORMAT = Property("write.format.default", "parquet", one_of(*_FILE_FORMATS))
WRITE_DELETE_FORMAT = Property("write.delete.format.default", None, _optional_word(*_FILE_FORMATS))
WRITE_TARGET_FILE_SIZE_BYTES = Property("write.target-file-size-bytes", 512 * MIB, _positive_long)
WRITE_DELETE_TARGET_FILE_SIZE_BYTES = Property("write.delete.target-file-size-bytes", 64 * MIB, _positive_long)
PARQUET_COMPRESSION = Property("write.parquet.compression-codec", "zstd", _text)
PARQUET_COMPRESSION_LEVEL = Property("write.parquet.compression-level", None, _optional_text)
PARQUET_ROW_GROUP_SIZE_BYTES = Property("write.parquet.row-group-size-bytes", 128 * MIB, _positive)
PARQUET_PAGE_SIZE_BYTES = Property("write.parquet.page-size-bytes", MIB, _positive)
PARQUET_PAGE_ROW_LIMIT = Property("write.parquet.page-row-limit", 20_000, _positive)
PARQUET_DICT_SIZE_BYTES = Property("write.parquet.dict-size-bytes", 2 * MIB, _positive)
PARQUET_SHRED_VARIANTS = Property("write.parquet.shred-variants", False, property_as_bool)
PARQUET_VARIANT_BUFFER_SIZE = Property("write.parquet.variant-inference-buffer-size", 100, _positive)
PARQUET_BLOOM_FILTER_MAX_BYTES = Property("write.parquet.bloom-filter-max-bytes", MIB, _positive)
PARQUET_BLOOM_FILTER_COLUMN_PREFIX = "write.parquet.bloom-filter-enabled.column."
PARQUET_DICTIONARY_COLUMN_PREFIX = "write.parquet.dict-encoding-enabled.column."
AVRO_COMPRESSION = Property("write.avro.compression-codec", "gzip", _text)
AVRO_COMPRESSION_LEVEL = Property("write.avro.compression-level", None, _optional_text)
MANIFEST_COMPRESSION = Property("write.manifest.compression-codec", "gzip", _text)
MANIFEST_COMPRESSION_LEVEL = Property("write.manifest.compression-level", None, _optional_text)
ORC_COMPRESSION = Property("write.orc.compression-codec", "zlib", _text)
ORC_STRIPE_SIZE_BYTES = Property("write.orc.stripe-size-bytes", 64 * MIB, _positive_long)

METADATA_COMPRESSION = Property("write.metadata.compression-codec", "none", one_of("none", "gzip"))
METADATA_PREVIOUS_VERSIONS_MAX = Property("write.metadata.previous-versions-max", 100, property_as_int)
METADATA_DELETE_AFTER_COMMIT = Property("write.metadata.delete-after-commit.enabled", False, property_as_bool)
METADATA_PATH = Property("write.metadata.path", None, _optional_text)
DATA_PATH = Property("write.data.path", None, _optional_text)
OBJECT_STORAGE_PATH = Property("write.object-storage.path", None, _optional_text)
FOLDER_STORAGE_PATH = Property("write.folder-storage.path", None, _optional_text)
"""Earlier names of DATA_PATH: files may lie there still."""
OBJECT_STORAGE_ENABLED = Property("write.object-storage.enabled", False, property_as_bool)
OBJECT_STORAGE_PARTITIONED_PATHS = Property("write.object-storage.partitioned-paths", True, property_as_bool)
METRICS_DEFAULT_MODE = Property("write.metadata.metrics.default", "truncate(16)", _text)
METRICS_COLUMN_PREFIX = "write.metadata.metrics.column."
METRICS_MAX_INFERRED_COLUMNS = Property("write.metadata.metrics.max-inferred-column-defaults", 100, _count)
PARTITION_SUMMARY_LIMIT = Property("write.summary.partition-limit", 0, _count)

DELETE_GRANULARITY = Property("write.delete.granularity", "partition", one_of("partition", "file"))
DELETE_MODE = Property("write.delete.mode", "copy-on-write", one_of(*_MODES))
UPDATE_MODE = Property("write.update.mode", "copy-on-write", one_of(*_MODES))
MERGE_MODE = Property("write.merge.mode", "copy-on-write", one_of(*_MODES))
DELETE_ISOLATION_LEVEL = Property("write.delete.isolation-level", "serializable", one_of(*_ISOLATION))
UPDATE_ISOLATION_LEVEL = Property("write.update.isolation-level", "serializable", one_of(*_ISOLATION))
MERGE_ISOLATION_LEVEL = Property("write.merge.isolation-level", "serializable", one_of(*_ISOLATION))
DISTRIBUTION_MODE = Property("write.distribution-mode", None, _optional_word(*_DISTRIBUTION))
DELETE_DISTRIBUTION_MODE = Property("write.delete.distribution-mode", None, _optional_word(*_DISTRIBUTION))
UPDATE_DISTRIBUTION_MODE = Property("write.update.distribution-mode", None, _optional_word(*_DISTRIBUTION))
MERGE_DISTRIBUTION_MODE = Property("write.merge.distribution-mode", None, _optional_word(*_DISTRIBUTION))
WAP_ENABLED = Property("write.wap.enabled", False, property_as_bool)
UPSERT_ENABLED = Property("write.upsert.enabled", False, property_as_bool)

MAX_SNAPSHOT_AGE_MS = Property("history.expire.max-snapshot-age-ms", 432_000_000, property_as_long)
MIN_SNAPSHOTS_TO_KEEP = Property("history.expire.min-snapshots-to-keep", 1, _positive)
MAX_REF_AGE_MS = Property("history.expire.max-ref-age-ms", MAX_LONG, property_as_long)
GC_ENABLED = Property("gc.enabled", True, property_as_bool)
GC_FOREIGN_FILES = Property("gc.foreign-files.enabled", False, property_as_bool)
"""Whether files outside the table's own locations are deleted when nothing needs them any more; unknown to the Java library."""

MAINTENANCE_ENABLED = Property("maintenance.enabled", True, property_as_bool)
MAINTENANCE_REWRITE = Property("maintenance.rewrite.enabled", True, property_as_bool)
MAINTENANCE_DELETES = Property("maintenance.deletes.enabled", True, property_as_bool)
MAINTENANCE_MANIFESTS = Property("maintenance.manifests.enabled", True, property_as_bool)
MAINTENANCE_EXPIRE = Property("maintenance.expire.enabled", True, property_as_bool)
MAINTENANCE_STATISTICS = Property("maintenance.statistics.enabled", False, property_as_bool)
MAINTENANCE_ORPHANS = Property("maintenance.orphans.enabled", False, property_as_bool)
MAINTENANCE_CONVERT_EQUALITY = Property("maintenance.deletes.convert-equality", True, property_as_bool)
MAINTENANCE_SCANS_EXPECTED = Property("maintenance.rewrite.scans-expected", 20, _positive)
MAINTENANCE_QUIET_MS = Property("maintenance.rewrite.quiet-ms", 3_600_000, whole_number(0, MAX_LONG))
MAINTENANCE_HOT_FILE_LIMIT = Property("maintenance.rewrite.hot-file-limit", 1000, _positive)
MAINTENANCE_MAX_BYTES = Property("maintenance.rewrite.max-bytes", 100 * 1024 * MIB, _positive_long)
MAINTENANCE_COOLDOWN_MS = Property("maintenance.rewrite.cooldown-ms", 86_400_000, whole_number(0, MAX_LONG))
MAINTENANCE_MIN_OVERLAP_DEPTH = Property("maintenance.rewrite.min-overlap-depth", 4, _positive)
MAINTENANCE_MIN_MANIFESTS = Property("maintenance.manifests.min-count", 20, _count)
MAINTENANCE_MIN_FILL = Property("maintenance.manifests.min-fill", 0.25, property_as_float)
"""What `maintain` does by itself: see `maintenance/policy.py`; unknown to the Java library."""

LIMIT_FILE_BYTES = Property("read.limits.file-bytes", (1 << 31) - 1, _positive_long)
LIMIT_METADATA_BYTES = Property("read.limits.metadata-bytes", 1024 * MIB, _positive_long)
LIMIT_EXPANSION = Property("read.limits.expansion", 500, _positive)
"""Bounds for what is read of others: see `metadata/limits.py`."""

SPLIT_SIZE = Property("read.split.target-size", 128 * MIB, _positive_long)
SPLIT_METADATA_SIZE = Property("read.split.metadata-target-size", 32 * MIB, _positive_long)
SPLIT_LOOKBACK = Property("read.split.planning-lookback", 10, _positive)
SPLIT_OPEN_FILE_COST = Property("read.split.open-file-cost", 4 * MIB, property_as_long)
DATA_PLANNING_MODE = Property("read.data-planning-mode", "auto", one_of(*_PLANNING))
DELETE_PLANNING_MODE = Property("read.delete-planning-mode", "auto", one_of(*_PLANNING))

JAVA_1_12, AVRO, PARQUET = "java-1.12", "avro", "parquet"
V4_COMPAT = Property("icefloe.v4.compat", None, _optional_word(JAVA_1_12))
V4_MANIFEST_FORMAT = Property("icefloe.v4.manifest-format", AVRO, one_of(AVRO, PARQUET))
V4_PIN = Property("icefloe.v4.pin", None, _optional_text)
PREVIEW_2026_08_10 = "2026-08-10"
V4_ROOT_MANIFEST = Property("icefloe.preview.root-manifest", None, _optional_word(PREVIEW_2026_08_10))
"""How v4 tables are written: see docs/format-v4.md; unknown to the Java library."""

NAME_MAPPING = Property("schema.name-mapping.default", None, _optional_text)
ENCRYPTION_KEY_ID = Property("encryption.key-id", None, _optional_text)
ENCRYPTION_DATA_KEY_LENGTH = Property("encryption.data-key-length", 16, _key_length)

VIEW_VERSION_HISTORY_SIZE = Property("version.history.num-entries", 10, _positive)
VIEW_DROP_DIALECT_ALLOWED = Property("replace.drop-dialect.allowed", False, property_as_bool)

_CHECKED_AT_CREATION = (COMMIT_NUM_RETRIES, COMMIT_MIN_WAIT_MS, COMMIT_MAX_WAIT_MS, COMMIT_TOTAL_TIMEOUT_MS)


def refuse_reserved(keys: Iterable[str]) -> None:
    """Fail if a key is reserved, and so cannot be stored as a property."""
    for key in keys:
        if key in RESERVED:
            hint = "upgrade the format version instead" if key == FORMAT_VERSION else "it describes the table"
            raise InvalidPropertyError(f"property {key!r} is reserved and cannot be stored; {hint}")


def refuse_misspelt(keys: Iterable[str]) -> None:
    """Fail if a key is almost a reserved one: `format_version` would be stored as if it meant something, and do nothing."""
    for key in keys:
        if key not in RESERVED and (meant := get_close_matches(key.lower(), RESERVED, 1, _ALMOST)):
            raise InvalidPropertyError(
                f"property {key!r} resembles {meant[0]!r}, which is reserved; use that name if you mean it, otherwise another one"
            )


def requested_version(properties: Properties, default: int = DEFAULT_VERSION) -> int:
    """The format version that the properties of a new or replaced table ask for."""
    return check_version(property_as_int(properties, FORMAT_VERSION, default), f"property {FORMAT_VERSION!r}")


def check_new_table_properties(properties: Properties, version: int) -> None:
    """Fail unless a new table of this version may have the properties."""
    refuse_reserved(properties)
    for known in _CHECKED_AT_CREATION:
        known.of(properties)
    check_encryption(properties, version)


def check_encryption(properties: Properties, version: int) -> None:
    """Fail unless a table of this version can be encrypted as the properties say."""
    for key in (ENCRYPTION_KEY_ID.key, ENCRYPTION_DATA_KEY_LENGTH.key):
        if key in properties:
            require(version, Feature.ENCRYPTION_KEYS, f"property {key!r}")
    if ENCRYPTION_KEY_ID.key in properties and not properties[ENCRYPTION_KEY_ID.key].strip():
        raise InvalidPropertyError(
            f"property {ENCRYPTION_KEY_ID.key!r} is empty; it must be the id of a key in the KMS"
        )
    ENCRYPTION_DATA_KEY_LENGTH.of(properties)
    if ENCRYPTION_KEY_ID.key in properties:
        for chosen in (WRITE_FORMAT, WRITE_DELETE_FORMAT):
            if chosen.of(properties) == "orc":
                raise InvalidPropertyError(
                    f"property {chosen.key!r} is 'orc', which cannot be encrypted; it must be parquet or avro"
                )


def check_encryption_stays(before: Properties, after: Properties, *, is_new: bool) -> None:
    """Fail if a change of properties changes how a table is encrypted, once it exists.

    A new table gets its key before it gets rows, so that no file of it was ever in clear; from then on key and length stay.
    """
    old, new = ENCRYPTION_KEY_ID.of(before), ENCRYPTION_KEY_ID.of(after)
    if old is None and new is not None and not is_new:
        raise IncompatibleChangeError(
            f"property {ENCRYPTION_KEY_ID.key!r} can only be set when a table is created: this one has snapshots with files"
            " in plain text; create another table and copy the rows"
        )
    if old is None:
        return
    if new != old:
        what = "removed" if new is None else f"changed to {new!r}"
        raise IncompatibleChangeError(
            f"property {ENCRYPTION_KEY_ID.key!r} is {old!r} and cannot be {what}: the key of a table is permanent"
        )
    if ENCRYPTION_DATA_KEY_LENGTH.of(before) != ENCRYPTION_DATA_KEY_LENGTH.of(after):
        raise IncompatibleChangeError(
            f"property {ENCRYPTION_DATA_KEY_LENGTH.key!r} is {ENCRYPTION_DATA_KEY_LENGTH.of(before)} and cannot be changed"
            f" to {ENCRYPTION_DATA_KEY_LENGTH.of(after)}: the length of a table's keys is permanent"
        )
