"""Tables that PyIceberg writes are read by us on every path, and both change tables by turns through one SQLite catalog."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import GreaterThanOrEqual
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import DoubleType, LongType as TheirLongType

from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.schema import create_name_mapping, parse_ddl, schema_to_arrow
from icefloe.schema.types import StringType
from icefloe.spark.session import Session
from icefloe.storage import Storage
from icefloe.verification import Code
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.rows import arrow_table
from tests.peers.comparing import comparable, spark_rows
from tests.peers.engines import PYICEBERG_WRITES
from tests.peers.lake import MODES, SQL, Lake, row_level
from tests.peers.rows import ROWS, SCHEMA
from tests.spark.reading import ENGINES

versions = pytest.mark.parametrize("version", PYICEBERG_WRITES)
ROUNDS = 10


def they_write(scenario: str) -> pytest.MarkDecorator:
    """The mark of a test of what this peer writes."""
    return pytest.mark.cell(direction="they write", peer="pyiceberg", scenario=scenario)


@pytest.fixture
def catalog(warehouse: Lake) -> Iterator[Any]:
    """Our SQL catalog, opened by PyIceberg."""
    place = warehouse.folder
    found = SqlCatalog(SQL, uri=f"sqlite:///{place}/catalog.db", warehouse=(place / "warehouse").as_uri())
    yield found
    found.close()


def create(catalog: Any, name: str, schema: Any, version: int) -> Any:
    return catalog.create_table(name, schema=schema, properties={"format-version": str(version)})


@they_write("every type, partitions, deletes and evolution; read by plain Python, Spark native and Spark arrow")
@versions
def test_tables_of_pyiceberg_are_read(warehouse: Lake, catalog: Any, ice: Session, version: int) -> None:
    name = warehouse.new_name()
    table = create(catalog, name, schema_to_arrow(SCHEMA), version)
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "id_bucket")
        spec.add_field("name", IdentityTransform(), "name")
    table.append(arrow_table(SCHEMA, ROWS[:12]))
    with table.update_spec() as spec:
        spec.add_field("ts", DayTransform(), "ts_day")
    table.append(arrow_table(SCHEMA, ROWS[12:]))
    table.delete(GreaterThanOrEqual("id", 18))
    found = warehouse.sql_catalog.load_table(name)
    assert found.format_version == version
    assert comparable(found.scan().to_arrow()) == comparable(arrow_table(SCHEMA, ROWS[:18]))
    with table.update_schema() as update:
        update.rename_column("name", "label")
        update.update_column("n", TheirLongType())
        update.add_column("extra", DoubleType())
    table.append(pa.table({"id": [99], "n": [2**40], "ts": [None], "label": ["c"], "extra": [0.5]}, pa.schema(NEW)))
    [row] = found.refresh().scan("id = 99").to_arrow().to_pylist()
    assert (row["n"], row["label"], row["extra"]) == (2**40, "c", 0.5)
    for engine in ENGINES:
        assert spark_rows(ice, found, engine) == comparable(found.scan().to_arrow()), engine
    report = found.verify(level="data")
    assert report.clean, str(report)


NEW = [
    pa.field("id", pa.int64(), nullable=False),
    pa.field("n", pa.int64()),
    pa.field("ts", pa.timestamp("us")),
    pa.field("label", pa.string()),
    pa.field("extra", pa.float64()),
]


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if each not in PYICEBERG_WRITES])
def test_pyiceberg_does_not_write_newer_versions(warehouse: Lake, catalog: Any, version: int) -> None:
    """The day it does, this fails, and the version belongs to those that it writes."""
    with pytest.raises(Exception, match=r"Writing V3 is not yet supported|Unknown format version"):
        create(catalog, warehouse.new_name(), pa.schema([("id", pa.int64())]), version)


@pytest.mark.cell(direction="in turn", peer="pyiceberg", scenario="append, delete, upsert and evolve")
@versions
def test_changes_by_turns(warehouse: Lake, catalog: Any, version: int) -> None:
    name = warehouse.new_name()
    merges = allows(version, Feature.DELETE_FILES)
    ours = warehouse.sql_catalog.create_table(
        name, "id long, name string", properties={"format-version": str(version), **row_level(MODES[merges])}
    )
    names: dict[int, str] = {}
    for number in range(ROUNDS):
        first = number * 10
        ids = list(range(first, first + 6))
        theirs = catalog.load_table(name)
        table = theirs if number % 2 else ours.refresh()
        with warnings.catch_warnings():
            # PyIceberg says that it writes no position deletes, and that a delete may find nothing.
            warnings.simplefilter("ignore")
            table.append(rows(ours, ids, "new"))
            names |= dict.fromkeys(ids, "new")
            theirs.refresh().delete(f"id = {first}") if number % 3 else ours.refresh().delete(f"id = {first}")
            names.pop(first)
            changed = [first + 1, max(first - 9, first + 2), first + 9]
            table.refresh().upsert(rows(ours, changed, "changed"), join_cols=["id"])
            names |= dict.fromkeys(changed, "changed")
        if number == 2:
            with ours.refresh().update_schema() as update:
                update.add_column("note", StringType())
        elif number == 4:
            with catalog.load_table(name).update_spec() as spec:
                spec.add_field("name", TruncateTransform(1), "name_start")
        read = ours.refresh().scan().to_arrow()
        assert dict(zip(read["id"].to_pylist(), read["name"].to_pylist(), strict=True)) == names, number
        assert comparable(catalog.load_table(name).scan().to_arrow(), schema=read.schema) == comparable(read), number
    report = ours.verify(level="data")
    # PyIceberg leaves position deletes behind that reach nothing.
    assert report.codes <= ({Code.DELETE_DANGLING} if merges else set()), str(report)


def rows(table: Any, ids: list[int], name: str) -> Any:
    """Rows of the current columns."""
    columns = {"id": pa.array(ids, pa.int64()), "name": [name] * len(ids)}
    return pa.table(columns | {field.name: ["n"] * len(ids) for field in table.refresh().schema().fields[2:]})


def test_parquet_without_ids_is_read_by_a_name_mapping(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    duckdb.sql(
        f"COPY (SELECT 1::BIGINT AS id, {{'zip': 'x'}} AS place, ['a', NULL] AS tags) TO '{path}' (FORMAT parquet)"
    )
    schema = parse_ddl("id long, place struct<zip: string, town: string>, tags list<string>, missing int")
    with Storage().open_input(path.as_uri()) as source:
        reader = ParquetFileReader(source, str(path), schema, mapping=create_name_mapping(schema))
        found = [row for batch in reader.batches() for row in batch.to_pylist()]
    assert found == [{"id": 1, "place": {"zip": "x", "town": None}, "tags": ["a", None], "missing": None}]
