"""Both engines, started once for all tests that compare them."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.peers.java import find_java_peer
from tests.peers.sql.engines import Engines


@pytest.fixture(scope="session")
def engines(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """Java Iceberg and us, with a catalog each."""
    found = find_java_peer()
    if isinstance(found, str):
        pytest.skip(found)
    both = Engines(tmp_path_factory.mktemp("both"), found, spark)
    yield both
    both.close()
