"""How rows leave a table: which files are removed, and which delete files are written."""

from typing import Any

import pytest

import icefloe
from icefloe.data import ReadContext
from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.manifests import DataFile
from icefloe.rows.matching import find_matching_rows
from icefloe.schema import parse_ddl
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.data.tables import RowTable, numbers
from tests.shared_rows import ids_in, rows_of

WITH_DELETES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
MODES = ("copy-on-write", "merge-on-read")


def create(version: int, mode: str = MODES[1], **properties: Any) -> Table:
    catalog = icefloe.load_catalog("memory", type="memory")
    catalog.create_namespace("db")
    given = {"format-version": str(version), "write.delete.mode": mode}
    table = catalog.create_table(
        "db.t", "id bigint", properties={**given, **{key.replace("_", "."): text for key, text in properties.items()}}
    )
    for first in (0, 10):
        table.append(rows_of(*range(first, first + 10)))
    return table


def delete_files(table: Table) -> set[DataFile]:
    return {file for task in table.scan().plan_files() for file in task.deletes}


@pytest.mark.parametrize(("granularity", "count"), [("partition", 1), ("file", 2)])
def test_position_delete_files_are_of_a_partition_or_of_a_file(granularity: str, count: int) -> None:
    table = create(2, write_delete_granularity=granularity)
    table.delete("id in (1, 11)")
    files = delete_files(table)
    assert len(files) == count
    assert all((file.referenced_data_file is None) == (granularity == "partition") for file in files)
    assert ids_in(table) == [0, *range(2, 11), *range(12, 20)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", WITH_DELETES)
def test_a_file_without_rows_left_is_removed(version: int, mode: str) -> None:
    table = create(version, mode)
    table.delete("id = 3")
    before = {task.file.file_path for task in table.scan("id >= 10").plan_files()}
    table.delete("id < 10")
    assert {task.file.file_path for task in table.scan().plan_files()} == before
    assert not delete_files(table)


@pytest.mark.parametrize("version", WITH_DELETES)
def test_tables_with_rows_in_clear_are_not_made_encrypted_ones(version: int) -> None:
    table = create(version)
    with pytest.raises(IcefloeError, match=r"encryption\.key-id"):
        table.set_properties({"encryption.key-id": "k"})
    table.delete("id = 1")
    assert ids_in(table) == [0, *range(2, 20)]


def test_nothing_is_read_of_a_file_all_of_whose_rows_match() -> None:
    table = two_files()
    table.storage.delete([live.file.file_path for live in table.data])
    matches = find_matching_rows(table.tasks(), ReadContext(table.metadata, table.storage))
    assert [match.is_whole_file for match in matches] == [True, True]


def test_parts_of_files_are_refused() -> None:
    table = two_files()
    part = table.tasks()[0].replace(start=4, length=10)
    with pytest.raises(InvalidInputError, match="split"):
        list(find_matching_rows([part], ReadContext(table.metadata, table.storage)))


def two_files() -> RowTable:
    table = RowTable(parse_ddl("id bigint"), 3)
    table.append(numbers(*range(10)))
    table.append(numbers(*range(10, 20)))
    return table
