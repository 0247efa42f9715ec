"""Bins: everything once and in order, none too heavy, first fit as a naive search finds it."""

from itertools import pairwise

from hypothesis import given, strategies as st

from icefloe.planning import pack, pack_from_end

WEIGHTS = st.lists(st.integers(0, 12), max_size=30)


@given(
    weights=WEIGHTS,
    target=st.integers(1, 15),
    lookback=st.integers(1, 4),
    most=st.integers(1, 5),
    largest=st.booleans(),
)
def test_every_item_is_in_one_bin_that_holds_no_more_than_it_may(
    weights: list[int], target: int, lookback: int, most: int, largest: bool
) -> None:
    items = list(enumerate(weights))
    bins = list(pack(items, lambda item: item[1], target, lookback=lookback, most_items=most, largest_first=largest))
    assert sorted(item for bin_ in bins for item in bin_) == items
    for bin_ in bins:
        assert bin_ == sorted(bin_)
        assert 0 < len(bin_) <= most
        assert len(bin_) == 1 or sum(weight for _, weight in bin_) <= target


@given(weights=WEIGHTS, target=st.integers(1, 15))
def test_one_open_bin_makes_runs_of_neighbours_that_end_only_where_the_next_does_not_fit(
    weights: list[int], target: int
) -> None:
    bins = list(pack(weights, int, target))
    assert [weight for bin_ in bins for weight in bin_] == weights
    assert all(sum(bin_) + after[0] > target for bin_, after in pairwise(bins))


def test_the_oldest_bin_is_closed_or_the_heaviest() -> None:
    assert list(pack([3, 7, 6, 2], int, 8, lookback=2)) == [[3], [7], [6, 2]]
    assert list(pack([3, 7, 6, 2], int, 8, lookback=2, largest_first=True)) == [[7], [3, 2], [6]]


@given(weights=WEIGHTS, target=st.integers(1, 15))
def test_from_the_end_only_the_first_run_has_room(weights: list[int], target: int) -> None:
    bins = pack_from_end(weights, int, target)
    assert [weight for bin_ in bins for weight in bin_] == weights
    assert all(before[-1] + sum(bin_) > target for before, bin_ in pairwise(bins))
