"""Snapshot summaries: every key, and totals that follow from the snapshot before."""

from dataclasses import fields

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidInputError, InvalidPropertyError
from icefloe.metadata import Operation, summary as totals

ADDED = totals.FileCounts(
    data_files=1,
    records=20,
    position_delete_files=3,
    deletion_vectors=4,
    position_deletes=50,
    equality_delete_files=6,
    equality_deletes=70,
    size_in_bytes=800,
)
REMOVED = totals.FileCounts(1, 10, 1, 2, 3, 4, 5, 6)


def test_every_key() -> None:
    counts = totals.ChangeCounts(ADDED, REMOVED, 2, 3, 4, 5, 6, 7)
    previous = {
        "total-data-files": "10",
        "total-delete-files": "100",
        "total-records": "1000",
        "total-files-size": "10000",
        "total-position-deletes": "5",
        "total-equality-deletes": "6",
    }
    summary = totals.summarize(Operation.OVERWRITE, counts, previous, {"engine-name": "icefloe"})
    assert summary.operation == "overwrite"
    assert summary.properties == {
        "engine-name": "icefloe",
        "added-data-files": "1",
        "deleted-data-files": "1",
        "added-equality-delete-files": "6",
        "removed-equality-delete-files": "4",
        "added-position-delete-files": "3",
        "removed-position-delete-files": "1",
        "added-delete-files": "13",
        "removed-delete-files": "7",
        "added-dvs": "4",
        "removed-dvs": "2",
        "added-records": "20",
        "deleted-records": "10",
        "added-files-size": "800",
        "removed-files-size": "6",
        "added-position-deletes": "50",
        "removed-position-deletes": "3",
        "added-equality-deletes": "70",
        "removed-equality-deletes": "5",
        "deleted-duplicate-files": "2",
        "changed-partition-count": "3",
        "manifests-created": "4",
        "manifests-kept": "5",
        "manifests-replaced": "6",
        "entries-processed": "7",
        "total-data-files": "10",
        "total-delete-files": "106",
        "total-records": "1010",
        "total-files-size": "10794",
        "total-position-deletes": "52",
        "total-equality-deletes": "71",
    }
    assert summary["added-dvs"] == summary.get("added-dvs") == "4"
    assert summary.get("absent") is None


def test_what_is_zero_or_unknown_is_left_out() -> None:
    assert totals.summarize(Operation.APPEND, totals.ChangeCounts(), {}).properties == {}
    assert totals.summarize(Operation.APPEND, totals.ChangeCounts(), None).properties == {
        "total-data-files": "0",
        "total-delete-files": "0",
        "total-records": "0",
        "total-files-size": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }


@pytest.mark.parametrize("total", ["", "x", "-5", "1.5", "٣", "9" * 5000])
def test_a_total_that_makes_no_sense_is_not_carried_on(total: str) -> None:
    summary = totals.summarize(
        Operation.APPEND, totals.ChangeCounts(totals.FileCounts(records=5)), {"total-records": total}
    )
    assert "total-records" not in summary.properties


def test_a_total_below_zero_is_left_out() -> None:
    counts = totals.ChangeCounts(removed=totals.FileCounts(records=5))
    assert "total-records" not in totals.summarize(Operation.DELETE, counts, {"total-records": "4"}).properties


def test_a_replace_adds_no_records() -> None:
    same = totals.FileCounts(records=5)
    assert totals.summarize(Operation.REPLACE, totals.ChangeCounts(same, same), None).operation is Operation.REPLACE
    with pytest.raises(InvalidInputError, match="adds 6 records and removes 5"):
        totals.summarize(Operation.REPLACE, totals.ChangeCounts(totals.FileCounts(records=6), same), None)


@pytest.mark.parametrize("key", ["operation", "added-records", "total-records"])
def test_computed_keys_cannot_be_set(key: str) -> None:
    with pytest.raises(InvalidPropertyError, match=key):
        totals.summarize(Operation.APPEND, totals.ChangeCounts(totals.FileCounts(records=5)), None, {key: "1"})


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_partitions_are_summarized_up_to_a_limit(limit: int) -> None:
    counts = totals.ChangeCounts(
        totals.FileCounts(data_files=2, records=3),
        partitions={
            "day=1": totals.PartitionCounts(
                totals.FileCounts(data_files=1, records=1), totals.FileCounts(data_files=4)
            ),
            "day=2": totals.PartitionCounts(totals.FileCounts(data_files=1, records=2)),
        },
    )
    properties = totals.summarize(Operation.APPEND, counts, {}, partition_limit=limit).properties
    if limit < 2:
        assert not any(key.startswith("partition") for key in properties)
    else:
        assert properties["partition-summaries-included"] == "true"
        assert properties["partitions.day=1"] == "added-data-files=1,deleted-data-files=4,added-records=1"
        assert properties["partitions.day=2"] == "added-data-files=1,added-records=2"


counts_of_files = st.builds(totals.FileCounts, *(st.integers(0, 100) for _ in fields(totals.FileCounts)))


@given(counts_of_files, counts_of_files)
def test_counts_add_up(one: totals.FileCounts, other: totals.FileCounts) -> None:
    total = one + other
    for each in fields(totals.FileCounts):
        assert getattr(total, each.name) == getattr(one, each.name) + getattr(other, each.name)
    assert total.delete_files == one.delete_files + other.delete_files


@given(st.lists(counts_of_files, max_size=5))
def test_totals_are_sums_of_what_was_added(commits: list[totals.FileCounts]) -> None:
    previous = None
    for added in commits:
        previous = totals.summarize(Operation.APPEND, totals.ChangeCounts(added), previous).properties
    if previous is not None:
        assert previous["total-records"] == str(sum(each.records for each in commits))
        assert previous["total-files-size"] == str(sum(each.size_in_bytes for each in commits))
        assert previous["total-delete-files"] == str(sum(each.delete_files for each in commits))
