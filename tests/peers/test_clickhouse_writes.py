"""What ClickHouse writes, we read: its inserts, deletes, updates and changes of the schema. It writes v1 and v2."""

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.verification import Code, silent
from tests.peers.clickhouse import ClickHousePeer
from tests.peers.lake import SQL, Lake

COLUMNS = (
    "id Int64, n Nullable(Int32), f Nullable(Float32), d Nullable(Float64), e Nullable(Decimal(38, 10)), day Nullable(Date32),"
    " ts Nullable(DateTime64(6)), tz Nullable(DateTime64(6, 'UTC')), name Nullable(String), list Array(Nullable(String)),"
    " map Map(String, Nullable(Int64)), part Tuple(x Nullable(Int64), y Nullable(String))"
)
FULL = (
    "(1, -2147483648, -0.0, 1e308, -9999999999999999999999999999.9999999999, '1969-12-31', '1969-12-31 23:59:59.999999',"
    " '2200-01-01 00:00:00.000001', 'e', ['a', NULL], {'k': NULL}, (7, NULL))"
)
EMPTY = "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, [], {}, (NULL, NULL))"
FIRST: dict[str, Any] = {
    "id": 1,
    "n": -2147483648,
    "f": -0.0,
    "d": 1e308,
    "e": Decimal("-9999999999999999999999999999.9999999999"),
    "day": dt.date(1969, 12, 31),
    "ts": dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    # ClickHouse has no type of its own for instants: its tables say `timestamp` of all of them.
    "tz": dt.datetime(2200, 1, 1, 0, 0, 0, 1),
    "name": "e",
    "list": ["a", None],
    "map": [("k", None)],
    "part": {"x": 7, "y": None},
}
OF_CLICKHOUSE = {Code.LAST_ASSIGNED_ID, Code.MANIFEST_COUNTS}
"""What `verify` finds in its tables: the last partition field id is 0, where the spec has 999 for none; and lists say of a
manifest that it has existing files, which it has not."""


def they_write(scenario: str) -> pytest.MarkDecorator:
    """The mark of a test of what this peer writes."""
    return pytest.mark.cell(direction="they write", peer="clickhouse", scenario=scenario)


class Made:
    """A table that ClickHouse made."""

    def __init__(self, peer: ClickHousePeer, warehouse: Lake, version: int, columns: str, partitions: str = "") -> None:
        self.peer = peer
        self.warehouse = warehouse
        self.name = f"t{uuid.uuid4().hex[:8]}"
        self.folder = Path(warehouse.folder) / "clickhouse" / self.name
        peer.run("SET allow_experimental_insert_into_iceberg = 1")
        peer.run("CREATE DATABASE IF NOT EXISTS d")
        peer.run(
            f"CREATE TABLE d.{self.name} ({columns}) ENGINE = IcebergLocal('{self.folder}/') {partitions}"
            f" SETTINGS iceberg_format_version = {version}"
        )

    def run(self, text: str) -> None:
        """A statement about the table, `{}`."""
        self.peer.run(text.replace("{}", f"d.{self.name}", 1))

    def table(self) -> Table:
        """The same table, as we read it."""
        newest = max(self.folder.glob("metadata/v*.metadata.json"), key=lambda each: int(each.name[1:].split(".")[0]))
        return self.warehouse.sql_catalog.register_table(("db", self.name), str(newest))


def rows(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().sort_by("id").to_pylist()
    return found


@they_write("every type, deletes, updates and evolution; read by plain Python and Spark arrow")
@pytest.mark.parametrize("version", [1, 2])
def test_every_type(clickhouse_writer: ClickHousePeer, warehouse: Lake, ice: Session, version: int) -> None:
    made = Made(clickhouse_writer, warehouse, version, COLUMNS)
    made.run("INSERT INTO {} VALUES " + f"{FULL}, {EMPTY}")
    made.run("INSERT INTO {} (id, name) SELECT number + 3, toString(number) FROM numbers(4)")
    if version > 1:
        made.run("ALTER TABLE {} DELETE WHERE id = 4")
        made.run("ALTER TABLE {} UPDATE name = 'new' WHERE id = 5")
    made.run("ALTER TABLE {} ADD COLUMN more Nullable(Int64)")
    table = made.table()
    found = rows(table)
    assert found[0] == FIRST | {"more": None}
    assert found[1] == dict.fromkeys(FIRST) | {
        "id": 2,
        "list": [],
        "map": [],
        "part": {"x": None, "y": None},
        "more": None,
    }
    names = {each["id"]: each["name"] for each in found[2:]}
    assert names == ({3: "0", 5: "new", 6: "3"} if version > 1 else {3: "0", 4: "1", 5: "2", 6: "3"})
    spark = ice.table(f"{SQL}.db.{made.name}", options={"read.engine": "arrow"}).orderBy("id").collect()
    assert [(row["id"], row["name"], row["d"]) for row in spark] == [
        (row["id"], row["name"], row["d"]) for row in found
    ]
    report = table.verify(level="data", progress=silent)
    assert report.codes <= OF_CLICKHOUSE, str(report)
