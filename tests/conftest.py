"""Settings for the whole suite: one hypothesis profile that does not depend on the speed of the machine, and who runs what."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.written_files import checked_files

pytest_plugins = ["tests.catalog.databases", "tests.catalog.tables", "tests.data.small_pieces", "tests.storage.servers"]
"""Fixtures of several rooms: catalogs of all kinds, PostgreSQL, rows read in small pieces, S3."""

os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""For every JVM of the suite: its queries are small and many, so that optimizing their code takes longer than it saves."""

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

ROOMS_OF_ONE_WORKER = ("tests/spark/", "tests/peers/")
"""Tests that share a Spark, or a Spark and a Java Iceberg, which take long to start."""

settings.register_profile(
    "icefloe",
    max_examples=40,
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
    """What a test is handed to a worker with: its room, or its file."""
    return next((room for room in ROOMS_OF_ONE_WORKER if test.startswith(room)), test.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs all tests of such a room, first of all; any worker runs the tests of any other file, which share what they make.

    The groups of pytest-xdist would say the same, but version 3.8 of it does not see them with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    scheduling: Any = LoadScopeScheduling(config, log)
    scheduling._split_scope = unit_of_work
    return scheduling
