"""What entries take from their manifest, and manifests from their snapshot."""

from dataclasses import replace
from typing import Any

import pytest

from icefloe.errors import InvalidInputError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    assign_first_row_ids,
    assign_sequence_numbers,
    columns_of,
    inherit,
)
from icefloe.schema import StructType

E, A, D = EntryStatus.EXISTING, EntryStatus.ADDED, EntryStatus.DELETED


def manifest(**changes: Any) -> ManifestFile:
    return ManifestFile(
        **{"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "added_snapshot_id": 77, **changes}
    )


def entry(status: EntryStatus, rows: int = 10, first_row_id: int | None = None, **changes: Any) -> ManifestEntry:
    return ManifestEntry(status, DataFile("s3://b/f", "parquet", rows, 1, first_row_id=first_row_id), **changes)


def inherited(rows: list[ManifestEntry], source: ManifestFile, **options: Any) -> list[ManifestEntry]:
    return list(inherit(columns_of(rows, StructType()), source, **options).entries())


@pytest.mark.parametrize(
    ("status", "stored", "manifest_number", "expected"),
    [
        (A, None, 5, 5),
        (A, 3, 5, 3),
        (E, 3, 5, 3),
        (E, None, 5, None),
        (D, None, 5, None),
        (D, 2, 5, 2),
        # From v1: all numbers are 0, whatever the status.
        (A, None, 0, 0),
        (E, None, 0, 0),
        (D, None, 0, 0),
        (E, 3, 0, 3),
        # Not committed yet: the number is still to come.
        (A, None, -1, None),
    ],
)
def test_sequence_numbers(status: EntryStatus, stored: int | None, manifest_number: int, expected: int | None) -> None:
    rows = [entry(status, sequence_number=stored, file_sequence_number=stored, snapshot_id=1)]
    (found,) = inherited(rows, manifest(sequence_number=manifest_number))
    assert (found.sequence_number, found.file_sequence_number) == (expected, expected)


def test_snapshot_ids() -> None:
    rows = [entry(A), entry(E, snapshot_id=3), entry(D, snapshot_id=4)]
    assert [row.snapshot_id for row in inherited(rows, manifest())] == [77, 3, 4]


FIRST_ROW_IDS: list[tuple[str, ManifestFile, list[ManifestEntry], list[int | None]]] = [
    (
        "the example of the spec, manifest A",
        manifest(first_row_id=1000),
        [entry(E, 25, 800), entry(A, 50), entry(A, 50)],
        [800, 1000, 1050],
    ),
    ("existing files without an id get one too", manifest(first_row_id=5), [entry(E, 7), entry(A, 1)], [5, 12]),
    (
        "deleted files get none and take no room",
        manifest(first_row_id=5),
        [entry(D, 7), entry(A, 1), entry(D, 3, 9)],
        [None, 5, 9],
    ),
    ("no id, no ids", manifest(), [entry(A), entry(E, 1, 800)], [None, None]),
]


@pytest.mark.parametrize(
    ("source", "rows", "expected"), [case[1:] for case in FIRST_ROW_IDS], ids=[c[0] for c in FIRST_ROW_IDS]
)
def test_first_row_ids(source: ManifestFile, rows: list[ManifestEntry], expected: list[int | None]) -> None:
    assert [row.data_file.first_row_id for row in inherited(rows, source)] == expected


def test_manifests_that_are_not_committed_keep_their_ids() -> None:
    found = inherited([entry(E, 1, 800), entry(A)], manifest(), committed=False)
    assert [row.data_file.first_row_id for row in found] == [800, None]


def test_delete_files_never_have_row_ids() -> None:
    file = DataFile("s3://b/f", "parquet", 1, 1, FileContent.EQUALITY_DELETES, equality_ids=(1,), first_row_id=4)
    source = manifest(content=ManifestContent.DELETES, first_row_id=3)
    assert inherited([ManifestEntry(A, file)], source)[0].data_file.first_row_id is None


def test_the_example_of_the_spec_ends_at_1375() -> None:
    """Spec: Row lineage example: manifests with (added, existing) rows (100, 25), (0, 100), (125, 25)."""
    deletes = manifest(manifest_path="d", content=ManifestContent.DELETES, added_rows_count=9, existing_rows_count=9)
    counts = {"A": (100, 25), "B": (0, 100), "C": (125, 25)}
    rows = [manifest(manifest_path=name, added_rows_count=a, existing_rows_count=e) for name, (a, e) in counts.items()]
    known = manifest(manifest_path="old", first_row_id=4, added_rows_count=50, existing_rows_count=0)
    found, next_row_id = assign_first_row_ids([deletes, *rows[:2], known, rows[2]], 1000)
    assert next_row_id == 1375
    assert [each.first_row_id for each in found] == [None, 1000, 1125, 4, 1225]


def test_row_ids_need_row_counts() -> None:
    with pytest.raises(InvalidInputError, match="how many rows"):
        assign_first_row_ids([manifest()], 0)


def test_new_manifests_get_the_sequence_number_of_their_snapshot() -> None:
    new = manifest(sequence_number=-1, min_sequence_number=-1)
    carried = manifest(sequence_number=-1, min_sequence_number=2)
    old = manifest(sequence_number=3, min_sequence_number=1, added_snapshot_id=5)
    found = assign_sequence_numbers([new, carried, old], 77, 9)
    assert [(each.sequence_number, each.min_sequence_number) for each in found] == [(9, 9), (9, 2), (3, 1)]
    with pytest.raises(InvalidInputError, match="snapshot 5"):
        assign_sequence_numbers([replace(new, added_snapshot_id=5)], 77, 9)
