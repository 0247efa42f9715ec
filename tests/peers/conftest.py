"""One Java Iceberg and one of each other peer for all tests that ask for it; without one they say why and are skipped."""

from collections.abc import Callable, Iterator

import pytest

from tests.peers import engines
from tests.peers.clickhouse import ClickHousePeer, find_clickhouse_peer
from tests.peers.engines import ClickHouse, DuckDB, JavaIceberg, Peer, PyIceberg
from tests.peers.java import find_java_peer
from tests.peers.lake import Lake
from tests.peers.scenarios import SCENARIOS, Made, Workshop


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with Java share one Spark, so one worker runs them (`--dist loadgroup`)."""
    for item in items:
        if "tests/peers/" not in item.path.as_posix():
            continue
        given = item.callspec.params if hasattr(item, "callspec") else {}
        if "lake" in getattr(item, "fixturenames", ()) or given.get("peer") == engines.JAVA.name:
            item.add_marker(pytest.mark.java)
            item.add_marker(pytest.mark.xdist_group("java"))


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Catalogs that Java can open, without Java."""
    made = Lake(tmp_path_factory.mktemp("lake"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def lake(warehouse: Lake) -> Iterator[Lake]:
    """Catalogs that Java and we share."""
    found = find_java_peer()
    if isinstance(found, str):
        pytest.skip(found)
    warehouse.start_java(found)
    yield warehouse
    warehouse.stop_java()


@pytest.fixture(scope="session")
def clickhouse(warehouse: Lake) -> Iterator[ClickHousePeer]:
    """A ClickHouse that reads below the folder of our catalogs."""
    found = find_clickhouse_peer()
    if isinstance(found, str):
        pytest.skip(found)
    with ClickHousePeer(found, warehouse.folder) as peer:
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
        return started[name]

    return find


@pytest.fixture(scope="session")
def made(warehouse: Lake) -> Callable[[str, int], Made]:
    """The table of a scenario in a version, made once."""
    known: dict[tuple[str, int], Made] = {}

    def make(name: str, version: int) -> Made:
        if (name, version) not in known:
            known[name, version] = SCENARIOS[name].make(Workshop(warehouse, version))
        return known[name, version]

    return make
