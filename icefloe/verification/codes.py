"""What can be wrong with a table, each kind under a name of its own, and how bad it is."""

from enum import Enum, StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Rows are lost, wrong or unreadable, or a rule is broken that readers rely on."""
    WARNING = "warning"
    """Rows are right, but something is not as it should be."""


class Code(Enum):
    """A kind of finding: (name, severity, what it means)."""

    CURRENT_SNAPSHOT = (
        "current-snapshot",
        Severity.ERROR,
        "the current snapshot is not there, or is not that of `main`",
    )
    REF_UNRESOLVED = ("ref-unresolved", Severity.ERROR, "a branch or tag is at a snapshot that is not there")
    LOG_UNRESOLVED = ("log-unresolved", Severity.WARNING, "a log names a snapshot or metadata file that is not there")
    SCHEMA_UNRESOLVED = ("schema-unresolved", Severity.ERROR, "a schema id names no schema")
    SPEC_UNRESOLVED = ("spec-unresolved", Severity.ERROR, "a partition spec id names no spec")
    SORT_ORDER_UNRESOLVED = ("sort-order-unresolved", Severity.WARNING, "a sort order id names no order")
    COLUMN_UNRESOLVED = ("column-unresolved", Severity.ERROR, "a column id names no column of any schema")
    STATISTICS_UNRESOLVED = (
        "statistics-unresolved",
        Severity.WARNING,
        "statistics are of a snapshot that is not there",
    )
    LAST_ASSIGNED_ID = ("last-assigned-id", Severity.ERROR, "the last assigned id is below one that is in use")
    SNAPSHOT_SEQUENCE = (
        "snapshot-sequence",
        Severity.ERROR,
        "sequence numbers of snapshots are out of order or reused",
    )
    SNAPSHOT_ROW_IDS = (
        "snapshot-row-ids",
        Severity.ERROR,
        "snapshots reserve row ids that overlap or are not assigned",
    )

    FILE_MISSING = ("file-missing", Severity.ERROR, "a file is not there")
    FILE_LENGTH = ("file-length", Severity.ERROR, "a file does not have its recorded length")
    FILE_UNREADABLE = ("file-unreadable", Severity.ERROR, "a file cannot be read as what it should be")
    OUTSIDE_LOCATION = ("outside-location", Severity.WARNING, "a file is outside of the table's locations")

    MANIFEST_COUNTS = ("manifest-counts", Severity.ERROR, "a list's counts of a manifest are not those of its entries")
    MANIFEST_SUMMARY = ("manifest-summary", Severity.ERROR, "a partition summary does not cover its entries")
    MANIFEST_SEQUENCE = ("manifest-sequence", Severity.ERROR, "the sequence numbers of a manifest do not fit")
    ENTRY_SEQUENCE = ("entry-sequence", Severity.ERROR, "the sequence numbers of an entry do not fit")
    ENTRY_SNAPSHOT = ("entry-snapshot", Severity.ERROR, "an entry is of another snapshot than its manifest")
    DELETE_FILE_FIELDS = ("delete-file-fields", Severity.ERROR, "a delete file lacks, or has, what its kind must not")

    PATH_TWICE = ("path-twice", Severity.ERROR, "a file is in a snapshot twice")
    PATH_ADDED_AGAIN = (
        "path-added-again",
        Severity.WARNING,
        "a file was added again after an earlier snapshot added it",
    )
    VECTOR_TWICE = ("vector-twice", Severity.ERROR, "a data file has two deletion vectors")
    DELETE_PARTITION = ("delete-partition", Severity.ERROR, "a delete is in another partition than its data file")
    DELETE_SEQUENCE = ("delete-sequence", Severity.ERROR, "a deletion vector is older than its data file")
    DELETE_DANGLING = ("delete-dangling", Severity.WARNING, "a delete file reaches no data file")
    ROW_IDS = ("row-ids", Severity.ERROR, "row ids of data files are missing, overlap or were never assigned")
    SUMMARY_TOTALS = (
        "summary-totals",
        Severity.WARNING,
        "the totals of a snapshot's summary are not those of its files",
    )

    FIELD_IDS = (
        "field-ids",
        Severity.ERROR,
        "columns of a file lack the field ids by which readers find them, or have those of others",
    )
    RECORD_COUNT = ("record-count", Severity.ERROR, "a file does not have its recorded number of rows")
    COLUMN_COUNTS = ("column-counts", Severity.ERROR, "counts of values, nulls or NaNs are not those of the file")
    COLUMN_BOUNDS = ("column-bounds", Severity.ERROR, "bounds exclude values of the file, or are not values")
    PARTITION_VALUES = ("partition-values", Severity.ERROR, "rows of a file are not of its partition")
    VECTOR_CONTENT = ("vector-content", Severity.ERROR, "a deletion vector is broken, or about rows that do not exist")
    DELETE_POSITIONS = ("delete-positions", Severity.ERROR, "a position delete file is about rows that do not exist")

    def __init__(self, label: str, severity: Severity, meaning: str) -> None:
        self.label = label
        self.severity = severity
        self.meaning = meaning

    def __str__(self) -> str:
        return self.label


class Level(StrEnum):
    """How deep a check goes; each level does all that those before it do."""

    METADATA = "metadata"
    """Table metadata, manifest lists and manifests, against each other."""
    FILES = "files"
    """Every file is there with its recorded length."""
    FOOTERS = "footers"
    """Counts and bounds against footers; deletion vectors whole."""
    DATA = "data"
    """Every row: counts, bounds, partitions, and what delete files say."""

    def includes(self, other: "Level") -> bool:
        """Whether a check of this level does what one of the other does."""
        order = list(Level)
        return order.index(self) >= order.index(other)
