"""Settings for the whole suite: one hypothesis profile that does not depend on the speed of the machine, and who runs what."""

import gc
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.java_options import java_options
from tests.written_files import checked_files

pytest_plugins = [
    "tests.catalog.databases",
    "tests.catalog.tables",
    "tests.data.small_pieces",
    "tests.own_threads",
    "tests.storage.servers",
]
"""Fixtures of several rooms: catalogs of all kinds, PostgreSQL, rows read in small pieces, threads, S3."""

os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(java_options()))

MEMORY = "/dev/shm"
NEEDED_MEMORY = 2 << 30


def has_memory_folder() -> bool:
    """Whether files can be in memory: enough of it, and scripts may be run from there."""
    if not os.path.isdir(MEMORY) or not os.access(MEMORY, os.W_OK) or "TMPDIR" in os.environ:
        return False
    return shutil.disk_usage(MEMORY).free >= NEEDED_MEMORY and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC


if has_memory_folder():
    # Every file and every commit waits for the disk, thousands of times, which proves nothing here.
    os.environ["TMPDIR"] = tempfile.tempdir = MEMORY

PEERS = "tests/peers/"
"""Tests that share a Java Iceberg, which takes long to start and is asked by one worker."""
SPARK = "tests/spark/"
"""Tests that share a Spark, which each worker has: tests of peers need it, too."""

settings.register_profile(
    "icefloe",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", parent=settings.get_profile("icefloe"), max_examples=1000, derandomize=False)
settings.load_profile("icefloe")


@pytest.fixture(autouse=True)
def written_files_are_right(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every file that a test commits is what its entry says, unless the test is about those that are not."""
    with checked_files() as problems:
        yield
    if request.node.get_closest_marker("commits_wrong_files") is None:
        assert not problems, "\n".join(problems)


def unit_of_work(test: str) -> str:
    """What a test is handed to a worker with: all tests of peers, or those of its file, which share what they make."""
    return PEERS if test.startswith(PEERS) else test.partition("::")[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers take what is long first, so that they end together: peers, then files of Spark, then the others by their tests."""
    if not hasattr(config, "workerinput"):
        return
    sizes = Counter(unit_of_work(each.nodeid) for each in items)

    def place(item: pytest.Item) -> tuple[bool, bool, int, str]:
        unit = unit_of_work(item.nodeid)
        return unit != PEERS, not unit.startswith(SPARK), -sizes[unit], unit

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are made, and none of them is garbage: nothing is looked for while they are, nor among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers take units of work in the order of the tests.

    The groups of pytest-xdist would say the same, but version 3.8 of it does not see them with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False
    scheduling: Any = LoadScopeScheduling(config, log)
    scheduling._split_scope = unit_of_work
    return scheduling
