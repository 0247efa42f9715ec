"""A table whose catalog entry is lost: its newest metadata file is told from the others, or not chosen at all."""

import uuid
from pathlib import Path

import pytest

from icefloe import Table, load_catalog
from icefloe.catalog import Catalog
from icefloe.catalog.table_files import read_table_metadata, write_table_metadata
from icefloe.errors import LocationNotFoundError, StateError
from icefloe.metadata import encode_metadata_file
from icefloe.metadata.table import MetadataLogEntry
from icefloe.verification import silent
from tests.maintenance.rewriting import rows


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "files"))
    catalog.create_namespace("db")
    return catalog


def new_table(catalog: Catalog, **properties: str) -> Table:
    table = catalog.create_table("db.t", "k BIGINT, part STRING", properties=properties)
    for number in range(4):
        table.append(rows(number))
    return table


def fork(table: Table, base: str) -> str:
    """A metadata file of a commit that was prepared on another one."""
    read = read_table_metadata(table.storage, base)
    log = (*read.metadata_log, MetadataLogEntry(base, read.last_updated_ms))
    return write_table_metadata(table.storage, read.evolve(metadata_log=log), base)


@pytest.mark.parametrize("properties", [{}, {"write.metadata.compression-codec": "gzip"}], ids=["plain", "gzip"])
def test_the_newest_file_is_registered_again(catalog: Catalog, properties: dict[str, str]) -> None:
    table = new_table(catalog, **properties)
    newest = table.metadata_location
    catalog.drop_table("db.t")
    lost = catalog.find_lost_table(str(table.location()), silent)
    assert lost.metadata_location == newest
    assert "is named by no other of 5 metadata files" in str(lost)
    assert lost.report is not None
    assert lost.report.ok
    again = catalog.register_table("db.t", lost.metadata_location)
    assert again.scan().count() == 4
    again.append(rows(9))
    assert again.verify(progress=silent).ok


def test_a_pointer_to_a_file_that_is_gone(catalog: Catalog) -> None:
    table = new_table(catalog)
    before = table.metadata.resolve(table.metadata.metadata_log[-1].metadata_file)
    list(table.storage.delete([str(table.metadata_location)]))
    with pytest.raises(LocationNotFoundError):
        catalog.load_table("db.t")
    lost = catalog.find_lost_table(str(table.location()), silent)
    assert lost.metadata_location == before
    catalog.drop_table("db.t")
    assert catalog.register_table("db.t", lost.metadata_location).scan().count() == 3


def test_a_commit_that_certainly_lost_does_not_count(catalog: Catalog) -> None:
    table = new_table(catalog)
    fork(table, table.metadata.resolve(table.metadata.metadata_log[-2].metadata_file))
    assert catalog.find_lost_table(str(table.location()), silent).metadata_location == table.metadata_location


def test_two_commits_on_one_state_are_left_to_people(catalog: Catalog) -> None:
    table = new_table(catalog)
    other = fork(table, table.metadata.resolve(table.metadata.metadata_log[-1].metadata_file))
    lost = catalog.find_lost_table(str(table.location()), silent)
    assert set(lost.tips) == {other, table.metadata_location}
    assert lost.report is None
    with pytest.raises(StateError, match="2 of 6 metadata files are named by no other"):
        lost.metadata_location  # noqa: B018 - it is an error to ask


def test_files_that_are_not_of_the_table_are_not_guessed_about(catalog: Catalog) -> None:
    table = new_table(catalog)
    folder = f"{table.location()}/metadata"
    table.storage.write(f"{folder}/00009-{uuid.uuid4()}.metadata.json", b"{")
    lost = catalog.find_lost_table(str(table.location()), silent)
    assert lost.metadata_location == table.metadata_location
    assert "cannot be read, and does not count" in str(lost)
    stranger = table.metadata.evolve(table_uuid=uuid.uuid4())
    table.storage.write(f"{folder}/00009-{uuid.uuid4()}.metadata.json", encode_metadata_file(stranger))
    with pytest.raises(StateError, match="files of 2 tables"):
        catalog.find_lost_table(str(table.location()), silent).metadata_location  # noqa: B018 - it is an error to ask
    with pytest.raises(StateError, match="no metadata file of a table is under"):
        catalog.find_lost_table(f"{table.location()}/data", silent).metadata_location  # noqa: B018 - it is an error to ask
