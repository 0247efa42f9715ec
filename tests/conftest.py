"""Settings for the whole suite: one hypothesis profile that does not depend on the speed of the machine, and who runs what."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.written_files import checked_files

pytest_plugins = ["tests.catalog.databases", "tests.catalog.tables", "tests.storage.servers"]
"""Fixtures of several rooms: catalogs of all kinds, PostgreSQL, S3."""

os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
"""For every JVM of the suite: its queries are small and many, so that optimizing their code takes longer than it saves."""

ROOMS_OF_ONE_WORKER = ("tests/spark/", "tests/peers/")
"""Tests that share a Spark, or a Java Iceberg, which take long to start."""

settings.register_profile(
    "icefloe",
    max_examples=60,
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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One worker runs all tests of such a room, first of all; any worker runs any of the others.

    The groups of pytest-xdist would say the same, but version 3.8 of it does not see them with pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    scheduling: Any = LoadScopeScheduling(config, log)
    scheduling._split_scope = lambda test: next((room for room in ROOMS_OF_ONE_WORKER if test.startswith(room)), test)
    return scheduling
