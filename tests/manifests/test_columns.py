"""Files as values become columns: maps of any keys, in any order, and nothing that a manifest cannot hold."""

from collections import defaultdict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidInputError
from icefloe.manifests import DataFile, EntryStatus, ManifestEntry, columns_of
from icefloe.schema import StructType


def entries(*files: DataFile) -> list[ManifestEntry]:
    return [ManifestEntry(EntryStatus.ADDED, file) for file in files]


def file_with(number: int, counts: Any, bounds: Any) -> DataFile:
    return DataFile(f"f{number}", "parquet", number, 0, value_counts=counts, lower_bounds=bounds)


IDS = st.integers(-(2**31), 2**31 - 1)
SHARED = st.permutations(range(1, 5)).flatmap(
    lambda ids: st.lists(st.fixed_dictionaries({field_id: st.integers(-(2**63), 2**63 - 1) for field_id in ids}))
)
ANY = st.lists(st.dictionaries(IDS, st.integers(-(2**63), 2**63 - 1), max_size=4), max_size=6)
BOUNDS = st.dictionaries(IDS, st.binary(max_size=9), max_size=4)


@given(SHARED | ANY, st.data())
def test_values_become_columns_and_values_again(counts: list[dict[int, int]], data: st.DataObject) -> None:
    alike = data.draw(BOUNDS)
    bounds = [data.draw(st.just(alike) | BOUNDS) for _ in counts]
    kind = data.draw(st.sampled_from([dict, MappingProxyType]))
    files = [file_with(i, kind(counts[i]), bounds[i]) for i in range(len(counts))]
    found = list(columns_of(entries(*files), StructType()).files())
    assert [each.value_counts for each in found] == counts
    assert [each.lower_bounds for each in found] == bounds
    assert [(each.file_path, each.record_count) for each in found] == [(f"f{i}", i) for i in range(len(counts))]


def test_maps_of_one_length_keep_their_own_keys() -> None:
    counts = [{1: 10, 2: 20}, {2: 21, 1: 11}, defaultdict(int, {1: 12, 3: 32})]
    for some in (counts[:2], counts):
        files = [file_with(i, each, {1 + i % 2: b"a"}) for i, each in enumerate(some)]
        found = list(columns_of(entries(*files), StructType()).files())
        assert [each.value_counts for each in found] == some
        assert [each.lower_bounds for each in found] == [{1 + i % 2: b"a"} for i in range(len(some))]
    assert set(counts[2]) == {1, 3}


@pytest.mark.parametrize(
    ("counts", "bounds"),
    [
        ({1: 1.5}, {}),
        ({1: "1"}, {}),
        ({1: None}, {}),
        ({1: 2**63}, {}),
        ({2**31: 1}, {}),
        ({"1": 1}, {}),
        ({}, {1: "text"}),
        ({}, {1: None}),
        ({}, {1: 5}),
    ],
)
def test_values_that_manifests_cannot_hold_are_refused(counts: Any, bounds: Any) -> None:
    with pytest.raises(InvalidInputError, match="cannot"):
        columns_of(entries(file_with(0, {}, {}), file_with(1, counts, bounds)), StructType())
