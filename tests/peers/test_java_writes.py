"""Tables that Java Iceberg writes are read by us with the same rows, and nothing in them looks wrong to us."""

import json
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.verification import Code
from icefloe.versions import Feature, allows
from tests.peers.comparing import spark_rows
from tests.peers.engines import ours
from tests.peers.java import JAVA_VERSIONS, JAVA_WRITES
from tests.peers.lake import MODES, Lake, versions_and_modes
from tests.peers.scenarios import POINT, Made, Read, is_shredded
from tests.puffin_files import decode_puffin
from tests.spark.reading import ENGINES

versions = pytest.mark.parametrize("version", JAVA_WRITES)
with_deletes = [version for version in JAVA_VERSIONS if allows(version, Feature.DELETE_FILES)]
with_lineage = [version for version in JAVA_VERSIONS if allows(version, Feature.ROW_LINEAGE)]

COLUMNS = (
    "id BIGINT NOT NULL, flag BOOLEAN, n INT, ratio FLOAT, score DOUBLE, price DECIMAL(12,2), huge DECIMAL(38,10), day DATE,"
    " ts TIMESTAMP_NTZ, tz TIMESTAMP, name STRING, raw BINARY, tags ARRAY<STRING>, props MAP<STRING, BIGINT>,"
    " place STRUCT<zip: STRING, at: STRUCT<x: DOUBLE, y: DOUBLE>>"
)
ROWS = (
    "(0, true, -2147483648, CAST('NaN' AS FLOAT), CAST('Infinity' AS DOUBLE), -9999999999.99,"
    " -9999999999999999999999999999.9999999999, DATE'0001-01-01', TIMESTAMP_NTZ'0001-01-01 00:00:00',"
    " TIMESTAMP'9999-12-31 23:59:59.999999', '', X'', array(), map(), named_struct('zip', null, 'at', null))",
    "(1, false, 2147483647, CAST('-0.0' AS FLOAT), CAST('NaN' AS DOUBLE), 0.01, 0.0000000001, DATE'1969-12-31',"
    " TIMESTAMP_NTZ'1969-12-31 23:59:59.999999', TIMESTAMP'1500-02-28 01:02:03', repeat('é😀', 20), X'00FF', array('a', null),"
    " map('k', null), named_struct('zip', 'z', 'at', named_struct('x', CAST(1.5 AS DOUBLE), 'y', CAST(null AS DOUBLE))))",
    f"(2{', null' * 14})",
)
SHREDDABLE = [f'{{"a": {i}, "b": "t{i}"}}' for i in range(20)]
PARTITIONS = "PARTITIONED BY (bucket(4, id), truncate(3, name), years(day), months(ts), hours(tz), flag)"


def cell(scenario: str) -> pytest.MarkDecorator:
    """The mark of a test of what this peer writes."""
    return pytest.mark.cell(direction="they write", peer="java", scenario=scenario)


def canonical(text: str) -> str:
    """JSON in one form."""
    return json.dumps(json.loads(text), sort_keys=True)


def clean(table: Table) -> None:
    """Nothing to say about a table, down to its rows."""
    report = table.verify(level="data")
    assert report.clean, str(report)


@cell("every type, partitions, deletes and evolution; read by plain Python, Spark native and Spark arrow")
@versions
def test_every_type(lake: Lake, ice: Session, version: int) -> None:
    mode = MODES[allows(version, Feature.DELETE_FILES)]
    name, there = lake.made_by_java(version, COLUMNS, PARTITIONS, mode)
    lake.java.sql(f"INSERT INTO {there} VALUES {', '.join(ROWS)}, (3{', null' * 14}), (4{', null' * 14})")
    lake.java.sql(f"DELETE FROM {there} WHERE id = 3")
    lake.java.sql(f"ALTER TABLE {there} RENAME COLUMN n TO number")
    lake.java.sql(f"ALTER TABLE {there} ALTER COLUMN number TYPE BIGINT")
    lake.java.sql(f"INSERT INTO {there} (id, number, name) VALUES (5, 1099511627776, 'new')")
    table = lake.sql_catalog.load_table(name)
    assert table.format_version == version
    found = lake.same(table)
    assert [each["id"] for each in found] == [0, 1, 2, 4, 5]
    for engine in ENGINES:
        assert spark_rows(ice, table, engine) == found, engine
    assert [each["id"] for each in table.scan("name = ''").to_arrow().to_pylist()] == [0]
    assert [each["id"] for each in table.scan("day < '0002-01-01'").to_arrow().to_pylist()] == [0]
    assert [each["id"] for each in table.scan("tz > '9000-01-01T00:00:00+00:00'").to_arrow().to_pylist()] == [0]
    clean(table)


