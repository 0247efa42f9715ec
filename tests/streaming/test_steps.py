"""Where micro-batches end and which files they have: each file that appends add once and in order, whatever happens between."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, strategies as s

from icefloe.errors import InvalidInputError, InvalidPropertyError, NoSuchSnapshotError, StateError
from icefloe.metadata import MAIN_BRANCH, Operation, Snapshot, TableMetadata, branch, new_table_metadata
from icefloe.metadata.snapshot import Summary
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType
from icefloe.streaming import (
    UNLIMITED,
    FileTotals,
    Limits,
    Offset,
    Part,
    ReadMode,
    StreamSettings,
    StreamSteps,
    offset_from_text,
    stream_settings,
)

Size = tuple[int, int]


@dataclass
class History:
    """A table of which only snapshots and the sizes of their files are known."""

    metadata: TableMetadata = field(
        default_factory=lambda: new_table_metadata(
            Schema(NestedField(1, "id", LongType())), location="memory://stream/t", uuid="u1", timestamp_ms=1
        )
    )
    added: dict[int, list[Size]] = field(default_factory=dict)
    live: dict[int, list[Size]] = field(default_factory=dict)

    def commit(self, operation: Operation, *sizes: Size, parent: int | None = None) -> int:
        number = len(self.added) + 1
        head = self.metadata.current_snapshot_id if parent is None else parent
        snapshot = Snapshot(
            snapshot_id=number * 10,
            parent_snapshot_id=head,
            sequence_number=number,
            timestamp_ms=number * 1000,
            manifest_list="memory://stream/l",
            summary=Summary(operation),
            schema_id=0,
        )
        self.metadata = self.metadata.evolve(
            snapshots=(*self.metadata.snapshots, snapshot),
            current_snapshot_id=snapshot.snapshot_id,
            refs={MAIN_BRANCH: branch(snapshot.snapshot_id)},
        )
        self.added[snapshot.snapshot_id] = list(sizes)
        self.live[snapshot.snapshot_id] = [*self.live.get(head or 0, []), *sizes]
        return snapshot.snapshot_id

    def append(self, *rows: int) -> int:
        return self.commit(Operation.APPEND, *((count, count * 10) for count in rows))

    def expire(self, *ids: int) -> None:
        kept = tuple(snapshot for snapshot in self.metadata.snapshots if snapshot.snapshot_id not in ids)
        self.metadata = self.metadata.evolve(snapshots=kept)

    def steps(self, **options: str) -> StreamSteps:
        texts = {key.replace("_", "-"): value for key, value in options.items()}
        return StreamSteps(self.metadata, stream_settings(texts), self)

    # SnapshotFiles

    def totals(self, snapshot: Snapshot, is_full_load: bool) -> FileTotals:
        sizes = self.sizes(snapshot, is_full_load)
        return FileTotals(len(sizes), sum(rows for rows, _ in sizes), sum(size for _, size in sizes))

    def sizes(self, snapshot: Snapshot, is_full_load: bool) -> Sequence[Size]:
        return (self.live if is_full_load else self.added)[snapshot.snapshot_id]


def names(history: History, parts: Sequence[Part]) -> list[str]:
    """Each file of the parts by its snapshot and position."""
    found = []
    for part in parts:
        count = len(history.sizes(part.snapshot, part.is_full_load))
        label = "all" if part.is_full_load else "of"
        last = count if part.last is None else part.last
        found += [f"{label} {part.snapshot.snapshot_id} {index}" for index in range(part.first, last)]
    return found


def drain(history: History, offset: Offset | None, limits: Limits, **options: str) -> tuple[list[str], Offset | None]:
    """Batches until nothing is new; every offset goes through its text, as after a restart."""
    found: list[str] = []
    for _ in range(1000):
        end = history.steps(**options).next(offset, limits)
        if end == offset or end is None:
            return found, end
        end = offset_from_text(end.to_text())
        assert end is not None
        behind = names(history, history.steps(**options).behind(offset))
        read = names(history, history.steps(**options).parts(offset, end))
        assert behind[: len(read)] == read
        assert behind[len(read) :] == names(history, history.steps(**options).behind(end))
        found += read
        offset = end
    raise AssertionError("the stream does not come to rest")


limits = s.builds(
    Limits,
    s.none() | s.integers(1, 4),
    s.none() | s.integers(1, 40),
    s.none() | s.integers(1, 400),
    s.none() | s.integers(1, 3),
)
commits = s.tuples(s.sampled_from(Operation), s.lists(s.integers(0, 20), max_size=4), s.booleans())


@given(s.lists(s.lists(commits, max_size=5), max_size=4), limits)
def test_every_appended_file_is_read_once_and_in_order(
    rounds: list[list[tuple[Operation, list[int], bool]]], limit: Limits
) -> None:
    """Commits of all kinds, batches between them, and snapshots that expire once they were read."""
    history, expected, read = History(), list[str](), list[str]()
    offset: Offset | None = None
    for commits_of_round in rounds:
        for operation, rows, expires in commits_of_round:
            snapshot_id = history.commit(operation, *((count, count * 10) for count in rows))
            if operation is Operation.APPEND:
                expected += [f"of {snapshot_id} {index}" for index in range(len(rows))]
            if expires and offset is not None:
                behind = [
                    each.snapshot_id for each in history.metadata.snapshots if each.snapshot_id <= offset.snapshot_id
                ]
                history.expire(*behind[: -1 if not offset.is_complete else None])
        found, offset = drain(
            history, offset, limit, streaming_skip_delete_snapshots="true", streaming_skip_overwrite_snapshots="true"
        )
        read += found
    assert read == expected


@given(s.lists(s.integers(0, 20), min_size=1, max_size=12), limits)
def test_limits_hold(rows: list[int], limit: Limits) -> None:
    history = History()
    for start in range(0, len(rows), 3):
        history.append(*rows[start : start + 3])
    offset = None
    while True:
        end = history.steps().next(offset, limit)
        assert end is not None
        if end == offset:
            break
        parts = history.steps().parts(offset, end)
        sizes = [size for part in parts for size in history.added[part.snapshot.snapshot_id][part.first : part.last]]
        assert limit.files is None or len(sizes) <= limit.files
        # The file that passes the limit of rows is still in; one of bytes is not, unless it is the only one.
        assert limit.rows is None or sum(count for count, _ in sizes[:-1]) < limit.rows or not sizes[:-1]
        assert limit.bytes is None or sum(size for _, size in sizes) <= limit.bytes or len(sizes) == 1
        assert limit.snapshots is None or len({part.snapshot.snapshot_id for part in parts}) <= limit.snapshots
        offset = end


def test_a_stream_begins_with_all_rows_if_the_first_snapshots_have_expired() -> None:
    history = History()
    first, second = history.append(1, 2), history.append(3)
    history.expire(first)
    found, offset = drain(history, None, Limits(files=2))
    assert found == [f"all {second} 0", f"all {second} 1", f"all {second} 2"]
    third = history.append(4)
    found, _ = drain(history, offset, UNLIMITED)
    assert found == [f"of {third} 0"]


def test_where_a_stream_begins() -> None:
    history = History()
    first, second, third = (history.append(1) for _ in range(3))
    everything = [f"of {each} 0" for each in (first, second, third)]
    for options, expected in (
        ({}, everything),
        ({"stream_from_snapshot": "earliest"}, everything),
        ({"stream_from_snapshot": "latest"}, []),
        ({"stream_from_snapshot": "full"}, [f"all {third} {index}" for index in range(3)]),
        ({"stream_from_snapshot": str(first)}, everything[1:]),
        ({"stream_from_timestamp": "1001"}, everything[1:]),
        ({"stream_from_timestamp": "0"}, everything),
    ):
        found, offset = drain(history, None, UNLIMITED, **options)
        assert found == expected, options
        assert offset is not None
    history.metadata = history.metadata.evolve(refs={**history.metadata.refs, "work": branch(second)})
    assert drain(history, None, UNLIMITED, branch="work")[0] == everything[:2]
    assert drain(history, None, UNLIMITED, stream_from_snapshot="work")[0] == everything[2:]
    with pytest.raises(NoSuchSnapshotError, match="is '77', which is not a snapshot in the history of branch main"):
        drain(history, None, UNLIMITED, stream_from_snapshot="77")


def test_what_began_stays_where_it_began_though_snapshots_came_before_the_first_batch() -> None:
    history = History()
    history.append(1)
    end = history.steps(stream_from_snapshot="latest").next(None, UNLIMITED)
    second = history.append(2)
    assert end is not None
    # The query was killed before its first batch was done: the offset says where it begins, not the options.
    later = history.steps(stream_from_snapshot="latest").next(end, UNLIMITED)
    assert later is not None
    assert names(history, history.steps().parts(end, later)) == [f"of {second} 0"]
    assert history.steps().parts(None, end) == []


def test_a_time_that_has_not_come_is_waited_for() -> None:
    history = History()
    history.append(1)
    assert drain(history, None, UNLIMITED, stream_from_timestamp="2500") == ([], None)
    history.append(1)
    assert drain(history, None, UNLIMITED, stream_from_timestamp="2500") == ([], None)
    third = history.append(1)
    assert drain(history, None, UNLIMITED, stream_from_timestamp="2500")[0] == [f"of {third} 0"]


def test_a_time_before_what_expired_is_refused() -> None:
    history = History()
    first, second = history.append(1), history.append(2)
    history.expire(first)
    with pytest.raises(
        NoSuchSnapshotError, match=rf"before {second}, of 2000, have expired.*stream-from-snapshot={first}"
    ):
        history.steps(stream_from_timestamp="500").next(None, UNLIMITED)
    assert drain(history, None, UNLIMITED, stream_from_snapshot=str(first))[0] == [f"of {second} 0"]


def test_a_gap_is_an_error() -> None:
    history = History()
    first, second, third = (history.append(1, 1) for _ in range(3))
    offset = history.steps().next(None, Limits(files=1))
    assert offset is not None
    assert (offset.snapshot_id, offset.position, offset.is_complete) == (first, 1, False)
    history.expire(first)
    with pytest.raises(NoSuchSnapshotError, match=f"at snapshot {first}, .*oldest that is left is {second}"):
        history.steps().next(offset, UNLIMITED)
    complete = replace(offset, position=2, is_complete=True)
    assert drain(history, complete, UNLIMITED)[0] == [
        f"of {each} {index}" for each in (second, third) for index in (0, 1)
    ]
    history.expire(first, second)
    with pytest.raises(NoSuchSnapshotError):
        history.steps().next(complete, UNLIMITED)


def test_a_rollback_is_an_error() -> None:
    history = History()
    first, second = history.append(1), history.append(2)
    _, offset = drain(history, None, UNLIMITED)
    history.commit(Operation.APPEND, (1, 1), parent=first)
    with pytest.raises(StateError, match=f"snapshot {second}, which is not in the history.*rolled back"):
        history.steps().next(offset, UNLIMITED)


def test_another_table_of_the_name_is_an_error() -> None:
    history = History()
    history.append(1)
    _, offset = drain(history, None, UNLIMITED)
    history.metadata = history.metadata.evolve(table_uuid="u2")
    with pytest.raises(InvalidInputError, match=r"of a table with UUID u1, .*another one now, u2"):
        history.steps().next(offset, UNLIMITED)


@pytest.mark.parametrize("operation", [Operation.DELETE, Operation.OVERWRITE])
def test_what_a_stream_of_appends_cannot_show_ends_it_after_what_it_can(operation: Operation) -> None:
    history = History()
    first, second = history.append(1), history.commit(operation, (1, 1))
    end = history.steps().next(None, UNLIMITED)
    assert end is not None
    assert (end.snapshot_id, end.is_complete) == (first, True)
    with pytest.raises(StateError, match=f"{second}.*operation {operation}.*streaming-read-mode to changes"):
        history.steps().next(end, UNLIMITED)
    switch = f"streaming_skip_{operation}_snapshots"
    assert drain(history, end, UNLIMITED, **{switch: "true"})[0] == []
    shown = drain(history, end, UNLIMITED, streaming_read_mode="added-files")[0]
    assert shown == ([] if operation is Operation.DELETE else [f"of {second} 0"])


def test_changes_are_read_commit_by_commit() -> None:
    history = History()
    kinds = (Operation.APPEND, Operation.REPLACE, Operation.DELETE, Operation.OVERWRITE)
    ids = [history.commit(kind, (1, 1)) for kind in kinds]
    steps = history.steps(streaming_read_mode="changes", streaming_max_snapshots_per_micro_batch="2")
    limit = Limits(snapshots=2)
    first = steps.next(None, limit)
    assert first is not None
    assert [part.snapshot.snapshot_id for part in steps.parts(None, first)] == [ids[0], ids[2]]
    second = steps.next(first, limit)
    assert second is not None
    assert [part.snapshot.snapshot_id for part in steps.parts(first, second)] == [ids[3]]


def test_a_batch_does_not_go_past_an_end() -> None:
    history = History()
    first = history.append(1)
    until = history.steps().latest()
    history.append(2)
    end = history.steps().next(None, UNLIMITED, until)
    assert end is not None
    assert end.snapshot_id == first
    assert history.steps().next(end, UNLIMITED, until) == end


def test_a_stream_that_began_before_the_end_was_known_ends_there() -> None:
    """A commit came after the end of `Trigger.AvailableNow` was looked up, and before the first batch."""
    history = History()
    history.append(1)
    until = Offset(history.append(1), 0, is_complete=True)
    third = history.append(2)
    for beginning in ("full", "latest"):
        steps = history.steps(stream_from_snapshot=beginning)
        begin = steps.next(None, UNLIMITED, until)
        assert begin is not None
        assert begin.snapshot_id == third
        assert steps.next(begin, UNLIMITED, until) == begin
        assert drain(history, begin, UNLIMITED)[0] == []
    empty = Offset(-1, 0, is_complete=True)
    begin = history.steps().next(None, UNLIMITED, empty)
    assert begin is not None
    assert begin.snapshot_id == -1, "nothing was there"
    assert len(drain(history, offset_from_text(begin.to_text()), UNLIMITED)[0]) == 3


def test_an_empty_table_has_an_offset_only_where_the_stream_is_to_show_what_comes() -> None:
    assert History().steps().next(None, UNLIMITED) is None
    assert History().steps(stream_from_snapshot="full").next(None, UNLIMITED) is None
    history = History()
    begin = history.steps(stream_from_snapshot="latest").next(None, UNLIMITED)
    assert begin is not None
    assert '"snapshot_id":-1,"position":-1,"scan_all_files":false' in begin.to_text(), "Java's text"
    assert history.steps().parts(None, begin) == []
    first = history.append(1)
    begin = offset_from_text(begin.to_text())
    assert drain(history, begin, UNLIMITED, stream_from_snapshot="latest")[0] == [f"of {first} 0"]


def test_a_full_load_whose_snapshot_has_expired_is_an_error() -> None:
    history = History()
    first = history.append(1, 1, 1)
    offset = history.steps(stream_from_snapshot="full").next(None, Limits(files=1))
    history.append(1)
    history.expire(first)
    assert offset is not None
    for call in (lambda: history.steps().next(offset, UNLIMITED), lambda: history.steps().parts(None, offset)):
        with pytest.raises(
            NoSuchSnapshotError, match=f"loads all rows of snapshot {first} .*new checkpoint.* or a tag on the snapshot"
        ):
            call()


def test_a_snapshot_that_does_not_say_what_it_did_is_not_passed_over() -> None:
    history = History()
    snapshot_id = history.append(1)
    unknown = replace(history.metadata.snapshots[0], summary=None)
    history.metadata = history.metadata.evolve(snapshots=(unknown,))
    skips = dict.fromkeys(("streaming_skip_delete_snapshots", "streaming_skip_overwrite_snapshots"), "true")
    with pytest.raises(StateError, match=f"snapshot {snapshot_id} of the table does not say.*to added-files"):
        drain(history, None, UNLIMITED, **skips)
    assert drain(history, None, UNLIMITED, streaming_read_mode="added-files")[0] == [f"of {snapshot_id} 0"]


# -- texts


@given(
    s.builds(
        Offset,
        s.integers(0, 2**63 - 1),
        s.integers(0, 2**40),
        s.booleans(),
        s.booleans(),
        s.none() | s.integers(-1, 2**63 - 1),
        s.none() | s.uuids().map(str),
    )
)
def test_offsets_survive_their_text(offset: Offset) -> None:
    assert offset_from_text(offset.to_text()) == offset


def test_offsets_of_the_java_library_and_of_earlier_releases_are_read() -> None:
    java = offset_from_text('{"version":1,"snapshot_id":5,"position":3,"scan_all_files":false}')
    assert java == Offset(5, 3)
    assert offset_from_text('{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":false}') is None
    assert offset_from_text('{"snapshot-id": 7}') == Offset(7, 0, is_complete=True)
    assert offset_from_text('{"snapshot-id": -1}') is None
    history = History()
    first = history.append(1, 2)
    second = history.append(3)
    assert drain(history, Offset(first, 1), UNLIMITED)[0] == [f"of {first} 1", f"of {second} 0"]
    assert drain(history, Offset(first, 2), UNLIMITED)[0] == [f"of {second} 0"]


@pytest.mark.parametrize(
    "text", ["", "1", "[]", "{}", '{"version":2,"snapshot_id":1,"position":0}', '{"version":1,"snapshot_id":"x"}', "{"]
)
def test_a_text_that_is_no_offset_is_an_error(text: str) -> None:
    with pytest.raises(InvalidInputError, match="offset"):
        offset_from_text(text)


# -- options


def test_options() -> None:
    assert stream_settings() == StreamSettings()
    found = stream_settings({"streaming-max-rows-per-micro-batch": 2**40, "streaming-read-mode": "ADDED-files"})
    assert (found.limits.rows, found.mode) == (2**40, ReadMode.ADDED_FILES)
    for bad, match in (
        ({"streaming-max-file-per-micro-batch": "1"}, "did you mean 'streaming-max-files-per-micro-batch'"),
        ({"streaming-max-files-per-micro-batch": "0"}, "0"),
        ({"streaming-read-mode": "rows"}, "append, added-files, changes"),
        ({"stream-from-snapshot": "1", "stream-from-timestamp": "1"}, "give one of them"),
        ({"streaming-read-mode": "changes", "streaming-max-files-per-micro-batch": "1"}, "never shown in parts"),
    ):
        with pytest.raises(InvalidPropertyError, match=match):
            stream_settings(bad)
