"""v4 tables in the form that Java 1.12 reads (`icefloe.v4.compat`): Java reads, prunes, writes and maintains them, and we go on."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe import errors
from icefloe.schema import Schema
from icefloe.schema.types import LongType, NestedField, VariantType
from icefloe.table import Table
from icefloe.verification import silent
from tests.formats.test_variant_splitting import plain
from tests.peers.engines import DuckDB
from tests.peers.lake import MODES, Lake, row_level
from tests.peers.scenarios import Read

COMPAT = {"icefloe.v4.compat": "java-1.12"}
PARQUET = {"icefloe.v4.manifest-format": "parquet"}
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
SHREDDED_SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "doc", VariantType()))
FUTURE = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)
forms = pytest.mark.parametrize(
    "form", [pytest.param(COMPAT, marks=pytest.mark.slow), COMPAT | PARQUET], ids=["avro", "parquet"]
)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "name": [f"name {i}" for i in ids], "price": [i / 2 for i in ids]}, schema=SCHEMA)


def made(lake: Lake, properties: dict[str, str], mode: str = MODES[1]) -> Table:
    table = lake.create(4, SCHEMA, properties=properties | row_level(mode), partition_spec=["truncate(6, name)"])
    table.append(rows(1, 2, 3))
    table.append(rows(11, 12, 13))
    table.delete("id = 12")
    return table


def ids(found: list[Any]) -> list[int]:
    return [row["id"] for row in found]


def java(lake: Lake, table: Table, procedure: str, rest: str = "") -> None:
    lake.java.sql(f"CALL peers.system.{procedure}(table => '{'.'.join(table.name())}'{rest})")


@forms
def test_java_reads_prunes_and_goes_on(lake: Lake, form: dict[str, str]) -> None:
    table = made(lake, form)
    there = lake.their_name(table)
    columns = ("id", "name", "price", "_row_id", "_last_updated_sequence_number")
    assert ids(lake.same(table, columns=columns)) == [1, 2, 3, 11, 13]
    assert lake.java.sql(f"SELECT id FROM {there} WHERE id > 12").to_pylist() == [{"id": 13}]
    # Bounds are seen as maps, so that files are left out by them.
    [*files] = lake.java.sql(f"SELECT lower_bounds, value_counts FROM {there}.files WHERE content = 0").to_pylist()
    assert files
    assert all(file["lower_bounds"] and file["value_counts"] for file in files)
    lake.java.sql(f"INSERT INTO {there} VALUES (21, 'name 21', 10.5)")
    lake.java.sql(f"DELETE FROM {there} WHERE id = 2")
    lake.java.sql(f"UPDATE {there} SET price = 100.0 WHERE id = 3")
    assert ids(lake.same(table.refresh(), columns=columns)) == [1, 3, 11, 13, 21]
    table.append(rows(31))
    table.delete("id = 11")
    after = lake.same(table, columns=columns)
    assert ids(after) == [1, 3, 13, 21, 31]
    java(lake, table, "rewrite_manifests")
    assert lake.same(table.refresh(), columns=columns) == after
    table.delete("id = 1")
    java(lake, table, "rewrite_data_files", ", options => map('rewrite-all', 'true')")
    assert lake.same(table.refresh(), columns=columns) == [row for row in after if row["id"] != 1]
    java(lake, table, "expire_snapshots", ", older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1")
    assert len(table.refresh().metadata.snapshots) == 1
    assert table.verify(level="data", progress=silent).ok
    table.append(rows(41))
    assert ids(lake.same(table)) == [3, 13, 21, 31, 41]


@pytest.mark.parametrize("form", [COMPAT, COMPAT | PARQUET], ids=["avro", "parquet"])
def test_java_skips_files_by_our_bounds(lake: Lake, form: dict[str, str]) -> None:
    table = lake.create(4, SCHEMA, properties=form)
    table.append(rows(1, 2, 3))
    table.append(rows(11, 12, 13))
    there = lake.their_name(table)
    (task,) = table.scan("id < 10").plan_files()
    path = Path(task.file.file_path.removeprefix("file://"))
    # Whoever reads the file of the small ids fails now.
    path.rename(path.with_suffix(".hidden"))
    for text in ("id > 12", "name > 'name 4' or id = 13", "price >= 6.5"):
        assert ids(lake.java.sql(f"SELECT id FROM {there} WHERE {text}").to_pylist()) == [13]
    with pytest.raises(Exception, match=r"does not exist|NotFound|No such file"):
        lake.java.sql(f"SELECT id FROM {there} WHERE id <> 12")
    path.with_suffix(".hidden").rename(path)
    assert ids(lake.same(table)) == [1, 2, 3, 11, 12, 13]


def test_java_reads_and_goes_on_with_shredded_variants(lake: Lake) -> None:
    table = lake.create(
        4,
        SHREDDED_SCHEMA,
        properties=COMPAT
        | PARQUET
        | {"write.parquet.shred-variants": "true", "read.parquet.vectorization.enabled": "false"},
    )
    table.append(pa.table({"id": [1, 2], "doc": plain([{"a": 1}, {"a": 2}])}))
    table.append(pa.table({"id": [3], "doc": plain([{"a": 30}])}))
    there = lake.their_name(table)
    query = f"SELECT id, variant_get(doc, '$.a', 'int') AS a FROM {there} ORDER BY id"
    assert [row["a"] for row in lake.java.sql(query).to_pylist()] == [1, 2, 30]
    assert len(list(table.scan("doc:a > 20").plan_files())) == 1
    lake.java.sql(f"INSERT INTO {there} SELECT 4, parse_json('{{\"a\": 40}}')")
    assert sorted(table.refresh().scan("doc:a > 20", ("id",)).to_arrow()["id"].to_pylist()) == [3, 4]
    java(lake, table, "rewrite_manifests")
    assert table.refresh().scan("doc:a > 20").count() == 2


def test_our_maintenance_leaves_what_java_reads(lake: Lake) -> None:
    table = made(lake, COMPAT | PARQUET)
    table.append(rows(4, 5))
    before = lake.same(table)
    table.maintenance.rewrite_manifests()
    assert lake.same(table) == before
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert lake.same(table) == before
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert lake.same(table) == before
    lake.java.sql(f"INSERT INTO {lake.their_name(table)} VALUES (6, 'name 6', 3.0)")
    assert len(lake.same(table.refresh())) == len(before) + 1
    assert table.verify(level="data", progress=silent).ok


def test_a_table_with_relative_paths_becomes_one_for_java(lake: Lake) -> None:
    table = made(lake, {})
    there = lake.their_name(table)
    with pytest.raises(Exception, match=r"metadata/snap-|does not exist|NotFound"):
        lake.java.sql(f"SELECT * FROM {there}")
    table.set_properties(COMPAT)
    assert all(table.metadata.resolve(each.metadata_file) == each.metadata_file for each in table.metadata.metadata_log)
    table.maintenance.rewrite_manifests()
    assert ids(lake.same(table)) == [1, 2, 3, 11, 13]
    lake.java.sql(f"INSERT INTO {there} VALUES (21, 'name 21', 10.5)")
    lake.java.sql(f"DELETE FROM {there} WHERE id = 13")
    assert ids(lake.same(table.refresh())) == [1, 2, 3, 11, 21]
    assert table.verify(level="data", progress=silent).ok


def test_ours_after_java_in_a_table_that_java_made(lake: Lake) -> None:
    name, there = lake.made_by_java(4, "id BIGINT, name STRING, price DOUBLE", mode=MODES[1])
    lake.java.sql(f"INSERT INTO {there} VALUES (1, 'a', 0.5), (2, 'b', 1.0)")
    lake.java.sql(f"ALTER TABLE {there} SET TBLPROPERTIES ('icefloe.v4.compat'='java-1.12')")
    table = lake.sql_catalog.load_table(name)
    table.append(rows(3, 4))
    table.delete("id = 1")
    assert ids(lake.same(table)) == [2, 3, 4]
    lake.java.sql(f"DELETE FROM {there} WHERE id = 4")
    assert ids(lake.same(table.refresh())) == [2, 3]


def test_other_words_are_refused_before_anything_is_written(lake: Lake) -> None:
    table = made(lake, COMPAT)
    with pytest.raises(errors.InvalidPropertyError, match=r"icefloe\.v4\.compat.*java-1\.12"):
        table.set_properties({"icefloe.v4.compat": "java-9"})
    assert ids(lake.same(table.refresh())) == [1, 2, 3, 11, 13]


def test_duckdb_reads_the_form_for_java(lake: Lake) -> None:
    table = lake.create(4, SCHEMA, properties=COMPAT)
    table.append(rows(1, 2))
    duck = DuckDB()
    found = duck.run(f"SELECT id FROM {duck.source(table, Read(()))} ORDER BY id", Read(()))
    assert found.to_pylist() == [{"id": 1}, {"id": 2}]
