"""The index of paths: it names every manifest that holds a path, stays within its bound, and saves reading."""

from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.commit.parent import Parent
from icefloe.commit.path_index import PathIndex, hashes_of
from icefloe.errors import ValidationError
from tests.commit.tables import bench_of, data_file, new_table

PATHS = st.lists(st.sampled_from([f"memory://d/{number}" for number in range(60)]), max_size=40)
MANIFESTS = st.dictionaries(st.sampled_from([f"m{number}" for number in range(12)]), PATHS)


def index_of(manifests: Mapping[str, list[str]], capacity: int = 10_000) -> PathIndex:
    found = PathIndex(capacity)
    for name, paths in manifests.items():
        found.add(name, hashes_of(pa.array(paths, pa.string())))
    return found


@given(MANIFESTS, PATHS)
def test_every_manifest_that_holds_a_path_is_named(manifests: dict[str, list[str]], wanted: list[str]) -> None:
    found = index_of(manifests).may_hold(hashes_of(pa.array(wanted, pa.string())))
    # Exactly these: that two of sixty paths share a hash of 64 bits does not happen.
    assert found == {name for name, paths in manifests.items() if set(paths) & set(wanted)}


@given(MANIFESTS, st.sets(st.sampled_from([f"m{number}" for number in range(12)])), st.integers(1, 100))
def test_it_stays_within_its_bound_and_forgets_what_is_not_needed(
    manifests: dict[str, list[str]], needed: set[str], capacity: int
) -> None:
    index = index_of(manifests, capacity)
    assert len(index) <= capacity
    before = {name for name in manifests if name in index}
    was_full = 2 * len(index) > capacity
    index.make_room(needed)
    after = {name for name in manifests if name in index}
    assert after == (before & needed if was_full else before)
    for name in after:
        hashes = hashes_of(pa.array(manifests[name], pa.string()))
        assert name in index.may_hold(hashes) or not manifests[name]


def test_a_handle_reads_no_manifest_twice_and_none_of_its_own() -> None:
    table, _ = new_table(2)
    read: list[str] = []
    real = table.storage.read

    def counted(location: str) -> bytes:
        read.append(location)
        return real(location)

    table.storage.read = counted  # type: ignore[method-assign]  # to see what is read
    for number in range(20):
        table.update_snapshot().fast_append([data_file(f"memory://d/{number}")])
    assert [each for each in read if each.endswith(".avro")] == []
    with pytest.raises(ValidationError, match="already"):
        table.update_snapshot().fast_append([data_file("memory://d/7")])
    # Only the one manifest that holds it was looked at.
    assert len([each for each in read if "-m0.avro" in each]) == 1


def test_the_paths_of_each_manifest_of_a_large_commit_are_known() -> None:
    table, _ = new_table(2, properties={"commit.manifest.target-size-bytes": "1000"})
    table.update_snapshot().fast_append([data_file(f"memory://d/{number:060}") for number in range(4000)])
    index = table._caches.paths
    parent = Parent(table.metadata, bench_of(table))
    manifests = parent.manifests_of(table.metadata.snapshots[-1])
    assert len(manifests) > 1
    for manifest in manifests:
        held = parent.read(manifest).column("file_path")
        for path in (held[0], held[-1]):
            assert index.may_hold(hashes_of(pa.array([path.as_py()]))) == {manifest.manifest_path}