@cell("deleted, updated, merged and overwritten rows, copy-on-write and merge-on-read; row lineage")
@pytest.mark.parametrize(("version", "mode"), versions_and_modes(JAVA_WRITES))
def test_changed_rows(lake: Lake, version: int, mode: str) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, name STRING, n INT", "PARTITIONED BY (bucket(2, id))", mode)
    values = ", ".join(f"({i}, 'x', {i})" for i in range(12))
    lake.java.sql(f"INSERT INTO {there} VALUES {values}")
    table = lake.sql_catalog.load_table(name)
    columns = ("*", "_row_id", "_last_updated_sequence_number") if allows(version, Feature.ROW_LINEAGE) else ("*",)
    for statement in (
        f"DELETE FROM {there} WHERE id IN (3, 4)",
        f"UPDATE {there} SET name = 'new' WHERE id IN (1, 2)",
        f"MERGE INTO {there} t USING (SELECT 5 AS id UNION ALL SELECT 6 UNION ALL SELECT 50) s ON t.id = s.id"
        " WHEN MATCHED AND t.id = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged'"
        " WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, 'inserted', 0)",
        f"INSERT OVERWRITE {there} VALUES (60, 'over', 1)",
    ):
        lake.java.sql(statement)
        found = lake.same(table.refresh(), columns=columns)
    assert {each["id"]: each["name"] for each in found} == {60: "over"}
    clean(table)


@cell("schema and partition evolution, sort orders, branches and tags")
@versions
def test_evolution_and_refs(lake: Lake, version: int) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, name STRING, n INT, place STRUCT<zip: INT>")
    lake.java.sql(f"INSERT INTO {there} VALUES (1, 'a', 1, named_struct('zip', 1))")
    for change in (
        "RENAME COLUMN name TO label",
        "ADD COLUMN note STRING FIRST",
        "ALTER COLUMN n TYPE BIGINT",
        "ADD COLUMN place.town STRING",
        "DROP COLUMN place.zip",
        "ADD PARTITION FIELD label",
        "ADD PARTITION FIELD bucket(4, id) AS shard",
        "WRITE ORDERED BY label DESC NULLS LAST, id",
        "CREATE TAG start",
        "CREATE BRANCH audit",
    ):
        lake.java.sql(f"ALTER TABLE {there} {change}")
    lake.java.sql(f"INSERT INTO {there} VALUES ('n', 2, 'b', 1099511627776, named_struct('town', 't'))")
    lake.java.sql(f"INSERT INTO {there}.branch_audit VALUES ('n', 3, 'c', 3, null)")
    lake.java.sql(f"ALTER TABLE {there} REPLACE PARTITION FIELD shard WITH truncate(1, label)")
    lake.java.sql(f"INSERT INTO {there} VALUES ('n', 4, 'd', 4, null)")
    lake.java.sql(f"ALTER TABLE {there} DROP PARTITION FIELD label")
    lake.java.sql(f"INSERT INTO {there} VALUES ('n', 5, 'e', 5, null)")
    table = lake.sql_catalog.load_table(name)
    assert [each["id"] for each in lake.same(table)] == [1, 2, 4, 5]
    assert [each["id"] for each in lake.same(table, ref="audit")] == [1, 3]
    # At a tag Java reads with the schema of its snapshot, and so do we.
    assert [each["id"] for each in lake.same(table, ref="start")] == [1]
    clean(table)


@cell("variants, plain and shredded")
@pytest.mark.parametrize("version", with_lineage)
@pytest.mark.parametrize("shred", ["false", "true"])
def test_variants(lake: Lake, version: int, shred: str) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, v VARIANT")
    # Java looks at the first rows for a shredded form; those that do not fit it follow.
    settings = f"'write.parquet.shred-variants'='{shred}', 'write.parquet.variant-inference-buffer-size'='10'"
    lake.java.sql(f"ALTER TABLE {there} SET TBLPROPERTIES ({settings})")
    texts = [*SHREDDABLE, "1", '"ice"', "null", '{"a": [1, 2.5, {"b": "é"}], "c": true}', "[]"]
    values = ", ".join(f"({i}, parse_json('{text}'))" for i, text in enumerate(texts))
    lake.java.sql(f"INSERT INTO {there} VALUES {values}, (999, null)")
    table = lake.sql_catalog.load_table(name)
    assert {is_shredded(task.file.file_path) for task in table.scan().plan_files()} == {shred == "true"}
    shown = ours(table, Read(()))["v"].to_pylist()
    found = lake.java.rows(f"SELECT id, to_json(v) AS v FROM {there}")
    assert shown == [None if each["v"] is None else canonical(each["v"]) for each in found]
    assert len(shown) == len(texts) + 1
    clean(table)


