"""What an optimizer may know of a scan: icefloe against Java Iceberg, each in a process of its own on the same Spark, in turn.

The files that ours reads, and the exchanges of its plan, are asserted, so that a ratio is not that of another plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bench.engines.engine import CATALOG, Engine, EngineError, engines, in_turn
from bench.report import Row

ROWS = {"small": 100_000, "medium": 2_000_000, "full": 10_000_000}
FILES = {"small": 20, "medium": 100, "full": 200}
LISTED = {"small": 500, "medium": 10_000, "full": 10_000}
INSPECTED = {"small": 1_000, "medium": 100_000, "full": 100_000}
REPEAT = {"small": 1, "medium": 5, "full": 7}
GOAL = 1.0
PLACE = f"{CATALOG}.db"


@dataclass(frozen=True, slots=True)
class Case:
    """A query, how many files ours may read for it at most, and how many exchanges its plan may have."""

    text: str
    files: int
    exchanges: int | None = None


def run(size: str, cases: str | None = None) -> Iterator[Row]:
    """Star joins by partitions of three transforms and by bounds, aggregates, a limit, and a metadata table.

    Args:
        size: how large the tables are.
        cases: names with commas; only these, and only their tables.
    """
    wanted = {name: case for name, case in _cases(size).items() if cases is None or name in cases.split(",")}
    with engines() as (ours, java, _):
        _make(ours, size, " ".join(case.text for case in wanted.values()))
        for name, case in wanted.items():
            arguments = {"text": case.text}
            mine, theirs = in_turn([(ours, "sql", arguments), (java, "sql", arguments)], REPEAT[size])
            files, exchanges = ours.run("plan_facts", text=case.text)[1]
            if files > case.files or (case.exchanges is not None and exchanges > case.exchanges):
                raise EngineError(f"{name} reads {files} files with {exchanges} exchanges: {case}")
            note = f"{files} files read, {exchanges} exchanges; ours {mine.spread}, Java {theirs.spread}"
            yield Row(name, mine.median, theirs.median, GOAL, note)


def _cases(size: str) -> dict[str, Case]:
    join = f"SELECT sum(f.v), count(*) FROM {PLACE}.{{}} f JOIN {PLACE}.days d ON {{}} WHERE d.kind = 3"
    # One value in ten of those below 50; the rows of a value are in two files where tasks meet, and the days are a file too.
    few = 2 * min(FILES[size] // 10, 5) + 1
    return {
        "star-identity": Case(join.format("by_day", "f.day = d.day") + " AND d.number < 50", few),
        "star-day": Case(join.format("by_moment", "f.moment = d.moment") + " AND d.number < 50", few),
        "star-bucket": Case(join.format("by_bucket", "f.number = d.number") + " AND d.number < 30", 4 * 3 + 1),
        "star-bounds": Case(join.format("plain", "f.number = d.number") + " AND d.number < 50", few),
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
