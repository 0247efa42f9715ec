"""Micro-batches of real tables: their files by position, with the deletes of a full load, and batches that are committed once."""

import functools
import operator
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.errors import AlreadyCommittedError, InvalidInputError
from icefloe.metadata import MAIN_BRANCH
from icefloe.streaming import (
    UNLIMITED,
    CommitOnce,
    Limits,
    Offset,
    PartsPlanner,
    StreamBatch,
    StreamSteps,
    TableFiles,
    epochs,
    newest_batch,
    stream_settings,
)
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows


@pytest.fixture
def catalog(tmp_path: object) -> Iterator[Catalog]:
    with load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        yield catalog


def numbers(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64()), "part": pa.array([value % 3 for value in values], pa.int64())})


def create(catalog: Catalog, version: int, mode: str = "merge-on-read") -> Table:
    properties = {"format-version": str(version), "write.delete.mode": mode if version > 1 else "copy-on-write"}
    return catalog.create_table("db.t", "id bigint, part bigint", partition_spec=["part"], properties=properties)


def batches(table: Table, limits: Limits, offset: Offset | None = None, **options: str) -> Iterator[list[int]]:
    """The ids of each micro-batch until nothing is new."""
    settings = stream_settings({key.replace("_", "-"): value for key, value in options.items()})
    while True:
        files = TableFiles(table.metadata, table.storage)
        steps = StreamSteps(table.metadata, settings, files)
        end = steps.next(offset, limits)
        if end is None or end == offset:
            return
        scan = table.scan()
        object.__setattr__(scan, "planner", PartsPlanner(files, steps.parts(offset, end)))
        yield sorted(scan.to_arrow().column("id").to_pylist())
        offset = end


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_are_read_by_position(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    table.append(numbers(*range(9)))
    table.append(numbers(*range(10, 16)))
    for count in (1, 2, 4, 5):
        read = list(batches(table, Limits(files=count)))
        assert sorted(functools.reduce(operator.iadd, read, [])) == [*range(9), *range(10, 16)]
        assert len(read) == -(-6 // count), "three files of each commit"
    assert list(batches(table, UNLIMITED)) == [[*range(9), *range(10, 16)]]
    # Files of a whole commit by the summary, without a manifest.
    assert len(list(batches(table, Limits(files=3)))) == 2


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_full_load_applies_deletes(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    table.append(numbers(*range(9)))
    table.append(numbers(*range(10, 16)))
    table.delete("id in (1, 11)")
    expected = [value for value in (*range(9), *range(10, 16)) if value not in (1, 11)]
    for count in (1, 2, 100):
        read = list(batches(table, Limits(files=count), stream_from_snapshot="full"))
        assert sorted(functools.reduce(operator.iadd, read, [])) == expected
    assert len(read) == 1
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    table.maintenance.expire_snapshots().by_ids(ids[:-1]).commit()
    assert sorted(functools.reduce(operator.iadd, batches(table.refresh(), UNLIMITED), [])) == expected, (
        "the first snapshots have expired"
    )


def test_filters_choose_among_the_files_of_a_batch(catalog: Catalog) -> None:
    table = create(catalog, 3)
    table.append(numbers(*range(9)))
    files = TableFiles(table.metadata, table.storage)
    steps = StreamSteps(table.metadata, stream_settings(), files)
    end = steps.next(None, Limits(files=2))
    assert end is not None
    planner = PartsPlanner(files, steps.parts(None, end))
    counts = [len(list(planner.plan_files(table.scan(f"part = {part}")))) for part in range(3)]
    assert sorted(counts) == [0, 1, 1]


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)])
def test_later_deletes_do_not_matter_to_what_was_appended(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    table.append(numbers(1, 2, 4, 5))
    table.delete("id = 4")
    assert functools.reduce(
        operator.iadd,
        batches(table, UNLIMITED, streaming_skip_delete_snapshots="true", streaming_skip_overwrite_snapshots="true"),
        [],
    ) == [1, 2, 4, 5]


def test_a_table_that_did_not_change_is_in_memory_once(catalog: Catalog) -> None:
    """A stream looks for commits all the time, and its batches hold what they knew of the table."""
    table = create(catalog, 2)
    table.append(numbers(1))
    before = table.metadata
    assert table.refresh().metadata is before
    catalog.load_table("db.t").append(numbers(2))
    assert len(table.refresh().snapshots()) == 2


# -- batches that are committed once


def commit(table: Table, batch: StreamBatch, *values: int, branch: str | None = None) -> None:
    with table.transaction() as tx:
        tx.append(numbers(*values), branch=branch, snapshot_properties=batch.summary)
        tx.add(CommitOnce(batch, branch))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_batch_is_committed_once(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    behind = catalog.load_table("db.t")
    commit(table, StreamBatch("q", 0), 1)
    commit(table, StreamBatch("q", 1), 2)
    commit(table, StreamBatch("other", 0), 3)
    for handle in (table, behind, catalog.load_table("db.t")):
        for number in (0, 1):
            with pytest.raises(AlreadyCommittedError, match=f"batch {number} of query q is in the table already"):
                commit(handle, StreamBatch("q", number), 99)
    commit(behind.refresh(), StreamBatch("q", 2), 4)
    assert sorted(behind.scan().to_arrow().column("id").to_pylist()) == [1, 2, 3, 4]
    assert newest_batch(behind.metadata, None, "q") == 2
    assert newest_batch(behind.metadata, None, "nobody") is None


def test_a_batch_is_known_after_its_snapshot_has_expired(catalog: Catalog) -> None:
    table = create(catalog, 2)
    commit(table, StreamBatch("q", 5), 1)
    table.append(numbers(2))
    table.maintenance.expire_snapshots().by_ids([table.snapshots()[0].snapshot_id]).commit()
    table.refresh()
    with pytest.raises(AlreadyCommittedError):
        commit(table, StreamBatch("q", 5), 1)
    commit(table, StreamBatch("q", 6), 3)


def test_a_batch_that_was_rolled_back_is_committed_again(catalog: Catalog) -> None:
    table = create(catalog, 2)
    table.append(numbers(1))
    first = table.snapshots()[0].snapshot_id
    commit(table, StreamBatch("q", 0), 2)
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first)
    commit(table, StreamBatch("q", 0), 2)
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2]


