"""Which threads a test has started: what others of the same process left running has nothing to do with it."""

import threading
from collections.abc import Callable

import pytest

OwnThreads = Callable[[str], list[str]]


@pytest.fixture
def own_threads() -> OwnThreads:
    """The names, by how they begin, of the threads that are there now and were not before the test."""
    before = set(threading.enumerate())

    def named(start: str) -> list[str]:
        return [each.name for each in threading.enumerate() if each not in before and each.name.startswith(start)]

    return named
