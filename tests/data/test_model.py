"""A scan is the filter over all rows that are not deleted: random rows, specs, predicates and deletes of all kinds, naively."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, reject, strategies as st

from icefloe import expressions as ex
from icefloe.data.scanning import count, read_tasks, to_arrow, to_arrow_batch_reader
from icefloe.errors import InvalidInputError
from icefloe.manifests import FileContent
from icefloe.schema import Schema, schema_to_arrow, select_ids
from icefloe.versions import ALL_VERSIONS
from tests.data.modelled import FEWER, NUMBER, bound, modelled_tables
from tests.data.tables import PlannedScan
from tests.expressions.rows import arrow_table
from tests.formats.rows import contents
from tests.strategies import expressions

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_a_scan_is_the_filter_over_all_live_rows(version: int, data: st.DataObject) -> None:
    found = data.draw(modelled_tables(version))
    table = found.table
    predicate = bound(data.draw(expressions()), table.schema)
    chosen = data.draw(st.sets(st.sampled_from([each.field_id for each in table.schema.fields])))
    columns = select_ids(table.schema, {*chosen, NUMBER.field_id})
    tasks = table.tasks(predicate)
    scan = PlannedScan(table.metadata, table.storage, columns=columns, tasks=tasks)
    rows = to_arrow(scan)
    expected = [number for live in table.data for number in found.files[live.file.file_path]]
    try:
        matching = found.matching(predicate)
    except InvalidInputError:
        reject()  # a transform has no value so close to the end of a type
    assert found.numbers(rows) == [number for number in expected if number in matching]
    wanted = arrow_table([found.rows[number] for number in found.numbers(rows)], table.schema)
    assert rows.schema.equals(schema_to_arrow(columns), check_metadata=True)
    assert contents(rows) == contents(wanted.select(columns_of(columns)))
    assert contents(to_arrow_batch_reader(scan).read_all()) == contents(rows)
    assert count(scan) == len(matching)


def columns_of(schema: Schema) -> list[str]:
    return [each.name for each in schema.fields]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_deleted_rows_can_be_told_apart(version: int, data: st.DataObject) -> None:
    found = data.draw(modelled_tables(version))
    rows = found.table.read(None, "row", "_deleted")
    assert sorted(found.numbers(rows)) == sorted(found.rows)
    told = {row["row"] for row in rows.to_pylist() if not row["_deleted"]}
    assert told == found.live


@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_splits_hold_every_row_once(version: int, data: st.DataObject) -> None:
    found = data.draw(modelled_tables(version))
    table = found.table
    cuts = data.draw(st.sets(st.integers(1, 4000), max_size=4))
    parts = []
    for task in table.tasks():
        size = task.file.file_size_in_bytes
        edges = [0, *sorted(cut for cut in cuts if cut < size), size]
        parts += [task.replace(start=start, length=end - start) for start, end in pairwise(edges)]
    batches = read_tasks(parts, Schema(NUMBER), table.metadata, table.storage)
    assert sorted(n for batch in batches for n in batch.column(0).to_pylist()) == sorted(found.live)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_what_is_written_is_read_back_and_every_file_is_of_one_partition(version: int, data: st.DataObject) -> None:
    found = data.draw(modelled_tables(version, deletes=False, sorts=True))
    table = found.table
    assert sorted(found.numbers(table.read())) == sorted(found.rows)
    for live in table.data:
        file = live.file
        assert file.content is FileContent.DATA
        assert file.record_count == len(found.files[file.file_path])
        order = table.metadata.sort_order()
        assert file.sort_order_id == (order.order_id if order.fields else None)
        for number in found.files[file.file_path]:
            row = found.rows[number]
            for each, value in zip(table.metadata.spec().fields, file.partition, strict=True):
                source = key_of_deep(row, table.schema, each.source_id)
                expected = each.transform.apply(source, table.schema.find_type(each.source_id))
                assert same(expected, value), (each, source, value)
    assert isinstance(table.tasks()[0].residual, ex.AlwaysTrue)
    assert not ex.bound_references(ex.AlwaysTrue())


def key_of_deep(row: tuple[Any, ...], schema: Schema, field_id: int) -> Any:
    value = dict(zip((each.field_id for each in schema.fields), row, strict=True))
    along = [*reversed(schema.ancestors(field_id)), schema.find_field(field_id)]
    found: Any = value[along[0].field_id]
    for each in along[1:]:
        found = None if found is None else dict(found)[each.field_id]
    return found


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)
