"""Iceberg's extension statements: how they read, what they do, and what is left to Spark."""

from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.errors import IcefloeError, InvalidInputError, NoSuchColumnError, NoSuchSnapshotError
from icefloe.metadata import SnapshotRefType
from icefloe.partitioning import NullOrder, SortDirection
from icefloe.sql.parser import parse_extension
from icefloe.sql.statements import (
    AddPartitionField,
    CreateRef,
    DropIdentifierFields,
    DropPartitionField,
    DropRef,
    ReplacePartitionField,
    SetIdentifierFields,
    SetWriteOrder,
    SortKey,
    WhenRefExists,
)
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS

T = ("lake", "db", "t")
BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG
DAY = 86_400_000

READS = {
    "ALTER TABLE lake.db.t ADD PARTITION FIELD catalog": AddPartitionField(T, "catalog"),
    "ALTER TABLE lake.db.t ADD PARTITION FIELD bucket(16, id) AS shard": AddPartitionField(
        T, "bucket(16, id)", "shard"
    ),
    "alter table lake.`db`.t add partition field truncate(4, `my data`) ;": AddPartitionField(
        T, "truncate(4, `my data`)"
    ),
    "ALTER TABLE lake.db.t -- why\n DROP /* now */ PARTITION FIELD shard": DropPartitionField(T, "shard"),
    "ALTER TABLE lake.db.t REPLACE PARTITION FIELD ts_day WITH day(ts) AS d": ReplacePartitionField(
        T, "ts_day", "day(ts)", "d"
    ),
    "ALTER TABLE lake.db.t WRITE ORDERED BY category ASC NULLS LAST, id DESC, days(ts) nulls first": SetWriteOrder(
        T,
        (
            SortKey("category", SortDirection.ASC, NullOrder.NULLS_LAST),
            SortKey("id", SortDirection.DESC),
            SortKey("days(ts)", SortDirection.ASC, NullOrder.NULLS_FIRST),
        ),
        "range",
    ),
    "ALTER TABLE lake.db.t WRITE LOCALLY ORDERED BY (a, b)": SetWriteOrder(T, (SortKey("a"), SortKey("b")), None),
    "ALTER TABLE lake.db.t WRITE DISTRIBUTED BY PARTITION": SetWriteOrder(T, (), "hash"),
    "ALTER TABLE lake.db.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY a": SetWriteOrder(
        T, (SortKey("a"),), "hash"
    ),
    "ALTER TABLE lake.db.t WRITE LOCALLY ORDERED BY a DISTRIBUTED BY PARTITION": SetWriteOrder(
        T, (SortKey("a"),), "hash"
    ),
    "ALTER TABLE lake.db.t WRITE UNORDERED": SetWriteOrder(T, (), "none"),
    "ALTER TABLE lake.db.t SET IDENTIFIER FIELDS id, point.x": SetIdentifierFields(T, ("id", "point.x")),
    "ALTER TABLE lake.db.t DROP IDENTIFIER FIELDS id": DropIdentifierFields(T, ("id",)),
    "ALTER TABLE lake.db.t CREATE BRANCH `audit-branch`": CreateRef(T, BRANCH, "audit-branch"),
    "ALTER TABLE lake.db.t CREATE BRANCH IF NOT EXISTS b AS OF VERSION 1234 RETAIN 30 DAYS": CreateRef(
        T, BRANCH, "b", WhenRefExists.KEEP, 1234, 30 * DAY
    ),
    "ALTER TABLE lake.db.t CREATE OR REPLACE BRANCH b WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS": CreateRef(
        T, BRANCH, "b", WhenRefExists.CREATE_OR_REPLACE, None, None, 3, 2 * DAY
    ),
    "ALTER TABLE lake.db.t REPLACE BRANCH b RETAIN 2 HOURS WITH SNAPSHOT RETENTION 5 MINUTES": CreateRef(
        T, BRANCH, "b", WhenRefExists.REPLACE, None, 7_200_000, None, 300_000
    ),
    "ALTER TABLE lake.db.t CREATE BRANCH b WITH SNAPSHOT RETENTION 3 SNAPSHOTS": CreateRef(
        T, BRANCH, "b", WhenRefExists.FAIL, None, None, 3
    ),
    "ALTER TABLE lake.db.t CREATE TAG `v 1` AS OF VERSION 7 RETAIN 365 DAYS": CreateRef(
        T, TAG, "v 1", WhenRefExists.FAIL, 7, 365 * DAY
    ),
    "ALTER TABLE lake.db.t REPLACE TAG v AS OF VERSION 8": CreateRef(T, TAG, "v", WhenRefExists.REPLACE, 8),
    "ALTER TABLE lake.db.t DROP BRANCH IF EXISTS b": DropRef(T, BRANCH, "b", True),
    "ALTER TABLE lake.db.t DROP TAG v": DropRef(T, TAG, "v"),
}

SPARKS = (
    "SELECT * FROM lake.db.t",
    "ALTER TABLE lake.db.t ADD COLUMN a INT",
    "ALTER TABLE lake.db.t SET TBLPROPERTIES ('comment' = 'drop branch x')",
    "ALTER TABLE lake.db.t ADD PARTITION (day = 1)",
    "SELECT 'ALTER TABLE t CREATE BRANCH b'",
    "-- ALTER TABLE t CREATE BRANCH b\nSELECT 1",
    "",
)

