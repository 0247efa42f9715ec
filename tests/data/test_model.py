"""A scan is the filter over all rows that are not deleted: random rows, specs, predicates and deletes of all kinds, naively."""

import io
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, reject, settings, strategies as st

from icefloe import expressions as ex
from icefloe.data import (
    IncomingRows,
    ReadContext,
    RowChanges,
    find_key_matches,
    find_matching_rows,
    pieces,
    plan_upsert,
    read_task,
    rewrite_without,
    write_deletes,
)
from icefloe.data.scanning import count, read_tasks, to_arrow, to_arrow_batch_reader
from icefloe.errors import InvalidInputError
from icefloe.manifests import DataFile, FileContent
from icefloe.partitioning import UNPARTITIONED, UNSORTED
from icefloe.schema import LongType, NestedField, Schema, schema_to_arrow, select_ids
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.data.tables import PlannedScan, RowTable
from tests.expressions.rows import arrow_table
from tests.formats.rows import contents
from tests.strategies import FILTER_SCHEMA, expressions, filter_rows, filter_specs, sort_orders

FEWER = settings(max_examples=settings().max_examples // 5)
NUMBER = NestedField(100, "row", LongType(), required=True)
"""Tells rows apart."""
KEYS = (1, 2, 3, 6, 7, 8, 9, 10, 13, 14, 15, 16, 17, 19, 20)
"""Columns by which rows may be deleted."""


def schema_for(version: int) -> Schema:
    fields = [
        each
        for each in FILTER_SCHEMA.fields
        if allows(version, each.field_type.feature or Feature.REFS) or each.field_type.feature is None
    ]
    return Schema(*fields, NUMBER)


def key_of(row: tuple[Any, ...], schema: Schema, ids: tuple[int, ...]) -> tuple[Any, ...]:
    """The values of leaves at the top or in structs."""
    found: dict[int, Any] = {}
    for each, value in zip(schema.fields, row, strict=True):
        found[each.field_id] = value
        for inner in getattr(each.field_type, "fields", ()):
            found[inner.field_id] = dict(value).get(inner.field_id) if value else None
    return tuple(found[i] for i in ids)


@pytest.fixture(autouse=True, scope="module")
def _small_pieces() -> Iterator[None]:
    """Files of a few rows are read in pieces too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LEAST_ROWS", 0)
        yield


class Modelled:
    """A table, and what it holds: rows by their number, and by file the numbers of its rows, by position."""

    def __init__(self, table: RowTable) -> None:
        self.table = table
        self.rows: dict[int, tuple[Any, ...]] = {}
        self.files: dict[str, list[int]] = {}
        self.deleted: dict[str, set[int]] = {}
        self.live: set[int] = set()

    def append(self, rows: list[tuple[Any, ...]]) -> list[DataFile]:
        numbered = [(*row, len(self.rows) + i) for i, row in enumerate(rows)]
        added = self.table.append(arrow_table(numbered, self.table.schema))
        self.rows |= {row[-1]: row for row in numbered}
        self.live |= {row[-1] for row in numbered}
        for file in added:
            self.files[file.file_path] = self.stored(file)
            self.deleted[file.file_path] = set()
        return added

    def stored(self, file: DataFile) -> list[int]:
        """The numbers of the rows of a file, by somebody else's reader."""
        with self.table.storage.open_input(file.file_path) as source:
            if file.file_format == "parquet":
                found: list[int] = pq.read_table(source, columns=["row"]).column(0).to_pylist()
                return found
            records: Any = fastavro.reader(io.BytesIO(source.read()))
            return [row["row"] for row in records]

    def delete_positions(self, chosen: dict[str, set[int]], as_vectors: bool) -> None:
        if as_vectors:
            old = [
                each.file
                for each in self.table.deletes
                if each.file.is_deletion_vector and each.file.referenced_data_file in chosen
            ]
            self.table.remove(old)
            chosen = {path: positions | self.deleted[path] for path, positions in chosen.items()}
        self.table.delete_positions(chosen, as_vectors=as_vectors)
        for path, positions in chosen.items():
            self.deleted[path] |= positions
            self.live -= {self.files[path][position] for position in positions}

    def delete_keys(self, keys: list[tuple[Any, ...]], ids: tuple[int, ...], of: DataFile, file_format: str) -> None:
        chosen = [row for row in self.rows.values() if key_of(row, self.table.schema, ids) in keys]
        rows = arrow_table(chosen, self.table.schema)
        deletes = self.table.equality_file(rows, ids, of=of, file_format=file_format)
        self.table.commit([deletes])
        for task in self.table.tasks():
            if deletes in task.deletes:
                for number in self.files[task.file.file_path]:
                    if key_of(self.rows[number], self.table.schema, ids) in keys:
                        self.live.discard(number)

    def matching(self, predicate: ex.Expression) -> set[int]:
        return {number for number in self.live if ex.evaluate(predicate, self.rows[number])}

    def numbers(self, table: Any) -> list[int]:
        found: list[int] = table.column("row").to_pylist()
        return found


@st.composite
def modelled_tables(draw: st.DrawFn, version: int, deletes: bool = True, sorts: bool = False) -> Modelled:
    """A table with files, and deletes of all kinds that the version has."""
    schema = schema_for(version)
    spec = draw(st.one_of(st.just(UNPARTITIONED), filter_specs()))
    assume(not spec.has_unknown_transform and all(each.source_id in schema.fields_by_id for each in spec.fields))
    order = draw(sort_orders(schema)) if sorts else UNSORTED
    file_format = draw(st.sampled_from(("parquet", "parquet", "avro")))
    properties = {"write.format.default": file_format, "write.parquet.row-group-size-bytes": "300"}
    found = Modelled(RowTable(schema, version, spec, order, properties))
    places = [place for place, each in enumerate(FILTER_SCHEMA.fields) if each.field_id in schema.fields_by_id]
    # A few rows, each of which may come often: deletes by equality then reach several.
    pool = [tuple(row[place] for place in places) for row in draw(st.lists(filter_rows(), min_size=1, max_size=5))]
    for _ in range(draw(st.integers(1, 3))):
        try:
            found.append(draw(st.lists(st.sampled_from(pool), min_size=1, max_size=8)))
        except InvalidInputError:
            reject()  # a transform has no value so close to the end of a type
        if deletes and allows(version, Feature.DELETE_FILES):
            for _ in range(draw(st.integers(0, 2))):
                _delete(draw, found, version)
    return found


def _delete(draw: st.DrawFn, found: Modelled, version: int) -> None:
    live = draw(st.sampled_from(found.table.data))
    path = live.file.file_path
    match draw(st.sampled_from(("position", "equality"))):
        case "position":
            as_vectors = allows(version, Feature.DELETION_VECTORS) and draw(st.booleans())
            if not as_vectors and any(each.file.is_deletion_vector for each in found.table.deletes):
                return  # no position delete files come after vectors
            near = [
                each.file.file_path
                for each in found.table.data
                if each.file.partition is live.file.partition or each.file.partition == live.file.partition
            ]
            paths = {path, *draw(st.sets(st.sampled_from(near)))}
            places = st.integers(0, 7)
            chosen = {
                each: {draw(places) % len(found.files[each])}
                | {p % len(found.files[each]) for p in draw(st.sets(places))}
                for each in paths
            }
            found.delete_positions(chosen, as_vectors)
        case _:
            ids = tuple(sorted(draw(st.sets(st.sampled_from(KEYS), min_size=1, max_size=3))))
            numbers = draw(st.sets(st.sampled_from(sorted(found.rows)), min_size=1, max_size=3))
            keys = [key_of(found.rows[number], found.table.schema, ids) for number in numbers]
            found.delete_keys(keys, ids, live.file, draw(st.sampled_from(("parquet", "avro"))))


def bound(predicate: ex.Expression, schema: Schema) -> ex.Expression:
    try:
        return ex.bind(predicate, schema)
    except (InvalidInputError, LookupError):
        reject()


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
    scan = PlannedScan(table.metadata, table.storage, columns, tasks)
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
    context = ReadContext(table.metadata, table.storage, prune_row_groups=False)
    unpruned = [batch for task in tasks for batch in read_task(task, columns, context)]
    assert contents(pa.Table.from_batches(unpruned, rows.schema)) == contents(rows)


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


def applied(table: RowTable, changes: RowChanges) -> None:
    table.remove((*changes.removed_data, *changes.removed_deletes))
    table.commit((*changes.added_data, *changes.added_deletes))


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("version", ALL_VERSIONS)
@FEWER
@given(st.data())
def test_rows_that_match_go_and_the_others_keep_their_ids(version: int, mode: str, data: st.DataObject) -> None:
    if mode == "merge-on-read" and not allows(version, Feature.DELETE_FILES):
        with pytest.raises(InvalidInputError, match="v2"):
            write_deletes([], RowTable(schema_for(version), version).metadata, None)  # type: ignore[arg-type]  # not asked
        return
    found = data.draw(modelled_tables(version))
    table = found.table
    predicate = bound(data.draw(expressions()), table.schema)
    try:
        matching = found.matching(predicate)
    except InvalidInputError:
        reject()
    before = lineage(table)
    planned = table.tasks(predicate)
    context = ReadContext(table.metadata, table.storage)
    by_residual = list(find_matching_rows(planned, context))
    matches = list(find_matching_rows(table.tasks(), context, predicate))
    assert [(m.positions, m.before) for m in matches] == [(m.positions, m.before) for m in by_residual]
    assert {found.files[m.task.file.file_path][p] for m in matches for p in m.positions} == matching
    if mode == "merge-on-read":
        applied(table, write_deletes(matches, table.metadata, table.storage))
    else:
        applied(table, rewrite_without(matches, context))
    assert set(found.numbers(table.read())) == found.live - matching
    after = lineage(table)
    assert after == {number: before[number] for number in found.live - matching}
    check_one_vector_each(table)


def check_one_vector_each(table: RowTable) -> None:
    named = [each.file.referenced_data_file for each in table.deletes if each.file.is_deletion_vector]
    assert len(named) == len(set(named))


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
        (found.files[match.task.file.file_path][position], numbers[place], is_same)
        for match in matches
        for position, place, is_same in zip(match.positions, match.places, match.is_same, strict=True)
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
        parts += [replace(task, start=start, length=end - start) for start, end in pairwise(edges)]
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
