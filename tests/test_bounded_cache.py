"""The one cache, beside a plain model of it."""

import threading
import time

from hypothesis import given, strategies as st

from icefloe.bounded_cache import BoundedCache

STEPS = st.lists(
    st.tuples(st.sampled_from(["keep", "find", "pop"]), st.integers(0, 5), st.integers(0, 12)), max_size=40
)


@given(STEPS, st.booleans())
def test_it_keeps_what_was_used_last_up_to_its_capacity(steps: list[tuple[str, int, int]], keeps_newest: bool) -> None:
    cache: BoundedCache[int, int] = BoundedCache(10, lambda weight: weight, keeps_newest=keeps_newest)
    model: list[tuple[int, int]] = []
    for step, key, weight in steps:
        known = dict(model)
        rest = [each for each in model if each[0] != key]
        if step == "keep":
            cache.keep(key, weight)
            model = [*rest, (key, weight)] if weight <= 10 or keeps_newest else rest
            while sum(each for _, each in model) > 10 and len(model) > 1:
                model.pop(0)
        elif step == "find":
            assert cache.find(key) == known.get(key)
            model = [*rest, (key, known[key])] if key in known else model
        else:
            assert cache.pop(key) == known.get(key)
            model = rest
        assert (len(cache), cache.weight) == (len(model), sum(each for _, each in model))
        assert all((each in cache) == (each in dict(model)) for each in range(6))
    cache.clear()
    assert (len(cache), cache.weight) == (0, 0)


def test_threads_that_ask_for_one_key_make_its_value_once() -> None:
    cache: BoundedCache[str, int] = BoundedCache(1)
    made: list[int] = []

    def make() -> int:
        time.sleep(0.02)
        made.append(1)
        return 7

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(cache.load("key", make))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (found, made) == ([7] * 8, [1])
