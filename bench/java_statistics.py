"""Statistics by the same procedures: icefloe, called from Spark and in plain Python, against Java Iceberg, on the same tables.

Both count the same distinct values, within what sketches promise, and the same partitions.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from bench.engines.engine import CATALOG, Engine, EngineError, Measured, engines
from bench.java_rows import ours_and_java
from bench.report import Row
from icefloe import Table, load_catalog
from icefloe.commit import StatisticsChange

ROWS = {"small": 100_000, "medium": 4_000_000, "full": 16_000_000}
PARTITIONS = {"small": 100, "medium": 10_000, "full": 10_000}
REPEAT = {"small": 1, "medium": 3, "full": 3}
FILES = 8
GOAL = 1.0
CARRIED_ON_GOAL = 0.05
FILES_A_PARTITION = 100
COLUMNS = (
    "id, id % 1000 AS few, CAST(id % 100000 AS INT) AS n, id * 0.25D AS score, CAST(id % 97 AS FLOAT) AS ratio,"
    " concat('value ', id % 5000) AS name, concat('a longer text with the number ', id) AS note,"
    " CAST(id % 1000000 AS DECIMAL(12, 2)) AS price, date_add(date'2020-01-01', CAST(id % 2000 AS INT)) AS day,"
    " timestamp_micros(id * 1000000) AS ts"
)
TABLE, PARTITIONED = "counted", "partitioned"


def run(size: str) -> Iterator[Row]:
    """Ten columns of one table, then the partitions of another."""
    with engines() as (ours, java, home):
        place, repeat = f"{CATALOG}.db", REPEAT[size]
        source = f"SELECT {COLUMNS} FROM range(0, {ROWS[size]}, 1, {FILES})"
        ours.sql(f"CREATE TABLE {place}.{TABLE} USING iceberg TBLPROPERTIES ('format-version'='3') AS {source}")
        text = f"CALL {CATALOG}.system.compute_table_stats('db.{TABLE}')"
        table = _load(home, TABLE)
        theirs, counts = _measured(lambda: _seconds(java, text), table, repeat)
        for case, work in (
            ("table-call", lambda: _seconds(ours, text)),
            ("table-plain", lambda: _plain(table.maintenance.compute_table_stats)),
        ):
            mine, found = _measured(work, table, repeat)
            _check(counts, found)
            yield Row(case, mine.median, theirs.median, GOAL, f"{ROWS[size]:,} rows; {ours_and_java(mine, theirs)}")
        yield from _partitions(ours, java, home, size)


def _partitions(ours: Engine, java: Engine, home: Path, size: str) -> Iterator[Row]:
    place, count = f"{CATALOG}.db.{PARTITIONED}", PARTITIONS[size]
    ours.sql(f"CREATE TABLE {place} (p BIGINT, v BIGINT) USING iceberg PARTITIONED BY (p)")
    table = _load(home, PARTITIONED)
    table.append(pa.table({"p": range(count), "v": range(count)}))
    text = f"CALL {CATALOG}.system.compute_partition_stats('db.{PARTITIONED}')"
    theirs = Measured(tuple(_counted(lambda: _seconds(java, text), table) for _ in range(1 + REPEAT[size]))[1:])
    mine = Measured(tuple(_counted(lambda: _plain(table.maintenance.compute_partition_stats), table) for _ in range(3)))
    yield Row("partitions", mine.median, theirs.median, GOAL, f"{count:,} partitions; {ours_and_java(mine, theirs)}")
    yield _carried_on(table, mine, "partitions-carried-on", "one file for each partition")
    table = _many_files(table, count * FILES_A_PARTITION)
    mine = Measured(tuple(_counted(lambda: _plain(table.maintenance.compute_partition_stats), table) for _ in range(3)))
    yield _carried_on(table, mine, "many-files-carried-on", f"{FILES_A_PARTITION} files for each partition")


def _carried_on(table: Table, anew: Measured, case: str, note: str) -> Row:
    """What one more snapshot costs beside a count of all of them: both write a file of all partitions."""
    table.maintenance.compute_partition_stats()
    table.append(pa.table({"p": [1], "v": [1]}))
    carried = Measured(
        tuple(_counted(lambda: _plain(table.maintenance.compute_partition_stats), table) for _ in range(3))
    )
    return Row(case, carried.median, anew.median, CARRIED_ON_GOAL, f"one new snapshot, {note}; peer: all anew")


def _many_files(table: Table, count: int) -> Table:
    """The table with more files, of metadata only, and without statistics that could be carried on."""
    file = replace(next(iter(table.scan().plan_files())).file, first_row_id=None)
    partitions = count // FILES_A_PARTITION
    files = [
        replace(file, file_path=f"{table.location()}/data/{number}.parquet", partition=(number % partitions,))
        for number in range(count)
    ]
    table.update_snapshot().fast_append(files, check_duplicates=False)
    counted = tuple(each.snapshot_id for each in table.refresh().metadata.partition_statistics)
    with table.transaction() as tx:
        tx.update_statistics(StatisticsChange(remove_partition_for=counted))
    return table.refresh()


def _load(home: Path, name: str) -> Table:
    catalog = load_catalog(
        CATALOG, type="sql", uri=f"sqlite:///{home}/catalog.db", warehouse=(home / "warehouse").as_uri()
    )
    return catalog.load_table(f"db.{name}")


def _seconds(engine: Engine, text: str) -> float:
    return engine.run("sql", text=text)[0]


def _plain(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _measured(work: Callable[[], float], table: Table, repeat: int) -> tuple[Measured, dict[str, int]]:
    """One run for warmth, then some that count; and the counts that were stored."""
    seconds = [work() for _ in range(1 + repeat)][1:]
    [file] = table.refresh().statistics()
    names = table.schema().names_by_id
    counts = {names[blob.fields[0]]: int(blob.properties["ndv"]) for blob in file.blob_metadata}
    return Measured(tuple(seconds)), counts


def _counted(work: Callable[[], float], table: Table) -> float:
    """One run, of a snapshot without a file."""
    snapshot = table.refresh().metadata.current_snapshot_id
    assert snapshot is not None
    with table.transaction() as tx:
        tx.update_statistics(StatisticsChange(remove_partition_for=(snapshot,)))
    return work()


def _check(theirs: dict[str, int], ours: dict[str, int]) -> None:
    for name, count in theirs.items():
        if abs(ours[name] - count) > 0.1 * count:
            raise EngineError(f"distinct values of {name}: Java {count}, ours {ours[name]}")
