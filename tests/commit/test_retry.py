"""How a commit ends: lost races, lost replies, unknown outcomes, and which files are deleted then and which are not."""

import pytest

from icefloe.commit import BeforeSwap, Committed, Planned, Prepared, Rejected, TableState, Unknown
from icefloe.commit.retry import COMMIT_SETTINGS, Backoff
from icefloe.errors import CommitFailed, CommitStateUnknown, StorageError, ValidationError
from icefloe.schema.types import LongType
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.commit.tables import (
    Clock,
    MemoryCommitter,
    data_file,
    fail_at,
    handle,
    live_paths,
    lose_race,
    new_table,
    stored,
)


def started(version: int, **properties: str) -> tuple[Table, MemoryCommitter, Clock]:
    """A table with one commit, a handle with a clock of its own, and no faults yet."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    first, committer = new_table(version, properties=named)
    first.update_snapshot().fast_append([data_file("memory://d/first")])
    clock = Clock()
    return handle(committer, clock), committer, clock


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_lost_race_is_tried_again_with_the_same_id_and_the_same_manifests(version: int) -> None:
    table, committer, clock = started(version)
    before = stored(table)
    committer.fault = lose_race(3)
    tx = table.transaction()
    promised = tx.update_snapshot().fast_append([data_file("memory://d/a")])
    outcome = tx.try_commit()
    assert isinstance(outcome, Committed)
    assert promised is not None
    assert outcome.attempts == 4
    assert outcome.snapshot_ids == (promised.snapshot_id,)
    assert live_paths(table) == ["memory://d/a", "memory://d/first"]
    assert len(clock.sleeps) == 3
    assert clock.sleeps == [pytest.approx(0.075), pytest.approx(0.15), pytest.approx(0.3)]
    new = sorted(each.rsplit("/", 1)[1] for each in stored(table) - before)
    # One manifest for all attempts; the lists of the failed ones are gone.
    assert len(new) == 2
    assert new[0].endswith("-m0.avro")
    assert new[1].startswith(f"snap-{promised.snapshot_id}-4-")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_after_the_last_attempt_nothing_is_left_behind(version: int) -> None:
    table, committer, _ = started(version, commit__retry__num_retries="2")
    before = stored(table)
    committer.fault = lose_race(100)
    tx = table.transaction()
    tx.update_snapshot().fast_append([data_file("memory://d/a")])
    outcome = tx.try_commit()
    assert isinstance(outcome, Rejected)
    assert (outcome.attempts, outcome.cleaned) == (3, True)
    assert isinstance(outcome.error, CommitFailed)
    assert stored(table) == before
    assert live_paths(table.refresh()) == ["memory://d/first"]
    committer.fault = lambda boundary: None
    table.update_snapshot().fast_append([data_file("memory://d/a")])


def test_time_runs_out_before_the_attempts_do() -> None:
    table, committer, clock = started(
        2, commit__retry__num_retries="1000", commit__retry__total_timeout_ms="2000", commit__retry__min_wait_ms="500"
    )
    committer.fault = lose_race(10_000)
    start = clock.now_ms
    with pytest.raises(CommitFailed):
        table.update_snapshot().fast_append([data_file()])
    assert 2000 <= clock.now_ms - start < 5000


def test_waits_double_up_to_a_limit_and_jitter_shortens_them() -> None:
    backoff = Backoff(10, 100, 1000, 10**6)
    assert [backoff.wait_ms(n, 1.0) for n in (1, 2, 3, 4, 5, 500)] == [100, 200, 400, 800, 1000, 1000]
    assert backoff.wait_ms(1, 0.0) == 50
    assert Backoff.of({}, COMMIT_SETTINGS) == Backoff(4, 100, 60_000, 1_800_000)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize(
    "error",
    [
        CommitFailed("conflict, says the catalog"),
        CommitStateUnknown("?"),
        StorageError("x", "reset"),
        RuntimeError("bug"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_lost_reply_is_found_out_and_nothing_is_done_twice(version: int, error: Exception) -> None:
    table, committer, _ = started(version)
    before = stored(table)
    committer.fault = fail_at("after swap", error)
    made = table.update_snapshot().fast_append([data_file("memory://d/a")])
    assert made is not None
    # It was not even prepared a second time.
    assert len(stored(table) - before) == 2
    assert live_paths(table) == ["memory://d/a", "memory://d/first"]
    assert len(table.snapshots()) == 2
    assert committer.swaps == 2


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("boundary", ["before swap", "after swap"])
def test_while_the_outcome_is_unknown_no_file_is_deleted(version: int, boundary: str) -> None:
    table, committer, clock = started(version)
    before = stored(table)

    def fault(at: str) -> None:
        if at in (boundary, "before load"):
            raise StorageError("catalog", "unreachable")

    committer.fault = fault
    tx = table.transaction()
    tx.update_snapshot().fast_append([data_file("memory://d/a")])
    outcome = tx.try_commit()
    assert isinstance(outcome, Unknown)
    assert len(stored(table) - before) == 2
    assert len(clock.sleeps) == 3
    committer.fault = lambda at: None
    happened = boundary == "after swap"
    assert ("memory://d/a" in live_paths(table.refresh())) is happened


def test_an_unknown_outcome_that_does_not_show_up_stays_unknown() -> None:
    table, committer, _ = started(2)
    before = stored(table)
    committer.fault = fail_at("before swap", RuntimeError("who knows"))
    with pytest.raises(CommitStateUnknown, match="its files are kept"):
        table.update_snapshot().fast_append([data_file("memory://d/a")])
    assert len(stored(table) - before) == 2


def test_a_rejected_commit_keeps_its_files_if_that_cannot_be_proven() -> None:
    table, committer, _ = started(2, commit__retry__num_retries="0")
    before = stored(table)

    def fault(at: str) -> None:
        if at == "before swap":
            raise CommitFailed("lost")
        if at == "before load":
            raise StorageError("catalog", "unreachable")

    committer.fault = fault
    tx = table.transaction()
    tx.update_snapshot().fast_append([data_file("memory://d/a")])
    outcome = tx.try_commit()
    assert isinstance(outcome, Rejected)
    assert outcome.cleaned is False
    assert len(stored(table) - before) == 2


def test_a_commit_that_was_called_lost_but_is_in_the_history_is_committed() -> None:
    table, committer, _ = started(2, commit__retry__num_retries="0")
    committer.fault = fail_at("after swap", CommitFailed("lost, says the catalog"))
    made = table.update_snapshot().fast_append([data_file("memory://d/a")])
    assert made is not None
    assert live_paths(table) == ["memory://d/a", "memory://d/first"]


def test_our_commit_counts_even_if_others_built_on_it_before_we_looked() -> None:
    table, committer, _ = started(2)
    other = handle(committer)

    def fault(at: str) -> None:
        if at == "after swap":
            committer.fault = lambda _: None
            other.refresh().update_snapshot().fast_append([data_file("memory://d/other")])
            raise CommitFailed("lost, says the catalog")

    committer.fault = fault
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    assert live_paths(table) == ["memory://d/a", "memory://d/first", "memory://d/other"]
    assert len(table.snapshots()) == 3


class Liar(MemoryCommitter):
    """A catalog that reports success and does nothing."""

    def commit(self, base: TableState, prepared: Prepared, before_swap: BeforeSwap) -> TableState:
        before_swap()
        return base


def test_a_reported_success_without_our_snapshot_is_not_believed() -> None:
    _, committer = new_table(2)
    liar = handle(Liar(committer.load().metadata))
    with pytest.raises(CommitStateUnknown, match="lacks the new snapshot"):
        liar.update_snapshot().fast_append([data_file()])
    assert len(stored(liar)) == 2


def test_another_table_of_the_same_name_is_never_committed_to() -> None:
    table, committer, _ = started(2)
    stranger, strange = new_table(2)

    def fault(at: str) -> None:
        if at == "before swap":
            committer._state = strange._state
            committer.fault = lambda _: None

    committer.fault = fault
    before = stored(table)
    with pytest.raises(CommitFailed, match="a different table now"):
        table.update_snapshot().fast_append([data_file()])
    assert len(stored(table) - before) >= 2
    assert live_paths(stranger.refresh()) == []
    with pytest.raises(CommitFailed, match="a different table now"):
        table.refresh()


def test_a_killed_writer_deletes_nothing() -> None:
    for boundary in ("before swap", "after swap"):
        table, committer, _ = started(2)
        before = stored(table)

        def fault(at: str, boundary: str = boundary) -> None:
            if at == boundary:
                raise KeyboardInterrupt

        committer.fault = fault
        with pytest.raises(KeyboardInterrupt):
            table.update_snapshot().fast_append([data_file("memory://d/a")])
        assert len(stored(table) - before) == 2
        committer.fault = lambda at: None
        tx = table.refresh().transaction()
        tx.update_snapshot().fast_append([data_file("memory://d/torn")])
        committer.fault = fault
        with pytest.raises(KeyboardInterrupt):
            tx.try_commit()
        tx.abandon()
        assert len(stored(table) - before) == 4
        committer.fault = lambda at: None
        table.refresh().update_snapshot().fast_append([data_file("memory://d/b")])
        expected = ["memory://d/a", "memory://d/torn"] if boundary == "after swap" else []
        assert live_paths(table) == sorted([*expected, "memory://d/b", "memory://d/first"])


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("write", [1, 2])
def test_a_full_disk_changes_nothing_and_the_next_writer_succeeds(version: int, write: int) -> None:
    table, committer, _ = started(version)
    before, real = stored(table), committer.storage.write
    count = 0

    def failing(location: str, data: bytes) -> None:
        nonlocal count
        count += 1
        if count == write:
            raise StorageError(location, "no space left")
        real(location, data)

    committer.storage.write = failing  # type: ignore[method-assign]  # to fail on demand
    with pytest.raises(StorageError, match="no space"):
        table.update_snapshot().fast_append([data_file("memory://d/a")])
    assert stored(table) == before
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    assert live_paths(table) == ["memory://d/a", "memory://d/first"]


def test_files_that_cannot_be_deleted_change_no_outcome() -> None:
    table, committer, _ = started(2)

    def failing(locations: object) -> list[object]:
        raise StorageError("x", "read only")

    committer.storage.delete = failing  # type: ignore[assignment, method-assign]  # to fail on demand
    committer.fault = lose_race(1)
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    assert live_paths(table) == ["memory://d/a", "memory://d/first"]


def test_a_conflict_found_when_trying_again_rejects_and_cleans_up() -> None:
    table, committer, _ = started(2)
    other = handle(committer)
    before = stored(table)
    with table.transaction() as tx:
        tx.update_snapshot().delete_files(["memory://d/first"], Planned.on(table.metadata))
        other.update_snapshot().delete(True)
        after_other = stored(table)
        outcome = tx.try_commit()
    assert isinstance(outcome, Rejected)
    assert isinstance(outcome.error, ValidationError)
    assert outcome.cleaned
    assert stored(table) < after_other
    assert before < stored(table)
    assert live_paths(table.refresh()) == []


def test_changes_without_snapshots_are_found_by_their_effect() -> None:
    table, committer, _ = started(2)
    committer.fault = fail_at("after swap", StorageError("catalog", "reset"))
    table.set_properties({"a": "b"})
    assert table.properties["a"] == "b"
    committer.fault = fail_at("before swap", StorageError("catalog", "reset"))
    with pytest.raises(CommitStateUnknown):
        table.set_properties({"a": "c"})
    assert table.refresh().properties["a"] == "b"


class Twice(MemoryCommitter):
    """A catalog that gets every request twice, and tells what came of the second."""

    def commit(self, base: TableState, prepared: Prepared, before_swap: BeforeSwap) -> TableState:
        super().commit(base, prepared, before_swap)
        return super().commit(base, prepared, before_swap)


@pytest.mark.parametrize("retries", ["0", "3"])
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_request_that_came_twice_is_acknowledged_and_done_once(version: int, retries: str) -> None:
    _, committer = new_table(version, properties={"commit.retry.num-retries": retries})
    table = handle(Twice(committer.load().metadata))
    table.update_snapshot().fast_append([data_file("memory://d/a")])
    staged = table.update_snapshot(stage_only=True).fast_append([data_file("memory://d/b")])
    assert staged is not None
    table.manage_snapshots().create_branch("dev").create_tag("mark").commit()
    table.manage_snapshots().remove_tag("mark").rename_branch("dev", "prod").commit()
    table.manage_snapshots().cherrypick(staged.snapshot_id).commit()
    with table.update_schema() as update:
        update.add_column("more", LongType())
    with table.update_spec() as spec:
        spec.add_field("region")
    with table.update_sort_order() as order:
        order.asc("id")
    table.set_properties({"a": "b"})
    table.remove_properties("a")
    found = table.refresh()
    assert live_paths(found) == ["memory://d/a", "memory://d/b"]
    assert set(found.refs()) == {"main", "prod"}
    assert len(found.schemas()) == len(found.specs()) == len(found.sort_orders()) == 2


def test_nonsense_in_retry_properties_does_not_lock_the_table() -> None:
    table, committer = new_table(2)
    metadata = table.metadata.evolve(properties={"commit.retry.num-retries": "many"})
    committer._state = TableState(metadata, committer._state.metadata_location)
    table.refresh().update_snapshot().fast_append([data_file("memory://d/a")])
    table.set_properties({"commit.retry.num-retries": "3"})
    assert table.properties == {"commit.retry.num-retries": "3"}
