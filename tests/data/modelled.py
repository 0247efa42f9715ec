"""Tables of random rows, files and deletes of all kinds, beside what they hold by the naive definition."""

import io
from typing import Any

import fastavro
import pyarrow.parquet as pq
from hypothesis import assume, reject, settings, strategies as st

from icefloe import expressions as ex
from icefloe.errors import InvalidInputError
from icefloe.manifests import DataFile
from icefloe.partitioning import UNPARTITIONED, UNSORTED
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType
from icefloe.versions import Feature, allows
from tests.data.tables import RowTable
from tests.expressions.rows import arrow_table
from tests.strategies import FILTER_SCHEMA, filter_rows, filter_specs, sort_orders

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
