"""Tables that Java Iceberg writes are read by us with the same rows, and nothing in them looks wrong to us."""

import pytest

from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.peers.java import JAVA_VERSIONS, JAVA_WRITES
from tests.peers.lake import Lake, versions_and_modes

versions = pytest.mark.parametrize("version", JAVA_WRITES)
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
PARTITIONS = "PARTITIONED BY (bucket(4, id), truncate(3, name), years(day), months(ts), hours(tz), flag)"


def clean(table: Table) -> None:
    """Nothing to say about a table, down to its rows."""
    report = table.verify(level="data")
    assert report.clean, str(report)


@versions
@pytest.mark.parametrize("tail", ["", PARTITIONS], ids=["plain", "partitioned"])
def test_every_type(lake: Lake, version: int, tail: str) -> None:
    name, there = lake.made_by_java(version, COLUMNS, tail)
    lake.java.sql(f"INSERT INTO {there} VALUES {', '.join(ROWS)}")
    table = lake.sql_catalog.load_table(name)
    assert table.format_version == version
    assert [each["id"] for each in lake.same(table)] == [0, 1, 2]
    assert [each["id"] for each in table.scan("name = ''").to_arrow().to_pylist()] == [0]
    assert [each["id"] for each in table.scan("day < '0002-01-01'").to_arrow().to_pylist()] == [0]
    assert [each["id"] for each in table.scan("tz > '9000-01-01T00:00:00+00:00'").to_arrow().to_pylist()] == [0]
    clean(table)


@pytest.mark.parametrize(("version", "mode"), versions_and_modes(JAVA_WRITES))
def test_changed_rows(lake: Lake, version: int, mode: str) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, name STRING, n INT", "PARTITIONED BY (bucket(2, id))", mode)
    values = ", ".join(f"({i}, 'x', {i})" for i in range(12))
    lake.java.sql(f"INSERT INTO {there} VALUES {values}")
    table = lake.sql_catalog.load_table(name)
    for statement in (
        f"DELETE FROM {there} WHERE id IN (3, 4)",
        f"UPDATE {there} SET name = 'new' WHERE id IN (1, 2)",
        f"MERGE INTO {there} t USING (SELECT 5 AS id UNION ALL SELECT 6 UNION ALL SELECT 50) s ON t.id = s.id"
        " WHEN MATCHED AND t.id = 5 THEN DELETE WHEN MATCHED THEN UPDATE SET name = 'merged'"
        " WHEN NOT MATCHED THEN INSERT (id, name, n) VALUES (s.id, 'inserted', 0)",
        f"INSERT OVERWRITE {there} VALUES (60, 'over', 1)",
    ):
        lake.java.sql(statement)
        lake.same(table.refresh())
        if allows(version, Feature.ROW_LINEAGE):
            lake.same(table, columns=("id", "_row_id", "_last_updated_sequence_number"))
    found = {each["id"]: each["name"] for each in lake.same(table)}
    assert found == {60: "over"}
    clean(table)


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


@pytest.mark.parametrize("version", with_lineage)
def test_variants(lake: Lake, version: int) -> None:
    name, there = lake.made_by_java(version, "id BIGINT, v VARIANT")
    texts = ("1", '"ice"', "null", '{"a": [1, 2.5, {"b": "é"}], "c": true}', "[]")
    values = ", ".join(f"({i}, parse_json('{text}'))" for i, text in enumerate(texts))
    lake.java.sql(f"INSERT INTO {there} VALUES {values}, (9, null)")
    table = lake.sql_catalog.load_table(name)
    copy = lake.create(version, table.schema())
    rows = table.scan().to_arrow()
    assert rows.num_rows == len(texts) + 1
    copy.append(rows)
    shown = "SELECT id, to_json(v) AS v FROM {} ORDER BY id"
    assert lake.java.rows(shown.format(lake.their_name(copy))) == lake.java.rows(shown.format(there))
    clean(table)


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
