"""What is written and what is replaced when rows are deleted by position or their files are written anew."""

from dataclasses import replace

import pytest

from icefloe.data import MatchedRows, ReadContext, find_matching_rows, rewrite_without, write_deletes
from icefloe.errors import InvalidInputError, StateError
from icefloe.manifests import FileContent
from icefloe.schema import parse_ddl
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.data.tables import RowTable, numbers

SCHEMA = parse_ddl("id bigint")
WITH_VECTORS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETION_VECTORS)]


def table_of(version: int, files: int = 2, **properties: str) -> RowTable:
    table = RowTable(SCHEMA, version, properties={key.replace("_", "."): value for key, value in properties.items()})
    for number in range(files):
        table.append(numbers(*range(number * 10, number * 10 + 10)))
    return table


def matches(table: RowTable, predicate: str) -> list[MatchedRows]:
    return list(find_matching_rows(table.tasks(table.bound(predicate)), reading(table)))


def reading(table: RowTable) -> ReadContext:
    return ReadContext(table.metadata, table.storage)


def ids(table: RowTable) -> list[int]:
    found: list[int] = table.read().column("id").to_pylist()
    return found


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_a_new_vector_replaces_the_old_one_and_position_files_of_its_file(version: int) -> None:
    table = table_of(version)
    path = table.data[0].file.file_path
    (old,) = table.delete_positions({path: [0, 99]}, as_vectors=False)
    changes = write_deletes(matches(table, "id in (1, 11)"), table.metadata, table.storage)
    assert changes.removed_deletes == (old,)
    assert [file.record_count for file in changes.added_deletes] == [2, 1], "99 is not a row of the file"
    assert len({file.file_path for file in changes.added_deletes}) == 1, "vectors share a Puffin file"
    table.remove(changes.removed_deletes)
    table.commit(changes.added_deletes)
    again = write_deletes(matches(table, "id = 2"), table.metadata, table.storage)
    assert again.removed_deletes == changes.added_deletes[:1]
    assert [file.record_count for file in again.added_deletes] == [3]
    table.remove(again.removed_deletes)
    table.commit(again.added_deletes)
    assert ids(table) == [*range(3, 10), 10, *range(12, 20)]


@pytest.mark.parametrize(("granularity", "count"), [("partition", 1), ("file", 2)])
def test_position_delete_files_are_of_a_partition_or_of_a_file(granularity: str, count: int) -> None:
    table = table_of(2, write_delete_granularity=granularity)
    changes = write_deletes(matches(table, "id in (1, 11)"), table.metadata, table.storage)
    assert len(changes.added_deletes) == count
    assert all(file.content is FileContent.POSITION_DELETES for file in changes.added_deletes)
    assert all((file.referenced_data_file is None) == (granularity == "partition") for file in changes.added_deletes)
    table.commit(changes.added_deletes)
    assert ids(table) == [0, *range(2, 11), *range(12, 20)]


@pytest.mark.parametrize("copies", [False, True])
def test_a_file_without_rows_left_is_removed(copies: bool) -> None:
    table = table_of(3)
    first = table.data[0].file
    (vector,) = table.delete_positions({first.file_path: [3]})
    found = matches(table, "id < 10")
    changes = rewrite_without(found, reading(table)) if copies else write_deletes(found, table.metadata, table.storage)
    assert changes.removed_data == (first,)
    assert changes.removed_deletes == (vector,)
    assert not changes.added_data
    assert not changes.added_deletes


def test_nothing_is_read_of_a_file_all_of_whose_rows_are_meant() -> None:
    table = table_of(3)
    table.storage.delete([each.file.file_path for each in table.data])
    assert [match.is_whole_file for match in find_matching_rows(table.tasks(), reading(table))] == [
        True,
        True,
    ]


def test_parts_of_files_are_refused() -> None:
    table = table_of(2, files=1)
    part = replace(table.tasks()[0], start=4, length=10)
    with pytest.raises(InvalidInputError, match="split"):
        list(find_matching_rows([part], reading(table)))


def test_encrypted_tables_are_not_given_plain_deletes() -> None:
    table = table_of(3)
    found = matches(table, "id = 1")
    with pytest.raises(StateError, match="encrypted"):
        write_deletes(found, table.metadata.evolve(properties={"encryption.key-id": "k"}), table.storage)
