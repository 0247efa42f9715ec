"""Tables of paths against a dictionary, by Arrow and by compiled code."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.planning import vector_deletes
from icefloe.planning.vector_deletes import PathTable

texts = st.text("ab/é", max_size=20)


@pytest.fixture(params=[0, 4096], ids=["compiled", "arrow"], scope="module", autouse=True)
def few(request: pytest.FixtureRequest) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_deletes, "_FEW", request.param)
        yield


@given(st.lists(texts, min_size=1, max_size=60, unique=True), st.lists(texts, max_size=60), st.integers(0, 5))
def test_paths_are_found_where_they_are(known: list[str], asked: list[str], start: int) -> None:
    asked = [*known[::2], *asked]
    table = PathTable(pa.array(["x", *known], pa.string()).slice(1))
    assert table.twins is None
    found = table.find(pa.array(asked, pa.string()).slice(start))
    assert found.dtype == np.int64
    assert found.tolist() == [known.index(each) if each in known else -1 for each in asked[start:]]


@given(st.lists(texts, min_size=1, max_size=30, unique=True), st.data())
def test_the_same_path_twice_is_told(known: list[str], data: Any) -> None:
    again = data.draw(st.integers(0, len(known) - 1))
    at = data.draw(st.integers(again + 1, len(known)))
    paths = [*known[:at], known[again], *known[at:]]
    assert PathTable(pa.array(paths, pa.string())).twins == (again, at)


def test_many_paths() -> None:
    known = [f"s3://bucket/table/data/{number:09d}.parquet" for number in range(9000)]
    table = PathTable(pa.array(known))
    assert table.find(pa.array([*reversed(known), "s3://bucket"])).tolist() == [*range(8999, -1, -1), -1]