def test_a_batch_that_was_rolled_back_and_has_expired_is_committed_again(catalog: Catalog) -> None:
    table = create(catalog, 2)
    table.append(numbers(1))
    first = table.snapshots()[0].snapshot_id
    commit(table, StreamBatch("q", 0), 2)
    second = table.snapshots()[1].snapshot_id
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first)
    table.maintenance.expire_snapshots().by_ids([second]).commit()
    commit(table.refresh(), StreamBatch("q", 0), 2)
    assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2]


def test_a_batch_that_was_published_is_not_committed_to_the_next_branch_of_the_name(catalog: Catalog) -> None:
    table = create(catalog, 2)
    table.append(numbers(1))
    commit(table, StreamBatch("q", 0), 2, branch="audit")
    with table.manage_snapshots() as manage:
        manage.fast_forward("main", "audit").remove_branch("audit")
    with pytest.raises(AlreadyCommittedError):
        commit(table, StreamBatch("q", 0), 2, branch="audit")


def test_main_is_the_same_by_name(catalog: Catalog) -> None:
    table = create(catalog, 2)
    commit(table, StreamBatch("q", 0), 2, branch="main")
    table.append(numbers(1))
    table.maintenance.expire_snapshots().by_ids([table.snapshots()[0].snapshot_id]).commit()
    with pytest.raises(AlreadyCommittedError):
        commit(table.refresh(), StreamBatch("q", 0), 2)


def test_branches_have_batches_of_their_own(catalog: Catalog) -> None:
    table = create(catalog, 2)
    table.append(numbers(1))
    commit(table, StreamBatch("q", 0), 2, branch="work")
    with pytest.raises(AlreadyCommittedError):
        commit(table, StreamBatch("q", 0), 2, branch="work")
    commit(table, StreamBatch("q", 0), 3)
    assert newest_batch(table.metadata, "work", "q") == 0
    assert newest_batch(table.metadata, "next", "q") == 0, "it is to begin as main"
    assert newest_batch(table.metadata, "next", "nobody") is None
    assert newest_batch(table.metadata, MAIN_BRANCH, "q") == 0


def test_notes_of_the_queries_that_wrote_last_are_kept(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "MOST_NOTES", 3)
    table = create(catalog, 2)
    with table.transaction() as tx:
        # Without a time, as it was before there were times; and not a note at all.
        tx.set_properties({f"{epochs.PROPERTY}old": "4:7", f"{epochs.PROPERTY}odd": "x"})
    for number, query in enumerate(("a", "b", "c", "a", "d")):
        commit(table, StreamBatch(query, number), number)
        time.sleep(0.002)
    notes = {key for key in table.properties if key.startswith(epochs.PROPERTY)}
    assert notes == {f"{epochs.PROPERTY}{query}" for query in ("c", "a", "d")}
    expired = [each.snapshot_id for each in table.snapshots()[:-1]]
    table.maintenance.expire_snapshots().by_ids(expired).commit()
    assert newest_batch(table.refresh().metadata, None, "a") == 3
    assert newest_batch(table.metadata, None, "b") is None


@pytest.mark.parametrize(("query", "number"), [("", 0), (None, 0), ("q", -1), ("q", "1"), ("q", True)])
def test_a_batch_has_a_query_and_a_number(query: object, number: object) -> None:
    with pytest.raises(InvalidInputError, match=r"id of a query|number of a batch"):
        StreamBatch(query, number)  # type: ignore[arg-type]  # on purpose
