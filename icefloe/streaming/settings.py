"""Options of a stream over a table, by Java's names: where it begins, what it shows, and how much a micro-batch reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from icefloe import properties as props
from icefloe.errors import InvalidPropertyError
from icefloe.maintenance import OptionValue, optional, options_of

EARLIEST, LATEST, FULL = "earliest", "latest", "full"

_most = optional(props.whole_number(1, props.MAX_LONG))
_time = optional(props.whole_number(0, props.MAX_LONG))


class ReadMode(StrEnum):
    """What of a commit a stream shows."""

    APPEND = "append"
    """Rows that appends added; other changes of rows end the query, unless they are to be skipped."""
    ADDED_FILES = "added-files"
    """All rows of files that any commit added, rows that it only moved among them; deletes are not shown."""
    CHANGES = "changes"
    """Every insert, delete and update."""


def _text(options: props.Properties, key: str, default: str) -> str:
    return options.get(key, default)


def _optional_text(options: props.Properties, key: str, default: str | None) -> str | None:
    return options.get(key, default)


BRANCH = props.Property("branch", None, _optional_text)
FROM_SNAPSHOT = props.Property("stream-from-snapshot", EARLIEST, _text)
FROM_TIMESTAMP = props.Property("stream-from-timestamp", None, _time)
READ_MODE = props.Property("streaming-read-mode", str(ReadMode.APPEND), props.one_of(*ReadMode))
SKIP_DELETES = props.Property("streaming-skip-delete-snapshots", False, props.property_as_bool)
SKIP_OVERWRITES = props.Property("streaming-skip-overwrite-snapshots", False, props.property_as_bool)
MAX_FILES = props.Property("streaming-max-files-per-micro-batch", None, _most)
MAX_ROWS = props.Property("streaming-max-rows-per-micro-batch", None, _most)
MAX_BYTES = props.Property("streaming-max-bytes-per-micro-batch", None, _most)
MAX_SNAPSHOTS = props.Property("streaming-max-snapshots-per-micro-batch", None, _most)
UPDATES = props.Property("streaming-updates", True, props.property_as_bool)
NET_CHANGES = props.Property("streaming-net-changes", False, props.property_as_bool)
ROW_IDS = props.Property("streaming-row-ids", False, props.property_as_bool)
OPTIONS = (
    BRANCH,
    FROM_SNAPSHOT,
    FROM_TIMESTAMP,
    READ_MODE,
    SKIP_DELETES,
    SKIP_OVERWRITES,
    MAX_FILES,
    MAX_ROWS,
    MAX_BYTES,
    MAX_SNAPSHOTS,
    UPDATES,
    NET_CHANGES,
    ROW_IDS,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a micro-batch reads at most, but at least one file or commit; None is no limit."""

    files: int | None = None
    rows: int | None = None
    """The file that passes it is still read, as in the Java library."""
    bytes: int | None = None
    snapshots: int | None = None

    @property
    def of_files(self) -> bool:
        """Whether a batch may end within a commit."""
        return (self.files, self.rows, self.bytes) != (None, None, None)


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """All options of a stream, read and checked."""

    branch: str | None = None
    from_snapshot: str = EARLIEST
    """`earliest`, `latest`, `full`, a snapshot id, or the name of a branch or tag."""
    from_timestamp_ms: int | None = None
    mode: ReadMode = ReadMode.APPEND
    skips_deletes: bool = False
    skips_overwrites: bool = False
    limits: Limits = UNLIMITED
    pairs_updates: bool = True
    is_net: bool = False
    shows_row_ids: bool = False


def stream_settings(options: Mapping[str, OptionValue] | None = None) -> StreamSettings:
    """What the options say; an unknown one is an error with the name that was probably meant."""
    known = options_of("a stream", OPTIONS, options)
    if FROM_SNAPSHOT.key in known and FROM_TIMESTAMP.key in known:
        raise InvalidPropertyError(
            f"options {FROM_SNAPSHOT.key!r} and {FROM_TIMESTAMP.key!r} both say where a stream begins; give one of them"
        )
    limits = Limits(*(limit.of(known) for limit in (MAX_FILES, MAX_ROWS, MAX_BYTES, MAX_SNAPSHOTS)))
    mode, is_net = ReadMode(READ_MODE.of(known)), NET_CHANGES.of(known)
    if mode is ReadMode.CHANGES and limits.of_files:
        raise InvalidPropertyError(
            f"a commit is never shown in parts where changes are read; limit {MAX_SNAPSHOTS.key!r} instead of files, rows or bytes"
        )
    return StreamSettings(
        BRANCH.of(known),
        FROM_SNAPSHOT.of(known),
        FROM_TIMESTAMP.of(known),
        mode,
        SKIP_DELETES.of(known),
        SKIP_OVERWRITES.of(known),
        limits,
        UPDATES.of(known) and not is_net,
        is_net,
        ROW_IDS.of(known),
    )
