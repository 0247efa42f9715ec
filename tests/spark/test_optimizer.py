"""What Spark's optimizer learns of our scans, seen in plans and in the files that are read; answers are the same without it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.expressions import AlwaysTrue
from icefloe.inspect import MetadataScan
from icefloe.spark import scan_statistics
from icefloe.spark.connect import connect
from icefloe.spark.jvm import door
from icefloe.spark.scan_statistics import may_choose_files
from icefloe.spark.session import Session
from tests.spark.reading import delete_equal, new_catalog
from tests.spark.sessions import settings

ROWS = 40
DAYS = 10


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A table of ten files for each way to partition, and a table of days to join them with."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        if door.entry(spark, "optimizer") is None:
            pytest.fail("this Spark does not take our rules")
        data = pa.table(
            {
                "id": range(ROWS),
                "day": pa.array([19000 + row * DAYS // ROWS for row in range(ROWS)], pa.int32()).cast(pa.date32()),
                "name": [f"name-{row * DAYS // ROWS}" for row in range(ROWS)],
                "x": [float(row) + 1 for row in range(ROWS)],
            }
        )
        for name, spec in {
            "identity": ["day"],
            "months": ["day(day)"],
            "buckets": ["bucket(64, name)"],
            "cut": ["truncate(4, id)"],
            "plain": [],
        }.items():
            table = session.catalog.create_table(
                ("db", name),
                "id long, day date, name string, x double",
                partition_spec=spec,
                properties={"format-version": "3"},
            )
            for start in range(0, ROWS, ROWS // DAYS):
                table.append(data.slice(start, ROWS // DAYS))
            session.table(("db", name)).createOrReplaceTempView(name)
        spark.range(DAYS).selectExpr(
            "date_add(date'2022-01-08', cast(id as int)) AS k",
            "id * 4 AS first",
            "concat('name-', id) AS label",
            "id % 4 AS kind",
        ).createOrReplaceTempView("days")
        yield session


def scans(plan: Any) -> list[Any]:
    """The file scans of a physical plan, also of a finished adaptive one."""
    name = plan.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        return scans(plan.finalPhysicalPlan())
    own = [plan] if name == "FileSourceScanExec" else scans(plan.plan()) if name.endswith("QueryStageExec") else []
    return own + [scan for index in range(plan.children().size()) for scan in scans(plan.children().apply(index))]


def files_read(frame: Any) -> int:
    return sum(scan.metrics().apply("numFiles").value() for scan in scans(frame._jdf.queryExecution().executedPlan()))


def without_rules(spark: Any, text: str) -> list[Any]:
    spark.conf.set(door.ENABLED, "false")
    try:
        return sorted(map(str, spark.sql(text).collect()))
    finally:
        spark.conf.unset(door.ENABLED)


JOINS = {
    "SELECT sum(x) FROM identity JOIN days ON day = k WHERE kind = 1": 3,
    "SELECT sum(x) FROM months JOIN days ON day = k WHERE kind = 2": 2,
    "SELECT sum(x) FROM buckets JOIN days ON name = label WHERE kind = 3": 2,
    "SELECT sum(x) FROM cut JOIN days ON id = first WHERE kind = 3": 2,
    "SELECT sum(x) FROM plain JOIN days ON id = first WHERE kind = 0 AND first > 0": 2,
    "SELECT count(*) FROM plain WHERE day IN (SELECT k FROM days WHERE kind = 1) AND id < 30": 2,
    "SELECT p.id, days.label FROM days LEFT JOIN plain p ON p.day = k WHERE kind = 1": 10,
    "SELECT p.* FROM plain p JOIN days ON day = k AND name = label WHERE kind = 1": 3,
    "SELECT day, n FROM (SELECT day, count(*) AS n FROM plain GROUP BY day) JOIN days ON day = k WHERE kind = 2": 2,
    "SELECT sum(x) FROM (SELECT * FROM plain UNION ALL SELECT * FROM identity) u JOIN days ON day = k WHERE kind = 1": 6,
    "SELECT sum(p.x) FROM plain p JOIN identity i ON p.id = i.id JOIN days ON p.day = k WHERE kind = 1": 13,
    "SELECT p.id FROM plain p LEFT JOIN days ON day = k AND kind = 1": 10,
    "SELECT id FROM plain WHERE day IN (SELECT k FROM days WHERE kind = 1) OR id IN (SELECT first FROM days WHERE kind = 2)": 10,
    "SELECT p.id FROM plain p LEFT ANTI JOIN (SELECT * FROM days WHERE kind = 1) ON day = k": 10,
}


@pytest.mark.parametrize("text", JOINS)
def test_joins_read_the_files_of_their_keys(ice: Session, text: str) -> None:
    """By partitions of every kind and by bounds; not where rows without a match are kept, or the other side is no broadcast."""
    frame = ice.spark.sql(text)
    assert sorted(map(str, frame.collect())) == without_rules(ice.spark, text)
    assert files_read(frame) == JOINS[text]


def test_no_keys_no_files(ice: Session) -> None:
    frame = ice.spark.sql("SELECT count(*) FROM plain JOIN days ON day = k WHERE kind = 9")
    assert frame.collect() == [(0,)]
    assert files_read(frame) == 0


def test_aggregates_come_from_metadata(ice: Session) -> None:
    for text, row in {
        "SELECT count(*), min(id), max(day), count(name), max(x) + 1 FROM plain": "(40, 0, 2022-01-17, 40, 41.0)",
        "SELECT count(*) AS n FROM months WHERE day >= date'2022-01-15'": "(12,)",
        "SELECT max(x) FROM plain WHERE day = date'2022-01-08'": "(4.0,)",
    }.items():
        frame = ice.spark.sql(text)
        assert not scans(frame._jdf.queryExecution().executedPlan()), text
        assert f"({', '.join(map(str, frame.first()))}{',' if len(frame.columns) == 1 else ''})" == row
        assert sorted(map(str, frame.collect())) == without_rules(ice.spark, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM plain WHERE id < 6",
        "SELECT min(name) FROM plain",
        "SELECT count(DISTINCT id) FROM plain",
        "SELECT count(*) FILTER (WHERE id > 3) FROM plain",
        "SELECT sum(id), count(*) FROM plain",
        "SELECT count(*) FROM plain WHERE month(day) = 1",
        "SELECT max(id + 1) FROM plain",
        "SELECT day, count(*) FROM plain GROUP BY day",
        "SELECT count(*) FROM plain WHERE rand(7) < 0.9999999",
    ],
)
def test_what_metadata_does_not_tell_is_read(ice: Session, text: str) -> None:
    frame = ice.spark.sql(text)
    assert scans(frame._jdf.queryExecution().executedPlan())
    assert sorted(map(str, frame.collect())) == without_rules(ice.spark, text)


def test_deleted_rows_do_not_count(ice: Session) -> None:
    """Vectors say how many rows they delete, which values is not known; keys say nothing."""
    table = ice.catalog.create_table(
        ("db", "deleted"),
        "id long, p int",
        partition_spec=["p"],
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    for p in range(3):
        table.append(pa.table({"id": range(p * 10, p * 10 + 10), "p": pa.array([p] * 10, pa.int32())}))
    table.delete("id in (3, 4, 25)")
    rows = ice.table("db.deleted")
    counted = rows.selectExpr("count(*)")
    assert not scans(counted._jdf.queryExecution().executedPlan())
    assert counted.first()[0] == 27
    assert rows.filter("p = 0").selectExpr("count(*)").first()[0] == 8
    greatest = rows.selectExpr("max(id)", "min(id)")
    assert scans(greatest._jdf.queryExecution().executedPlan())
    assert greatest.first() == (29, 0)
    delete_equal(table, {"id": [7]}, next(table.scan("p = 0").plan_files()).file)
    assert ice.table("db.deleted").selectExpr("count(*)").first()[0] == 26


def test_limits_plan_few_files(ice: Session) -> None:
    frame = ice.spark.sql("SELECT id, name FROM plain LIMIT 6")
    assert len(frame.collect()) == 6
    assert files_read(frame) == 2
    assert ice.spark.sql("SELECT id FROM plain LIMIT 100").count() == ROWS
    assert len(ice.spark.sql("SELECT id FROM plain WHERE id >= 20 LIMIT 3").collect()) == 3


def test_sizes_are_those_of_the_files_that_are_left(ice: Session) -> None:
    def size(where: str) -> int:
        plan = ice.spark.sql(f"SELECT * FROM plain WHERE {where}")._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes()))

    assert 0 < size("id < 8") * 4 < size("true")


@pytest.mark.parametrize(
    ("query", "width"),
    [
        ("SELECT * FROM packed", 8 + 8 + 20),
        ("SELECT id FROM packed", 8),
        ("SELECT id FROM packed WHERE part < 7", 8 + 8),
        ("SELECT name, id FROM packed WHERE id >= 0", 8 + 20),
    ],
)
def test_rows_are_as_wide_as_in_memory(ice: Session, query: str, width: int) -> None:
    """Files that are packed well say little of what a join would have to hold; sizes are those that Java Iceberg tells."""
    rows = 50_000
    if not ice.catalog.table_exists("db.packed"):
        table = ice.catalog.create_table(("db", "packed"), "id long, part long, name string")
        table.append(ice.spark.range(rows).selectExpr("id", "id % 3 AS part", "'always the same' AS name"))
        ice.table(("db", "packed")).createOrReplaceTempView("packed")
    plan = ice.spark.sql(query)._jdf.queryExecution().optimizedPlan()
    size = int(str(plan.stats().sizeInBytes()))
    assert sum(task.file.file_size_in_bytes for task in ice.load_table("db.packed").scan().plan_files()) < rows * 8
    # A filter that stays beneath a projection has its columns counted, of which the projection drops some.
    selected = 8 + (8 if query.startswith("SELECT id") else 28 if "name" in query else 36)
    assert size == pytest.approx(rows * width * selected / (8 + width), rel=0.001)


MANY = """
    SELECT id AS k FROM range({low}, {low} + 3000) UNION ALL SELECT id FROM range(50000, 53000, 2)
    UNION ALL SELECT {least}L UNION ALL SELECT {greatest}L UNION ALL SELECT null