MALFORMED = (
    "ALTER TABLE lake.db.t ADD PARTITION FIELD",
    "ALTER TABLE lake.db.t ADD PARTITION FIELD bucket(16, id",
    "ALTER TABLE lake.db.t ADD PARTITION FIELD id AS",
    "ALTER TABLE lake.db.t REPLACE PARTITION FIELD a b",
    "ALTER TABLE lake.db.t WRITE ORDERED BY a ORDERED BY b",
    "ALTER TABLE lake.db.t WRITE ORDERED BY a NULLS",
    "ALTER TABLE lake.db.t WRITE DISTRIBUTED BY hash",
    "ALTER TABLE lake.db.t CREATE BRANCH b RETAIN 3 WEEKS",
    "ALTER TABLE lake.db.t CREATE BRANCH b AS OF VERSION 'x'",
    "ALTER TABLE lake.db.t CREATE TAG t WITH SNAPSHOT RETENTION 3 SNAPSHOTS",
    "ALTER TABLE lake.db.t DROP BRANCH b c",
    "ALTER TABLE lake.db.t CREATE BRANCH 'quoted",
)


@pytest.mark.parametrize(("text", "statement"), READS.items(), ids=range(len(READS)))
def test_each_statement_reads_as_what_it_says(text: str, statement: object) -> None:
    assert parse_extension(text) == statement


@pytest.mark.parametrize("text", SPARKS)
def test_all_else_is_left_to_spark(text: str) -> None:
    assert parse_extension(text) is None


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_statement_says_where(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"expected|quot|closed"):
        parse_extension(text)


@pytest.fixture(params=ALL_VERSIONS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    catalog = load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table(
        "db.t",
        "id BIGINT NOT NULL, data STRING, ts TIMESTAMP",
        partition_spec=["days(ts)"],
        properties={"format-version": str(request.param)},
    )
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    made.append(rows.cast(pa.schema([pa.field("id", pa.int64(), nullable=False)])))
    return made


def alter(table: Table, clause: str) -> None:
    statement = parse_extension(f"ALTER TABLE db.t {clause}")
    assert statement is not None
    statement.run(table)
    table.refresh()


def names(table: Table) -> list[str]:
    return [field.name for field in table.spec().fields if str(field.transform) != "void"]


def test_partition_fields_come_change_and_go(table: Table) -> None:
    alter(table, "ADD PARTITION FIELD bucket(4, id) AS shard")
    assert names(table) == ["ts_day", "shard"]
    alter(table, "REPLACE PARTITION FIELD ts_day WITH hours(ts) AS hour")
    assert sorted(names(table)) == ["hour", "shard"]
    alter(table, "DROP PARTITION FIELD bucket(4, id)")
    assert names(table) == ["hour"]
    with pytest.raises(IcefloeError, match="nowhere"):
        alter(table, "DROP PARTITION FIELD nowhere")


def test_the_write_order_and_the_distribution(table: Table) -> None:
    alter(table, "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id DESC NULLS FIRST, data")
    assert [str(field.direction) for field in table.sort_order().fields] == ["desc", "asc"]
    assert table.sort_order().fields[0].null_order is NullOrder.NULLS_FIRST
    assert table.properties["write.distribution-mode"] == "hash"
    alter(table, "WRITE LOCALLY ORDERED BY data")
    assert table.properties["write.distribution-mode"] == "hash"
    alter(table, "WRITE ORDERED BY id")
    assert table.properties["write.distribution-mode"] == "range"
    alter(table, "WRITE UNORDERED")
    assert table.sort_order().is_unsorted
    assert table.properties["write.distribution-mode"] == "none"


def test_identifier_fields(table: Table) -> None:
    alter(table, "SET IDENTIFIER FIELDS id")
    assert table.schema().identifier_field_names == ("id",)
    with pytest.raises(NoSuchColumnError, match="data"):
        alter(table, "DROP IDENTIFIER FIELDS data")
    alter(table, "DROP IDENTIFIER FIELDS id")
    assert table.schema().identifier_field_names == ()


def test_branches_and_tags(table: Table) -> None:
    first = table.current_snapshot()
    assert first is not None
    alter(table, "CREATE BRANCH b RETAIN 1 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 DAYS")
    made = table.refs()["b"]
    assert (made.snapshot_id, made.max_ref_age_ms) == (first.snapshot_id, DAY)
    assert (made.min_snapshots_to_keep, made.max_snapshot_age_ms) == (3, 2 * DAY)
    alter(table, "CREATE BRANCH IF NOT EXISTS b RETAIN 9 DAYS")
    assert table.refs()["b"] == made
    with pytest.raises(IcefloeError, match="b"):
        alter(table, "CREATE BRANCH b")
    alter(table, f"CREATE TAG v1 AS OF VERSION {first.snapshot_id} RETAIN 5 HOURS")
    assert table.refs()["v1"].max_ref_age_ms == 18_000_000
    second = table.append(table.scan().to_arrow())
    assert second is not None
    alter(table, "CREATE OR REPLACE BRANCH b")
    assert table.refs()["b"].snapshot_id == second.snapshot_id
    assert table.refs()["b"].min_snapshots_to_keep == 3
    alter(table, "REPLACE TAG v1 RETAIN 1 MINUTES")
    assert (table.refs()["v1"].snapshot_id, table.refs()["v1"].max_ref_age_ms) == (second.snapshot_id, 60_000)
    alter(table, "CREATE OR REPLACE TAG v2")
    alter(table, "DROP TAG v1")
    alter(table, "DROP BRANCH b")
    alter(table, "DROP BRANCH IF EXISTS b")
    assert set(table.refs()) == {"main", "v2"}
    with pytest.raises(NoSuchSnapshotError, match="b"):
        alter(table, "DROP BRANCH b")


def test_a_branch_of_an_empty_table_cannot_be_replaced(tmp_path: Path) -> None:
    catalog = load_catalog("lake", type="memory", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", "id BIGINT")
    with pytest.raises(NoSuchSnapshotError):
        alter(table, "REPLACE BRANCH b")
