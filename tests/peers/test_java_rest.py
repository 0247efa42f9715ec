"""The kit itself: it can be run, and it tells what fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.java_rest.installation import JavaRest, find_java_rest
from tests.peers.java_rest.kit import run_kit
from tests.peers.java_rest.server import java_rest_server, sqlite_properties


@pytest.fixture(scope="module")
def java_rest() -> JavaRest:
    """The jars."""
    installation = find_java_rest()
    if isinstance(installation, str):
        pytest.skip(installation)
    return installation


@pytest.fixture
def server(java_rest: JavaRest, tmp_path: Path) -> Iterator[str]:
    """Java's own server."""
    with java_rest_server(java_rest, sqlite_properties(tmp_path)) as uri:
        yield uri


def test_the_kit_runs_against_javas_own_server(java_rest: JavaRest, server: str, tmp_path: Path) -> None:
    result = run_kit(java_rest, server, tmp_path, match="(testCreateNamespace|tableCreationWithoutNamespace).*")
    # The one that Java's own server fails: it creates namespaces with the tables in them.
    assert [name.partition(".")[2] for name in result.failed] == ["tableCreationWithoutNamespace()"]
    assert len(result.passed) == 2, result


@pytest.mark.parametrize("home", ["", "absent"])
def test_without_jars_there_is_a_reason(tmp_path: Path, home: str) -> None:
    assert "make java-rest" in str(find_java_rest({"ICEFLOE_JAVA_REST": str(tmp_path / home)}))
