"""Figures from table metadata alone: totals by snapshot, changes, and the state of branches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from icefloe import metadata as md, properties as props
from icefloe.metadata import summary as totals
from icefloe.shown import counted

_MANY_FILES = 10
_SMALL = 0.25
_MANY_SNAPSHOTS = 500


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals from a snapshot summary; None if missing there."""

    records: int | None = None
    data_files: int | None = None
    delete_files: int | None = None
    position_deletes: int | None = None
    equality_deletes: int | None = None
    bytes: int | None = None

    @property
    def rows(self) -> int | None:
        """Live rows after position deletes; equality deletes are not counted."""
        return None if self.records is None else self.records - (self.position_deletes or 0)

    @property
    def mean_size(self) -> float | None:
        """Average size of a data file."""
        return self.bytes / self.data_files if self.bytes is not None and self.data_files else None


_KEYS = (
    totals.TOTAL_RECORDS,
    totals.TOTAL_DATA_FILES,
    totals.TOTAL_DELETE_FILES,
    totals.TOTAL_POSITION_DELETES,
    totals.TOTAL_EQUALITY_DELETES,
    totals.TOTAL_FILES_SIZE,
)


def totals_of(snapshot: md.Snapshot | None) -> Totals:
    """Return the totals of a snapshot; zeros for an empty table."""
    if snapshot is None:
        return Totals(0, 0, 0, 0, 0, 0)
    return Totals(*(_number(snapshot, key) for key in _KEYS))


def _number(snapshot: md.Snapshot, key: str) -> int | None:
    text = None if snapshot.summary is None else snapshot.summary.get(key)
    try:
        return None if text is None else int(text)
    except ValueError:
        # Other writers may store anything here.
        return None


@dataclass(frozen=True, slots=True)
class Change:
    """The changes of a commit."""

    added_rows: int
    removed_rows: int
    added_files: int
    removed_files: int
    added_deletes: int
    rewritten_rows: int = 0
    """Unchanged rows that were moved to other files."""

    def __str__(self) -> str:
        parts = [f"{self.rewritten_rows:,} rows rewritten"] if self.rewritten_rows else []
        if self.added_rows or self.removed_rows:
            parts.append(_signed(self.added_rows, self.removed_rows) + " rows")
        if self.added_files or self.removed_files:
            parts.append(_signed(self.added_files, self.removed_files) + " files")
        if self.added_deletes:
            parts.append(f"+{counted(self.added_deletes, 'delete file')}")
        return ", ".join(parts)


def change_of(snapshot: md.Snapshot) -> Change:
    """Return the changes according to the summary of a commit."""

    def number(key: str) -> int:
        return _number(snapshot, key) or 0

    marked = number(totals.ADDED_POSITION_DELETES) + number(totals.ADDED_EQUALITY_DELETES)
    added, removed = number(totals.ADDED_RECORDS), number(totals.DELETED_RECORDS) + marked
    is_same = snapshot.operation == md.Operation.REPLACE
    return Change(
        0 if is_same else added,
        0 if is_same else removed,
        number(totals.ADDED_DATA_FILES),
        number(totals.DELETED_DATA_FILES),
        number(totals.ADDED_DELETE_FILES),
        added if is_same else 0,
    )


def _signed(added: int, removed: int) -> str:
    return " ".join(f"{sign}{count:,}" for sign, count in (("+", added), ("−", removed)) if count)


@dataclass(frozen=True, slots=True)
class RefState:
    """A branch or tag, and how far it is ahead of and behind main."""

    name: str
    is_tag: bool
    snapshot_id: int
    at_ms: int | None
    behind: int
    ahead: int


def refs_of(metadata: md.TableMetadata) -> list[RefState]:
    """Return branches and tags, main first."""
    main = _ancestors(metadata, metadata.current_snapshot_id)
    states = []
    for name, ref in sorted(
        metadata.refs.items(), key=lambda item: (item[0] != md.MAIN_BRANCH, item[1].is_tag, item[0])
    ):
        own = _ancestors(metadata, ref.snapshot_id) if name != md.MAIN_BRANCH and ref.is_branch else main
        snapshot = metadata.snapshots_by_id.get(ref.snapshot_id)
        at = None if snapshot is None else snapshot.timestamp_ms
        states.append(RefState(name, ref.is_tag, ref.snapshot_id, at, len(main - own), len(own - main)))
    return states


def history_of(metadata: md.TableMetadata, head: int | None) -> list[md.Snapshot]:
    """Return the ancestors of a snapshot and itself, oldest first."""
    known, line = metadata.snapshots_by_id, list[md.Snapshot]()
    seen = set[int]()
    while head is not None and head in known and head not in seen:
        seen.add(head)
        line.append(known[head])
        head = known[head].parent_snapshot_id
    return line[::-1]


def _ancestors(metadata: md.TableMetadata, head: int | None) -> set[int]:
    return {snapshot.snapshot_id for snapshot in history_of(metadata, head)}


@dataclass(frozen=True, slots=True)
class Sign:
    """Health of a table estimated from summaries: a level and its reasons."""

    level: str
    """good, fair or poor."""
    reasons: Sequence[str]


def glance(metadata: md.TableMetadata, now: Totals) -> Sign:
    """Estimate the health from averages; `health` reads manifests and is exact."""
    reasons = list(_reasons(metadata, now))
    return Sign("good" if not reasons else "fair" if len(reasons) == 1 else "poor", reasons)


def _reasons(metadata: md.TableMetadata, now: Totals) -> Iterable[str]:
    target = props.WRITE_TARGET_FILE_SIZE_BYTES.of(metadata.properties)
    if (now.data_files or 0) > _MANY_FILES and now.mean_size is not None and now.mean_size < _SMALL * target:
        yield "small files"
    if now.position_deletes and now.records and now.position_deletes > 0.1 * now.records:
        yield "more than 10% of rows deleted"
    if now.equality_deletes:
        yield "equality deletes"
    if len(metadata.snapshots) > _MANY_SNAPSHOTS:
        yield f"{len(metadata.snapshots):,} snapshots"
