"""What each version of the table format allows, by name: the one place that compares version numbers."""

from enum import Enum

from icefloe.errors import UnsupportedVersionError

ALL_VERSIONS = (1, 2, 3, 4)
"""Every format version that is read and written."""

DEFAULT_VERSION = 2
"""What a table is created with when nothing else is asked for; the same as the Java library's."""

V4_PIN = "2026-08-21"
"""The date of the spec text by which v4 is read and written: it is not adopted, and changes."""


class Feature(Enum):
    """Something that a format version may or may not do: (label, first version, last version or None)."""

    NANOSECOND_TIMESTAMPS = ("nanosecond timestamps", 3, None)
    VARIANT = ("the variant type", 3, None)
    UNKNOWN_TYPE = ("the unknown type", 3, None)
    GEO_TYPES = ("geometry and geography types", 3, None)
    COLUMN_DEFAULTS = ("column default values", 3, None)
    DATE_TO_TIMESTAMP_PROMOTION = ("promotion of date to a timestamp", 3, None)
    UNKNOWN_PROMOTION = ("promotion of unknown to any type", 3, None)
    MULTI_ARGUMENT_TRANSFORMS = ("transforms with several source columns", 3, None)
    DROPPING_PARTITION_FIELDS = ("dropping or reordering partition fields", 2, None)
    PARTITION_FIELD_IDS = ("stored partition field ids", 2, None)
    TABLE_UUID_REQUIRED = ("a required table UUID", 2, None)
    SEQUENCE_NUMBERS = ("sequence numbers", 2, None)
    SCHEMA_LISTS_REQUIRED = ("required lists of schemas, specs and sort orders", 2, None)
    SINGLE_SCHEMA_AND_SPEC = ("the single `schema` and `partition-spec` fields", 1, 1)
    REFS = ("the `refs` map in table metadata", 2, None)
    MANIFEST_LIST_REQUIRED = ("required manifest lists", 2, None)
    INLINE_MANIFESTS = ("snapshots that list manifests inline", 1, 1)
    SNAPSHOT_SUMMARY_REQUIRED = ("required snapshot summaries", 2, None)
    MINUS_ONE_FOR_NO_SNAPSHOT = ("-1 in place of a missing current snapshot id", 1, 2)
    DELETE_FILES = ("delete files", 2, None)
    NEW_POSITION_DELETE_FILES = ("new position delete files", 2, 2)
    DELETION_VECTORS = ("deletion vectors", 3, None)
    ROW_LINEAGE = ("row lineage", 3, None)
    ENCRYPTION_KEYS = ("encryption keys in table metadata", 3, None)
    DISTINCT_COUNTS = ("distinct counts of data files", 1, 2)
    BLOCK_SIZES = ("block sizes of data files", 1, 1)
    FILE_SYSTEM_TABLES = ("tables without a catalog, by file-system rename", 1, 3)
    RELATIVE_PATHS = ("relative paths in metadata", 4, None)
    OPTIONAL_LOCATION = ("a table location kept outside of the metadata", 4, None)
    CONTENT_STATS = ("typed content stats in manifests", 4, None)

    def __init__(self, label: str, first: int, last: int | None) -> None:
        self.label = label
        self.first = first
        self.last = last


def allows(version: int, feature: Feature) -> bool:
    """Whether tables of this format version may use the feature."""
    return feature.first <= version and (feature.last is None or version <= feature.last)


def require(version: int, feature: Feature, what: str) -> None:
    """Fail with a sentence about `what` unless this format version may use the feature."""
    if not allows(version, feature):
        span = f"v{feature.first}" if feature.first == feature.last else f"v{feature.first}+"
        if feature.last is not None and feature.first != feature.last:
            span = f"v{feature.first} to v{feature.last}"
        raise UnsupportedVersionError(
            f"{what} needs {feature.label}, which {span} tables support; this table is v{version}"
        )


def check_version(version: object, what: str = "format-version") -> int:
    """The version as a number, or an error that names the ones that exist."""
    if isinstance(version, bool) or not isinstance(version, int) or version not in ALL_VERSIONS:
        raise UnsupportedVersionError(
            f"{what} {version!r} is not supported; icefloe supports {', '.join(map(str, ALL_VERSIONS))}"
        )
    return version
