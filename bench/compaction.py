"""Compaction by the same procedure: icefloe against Java Iceberg, on tables of the same definition, rows and number of files.

Each run compacts the same small files: the table is rolled back before it. After a run both tables have the same rows. For
curves the files that filters on two columns read are counted, too: by one planner, on the files that each of them wrote.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from bench.engines.engine import CATALOG, Engine, EngineError, Measured, engines
from bench.java_rows import ours_and_java, written
from bench.report import Row
from icefloe import load_catalog

ROWS = {"small": 100_000, "medium": 4_000_000, "full": 10_000_000}
FILES = {"small": 20, "medium": 400, "full": 1000}
REPEAT = {"small": 1, "medium": 3, "full": 3}
TARGET = {"small": 256 << 10, "medium": 32 << 20, "full": 32 << 20}
GOAL = 0.9
FILTERS = 20
SIDES = ("ours", "java")
CHECK = "SELECT count(*), sum(id), sum(a), sum(b), sum(score) FROM {table}"
COLUMNS = (
    "id BIGINT, a BIGINT, b BIGINT, kind STRING, score DOUBLE",
    "id, pmod(xxhash64(id), 1000000) AS a, pmod(xxhash64(id, 7), 1000000) AS b,"
    " concat('value ', pmod(xxhash64(id), 1000)) AS kind, id * 0.25D AS score",
)
CASES = {
    "binpack": "",
    "sort": ", strategy => 'sort', sort_order => 'a ASC NULLS FIRST, id ASC NULLS FIRST'",
    "zorder": ", strategy => 'sort', sort_order => 'zorder(a, b)'",
}


def run(size: str) -> Iterator[Row]:
    """Each strategy, on the same small files."""
    with engines() as (ours, java, home):
        both = dict(zip(SIDES, (ours, java), strict=True))
        tables = {side: f"{CATALOG}.db.small_{side}" for side in both}
        for side, engine in both.items():
            _fill(engine, tables[side], size)
        starts = {side: _current(engine, tables[side]) for side, engine in both.items()}
        for case, arguments in CASES.items():
            yield _case(case, both, tables, starts, _call(arguments, size), REPEAT[size])
            if case == "zorder":
                yield _files_read(home)


def _fill(engine: Engine, table: str, size: str) -> None:
    """A table of many small files, written in ten commits."""
    rows, per_commit = ROWS[size] // 10, max(FILES[size] // 10, 1)
    engine.sql(
        f"CREATE TABLE {table} ({COLUMNS[0]}) USING iceberg"
        " TBLPROPERTIES ('format-version'='3', 'write.distribution-mode'='none')"
    )
    for number in range(10):
        engine.sql(
            f"INSERT INTO {table} SELECT {COLUMNS[1]}"
            f" FROM range({number * rows}, {(number + 1) * rows}, 1, {per_commit})"
        )


def _current(engine: Engine, table: str) -> int:
    [[snapshot_id]] = engine.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'")
    return int(snapshot_id)


def _call(arguments: str, size: str) -> str:
    options = f"map('rewrite-all', 'true', 'target-file-size-bytes', '{TARGET[size]}')"
    return f"CALL {CATALOG}.system.rewrite_data_files(table => '{{table}}'{arguments}, options => {options})"


def _case(
    case: str, both: dict[str, Engine], tables: dict[str, str], starts: dict[str, int], call: str, repeat: int
) -> Row:
    """One run for warmth, then some that count, in turn."""
    seconds: dict[str, list[float]] = {side: [] for side in both}
    for number in range(1 + repeat):
        for side, engine in both.items():
            name = tables[side].partition(".")[2]
            engine.sql(f"CALL {CATALOG}.system.set_current_snapshot('{name}', {starts[side]})")
            taken, _ = engine.run("sql", text=call.format(table=name))
            if number:
                seconds[side].append(taken)
        answers = [engine.sql(CHECK.format(table=tables[side])) for side, engine in both.items()]
        if answers[0] != answers[1]:
            raise EngineError(f"{case}: the tables differ: {answers}")
    mine, theirs = (Measured(tuple(seconds[side])) for side in both)
    note = f"{ours_and_java(mine, theirs)}; {written(both['ours'], tables)}"
    return Row(case, mine.median, theirs.median, GOAL, note)


def _files_read(home: Path) -> Row:
    """The files that filters on two columns read, in place of seconds."""
    rng = random.Random(1)
    starts = [(rng.randrange(900_000), rng.randrange(900_000)) for _ in range(FILTERS)]
    filters = [f"a >= {a} AND a < {a + 100_000} AND b >= {b} AND b < {b + 100_000}" for a, b in starts]
    uri, warehouse = f"sqlite:///{home}/catalog.db", (home / "warehouse").as_uri()
    counts = []
    with load_catalog(CATALOG, type="sql", uri=uri, warehouse=warehouse) as catalog:
        for side in SIDES:
            table = catalog.load_table(f"db.small_{side}")
            counts.append(sum(1 for text in filters for _ in table.scan(text).plan_files()))
    return Row(
        "zorder-files-read", counts[0], counts[1], 1.0, f"files, not seconds: of {FILTERS} filters on two columns"
    )
