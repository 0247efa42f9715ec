"""Sizes of files: thresholds, groups worth a rewrite, and how many files come of them."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import InvalidPropertyError
from icefloe.maintenance.rewrite.file_sizes import FileSizes

MIB = 1 << 20
DEFAULT = FileSizes.of({}, 512 * MIB)


def test_sizes_follow_from_the_target() -> None:
    assert (DEFAULT.minimum, DEFAULT.maximum) == (384 * MIB, int(1.8 * 512 * MIB))
    assert DEFAULT.write_maximum == 512 * MIB + (DEFAULT.maximum - 512 * MIB) // 2
    sizes = FileSizes.of({"target-file-size-bytes": "101"}, 512 * MIB)
    assert (sizes.minimum, sizes.target, sizes.maximum, sizes.write_maximum) == (75, 101, 181, 141)


@pytest.mark.parametrize("option", ["min-file-size-bytes", "max-file-size-bytes"])
def test_a_target_outside_its_bounds_is_refused(option: str) -> None:
    with pytest.raises(InvalidPropertyError, match="are the target"):
        FileSizes.of({"target-file-size-bytes": "100", option: "100"}, 512 * MIB)


def test_misfits_are_those_below_or_above() -> None:
    sizes = np.array([0, 74, 75, 180, 181])
    assert FileSizes.of({"target-file-size-bytes": "100"}, 1).misfits(sizes).tolist() == [
        True,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("sizes", "worth_it"),
    [
        ([10], False),  # one small file alone
        ([10, 10], False),
        ([10] * 5, True),  # as many as `min-input-files`
        ([60, 60], True),  # more than the target
        ([150], False),
        ([190], True),  # one large file alone is split
    ],
)
def test_which_groups_are_worth_it(sizes: list[int], worth_it: bool) -> None:
    rules = FileSizes.of({"target-file-size-bytes": "100"}, 1)
    numbers = list(range(len(sizes)))
    assert rules.groups(numbers, sizes.__getitem__) == ([numbers] if worth_it else [])
    assert rules.groups(numbers, sizes.__getitem__, lambda number: number == 0) == [numbers]


def test_groups_are_cut_by_bytes_and_by_files() -> None:
    by_bytes = FileSizes.of({"max-file-group-size-bytes": "25", "rewrite-all": "true"}, 100)
    assert by_bytes.groups([0, 1, 2, 3, 4], lambda _: 10) == [[0, 1], [2, 3], [4]]
    by_files = FileSizes.of({"max-file-group-input-files": "3", "rewrite-all": "true"}, 100)
    assert by_files.groups([4, 3, 2, 1], lambda _: 10) == [[4, 3, 2], [1]]


@pytest.mark.parametrize(
    ("total", "files"),
    [(99, 1), (100, 1), (105, 1), (111, 2), (175, 2), (176, 2), (210, 2), (219, 2), (222, 3), (276, 3), (1_000, 10)],
)
def test_expected_files(total: int, files: int) -> None:
    assert FileSizes.of({"target-file-size-bytes": "100"}, 1).expected_files(total) == files


@given(total=st.integers(0, 10**13), target=st.integers(10, 10**10))
def test_expected_files_and_splits_stay_between_target_and_write_maximum(total: int, target: int) -> None:
    sizes = FileSizes.of({}, target)
    files = sizes.expected_files(total)
    assert files >= 1
    assert total / files <= max(1.1 * target, sizes.write_maximum)
    assert sizes.target <= sizes.split_size(total) <= max(sizes.target, sizes.write_maximum)
