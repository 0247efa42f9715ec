"""Both engines, started once for all tests that compare them, and the page that a whole run writes."""

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.java import JavaPeer
from tests.peers.sql.engines import Engines, Folders
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
def engines(spark: Any, java: JavaPeer, both_folders: Folders) -> Iterator[Engines]:
    """Java Iceberg and us, with a catalog each."""
    both = Engines(both_folders, java, spark)
    release = java.installation.iceberg_version
    VERSIONS[:] = [f"Java Iceberg {release} on PySpark {java.version}, icefloe on {spark.version}"]
    yield both
    both.close()
