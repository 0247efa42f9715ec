"""A set of paths in eight bytes each is a set: whatever goes in, in whatever batches, in memory and on disk."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.maintenance.files.path_hashes import location_hashes, text_hashes
from icefloe.maintenance.files.path_set import PathSet
from icefloe.storage import possible_identity

TEXTS = st.text(max_size=40)
NAMES = st.text(st.sampled_from("abé%/. "), min_size=1, max_size=12)
LOCATIONS = st.builds(
    "{}{}".format,
    st.sampled_from(["/", "file:/", "file:///", "s3://b/", "s3a://b/", "hdfs://one/", "hdfs://two:8020/", "hdfs:/"]),
    NAMES,
)
BATCHES = st.lists(st.lists(LOCATIONS, max_size=30), max_size=12)


def array(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.string())


@given(texts=st.lists(TEXTS, max_size=60), start=st.integers(0, 5))
def test_texts_share_a_hash_only_if_they_are_equal(texts: list[str], start: int) -> None:
    hashes = text_hashes(array(["x" * 9] * start + texts).slice(start))
    assert len(hashes) == len(texts)
    assert len(set(hashes.tolist())) == len(set(texts))
    assert hashes.tolist() == [int(text_hashes(array([text]))[0]) for text in texts]


@given(ones=st.lists(LOCATIONS, min_size=1, max_size=30))
def test_locations_share_a_hash_if_they_may_be_one_file(ones: list[str]) -> None:
    hashes = location_hashes(array(ones)).tolist()
    keys = [possible_identity(each) for each in ones]
    for key, number in zip(keys, hashes, strict=True):
        assert [other == key for other in keys] == [other == number for other in hashes]


@given(added=BATCHES, asked=st.lists(LOCATIONS, max_size=60), budget=st.sampled_from([0, 64, 1 << 20]))
@settings(max_examples=60)
def test_a_set_of_paths_is_a_set(added: list[list[str]], asked: list[str], budget: int) -> None:
    plain: set[str] = set()
    with PathSet(budget) as paths:
        for number, batch in enumerate(added):
            keys = list(map(possible_identity, batch))
            if number % 2:
                paths.add(array(batch))
            else:
                is_new = paths.add_new(location_hashes(array(batch))).tolist()
                assert is_new == [key not in plain and key not in keys[:at] for at, key in enumerate(keys)]
            plain.update(keys)
            assert len(paths) == len(plain)
        assert (paths.runs_on_disk > 0) == (budget < 8 * len(plain))
        assert paths.contains(array(asked)).tolist() == [possible_identity(each) in plain for each in asked]


def test_many_paths_that_differ_little_do_not_share_hashes() -> None:
    texts = pa.array([f"s3://bucket/t/data/part={n % 97}/{n:05d}-{n * 7}.parquet" for n in range(100_000)])
    hashes = text_hashes(texts)
    assert len(np.unique(hashes)) == len(texts)
    # Any 20 bits of them are as random as the whole.
    assert abs(len(np.unique(hashes >> np.uint64(44))) - 2**20 * (1 - np.exp(-100_000 / 2**20))) < 2_000


def test_a_hash_does_not_depend_on_the_process() -> None:
    assert text_hashes(array(["s3://b/a"])).tolist() == [18017828845776676787]


def test_the_disk_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with PathSet(1 << 10) as paths:
        for start in range(0, 1_000, 100):
            paths.add(array([f"/t/{number}" for number in range(start, start + 100)]))
        assert len(list(tmp_path.iterdir())) == paths.runs_on_disk > 1
        assert paths.contains(array(["/t/7", "/t/999", "/t/1000"])).tolist() == [True, True, False]
    assert not list(tmp_path.iterdir())
