"""Compaction by the same procedure: icefloe against Java Iceberg, on tables of the same definition, rows and number of files.

Each run compacts the same small files: the table is rolled back before it. After a run both tables have the same rows. Ours is
measured by each of its two ways: a `CALL`, which does so little in its own process (the note says so), and as jobs of Spark
(`*-jobs`), which is what more of it would be on a cluster. For curves the files that filters on two columns read are counted,
too: by one planner, on the files that each of them wrote.
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
REPEAT = {"small": 1, "medium": 3, "full": 2}
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
CASES = {"binpack": None, "sort": "a ASC NULLS FIRST, id ASC NULLS FIRST", "zorder": "zorder(a, b)"}
"""The orders of rows."""


def run(size: str) -> Iterator[Row]:
    """Each strategy, on the same small files."""
    with engines() as (ours, java, home):
        both = dict(zip(SIDES, (ours, java), strict=True))
        tables = {side: f"{CATALOG}.db.small_{side}" for side in both}
        for side, engine in both.items():
            _fill(engine, tables[side], size)
        starts = {side: _current(engine, tables[side]) for side, engine in both.items()}
        for case, order in CASES.items():
            yield from _case(case, order, both, tables, starts, size)
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


def _options(size: str) -> dict[str, str]:
    return {"rewrite-all": "true", "target-file-size-bytes": str(TARGET[size])}


def _call(order: str | None, size: str) -> str:
    options = ", ".join(f"'{text}'" for option in _options(size).items() for text in option)
    arguments = "" if order is None else f", strategy => 'sort', sort_order => '{order}'"
    return f"CALL {CATALOG}.system.rewrite_data_files(table => '{{table}}'{arguments}, options => map({options}))"


WAYS = ("call", "jobs", "java")


def _case(
    case: str, order: str | None, both: dict[str, Engine], tables: dict[str, str], starts: dict[str, int], size: str
) -> Iterator[Row]:
    """One run of each way for warmth, then some that count, in turn."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    processors: dict[str, list[float]] = {way: [] for way in WAYS}
    written_by: dict[str, str] = {}
    for number in range(1 + REPEAT[size]):
        for way in WAYS:
            side = "java" if way == "java" else "ours"
            engine, name = both[side], tables[side].partition(".")[2]
            engine.sql(f"CALL {CATALOG}.system.set_current_snapshot('{name}', {starts[side]})")
            if way == "jobs":
                taken, processor = engine.run("rewrite", table=name, sort_order=order, options=_options(size))
            else:
                taken, processor = engine.run("work", text=_call(order, size).format(table=name))
            if number:
                seconds[way].append(taken)
                processors[way].append(processor)
            written_by[way] = written(both["ours"], {side: tables[side]})
        answers = [engine.sql(CHECK.format(table=tables[side])) for side, engine in both.items()]
        if answers[0] != answers[1]:
            raise EngineError(f"{case}: the tables differ: {answers}")
    theirs = Measured(tuple(seconds["java"]))
    for way, label, where in (
        ("call", case, "in the process of the CALL"),
        ("jobs", f"{case}-jobs", "as jobs of Spark"),
    ):
        mine = Measured(tuple(seconds[way]))
        used, java_used = (Measured(tuple(processors[each])).median for each in (way, "java"))
        # Workers of Python that end meanwhile take the seconds of earlier runs with them.
        share = (
            f"processors {used:.3g} s against {java_used:.3g} s, {used / java_used:.2f}"
            if used > 0
            else "processors not known"
        )
        note = f"{where}; {share}; {ours_and_java(mine, theirs)}; {written_by[way]}, {written_by['java']}"
        yield Row(label, mine.median, theirs.median, GOAL, note)


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
