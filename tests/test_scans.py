"""Scans of random tables with real files, from their first commit on, give what the naive definition gives: the rows that
match, of all that were written and not deleted; without each level of pruning too. And such tables are whole."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, note, settings, strategies as st

import icefloe
from icefloe.expressions import AlwaysTrue, Expression, bind, evaluate
from icefloe.formats.equality_deletes import equality_delete_writer
from icefloe.manifests import FileContent
from icefloe.partitioning import UNPARTITIONED
from icefloe.planning import PRUNING_SWITCHES
from icefloe.schema import Schema, StructType, schema_to_arrow, select_ids
from icefloe.schema.types import LongType, TimestampType
from icefloe.table import Table
from icefloe.verification import Code, silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.peers.tables import data_file
from tests.planning.histories import FIRST, PARTITION_FIELDS, VALUES, random_predicate
from tests.shared_rows import row_modes

Row = dict[int, Any]

OFF = "false"
SWITCHES = [{}, *({each.key: OFF} for each in PRUNING_SWITCHES), {each.key: OFF for each in PRUNING_SWITCHES}]
FORMATS = ("parquet", "parquet", "avro", "orc")
KEYS = ((1,), (2,), (1, 2))
"""Columns by which rows are deleted."""


class Story:
    """A table and the rows that it should hold, changed alike by random operations."""

    def __init__(self, version: int, rng: random.Random) -> None:
        self.rng = rng
        self.version = version
        first = 2 if allows(version, Feature.DELETION_VECTORS) and rng.random() < 0.5 else version
        mode = (
            rng.choice(("merge-on-read", "copy-on-write")) if allows(first, Feature.DELETE_FILES) else "copy-on-write"
        )
        catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://scans/{rng.getrandbits(64)}")
        catalog.create_namespace("db")
        self.table: Table = catalog.create_table(
            "db.t",
            FIRST,
            properties={
                "format-version": str(first),
                "write.format.default": rng.choice(FORMATS),
                "write.parquet.row-group-size-bytes": "200",
                "write.metadata.metrics.default": rng.choice(("truncate(2)", "truncate(16)", "full", "counts", "none")),
                **row_modes(mode),
            },
        )
        self.rows: list[Row] = []

    def run(self) -> None:
        """Some steps; the table ends in the version that is asked for."""
        steps: list[Callable[[], None]] = [self.append, self.append, self.delete, self.delete, self.overwrite]
        steps += [self.delete_keys, self.delete_keys, self.evolve_spec, self.evolve_schema]
        self.append()
        for step in self.rng.choices(steps, k=self.rng.randint(2, 5)):
            step()
        if self.table.format_version < self.version:
            self.table.upgrade_format_version(self.version)
            self.rng.choice((self.append, self.delete, self.delete_keys))()

    @property
    def schema(self) -> Schema:
        return self.table.schema()

    def append(self) -> None:
        made = [self.new_row() for _ in range(self.rng.randint(1, 8))]
        self.table.append(arrow_of(made, self.schema))
        self.rows += made

    def delete(self) -> None:
        predicate = random_predicate(self.rng, self.schema, 1)
        self.table.delete(predicate)
        self.rows = self.without(predicate)

    def overwrite(self) -> None:
        predicate = random_predicate(self.rng, self.schema, 1)
        made = [self.new_row() for _ in range(self.rng.randint(1, 3))]
        self.table.overwrite(arrow_of(made, self.schema), predicate)
        self.rows = self.without(predicate) + made

    def delete_keys(self) -> None:
        """An equality delete of everywhere."""
        if not allows(self.table.format_version, Feature.DELETE_FILES):
            return
        ids = self.rng.choice(KEYS)
        some = [self.rng.choice(self.rows) for _ in range(2) if self.rows] + [self.new_row()]
        place = f"{self.table.location()}/data/{self.rng.getrandbits(64)}.parquet"
        with self.table.storage.open_output(place) as sink:
            writer = equality_delete_writer(sink, self.schema, ids, self.table.format_version)
            writer.write(arrow_of(some, select_ids(self.schema, ids)))
            done = writer.close()
        spec_id = next(each.spec_id for each in self.table.metadata.partition_specs if not each.fields)
        file = data_file(
            place, "parquet", done, content=FileContent.EQUALITY_DELETES, equality_ids=ids, spec_id=spec_id
        )
        self.table.update_snapshot().row_delta(None, deletes=[file])
        gone = {tuple(row.get(each) for each in ids) for row in some}
        self.rows = [row for row in self.rows if tuple(row.get(each) for each in ids) not in gone]

    def evolve_spec(self) -> None:
        some = self.rng.sample(PARTITION_FIELDS[:-1], self.rng.randint(0, 2))
        chosen = list({each.source_ids: each for each in some}.values())
        with self.table.update_spec() as update:
            for each in self.table.spec().fields:
                update.remove_field(each.name)
        with self.table.update_spec() as update:
            for place, each in enumerate(chosen):
                column = self.schema.names_by_id[each.source_id]
                number = len(self.table.specs())
                update.add_field(column, each.transform, f"s{number}p{place}")

    def evolve_schema(self) -> None:
        if len(self.table.schemas()) > 1:
            return
        with self.table.update_schema() as update:
            update.add_column("added", LongType())
            update.update_column("id", LongType())
            update.rename_column("name", "label")
            update.move_first("added")

    def new_row(self) -> Row:
        row: Row = {field_id: self.rng.choice(VALUES[field_id]) for field_id in (1, 2, 3, 4)}
        row[5] = self.rng.choice((None, *(((6, value),) for value in VALUES[6])))
        if 7 in self.schema.fields_by_id:
            row[7] = self.rng.choice(VALUES[7])
        return row

    def without(self, predicate: Expression) -> list[Row]:
        bound = bind(predicate, self.schema)
        return [row for row in self.rows if not evaluate(bound, row)]

    def matching(self, predicate: Expression) -> list[str]:
        bound = bind(predicate, self.schema)
        names = {each.field_id: each.name for each in self.schema.fields}
        rows = [row for row in self.rows if evaluate(bound, row)]
        return sorted(shown({name: row.get(field_id) for field_id, name in names.items()}) for row in rows)


def shown(row: dict[str, Any]) -> str:
    """A row that compares by its bits: NaN equals NaN, and zeros differ."""
    plain = {name: dict(value) if isinstance(value, tuple) else value for name, value in row.items()}
    if plain["place"] is not None:
        plain["place"] = [*plain["place"].values()]
    return repr(sorted(plain.items()))


def arrow_of(rows: list[Row], schema: Schema) -> Any:
    arrays = []
    target = schema_to_arrow(schema)
    for place, field in enumerate(schema.fields):
        values = [row.get(field.field_id) for row in rows]
        kind = target.field(place).type
        if isinstance(field.field_type, StructType):
            inner = pa.array([None if value is None else value[0][1] for value in values], kind.field(0).type)
            mask = pa.array([value is None for value in values])
            arrays.append(pa.StructArray.from_arrays([inner], fields=[kind.field(0)], mask=mask))
        elif isinstance(field.field_type, TimestampType):
            arrays.append(pa.array(values, pa.int64()).cast(kind))
        else:
            arrays.append(pa.array(values, kind))
    return pa.Table.from_arrays(arrays, schema=target)


def rows_of(found: Any) -> list[str]:
    place = found.schema.get_field_index("ts")
    # Python has no time so far away.
    found = found.set_column(place, "ts", found.column("ts").cast(pa.int64()))
    return sorted(map(shown, found.to_pylist()))


def check_scans(version: int, seed: int, predicates: int) -> None:
    rng = random.Random(seed)
    story = Story(version, rng)
    story.run()
    table = story.table
    assert table.format_version == version
    for predicate in (AlwaysTrue(), *(random_predicate(rng, table.schema()) for _ in range(predicates))):
        note(str(predicate))
        expected = story.matching(predicate)
        for options in SWITCHES:
            scan = table.scan(predicate, options={"planning.workers": "1", **options})
            assert rows_of(scan.to_arrow()) == expected, options
        scan = table.scan(predicate)
        assert scan.count() == len(expected)
    report = table.verify(level="data", progress=silent)
    # A delete of nothing is legal, and so is one whose data files are all gone.
    assert report.codes <= {Code.DELETE_DANGLING}, str(report)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_a_scan_gives_the_rows_that_match(version: int, seed: int) -> None:
    check_scans(version, seed, predicates=6)


@pytest.mark.deep
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=100, derandomize=False)
@given(seed=st.integers(0, 2**32))
def test_a_scan_gives_the_rows_that_match_in_tens_of_thousands_of_cases(version: int, seed: int) -> None:
    check_scans(version, seed, predicates=12)


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_keys_of_a_type_that_came_later_are_read_when_nobody_asks_for_their_column(version: int) -> None:
    story = Story(version, random.Random(1))
    story.append()
    story.evolve_schema()
    story.delete_keys()
    assert story.table.scan().count() == len(story.rows)
    assert len(story.table.scan(selected_fields=("ts",)).to_arrow()) == len(story.rows)


def test_the_first_spec_stays_unpartitioned() -> None:
    """What the equality deletes of everywhere rely on."""
    assert Story(2, random.Random(0)).table.spec() == UNPARTITIONED


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_rows_whose_truncated_value_comes_round_are_found_and_kept(version: int) -> None:
    catalog = icefloe.load_catalog("memory", type="memory")
    catalog.create_namespace("db")
    schema = pa.schema([("i", pa.int32())])
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.least", schema, partition_spec=["truncate(10, i)"], properties=properties)
    values = [-(2**31), -(2**31) + 7, -(2**31) + 8, -5, 5, 2**31 - 1]
    table.append(pa.table({"i": pa.array(values, pa.int32())}))
    for text, test in (
        ("i < 0", lambda i: i < 0),
        ("i <= -2147483645", lambda i: i <= -2147483645),
        ("i > -2147483645", lambda i: i > -2147483645),
        ("i = -2147483648", lambda i: i == -2147483648),
        ("truncate(10, i) > 0", lambda i: i > 9 or i < -2147483640),
    ):
        assert sorted(table.scan(text).to_arrow()["i"].to_pylist()) == sorted(filter(test, values)), text
    table.delete("i > 0")
    assert sorted(table.scan().to_arrow()["i"].to_pylist()) == values[:4]
    assert not table.verify(level="data", progress=silent).codes
