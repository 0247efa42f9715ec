"""Work by several threads: results in order, few under way, errors in their place, nothing left behind."""

import threading
import time
from collections.abc import Iterator

import pytest

from icefloe.parallel import for_each, in_order


@pytest.mark.parametrize("workers", [0, 1, 3, 100])
@pytest.mark.parametrize("first", [None, 1])
def test_results_are_in_the_order_of_the_items(workers: int, first: int | None) -> None:
    def work(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        return -number

    assert list(in_order(work, range(50), workers, first=first)) == [-each for each in range(50)]
    assert list(in_order(work, iter(range(5)), workers, first=first)) == [0, -1, -2, -3, -4]
    assert list(in_order(work, [], workers)) == []


def test_few_items_are_taken_ahead_of_the_reader() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = in_order(lambda number: number, items(), 2, first=1)
    assert next(results) == 0
    assert len(taken) <= 2
    assert next(results) == 1
    assert len(taken) <= 2 + 4
    results.close()
    assert len(taken) <= 2 + 4


def test_threads_have_ended_when_the_iterator_has() -> None:
    results = in_order(lambda number: number, range(100), 4, "icefloe-under-test")
    assert next(results) == 0
    results.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("icefloe-under-test")]


def test_an_error_is_raised_at_the_place_of_its_item() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise ZeroDivisionError
        return number

    results = in_order(work, range(100), 4)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)
    with pytest.raises(ZeroDivisionError):
        for_each(work, range(100), 4)
