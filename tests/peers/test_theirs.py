"""Files that peers wrote are read by us: whole tables of PyIceberg, Parquet without ids of DuckDB."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import GreaterThanOrEqual
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType

from icefloe.formats.parquet_reader import ParquetFileReader
from icefloe.schema.arrow import schema_to_arrow
from icefloe.schema.ddl import parse_ddl
from icefloe.schema.name_mapping import create_name_mapping
from icefloe.storage import Storage
from tests.formats.rows import arrow_table
from tests.peers.reading import live_files, load, rows
from tests.peers.test_files_floor import ROWS, SCHEMA, comparable

PYICEBERG_VERSIONS = (1, 2)
"""What PyIceberg creates."""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    found = SqlCatalog("peer", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=(tmp_path / "warehouse").as_uri())
    found.create_namespace("db")
    yield found
    found.close()


@pytest.mark.parametrize("version", PYICEBERG_VERSIONS)
def test_tables_of_pyiceberg_are_read(catalog: Any, version: int) -> None:
    table = catalog.create_table("db.t", schema=schema_to_arrow(SCHEMA), properties={"format-version": str(version)})
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "id_bucket")
        spec.add_field("name", IdentityTransform(), "name")
    table.append(arrow_table(SCHEMA, ROWS[:12]))
    with table.update_spec() as spec:
        spec.add_field("ts", DayTransform(), "ts_day")
    table.append(arrow_table(SCHEMA, ROWS[12:]))
    table.delete(GreaterThanOrEqual("id", 18))
    metadata = load(table.metadata_location)
    assert metadata.format_version == version
    assert comparable(rows(metadata)) == comparable(ROWS[:18])
    assert {file.spec_id for file in live_files(metadata)} <= {spec.spec_id for spec in metadata.partition_specs}


@pytest.mark.parametrize("version", PYICEBERG_VERSIONS)
def test_evolved_tables_of_pyiceberg_are_read(catalog: Any, version: int) -> None:
    before = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]})
    table = catalog.create_table("db.t", schema=before.schema, properties={"format-version": str(version)})
    table.append(before)
    with table.update_schema() as update:
        update.rename_column("name", "label")
        update.update_column("id", LongType())
        update.add_column("extra", DoubleType())
    table.append(pa.table({"id": [2**40], "label": ["c"], "extra": [0.5]}))
    found = sorted(rows(load(table.metadata_location)), key=lambda row: row["id"])
    assert found == [
        {"id": 1, "label": "a", "extra": None},
        {"id": 2, "label": "b", "extra": None},
        {"id": 2**40, "label": "c", "extra": 0.5},
    ]


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
