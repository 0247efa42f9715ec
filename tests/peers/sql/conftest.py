"""Both engines, started once for all tests that compare them, and the page that a whole run writes."""

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.java import find_java_peer
from tests.peers.sql.engines import Engines
from tests.peers.sql.page import Result, sql_page_with

PAGE_VARIABLE = "ICEFLOE_SQL_PAGE"
"""Names the page that a run writes its tables to; `make test-peers` sets it."""
RESULTS: list[Result] = []
VERSIONS: list[str] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with both engines need Java."""
    for item in items:
        if "tests/peers/sql/" in item.path.as_posix() and "engines" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.java)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page, if one process ran all of it."""
    place = os.environ.get(PAGE_VARIABLE)
    if place is None or hasattr(session.config, "workerinput") or not RESULTS:
        return
    page = Path(place)
    today = dt.datetime.now(dt.UTC).date()
    page.write_text(sql_page_with(page.read_text(), RESULTS, "".join(VERSIONS), today))


@pytest.fixture(scope="session")
def engines(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """Java Iceberg and us, with a catalog each."""
    found = find_java_peer()
    if isinstance(found, str):
        pytest.skip(found)
    both = Engines(tmp_path_factory.mktemp("both"), found, spark)
    VERSIONS[:] = [
        f"Java Iceberg {found.iceberg_version} on PySpark {both.java.peer.version}, icefloe on {spark.version}"
    ]
    yield both
    both.close()
