"""Metadata files of lost races: deleted when the same table shows that it does not need them, and only then."""

import pytest

from icefloe import load_catalog
from icefloe.catalog import MemoryCatalog
from icefloe.commit import Prepared
from icefloe.errors import CommitFailed
from icefloe.metadata import updates as up
from tests.catalog.tables import files_below

NAME = ("db", "t")


@pytest.fixture
def catalog() -> MemoryCatalog:
    catalog = load_catalog("lake", type="memory", warehouse="memory://lost_races")
    assert isinstance(catalog, MemoryCatalog)
    catalog.create_namespace("db")
    catalog.create_table("db.t", "id long")
    return catalog


def lose_a_race(catalog: MemoryCatalog) -> str:
    """The metadata file of a commit that another one overtook just before its swap."""
    table = catalog.load_table("db.t")
    before = files_below(catalog, table.location())
    others: set[str | None] = set()

    def overtake() -> None:
        other = catalog.load_table("db.t")
        other.set_properties({"first": "yes"})
        others.add(other.metadata_location)

    prepared = Prepared((up.SetPropertiesUpdate({"second": "yes"}),))
    with pytest.raises(CommitFailed, match="another writer committed first"):
        catalog._committer(NAME).commit(table.state, prepared, overtake)
    [lost] = files_below(catalog, table.location()) - before - others
    return lost


def test_the_next_look_at_the_table_deletes_the_file(catalog: MemoryCatalog) -> None:
    lost = lose_a_race(catalog)
    catalog.load_table("db.t").refresh()
    assert not catalog.storage.exists(lost)


def test_another_table_of_the_name_says_nothing_about_the_file(catalog: MemoryCatalog) -> None:
    lost = lose_a_race(catalog)
    catalog.rename_table("db.t", "db.renamed")
    catalog.create_table("db.t", "id long").refresh()
    assert catalog.storage.exists(lost)