"""
LEAST, GREATEST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("column", "key", "low", "ends", "read"),
    [
        ("l", "k", 0, (0, 0), 2),
        ("l", "k", 0, (LEAST + 1, GREATEST), 2),
        ("i", "k", 0, (LEAST + 1, GREATEST), 2),
        ("i", "k", 90000, (2**31, -(2**31) - 1), 2),
        ("d", "date_from_unix_date(cast(k AS int))", 20000, (0, 50001), 3),
        ("ts", "timestamp_micros(k)", 0, (0, 90501), 3),
    ],
)
def test_very_many_keys_are_ranges(
    ice: Session, column: str, key: str, low: int, ends: tuple[int, int], read: int
) -> None:
    """With the files between them left out, also where the gaps are wider than a number of 64 bits."""
    if not ice.catalog.table_exists("db.far"):
        table = ice.catalog.create_table(("db", "far"), "l long, i int, d date, ts timestamptz")
        for start in range(0, 100_000, 10_000):
            numbers = pa.array(range(start, start + 1000), pa.int32())
            days, micros = numbers.cast(pa.date32()), numbers.cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
            table.append(pa.table({"l": numbers.cast(pa.int64()), "i": numbers, "d": days, "ts": micros}))
        ice.table(("db", "far")).createOrReplaceTempView("far")
    least, greatest = ends
    keys = MANY.format(low=low, least=least, greatest=greatest)
    text = f"SELECT count(*), sum(l) FROM far JOIN (SELECT {key} AS k FROM ({keys}) WHERE k % 3 < 2) keys ON {column} = keys.k"
    frame = ice.spark.sql(text)
    assert sorted(map(str, frame.collect())) == without_rules(ice.spark, text)
    assert files_read(frame) == read


def test_keys_that_no_file_lacks_are_not_asked_for(ice: Session) -> None:
    """All files have values from end to end: a few keys would leave out none of them."""
    table = ice.catalog.create_table(("db", "mixed"), "id long, day int")
    for part in range(4):
        ids = [part + 4 * row for row in range(100)]
        table.append(pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array([part] * 100, pa.int32())}))
    ice.table(("db", "mixed")).createOrReplaceTempView("mixed")
    for column, asks in (("id", False), ("day", True)):
        text = f"SELECT count(*) FROM mixed JOIN days ON mixed.{column} = days.first WHERE kind = 1"
        frame = ice.spark.sql(text)
        assert sorted(map(str, frame.collect())) == without_rules(ice.spark, text)
        assert ("dynamicpruning" in frame._jdf.queryExecution().executedPlan().toString()) == asks, column


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("SELECT p.id FROM plain p JOIN days ON p.day = k WHERE kind = 1", True),
        ("SELECT p.id FROM plain p LEFT SEMI JOIN (SELECT * FROM days WHERE kind = 1) d ON p.day = d.k", True),
        ("SELECT p.id, k FROM (SELECT * FROM days WHERE kind = 1) d LEFT JOIN plain p ON p.day = d.k", False),
        ("SELECT p.id, k FROM plain p RIGHT JOIN (SELECT * FROM days WHERE kind = 1) d ON p.day = d.k", False),
        ("SELECT p.id FROM plain p JOIN identity i ON p.day = i.day WHERE i.x > 3", True),
    ],
)
def test_keys_are_asked_of_sides_that_may_be_broadcast(ice: Session, text: str, asks: bool) -> None:
    frame = ice.spark.sql(text)
    assert ("dynamicpruning" in frame._jdf.queryExecution().executedPlan().toString()) == asks
    assert sorted(map(str, frame.collect())) == without_rules(ice.spark, text)
    with settings(ice.spark, {"spark.sql.autoBroadcastJoinThreshold": "-1"}):
        assert "dynamicpruning" not in ice.spark.sql(text)._jdf.queryExecution().executedPlan().toString()


def test_equal_scans_are_still_one(ice: Session) -> None:
    """Rules do not keep Spark from reading once what a query has twice."""
    text = "SELECT a.x FROM (SELECT day, max(x) x FROM plain WHERE id > 5 GROUP BY day) a JOIN (SELECT day, max(x) x FROM plain WHERE id > 5 GROUP BY day) b ON a.x = b.x"
    frame = ice.spark.sql(text)
    assert len(frame.collect()) == 9
    assert "Reused" in frame._jdf.queryExecution().executedPlan().toString()


def test_metadata_tables_are_read_when_a_query_needs_them(ice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the columns that it asks for, and with its filters; the rows are those of all columns and rows, filtered by Spark."""
    read: list[tuple[list[str], str]] = []
    stream = MetadataScan.to_arrow_batch_reader

    def seen(scan: MetadataScan) -> pa.RecordBatchReader:
        read.append((list(scan.selected_fields), str(scan.row_filter)))
        return stream(scan)

    monkeypatch.setattr(MetadataScan, "to_arrow_batch_reader", seen)
    files = ice.sql("SELECT * FROM db.identity.files")
    assert not read
    assert files.count() == DAYS
    assert read.pop()[0] == ["content"]
    rows = ice.sql(
        "SELECT record_count, file_path FROM db.identity.files WHERE partition.day > date'2022-01-15'"
    ).collect()
    [(columns, where)] = read
    assert set(columns) == {"file_path", "partition", "record_count"}
    assert "AlwaysTrue" not in where
    plain = ice.load_table("db.identity").inspect.files().to_pylist()
    expected = [(row["record_count"], row["file_path"]) for row in plain if str(row["partition"]["day"]) > "2022-01-15"]
    assert sorted(map(tuple, rows)) == sorted(expected)
    assert len(expected) == 2
    joined = ice.sql(
        "SELECT count(*) FROM db.identity.files f JOIN db.identity.entries e ON f.file_path = e.data_file.file_path"
    )
    assert joined.first()[0] == DAYS
    assert ice.sql("SELECT * FROM db.identity.snapshots").count() == DAYS


def test_files_are_asked_for_by_keys_where_that_may_pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_catalog(tmp_path).create_table("db.t", "id long, v long")

    def is_asked(name: str) -> bool:
        return may_choose_files(table.scan(), table.schema().find_field(name), AlwaysTrue())

    for number in range(4):
        assert not is_asked("id"), "few files, and small ones"
        table.append(pa.table({"id": [10 * number, 10 * number + 9], "v": [0, 100]}))
    assert is_asked("id")
    assert not is_asked("v"), "all files have values from end to end"
    table.delete("id < 10")
    assert not is_asked("id")
    monkeypatch.setattr(scan_statistics, "_FEW_BYTES", 1_000)
    assert is_asked("id"), "few files, and large ones"
