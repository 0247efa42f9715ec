"""Where a stream over a table begins, where each micro-batch ends, and which files it has: decided from metadata alone.

Rows are never left out silently: a history with a gap, a snapshot that cannot be shown and a table that was rolled back are
errors. Snapshots that change no rows, or that are to be skipped, are passed over, and the offset moves past them: it does not
matter to the stream when they expire.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from icefloe.errors import NoSuchSnapshotError, StateError
from icefloe.metadata import Operation, Snapshot, TableMetadata
from icefloe.streaming import settings as st
from icefloe.streaming.offsets_codec import NOTHING, Offset


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Files, rows and bytes."""

    files: int
    rows: int
    bytes: int


class SnapshotFiles(Protocol):
    """What is known of the data files of a snapshot: those that it added, or in a full load all that it holds."""

    def totals(self, snapshot: Snapshot, is_full_load: bool) -> FileTotals:
        """All of them together, if possible without reading manifests."""

    def sizes(self, snapshot: Snapshot, is_full_load: bool) -> Sequence[tuple[int, int]]:
        """Rows and bytes of each, in the order of their positions."""


@dataclass(frozen=True, slots=True)
class Part:
    """The files of one snapshot that a micro-batch reads, by position; `last` is exclusive, None for all that follow."""

    snapshot: Snapshot
    first: int = 0
    last: int | None = None
    is_full_load: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether it is all of them."""
        return self.first == 0 and self.last is None


class _Treatment(Enum):
    READ = "read"
    PASS = "pass"
    REFUSE = "refuse"


class StreamSteps:
    """The steps of a stream with some settings over one state of a table."""

    def __init__(
        self, metadata: TableMetadata, settings: st.StreamSettings, files: SnapshotFiles, name: str = "the table"
    ) -> None:
        self._metadata = metadata
        self._settings = settings
        self._files = files
        self._name = name

    # -- where a stream begins

    def beginning(self) -> Offset | None:
        """The offset before the first micro-batch; None while there is nothing that it could begin with."""
        head = self._metadata.snapshot_of_ref(self._settings.branch)
        if head is None:
            # Whatever comes is later than now.
            return self._after(NOTHING) if self._settings.from_snapshot == st.LATEST else None
        if self._settings.from_timestamp_ms is not None:
            before = self._before_time(head, self._settings.from_timestamp_ms)
            return None if before is None else self._after(before)
        match self._settings.from_snapshot:
            case st.EARLIEST:
                *_, oldest = self._metadata.ancestors(head.snapshot_id)
                # What expired snapshots added is in the oldest one that is left, as far as it was not deleted.
                return self._after(NOTHING) if oldest.parent_snapshot_id is None else self._full_load(oldest)
            case st.LATEST:
                return self._after(head.snapshot_id)
            case st.FULL:
                return self._full_load(head)
            case named:
                return self._after(self._named(named, head))

    def _before_time(self, head: Snapshot, time_ms: int) -> int | None:
        """The snapshot before the first one of that time or later; None if there is no such one yet."""
        ancestors = list(self._metadata.ancestors(head.snapshot_id))
        later = [snapshot for snapshot in ancestors if snapshot.timestamp_ms >= time_ms]
        if not later:
            return None
        before, is_oldest = later[-1].parent_snapshot_id, later[-1] is ancestors[-1]
        if before is not None and is_oldest:
            raise NoSuchSnapshotError(
                f"{st.FROM_TIMESTAMP.key} is {time_ms}, but snapshots of {self._name} before {later[-1].snapshot_id}, of"
                f" {later[-1].timestamp_ms}, have expired, which may be younger; begin with {st.FROM_SNAPSHOT.key}={st.EARLIEST},"
                f" which loads all rows first, or with {st.FROM_SNAPSHOT.key}={before} for what came after that snapshot"
            )
        return NOTHING if before is None else before

    def _named(self, name: str, head: Snapshot) -> int:
        """The snapshot of an id or ref, which must be in the branch, or be the last of it that has expired."""
        history = list(self._metadata.ancestors(head.snapshot_id))
        known = {snapshot.snapshot_id for snapshot in history} | {history[-1].parent_snapshot_id}
        ref = self._metadata.snapshot_by_name(name)
        snapshot_id = int(name) if name.strip().isdigit() else None if ref is None else ref.snapshot_id
        if snapshot_id is None or snapshot_id not in known:
            raise NoSuchSnapshotError(
                f"{st.FROM_SNAPSHOT.key} is {name!r}, which is not a snapshot in the history of {self._branch_name}; give"
                f" {st.EARLIEST}, {st.LATEST}, {st.FULL}, or a snapshot of it by id, branch or tag"
            )
        return snapshot_id

    @property
    def _branch_name(self) -> str:
        return f"branch {self._settings.branch or 'main'} of {self._name}"

    def _after(self, snapshot_id: int) -> Offset:
        uuid = self._metadata.table_uuid
        return Offset(snapshot_id, 0, is_complete=True, started_after=snapshot_id, table_uuid=uuid)

    def _full_load(self, snapshot: Snapshot) -> Offset:
        return Offset(snapshot.snapshot_id, 0, is_full_load=True, table_uuid=self._metadata.table_uuid)

    # -- where a micro-batch ends

    def next(self, after: Offset | None, limits: st.Limits, until: Offset | None = None) -> Offset | None:
        """The end of the micro-batch that begins at an offset, or at the stream's beginning; the same if nothing is new.

        `until` is an offset that no batch goes past.
        """
        begin = self.beginning() if after is None else self._checked(after)
        if begin is None:
            return None
        if begin.is_full_load and not begin.is_complete:
            return self._within(begin, self._snapshot_of(begin), _Budget(limits))
        end, budget = begin, _Budget(limits)
        for snapshot in self._later(begin, until):
            treatment = self._treatment(snapshot)
            if treatment is _Treatment.REFUSE:
                if end == begin:
                    raise self._refusal(snapshot)
                return end
            if treatment is _Treatment.PASS or self._settings.mode is st.ReadMode.CHANGES:
                count = 0 if treatment is _Treatment.READ else self._files.totals(snapshot, False).files
                end = self._moved(end, snapshot, count)
                if treatment is _Treatment.READ and not budget.take_snapshot():
                    return end
                continue
            end = self._within(end, snapshot, budget)
            if not end.is_complete or not budget.take_snapshot():
                return end
        return end

    def latest(self) -> Offset | None:
        """The end of all that is there now."""
        return self.next(None, st.UNLIMITED)

    def _moved(self, base: Offset, snapshot: Snapshot, position: int, is_complete: bool = True) -> Offset:
        return replace(
            base, snapshot_id=snapshot.snapshot_id, position=position, is_full_load=False, is_complete=is_complete
        )

    def _within(self, begin: Offset, snapshot: Snapshot, budget: "_Budget") -> Offset:
        """As many files of a snapshot as the budget has left, after what was read of it before."""
        is_full_load = begin.is_full_load and begin.snapshot_id == snapshot.snapshot_id
        first = begin.position if begin.snapshot_id == snapshot.snapshot_id and not begin.is_complete else 0
        totals = self._files.totals(snapshot, is_full_load)
        if first == 0 and budget.take_all(totals):
            position, is_complete = totals.files, True
        else:
            sizes = self._files.sizes(snapshot, is_full_load)
            position = first + budget.take(sizes[first:])
            is_complete = position >= len(sizes)
        return replace(self._moved(begin, snapshot, position, is_complete), is_full_load=is_full_load)

    # -- which files a micro-batch has

    def parts(self, after: Offset | None, end: Offset) -> list[Part]:
        """What a micro-batch reads, oldest snapshot first."""
        end.check_table(self._metadata, self._name)
        if end.is_full_load:
            is_same = after is not None and after.snapshot_id == end.snapshot_id
            first = after.position if after is not None and is_same else 0
            last = None if end.is_complete else end.position
            return [Part(self._snapshot_of(end), first, last, is_full_load=True)]
        begin = self._begin_of(end) if after is None else self._checked(after)
        parts = []
        for snapshot in self._later(begin, end):
            if self._treatment(snapshot) is _Treatment.REFUSE:
                raise self._refusal(snapshot)
            if self._treatment(snapshot) is _Treatment.READ:
                is_begun = snapshot.snapshot_id == begin.snapshot_id
                is_last = snapshot.snapshot_id == end.snapshot_id and not end.is_complete
                parts.append(Part(snapshot, begin.position if is_begun else 0, end.position if is_last else None))
        return parts

    def behind(self, after: Offset | None) -> list[Part]:
        """All that a stream at an offset, or at its beginning, has still to read."""
        begin = self.beginning() if after is None else self._checked(after)
        if begin is None:
            return []
        parts = []
        if begin.is_full_load and not begin.is_complete:
            parts.append(Part(self._snapshot_of(begin), begin.position, is_full_load=True))
            begin = replace(begin, is_complete=True)
        return parts + [
            Part(snapshot, begin.position if snapshot.snapshot_id == begin.snapshot_id else 0)
            for snapshot in self._later(begin, None)
            if self._treatment(snapshot) is _Treatment.READ
        ]

    def _begin_of(self, end: Offset) -> Offset:
        """Where the first micro-batch began that ended there."""
        if end.started_after is not None:
            return self._after(end.started_after)
        beginning = self.beginning()
        assert beginning is not None, "a batch ended in a snapshot"
        return beginning

    def _snapshot_of(self, offset: Offset) -> Snapshot:
        snapshot = self._metadata.snapshot_by_id(offset.snapshot_id)
        if snapshot is None:
            raise self._expired(offset)
        return snapshot

    # -- the history

    def _checked(self, offset: Offset) -> Offset:
        """An offset of a checkpoint; Java's do not say that a snapshot is read as a whole."""
        offset.check_table(self._metadata, self._name)
        if offset.is_complete or offset.is_full_load:
            return offset
        snapshot = self._metadata.snapshot_by_id(offset.snapshot_id)
        if snapshot is None:
            return offset
        is_read = self._treatment(snapshot) is _Treatment.READ
        return replace(offset, is_complete=not is_read or offset.position >= self._files.totals(snapshot, False).files)

    def _later(self, begin: Offset, until: Offset | None) -> list[Snapshot]:
        """The snapshots after an offset, oldest first, up to that of another; one that is read in part is the first."""
        head = self._metadata.snapshot_of_ref(self._settings.branch)
        if until is not None and until.snapshot_id == NOTHING:
            return []
        if until is not None and until.snapshot_id not in self._metadata.snapshots_by_id:
            if until.snapshot_id == begin.snapshot_id and begin.is_complete:
                return []
            raise self._expired(until)
        if head is None:
            if begin.snapshot_id == NOTHING:
                return []
            raise self._expired(begin)
        later: list[Snapshot] = []
        is_known = False
        for snapshot in self._metadata.ancestors(head.snapshot_id):
            if snapshot.snapshot_id == begin.snapshot_id:
                is_known = True
                if not begin.is_complete:
                    later.append(snapshot)
                break
            later.append(snapshot)
        if not is_known and not self._follows(begin, later):
            raise self._expired(begin)
        later.reverse()
        return later if until is None else self._cut(later, begin, until)

    def _follows(self, begin: Offset, later: Sequence[Snapshot]) -> bool:
        """Whether the oldest snapshot that is left is the next one after an offset."""
        before = NOTHING if (parent := later[-1].parent_snapshot_id) is None else parent
        return begin.is_complete and before == begin.snapshot_id

    def _cut(self, later: list[Snapshot], begin: Offset, until: Offset) -> list[Snapshot]:
        ids = [snapshot.snapshot_id for snapshot in later]
        if until.snapshot_id in ids:
            return later[: ids.index(until.snapshot_id) + 1]
        if self._metadata.is_ancestor(until.snapshot_id, begin.snapshot_id):
            # The stream began after the end: a commit came between.
            return []
        raise self._expired(until)

    def _expired(self, offset: Offset) -> StateError:
        head = self._metadata.snapshot_of_ref(self._settings.branch)
        *_, oldest = self._metadata.ancestors(head.snapshot_id) if head is not None else (None,)
        left = "nothing is left" if oldest is None else f"the oldest that is left is {oldest.snapshot_id}"
        way_out = "start the query with a new checkpoint, which loads all rows first"
        if offset.snapshot_id in self._metadata.snapshots_by_id:
            return StateError(
                f"the stream is at snapshot {offset.snapshot_id}, which is not in the history of {self._branch_name} any more:"
                f" it was rolled back or replaced; {way_out}"
            )
        if offset.is_full_load and not offset.is_complete:
            return NoSuchSnapshotError(
                f"the stream loads all rows of snapshot {offset.snapshot_id} of {self._name} first, which has expired before it"
                f" had read them; {left}; {way_out}, with larger batches or a tag on the snapshot"
            )
        return NoSuchSnapshotError(
            f"the stream is at snapshot {offset.snapshot_id}, and what came after it in {self._branch_name} has expired;"
            f" {left}; {way_out}"
        )

    # -- what becomes of a snapshot

    def _treatment(self, snapshot: Snapshot) -> _Treatment:
        operation, settings = snapshot.operation, self._settings
        if operation == Operation.REPLACE:
            return _Treatment.PASS
        if operation == Operation.APPEND or settings.mode is st.ReadMode.CHANGES:
            return _Treatment.READ
        if settings.mode is st.ReadMode.ADDED_FILES:
            return _Treatment.PASS if operation == Operation.DELETE else _Treatment.READ
        if operation is None:
            # It may have appended rows, so that it is not passed over.
            return _Treatment.REFUSE
        skips = settings.skips_deletes if operation == Operation.DELETE else settings.skips_overwrites
        return _Treatment.PASS if skips else _Treatment.REFUSE

    def _refusal(self, snapshot: Snapshot) -> StateError:
        modes = (
            f"set {st.READ_MODE.key} to {st.ReadMode.CHANGES} for every insert, delete and update, or to"
            f" {st.ReadMode.ADDED_FILES} for the rows of new files"
        )
        if snapshot.operation is None:
            return StateError(
                f"the summary of snapshot {snapshot.snapshot_id} of {self._name} does not say whether it appended rows; {modes}"
            )
        skip = st.SKIP_DELETES if snapshot.operation == Operation.DELETE else st.SKIP_OVERWRITES
        return StateError(
            f"snapshot {snapshot.snapshot_id} of {self._name} is of operation {snapshot.operation}, which a stream of appends"
            f" cannot show; {modes}, or {skip.key} to true to pass over such snapshots"
        )


