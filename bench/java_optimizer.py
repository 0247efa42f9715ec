"""What an optimizer may know of a scan: icefloe against Java Iceberg, each in a process of its own on the same Spark, in turn.

The files that ours reads, and the exchanges of its plan, are asserted, so that a ratio is not that of another plan; where both need
settings, the exchanges of Java's plan, too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.engines.engine import CATALOG, Engine, EngineError, engines, in_turn
from bench.report import Row

ROWS = {"small": 100_000, "medium": 2_000_000, "full": 10_000_000}
FILES = {"small": 20, "medium": 100, "full": 200}
LISTED = {"small": 500, "medium": 10_000, "full": 10_000}
INSPECTED = {"small": 1_000, "medium": 100_000, "full": 100_000}
REPEAT = {"small": 1, "medium": 25, "full": 25}
GOAL = 1.0
PLACE = f"{CATALOG}.db"
GROUPED = ("spark.sql.sources.v2.bucketing.enabled", "spark.sql.iceberg.planning.preserve-data-grouping")
BUCKETED = ("bucketed", "bucketed_alike")
BUCKETS = 16


@dataclass(frozen=True, slots=True)
class Case:
    """A query, how many files ours may read for it at most, how many exchanges its plan may have, and what is turned on for it."""

    text: str
    files: int
    exchanges: int | None = None
    settings: tuple[str, ...] = ()


def run(size: str, cases: str | None = None) -> Iterator[Row]:
    """Star joins by partitions of three transforms and by bounds, a join of buckets, aggregates, a limit, and a metadata table.

    Args:
        size: how large the tables are.
        cases: names with commas; only these, and only their tables.
    """
    wanted = {name: case for name, case in _cases(size).items() if cases is None or name in cases.split(",")}
    with engines() as (ours, java, _):
        _make(ours, size, " ".join(case.text for case in wanted.values()))
        for name, case in wanted.items():
            arguments = {"text": case.text}
            with _turned_on((ours, java), case.settings):
                mine, theirs = in_turn([(ours, "sql", arguments), (java, "sql", arguments)], REPEAT[size])
                files, exchanges = ours.run("plan_facts", text=case.text)[1]
                of_java = java.run("plan_facts", text=case.text)[1][1] if case.settings else 0
            if files > case.files or (case.exchanges is not None and max(exchanges, of_java) > case.exchanges):
                raise EngineError(f"{name} reads {files} files with {exchanges} exchanges, Java with {of_java}: {case}")
            note = f"{files} files read, {exchanges} exchanges; ours {mine.spread}, Java {theirs.spread}"
            yield Row(name, mine.median, theirs.median, GOAL, note)


@contextmanager
def _turned_on(engines: Sequence[Engine], settings: Sequence[str]) -> Iterator[None]:
    for engine in engines:
        engine.run("configure", settings=dict.fromkeys(settings, "true"))
    yield
    for engine in engines:
        engine.run("configure", settings=dict.fromkeys(settings))


def _cases(size: str) -> dict[str, Case]:
    join = f"SELECT sum(f.v), count(*) FROM {PLACE}.{{}} f JOIN {PLACE}.days d ON {{}} WHERE d.kind = 3"
    # One value in ten of those below 50; the rows of a value are in two files where tasks meet, and the days are a file too.
    few = 2 * min(FILES[size] // 10, 5) + 1
    return {
        "star-identity": Case(join.format("by_day", "f.day = d.day") + " AND d.number < 50", few),
        "star-day": Case(join.format("by_moment", "f.moment = d.moment") + " AND d.number < 50", few),
        "star-bucket": Case(join.format("by_bucket", "f.number = d.number") + " AND d.number < 30", 4 * 3 + 1),
        "star-bounds": Case(join.format("plain", "f.number = d.number") + " AND d.number < 50", few),
        # The exchange that is left is that of the sum over all rows.
        "join-buckets": Case(
            f"SELECT sum(a.v * b.v), count(*) FROM {PLACE}.{BUCKETED[0]} a JOIN {PLACE}.{BUCKETED[1]} b ON a.id = b.id",
            2 * BUCKETS,
            1,
            GROUPED,
        ),
        "count": Case(f"SELECT count(*) FROM {PLACE}.listed", 0, 0),
        "min-max": Case(f"SELECT min(id), max(id), min(day), max(day) FROM {PLACE}.listed", 0, 0),
        "count-of-partition": Case(f"SELECT count(*) FROM {PLACE}.listed WHERE day = date'2024-01-01'", 0, 0),
        "limit": Case(f"SELECT id % 1 FROM {PLACE}.plain LIMIT 10", 1),
        "count-of-files": Case(f"SELECT count(*) FROM {PLACE}.inspected.files", 0),
        "sizes-of-files": Case(f"SELECT sum(file_size_in_bytes), max(file_path) FROM {PLACE}.inspected.files", 0),
    }


def _make(ours: Engine, size: str, texts: str) -> None:
    """The tables of queries, written by us; both read the same files."""
    rows, files = ROWS[size], FILES[size]
    properties = "TBLPROPERTIES ('format-version'='2')"
    columns = (
        f"id, CAST(id * {files} DIV {rows} AS INT) AS number, id * 0.5D AS v,"
        f" date_add(date'2024-01-01', CAST(id * {files} DIV {rows} AS INT)) AS day,"
        f" CAST(date_add(date'2024-01-01', CAST(id * {files} DIV {rows} AS INT)) AS TIMESTAMP) AS moment"
    )
    source = f"SELECT {columns} FROM range(0, {rows}, 1, 4)"
    for name, spec in {"by_day": "day", "by_moment": "days(moment)", "by_bucket": "bucket(64, number)"}.items():
        if f"{PLACE}.{name} " not in texts:
            continue
        ours.sql(f"CREATE TABLE {PLACE}.{name} USING iceberg PARTITIONED BY ({spec}) {properties} AS {source}")
    for name in BUCKETED:
        if f"{PLACE}.{name} " in texts:
            spec = f"USING iceberg PARTITIONED BY (bucket({BUCKETS}, id)) {properties}"
            ours.sql(
                f"CREATE TABLE {PLACE}.{name} {spec} AS SELECT id, id % 1000 * 0.5D AS v FROM range(0, {rows}, 1, 4)"
            )
    ours.sql(
        f"CREATE TABLE {PLACE}.plain USING iceberg {properties} AS SELECT {columns} FROM range(0, {rows}, 1, {files})"
    )
    days = "SELECT number, date_add(date'2024-01-01', number) AS day, CAST(date_add(date'2024-01-01', number) AS TIMESTAMP) AS moment"
    ours.sql(
        f"CREATE TABLE {PLACE}.days USING iceberg {properties} AS {days}, number % 10 AS kind"
        f" FROM (SELECT CAST(id AS INT) AS number FROM range({files}))"
    )
    for name, count in {"listed": LISTED[size], "inspected": INSPECTED[size]}.items():
        if f"{PLACE}.{name}" not in texts:
            continue
        one = "SELECT 1L AS id, date'2024-01-01' AS day, 'text' AS name"
        ours.sql(f"CREATE TABLE {PLACE}.{name} USING iceberg PARTITIONED BY (day) {properties} AS {one}")
        ours.run("repeat_file", table=f"{PLACE}.{name}", count=count - 1)
