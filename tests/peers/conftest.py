"""One Java Iceberg and one of each other peer for all tests that ask for it; without one they say why and are skipped."""

import datetime as dt
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

import tests.spark.conftest
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from tests.peers import engines
from tests.peers.clickhouse import ClickHousePeer, find_clickhouse_peer
from tests.peers.engines import ClickHouse, DuckDB, JavaIceberg, Peer, PyIceberg
from tests.peers.java import JavaPeer, find_java_peer
from tests.peers.lake import FILES, SQL, Lake
from tests.peers.page import Cell, Results, page_with
from tests.peers.scenarios import SCENARIOS, Made, Workshop
from tests.peers.sql.engines import Folders

spark = tests.spark.conftest.spark
"""The same session of Spark as everywhere, if one process runs all tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Java are marked."""
    for item in items:
        if "tests/peers/" not in item.path.as_posix():
            continue
        given = item.callspec.params if hasattr(item, "callspec") else {}
        used = getattr(item, "fixturenames", ())
        if "lake" in used or given.get("peer") == engines.JAVA.name:
            item.add_marker(pytest.mark.java)


PAGE_VARIABLE = "ICEFLOE_PEERS_PAGE"
"""Names the page that a run writes its tables to; `make test-peers` sets it."""
RESULTS = Results()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note what became of a cell."""
    report = yield
    mark = item.get_closest_marker("cell")
    if mark is not None and not report.skipped and (report.when == "call" or report.failed):
        given = {**(item.callspec.params if hasattr(item, "callspec") else {}), **mark.kwargs}
        where = {key: given[key] for key in ("direction", "peer", "scenario", "version")}
        RESULTS.cells.append(Cell(**where, passed=report.passed))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page, if one process ran all of it."""
    place = os.environ.get(PAGE_VARIABLE)
    if place is None or hasattr(session.config, "workerinput") or not RESULTS.cells:
        return
    page = Path(place)
    page.write_text(page_with(page.read_text(), RESULTS, dt.datetime.now(dt.UTC).date()))


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Catalogs that Java can open, without Java."""
    made = Lake(tmp_path_factory.mktemp("lake"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def both_folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Where Java and we have a catalog each."""
    return Folders(tmp_path_factory.mktemp("both"))


@pytest.fixture(scope="session")
def java(warehouse: Lake, both_folders: Folders) -> Iterator[JavaPeer]:
    """The one Java Iceberg of all tests, with the catalogs that it shares with us and its own."""
    installation = find_java_peer()
    if isinstance(installation, str):
        pytest.skip(installation)
    settings = warehouse.java_settings | both_folders.java_settings
    with JavaPeer(installation, warehouse.folder, settings) as peer:
        yield peer


@pytest.fixture(scope="session")
def lake(warehouse: Lake, java: JavaPeer) -> Lake:
    """Catalogs that Java and we share."""
    warehouse.share_with(java)
    return warehouse


@pytest.fixture(scope="session")
def clickhouse(warehouse: Lake) -> Iterator[ClickHousePeer]:
    """A ClickHouse that reads below the folder of our catalogs."""
    found = find_clickhouse_peer()
    if isinstance(found, str):
        pytest.skip(found)
    with ClickHousePeer(found, warehouse.folder) as peer:
        yield peer


@pytest.fixture(scope="session")
def clickhouse_writer(clickhouse: ClickHousePeer, warehouse: Lake) -> Iterator[ClickHousePeer]:
    """Another ClickHouse, which writes."""
    with ClickHousePeer(clickhouse.python, warehouse.folder) as peer:
        yield peer


@pytest.fixture(scope="session")
def peers(request: pytest.FixtureRequest) -> Callable[[str], Peer]:
    """The peers by name; one is started when it is first asked for."""
    started: dict[str, Peer] = {}

    def start(name: str) -> Peer:
        match name:
            case engines.JAVA.name:
                return JavaIceberg(request.getfixturevalue("lake"))
            case engines.CLICKHOUSE.name:
                return ClickHouse(request.getfixturevalue("clickhouse"))
            case engines.DUCKDB.name:
                return DuckDB()
            case _:
                return PyIceberg()

    def find(name: str) -> Peer:
        if name not in started:
            started[name] = start(name)
            RESULTS.versions[name] = started[name].version
        return started[name]

    return find


@pytest.fixture(scope="session")
def ice(spark: Any, warehouse: Lake) -> Session:
    """Our own Spark, with the catalogs."""
    return connect({SQL: warehouse.sql_catalog, FILES: warehouse.file_catalog}, spark=spark)


@pytest.fixture(scope="session")
def made(request: pytest.FixtureRequest, warehouse: Lake) -> Callable[[str, int], Made]:
    """The table of a scenario in a version, made once."""
    known: dict[tuple[str, int], Made] = {}

    def make(name: str, version: int) -> Made:
        if (name, version) not in known:
            known[name, version] = SCENARIOS[name].make(
                Workshop(warehouse, version, lambda: request.getfixturevalue("ice"))
            )
        return known[name, version]

    return make