class _Budget:
    """What a micro-batch may still read."""

    def __init__(self, limits: st.Limits) -> None:
        self._limits = limits
        self._files = self._rows = self._bytes = self._snapshots = 0

    @property
    def is_spent(self) -> bool:
        """Whether nothing more fits."""
        limits = self._limits
        return (
            (limits.files is not None and self._files >= limits.files)
            or (limits.rows is not None and self._rows >= limits.rows)
            or (limits.bytes is not None and self._bytes >= limits.bytes)
        )

    def take_all(self, totals: FileTotals) -> bool:
        """Take all files of a snapshot if they fit; whether they did."""
        if not self._has_room(totals.files, totals.rows, totals.bytes):
            return False
        self._add(totals.files, totals.rows, totals.bytes)
        return True

    def take(self, sizes: Sequence[tuple[int, int]]) -> int:
        """Take files one by one; how many."""
        for count, (rows, size) in enumerate(sizes):
            is_first = self._files == 0
            too_large = self._limits.bytes is not None and self._bytes + size > self._limits.bytes
            if self.is_spent or (too_large and not is_first):
                return count
            self._add(1, rows, size)
        return len(sizes)

    def take_snapshot(self) -> bool:
        """Count a commit that is read to its end; whether more fits."""
        self._snapshots += 1
        return not self.is_spent and (self._limits.snapshots is None or self._snapshots < self._limits.snapshots)

    def _has_room(self, files: int, rows: int, size: int) -> bool:
        limits = self._limits
        return (
            (limits.files is None or self._files + files <= limits.files)
            and (limits.rows is None or self._rows + rows <= limits.rows)
            and (limits.bytes is None or self._bytes + size <= limits.bytes)
        )

    def _add(self, files: int, rows: int, size: int) -> None:
        self._files += files
        self._rows += rows
        self._bytes += size
