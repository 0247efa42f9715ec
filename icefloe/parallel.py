"""One way to do work for many items by several threads."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_ITEMS_PER_WORKER = 2
"""How many items are under way or waiting for each thread, so that none is ever out of work."""


def in_order(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    name: str = "icefloe",
    *,
    first: int | None = None,
) -> Generator[Result, None, None]:
    """What `work` gives for each item, in the order of the items, made by threads that end with the iterator.

    Items are taken as they are needed, and few results wait. `first` is how many items to begin with; the number then
    doubles, so that a reader who needs few of them causes little work. An error of `work` is raised at the place of its item.
    """
    workers = min(workers, len(items)) if isinstance(items, Sized) else workers
    if workers <= 1:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix=name)
    waiting: deque[Future[Result]] = deque()
    most = _ITEMS_PER_WORKER * workers
    window = most if first is None else max(1, first)
    todo = iter(items)
    try:
        while True:
            for item in todo:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= window:
                    break
            if not waiting:
                return
            yield waiting.popleft().result()
            window = min(2 * window, most)
    finally:
        for future in waiting:
            future.cancel()
        pool.shutdown(wait=True)


def for_each(work: Callable[[Item], object], items: Iterable[Item], workers: int, name: str = "icefloe") -> None:
    """Do the work for all items, several at a time."""
    for _ in in_order(work, items, workers, name):
        pass
