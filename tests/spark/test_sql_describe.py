"""What DESCRIBE and SHOW tell of metadata tables, and of tables at a branch, tag or snapshot."""

from collections.abc import Iterator
from typing import Any

import pytest

from icefloe import load_catalog
from icefloe.errors import InvalidInputError, NoSuchColumnError, NoSuchTableError
from icefloe.inspect import TABLE_NAMES
from icefloe.spark.session import Session
from tests.shared_rows import sql_rows

TABLE = "told.db.t"


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("told")
    catalog = load_catalog("told", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    session = Session(spark, {"told": catalog})
    session.sql("CREATE TABLE db.t (id INT, p STRING, at TIMESTAMP) PARTITIONED BY (p, days(at))").collect()
    session.sql("INSERT INTO db.t VALUES (1, 'a', TIMESTAMP '2026-01-01 00:00:00')").collect()
    session.sql("ALTER TABLE db.t CREATE TAG before").collect()
    session.sql("ALTER TABLE db.t ADD COLUMN more INT").collect()
    yield session
    spark.sql("USE spark_catalog.default")


def test_metadata_tables_are_described_as_they_are_read(ice: Session) -> None:
    for name in TABLE_NAMES:
        read = [(field.name, field.dataType.simpleString()) for field in ice.spark.sql(f"TABLE {TABLE}.{name}").schema]
        assert [row[:2] for row in sql_rows(ice.spark, f"DESCRIBE {TABLE}.{name}")] == read, name
        assert [row[0] for row in sql_rows(ice.spark, f"SHOW COLUMNS IN {TABLE}.{name}")] == [row[0] for row in read]


def test_a_table_at_some_time_has_the_columns_of_then(ice: Session) -> None:
    now = [("id", "int"), ("p", "string"), ("at", "timestamp"), ("more", "int")]
    snapshot = ice.load_table("db.t").current_snapshot()
    assert snapshot is not None
    for word in ("tag_before", f"snapshot_id_{snapshot.snapshot_id}", f"at_timestamp_{snapshot.timestamp_ms}"):
        assert [row[:2] for row in sql_rows(ice.spark, f"DESCRIBE {TABLE}.{word}")] == now[:-1]
    assert [row[:2] for row in sql_rows(ice.spark, f"DESCRIBE {TABLE}.branch_main")] == now


def test_more_is_told_where_it_is_asked_for(ice: Session) -> None:
    told = {row[0]: row[1] for row in sql_rows(ice.spark, f"DESCRIBE EXTENDED {TABLE}.Snapshots")}
    assert (told["Name"], told["committed_at"]) == (f"{TABLE}.snapshots", "timestamp")
    snapshot = ice.load_table("db.t").current_snapshot()
    assert snapshot is not None
    properties = [("current-snapshot-id", str(snapshot.snapshot_id)), ("format", "iceberg/parquet")]
    assert sql_rows(ice.spark, f"SHOW TBLPROPERTIES {TABLE}.refs") == properties
    assert sql_rows(ice.spark, f"SHOW TBLPROPERTIES {TABLE}.refs ('format')") == properties[1:]
    column = sql_rows(ice.spark, f"DESCRIBE {TABLE}.snapshots SNAPSHOT_ID")
    assert column == [("col_name", "snapshot_id"), ("data_type", "bigint"), ("comment", "NULL")]
    assert sql_rows(ice.spark, f"DESCRIBE {TABLE} ID")[0] == ("col_name", "id")
    ice.spark.sql("USE told.db")
    assert sql_rows(ice.spark, "DESCRIBE t.refs")[0][:2] == ("name", "string")


def test_what_there_is_not_to_tell(ice: Session) -> None:
    with pytest.raises(NoSuchColumnError, match=r"told\.db\.t\.refs has no column 'none'; there are name, type"):
        sql_rows(ice.spark, f"DESCRIBE {TABLE}.refs none")
    for statement in ("SHOW CREATE TABLE", "SHOW PARTITIONS"):
        with pytest.raises(InvalidInputError, match=r"told\.db\.t\.refs is a part of table told\.db\.t; ask about the"):
            sql_rows(ice.spark, f"{statement} {TABLE}.refs")
    for name in ("told.db.none.refs", f"{TABLE}.none"):
        with pytest.raises(NoSuchTableError):
            sql_rows(ice.spark, f"DESCRIBE {name}")
