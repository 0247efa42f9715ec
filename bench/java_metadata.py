"""Plans and large commits without reading data: icefloe against Java Iceberg on the same tables of metadata only."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from bench.engines.engine import CATALOG, Engine, Measured, engines, in_turn
from bench.planning import MadeTable, filters
from bench.report import Row

FILES = {"small": 2_000, "medium": 1_500_000, "full": 1_500_000}
COMMITTED = {"small": 2_000, "medium": 100_000, "full": 1_000_000}
REPEAT = {"small": 1, "medium": 3, "full": 5}
ROUNDS = {"small": 1, "medium": 3, "full": 3}
"""How often the many files are committed."""
GOAL = 1.0
POINTER = (
    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
    " VALUES (?, 'db', ?, ?, 'TABLE')"
)


def run(size: str) -> Iterator[Row]:
    """A plan with each filter, and an append of many files."""
    files, committed = FILES[size], COMMITTED[size]
    with engines() as (ours, java, home):
        register(home, "planned", MadeTable(home / "planned", files).metadata_location)
        register(home, "source", MadeTable(home / "source", committed).metadata_location)
        name = f"{CATALOG}.db.planned"
        for case, row_filter in filters(files).items():
            arguments = {"table": name, "row_filter": row_filter}
            mine, theirs = in_turn([(ours, "plan", arguments), (java, "plan", arguments)], REPEAT[size])
            note = f"{files:,} files, {files / mine.median:,.0f}/s; ours {mine.spread}, Java {theirs.spread}"
            yield Row(f"plan-{case}", mine.median, theirs.median, GOAL, note)
        yield _commits(ours, java, committed, ROUNDS[size])


def _commits(ours: Engine, java: Engine, files: int, rounds: int) -> Row:
    """Appends of many files that exist, each to a table of its own."""
    seconds: dict[str, list[float]] = {ours.name: [], java.name: []}
    for number in range(rounds):
        for engine in (ours, java):
            table = f"{CATALOG}.db.added_by_{engine.name}_{number}"
            # Spark before 4.2 has no catalog in the name of a table that is made like another.
            ours.run("sql", text=f"CREATE TABLE {table.rpartition('.')[2]} LIKE source", use=f"{CATALOG}.db")
            taken, count = engine.run("add", table=table, source=f"{CATALOG}.db.source")
            assert count == files, (count, files)
            _, found = ours.run("plan", table=table, row_filter="")
            assert found == files, (found, files)
            seconds[engine.name].append(taken)
    mine, theirs = (Measured(tuple(seconds[engine.name])) for engine in (ours, java))
    note = f"one append of {files:,} files that exist, from values in memory; ours {mine.spread}, Java {theirs.spread}"
    return Row("commit-many-files", mine.median, theirs.median, GOAL, note)


def register(home: Path, name: str, metadata_location: str) -> None:
    """Give a table of metadata files a name in the catalog of both engines."""
    with sqlite3.connect(home / "catalog.db") as connection:
        connection.execute(POINTER, (CATALOG, name, metadata_location))
