"""Rows are found by predicates and keys, in files with deletes of all kinds; the other rows of their files keep their ids."""

import pytest
from hypothesis import given, reject, strategies as st

from icefloe.data import ReadContext, WriteRequest, write_data_files
from icefloe.errors import InvalidInputError
from icefloe.rows.matching import find_matching_rows, remaining_rows
from icefloe.rows.upsert import IncomingRows, find_key_matches, plan_upsert
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.data.modelled import FEWER, KEYS, bound, key_of, modelled_tables
from tests.data.tables import RowTable
from tests.expressions.rows import arrow_table
from tests.strategies import expressions

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_rows_that_match_are_found_and_the_others_keep_their_ids(version: int, data: st.DataObject) -> None:
    found = data.draw(modelled_tables(version))
    table = found.table
    predicate = bound(data.draw(expressions()), table.schema)
    try:
        matching = found.matching(predicate)
    except InvalidInputError:
        reject()
    before = lineage(table)
    context = ReadContext(table.metadata, table.storage)
    matches = list(find_matching_rows(table.tasks(predicate), context))
    assert {found.files[match.path][position] for match in matches for position in match.positions} == matching
    live = {path: found.live & set(numbers) for path, numbers in found.files.items()}
    assert all(live[match.path] <= matching for match in matches if match.is_whole_file)
    rest = remaining_rows(matches, context)
    has_ids = allows(version, Feature.ROW_LINEAGE)
    added = write_data_files(rest, WriteRequest(table.metadata, table.storage, lineage=has_ids))
    table.remove(match.task.file for match in matches)
    table.commit(added)
    assert set(found.numbers(table.read())) == found.live - matching
    assert lineage(table) == {number: before[number] for number in found.live - matching}


def lineage(table: RowTable) -> dict[int, tuple[int | None, int | None]]:
    rows = table.read(None, "row", "_row_id", "_last_updated_sequence_number").to_pylist()
    return {row["row"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows}


@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_rows_are_found_by_keys_and_told_from_those_that_differ(version: int, data: st.DataObject) -> None:
    found = data.draw(modelled_tables(version))
    table = found.table
    ids = tuple(sorted(data.draw(st.sets(st.sampled_from(KEYS), min_size=1, max_size=2))))
    by_key = {key_of(row, table.schema, ids): number for number, row in found.rows.items()}
    usable = sorted((number for key, number in by_key.items() if None not in key), key=str)
    numbers = data.draw(st.lists(st.sampled_from(usable), unique=True, max_size=3)) if usable else []
    changed = {number for number in numbers if data.draw(st.booleans())}
    rows = [(*found.rows[number][:-1], -1 if number in changed else number) for number in numbers]
    incoming = IncomingRows(arrow_table(rows, table.schema), table.schema, ids)
    context = ReadContext(table.metadata, table.storage)
    matches = list(find_key_matches(table.tasks(), context, incoming))
    pairs = [
        (found.files[match.task.file.file_path][position], numbers[index], is_same)
        for match in matches
        for position, index, is_same in zip(match.positions, match.indices, match.is_same, strict=True)
    ]
    keys = {key_of(found.rows[number], table.schema, ids): number for number in numbers}
    wanted = {number: keys.get(key_of(found.rows[number], table.schema, ids)) for number in found.live}
    assert {here: there for here, there, _ in pairs} == {
        here: there for here, there in wanted.items() if there is not None
    }
    assert all(is_same == (here == there and here not in changed) for here, there, is_same in pairs)
    change = plan_upsert(incoming, matches, context)
    rest = {number for number in numbers if [is_same for _, there, is_same in pairs if there == number] != [True]}
    assert sorted(change.rows.column("row").to_pylist()) == sorted(-1 if each in changed else each for each in rest)
    gone = {found.files[match.task.file.file_path][p] for match in change.replaced for p in match.positions}
    assert gone == {here for here, there, _ in pairs if there in rest}
