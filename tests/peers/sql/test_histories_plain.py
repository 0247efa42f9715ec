"""Random histories of our Spark give the rows that a plain model of SQL says, in every version of the format."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from icefloe.catalog import load_catalog
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.versions import ALL_VERSIONS
from tests.peers.java_worker import collected
from tests.peers.sql.histories.plain import PlainTable
from tests.peers.sql.normal import rows_of

SEEDS = (1,)


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own, in a catalog whose name no other test of this Spark has."""
    folder = tmp_path_factory.mktemp("plain")
    catalog = load_catalog("plain", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    catalog.create_namespace("db")
    with connect(catalog, spark=spark) as session:
        yield session


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rows_are_those_of_the_model(ice: Session, version: int, seed: int) -> None:
    table = PlainTable(random.Random(seed * 10 + version), f"db.plain_{version}_{seed}")
    done = [table.create(version)]
    ice.sql(done[0])
    for text in table.statements(6):
        done.append(text)
        ice.sql(text)
        found = rows_of(collected(ice.sql(f"SELECT * FROM {table.name}")))
        assert [name for name, _ in found.columns] == list(table.columns), done
        assert list(found.in_any_order().values) == table.expected(), done
    assert ice.load_table(table.name).verify(level="data").findings == ()
