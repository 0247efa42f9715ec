"""What can be wrong with a table, each kind of problem under its own name, and how bad it is."""

from enum import Enum, StrEnum


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    """Rows are lost, wrong or unreadable, or a rule is broken that readers rely on."""
    WARNING = "warning"
    """Rows are right, but something is not as it should be."""


_ERROR, _WARNING = Severity


class Code(Enum):
    """A kind of finding: its severity, and what it means."""

    CURRENT_SNAPSHOT = _ERROR, "the current snapshot does not exist, or is not that of `main`"
    REF_UNRESOLVED = _ERROR, "a branch or tag is at a snapshot that does not exist"
    LOG_UNRESOLVED = _WARNING, "a log names a snapshot or metadata file that does not exist"
    SCHEMA_UNRESOLVED = _ERROR, "a schema id names no schema"
    SPEC_UNRESOLVED = _ERROR, "a partition spec id names no spec"
    SORT_ORDER_UNRESOLVED = _WARNING, "a sort order id names no order"
    COLUMN_UNRESOLVED = _ERROR, "a column id names no column of any schema"
    STATISTICS_UNRESOLVED = _WARNING, "statistics are of a snapshot that does not exist"
    LAST_ASSIGNED_ID = _ERROR, "the last assigned id is below one that is in use"
    SNAPSHOT_SEQUENCE = _ERROR, "sequence numbers of snapshots are out of order or reused"
    NEWER_TEXT = _WARNING, "a v4 table is written by a text of the spec, or with constraints, that are not known here"
    SNAPSHOT_ROW_IDS = _ERROR, "snapshots reserve row ids that overlap or are not assigned"

    FILE_MISSING = _ERROR, "a file does not exist"
    FILE_LENGTH = _ERROR, "a file does not have its recorded length"
    FILE_UNREADABLE = _ERROR, "a file cannot be read as what it should be"
    OUTSIDE_LOCATION = _WARNING, "a file is outside of the table's locations"

    MANIFEST_COUNTS = _ERROR, "a list's counts of a manifest are not those of its entries"
    MANIFEST_SUMMARY = _ERROR, "a partition summary does not cover its entries"
    MANIFEST_SEQUENCE = _ERROR, "the sequence numbers of a manifest do not fit"
    ENTRY_SEQUENCE = _ERROR, "the sequence numbers of an entry do not fit"
    ENTRY_SNAPSHOT = _ERROR, "an entry is of another snapshot than its manifest"
    DELETE_FILE_FIELDS = _ERROR, "a delete file lacks, or has, what its kind must not"

    PATH_TWICE = _ERROR, "a file is in a snapshot twice"
    PATH_ADDED_AGAIN = _WARNING, "a file was added again after an earlier snapshot added it"
    VECTOR_TWICE = _ERROR, "a data file has two deletion vectors"
    DELETE_PARTITION = _ERROR, "a delete is in another partition than its data file"
    DELETE_SEQUENCE = _ERROR, "a deletion vector is older than its data file"
    DELETE_DANGLING = _WARNING, "a delete file reaches no data file"
    ROW_IDS = _ERROR, "row ids of data files are missing, overlap or were never assigned"
    SUMMARY_TOTALS = _WARNING, "the totals of a snapshot's summary are not those of its files"

    FIELD_IDS = _ERROR, "columns of a file lack the field ids by which readers find them, or have those of others"
    RECORD_COUNT = _ERROR, "a file does not have its recorded number of rows"
    COLUMN_COUNTS = _ERROR, "counts of values, nulls or NaNs are not those of the file"
    COLUMN_BOUNDS = _ERROR, "bounds exclude values of the file, or are not values"
    PARTITION_VALUES = _ERROR, "rows of a file are not of its partition"
    VECTOR_CONTENT = _ERROR, "a deletion vector is broken, or about rows that do not exist"
    DELETE_POSITIONS = _ERROR, "a position delete file is about rows that do not exist"

    def __init__(self, severity: Severity, meaning: str) -> None:
        self.severity = severity
        self.meaning = meaning

    @property
    def label(self) -> str:
        """The name as reports show it."""
        return self.name.lower().replace("_", "-")

    def __str__(self) -> str:
        return self.label


class Level(StrEnum):
    """How deep a check goes; each level does all that those before it do."""

    METADATA = "metadata"
    """Table metadata, manifest lists and manifests, against each other."""
    FILES = "files"
    """Every file exists with its recorded length."""
    FOOTERS = "footers"
    """Counts and bounds against footers; deletion vectors whole."""
    DATA = "data"
    """Every row: counts, bounds, partitions, and what delete files say."""

    def includes(self, other: "Level") -> bool:
        """Whether a check of this level does what one of the other does."""
        order = list(Level)
        return order.index(self) >= order.index(other)