@cell("geometry, geography, unknown")
@pytest.mark.parametrize("version", with_lineage)
def test_new_types(lake: Lake, made: Callable[[str, int], Made], version: int) -> None:
    """Rows of ours, written again by Java."""
    for scenario, value in (("geometries", POINT), ("geographies", POINT), ("unknown", None)):
        before = made(scenario, version).table
        table = lake.create(version, before.schema())
        text = f"INSERT INTO {lake.their_name(table)} SELECT * FROM {lake.their_name(before)}"
        lake.java.sql(text, **{"spark.sql.geospatial.enabled": "true"})
        found = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
        assert [(each["id"], each["v"]) for each in found] == [(1, value), (2, None)]
        clean(table)


@cell("imported files without field ids, by `add_files`")
@versions
def test_imported_files(lake: Lake, ice: Session, version: int) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, place STRUCT<zip: STRING>, tags ARRAY<STRING>")
    folder = lake.folder / "plain" / name
    folder.mkdir(parents=True)
    pq.write_table(
        pa.table({"id": [1, 2], "place": [{"zip": "z"}, None], "tags": [["a", None], []]}), folder / "a.parquet"
    )
    lake.java.sql(f"CALL peers.system.add_files(table => '{name}', source_table => '`parquet`.`{folder}`')")
    lake.java.sql(f"ALTER TABLE {there} RENAME COLUMN place TO address")
    table = lake.sql_catalog.load_table(name)
    found = lake.same(table)
    assert [each["id"] for each in found] == [1, 2]
    assert spark_rows(ice, table, "arrow") == found
    # The files stay where they are, and from v2 on Java's summary counts none of their bytes.
    report = table.verify(level="data")
    assert report.codes <= {Code.OUTSIDE_LOCATION, Code.SUMMARY_TOTALS}, str(report)


@cell("statistics files and partition statistics")
@pytest.mark.parametrize("version", with_deletes)
def test_statistics(lake: Lake, version: int) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, name STRING", "PARTITIONED BY (name)")
    lake.java.sql(f"INSERT INTO {there} VALUES (1, 'x'), (2, 'x'), (3, 'y')")
    for kind in ("table", "partition"):
        lake.java.sql(f"CALL peers.system.compute_{kind}_stats(table => '{name}')")
    table = lake.sql_catalog.load_table(name)
    [file], [partitions] = table.statistics(), table.partition_statistics()
    assert {each.fields: each.properties["ndv"] for each in file.blob_metadata} == {(1,): "3", (2,): "2"}
    content = table.storage.read(file.statistics_path)
    footer, blobs = decode_puffin(content, file.statistics_path)
    assert [each.type for each in footer.blobs] == [each.blob_type for each in file.blob_metadata]
    assert all(blobs)
    counted = pq.read_table(pa.BufferReader(table.storage.read(partitions.statistics_path))).to_pylist()
    assert {each["partition"]["name"]: each["data_record_count"] for each in counted} == {"x": 2, "y": 1}
    clean(table)
    table.append(pa.table({"id": [4], "name": ["y"]}))
    assert table.statistics() == [file]
    # From what we kept Java goes on: it reads its file again, and adds what changed.
    lake.java.sql(f"CALL peers.system.compute_partition_stats(table => '{name}')")
    assert len(table.refresh().partition_statistics()) == 2
    assert [each["id"] for each in lake.same(table)] == [1, 2, 3, 4]


@cell("`rewrite_data_files`, `rewrite_manifests`, `expire_snapshots`")
@versions
def test_maintenance(lake: Lake, version: int) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, name STRING")
    for i in range(3):
        lake.java.sql(f"INSERT INTO {there} VALUES ({i}, 'x'), ({10 + i}, 'y')")
    for call in (
        f"rewrite_data_files(table => '{name}', options => map('min-input-files', '2'))",
        f"rewrite_manifests('{name}')",
        f"expire_snapshots(table => '{name}', older_than => TIMESTAMP'2100-01-01 00:00:00', retain_last => 1)",
    ):
        lake.java.sql(f"CALL peers.system.{call}")
        table = lake.sql_catalog.load_table(name)
        assert [each["id"] for each in lake.same(table)] == [0, 1, 2, 10, 11, 12]
        clean(table)
