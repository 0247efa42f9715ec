"""One Java Iceberg for all tests that ask for it; without one they say why and are skipped."""

from collections.abc import Iterator

import pytest

from tests.peers.java import find_java_peer
from tests.peers.lake import Lake


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Java share one Spark, so one worker runs them (`--dist loadgroup`)."""
    for item in items:
        if "lake" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.java)
            item.add_marker(pytest.mark.xdist_group("java"))


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Catalogs that Java and we share."""
    found = find_java_peer()
    if isinstance(found, str):
        pytest.skip(found)
    made = Lake(found, tmp_path_factory.mktemp("lake"))
    yield made
    made.close()
