"""Appends, MERGE, UPDATE and DELETE by the same SQL: icefloe against Java Iceberg, on tables of the same definition and rows.

Each run changes other rows than the one before, so that nothing has to be undone, and both go through the same states.
"""

from collections.abc import Callable, Iterator

from bench.engines.engine import CATALOG, Engine, EngineError, Measured, engines
from bench.report import Row

ROWS = {"small": 100_000, "medium": 4_000_000, "full": 10_000_000}
APPENDED = {"small": 100_000, "medium": 4_000_000, "full": 16_000_000}
REPEAT = {"small": 1, "medium": 5, "full": 3}
WARM = {"small": 1, "medium": 4, "full": 4}
WARM_APPENDS = {"small": 1, "medium": 3, "full": 1}
"""Runs of a statement that do not count: the JVM compiles for several seconds of work, and statements are short."""
SHARE = 100
"""One row changed for so many of the table."""
GOAL = 1.0
MODES = ("merge-on-read", "copy-on-write")
CHECK = "SELECT count(*), sum(id), sum(amount), count(DISTINCT kind) FROM {table}"
SIDES = ("ours", "java")
COLUMNS = (
    "id BIGINT, ts TIMESTAMP, kind STRING, amount BIGINT, score DOUBLE",
    "id, timestamp_micros(1700006400000000 + pmod(xxhash64(id), 2592000000000)) AS ts,"
    " concat('value ', pmod(xxhash64(id), 1000)) AS kind, id % 97 AS amount, id * 0.25D AS score",
)


def run(size: str, cases: str | None = None) -> Iterator[Row]:
    """Appends in four ways, then each statement in both modes; or some cases alone."""
    wanted = None if cases is None else cases.split(",")
    with engines() as (ours, java, home):
        both = dict(zip(SIDES, (ours, java), strict=True))
        source = f"{home}/source"
        ours.sql(f"CREATE TEMP VIEW made AS SELECT {COLUMNS[1]} FROM range(0, {APPENDED[size]}, 1, 8)")
        ours.sql(f"INSERT OVERWRITE DIRECTORY '{source}' USING parquet SELECT * FROM made")
        for case, tail, order in (
            ("append", "", ""),
            ("append-by-day", "PARTITIONED BY (days(ts))", ""),
            ("append-by-bucket", "PARTITIONED BY (bucket(8, id))", ""),
            ("append-sorted", "", "WRITE ORDERED BY ts, id"),
        ):
            if wanted is not None and case not in wanted:
                continue
            tables = _create(both, case, tail)
            if order:
                for side, engine in both.items():
                    engine.sql(f"ALTER TABLE {tables[side]} {order}")
            yield _row(case, both, tables, _always(f"SELECT * FROM parquet.`{source}`"), size, WARM_APPENDS)
        for mode in MODES:
            statements = {
                case: statement
                for case, statement in _statements(ROWS[size]).items()
                if wanted is None or f"{case}-{mode}" in wanted
            }
            if not statements:
                continue
            tables = _create(both, mode, "", mode)
            for side, engine in both.items():
                engine.sql(
                    f"INSERT INTO {tables[side]} SELECT {COLUMNS[1]} FROM range(0, {ROWS[size]}, 1, 16) ORDER BY id"
                )
            for case, statement in statements.items():
                yield _row(f"{case}-{mode}", both, tables, statement, size, WARM)


def _always(query: str) -> Callable[[str, int], str]:
    """The same insert in every run."""
    return lambda table, _: f"INSERT INTO {table} {query}"


def _statements(rows: int) -> dict[str, Callable[[str, int], str]]:
    """The text for a table and a run: each run has a range of ids of its own."""
    part = rows // SHARE

    def merge(table: str, number: int) -> str:
        first, half = (number + 1) * rows // 12, part // 2
        new = rows * (number + 2)
        return (
            f"MERGE INTO {table} t USING (SELECT id, timestamp_micros(id) AS ts, 'changed' AS kind, 1L AS amount, 0.5D AS score"
            f" FROM range({first}, {first + half}) UNION ALL SELECT id, timestamp_micros(id), 'new', 2L, 1D"
            f" FROM range({new}, {new + half})) s ON t.id = s.id"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def update(table: str, number: int) -> str:
        first = (number + 1) * rows // 12 + rows // 32
        return f"UPDATE {table} SET kind = 'updated', amount = amount + 1 WHERE id >= {first} AND id < {first + part}"

    def delete(table: str, number: int) -> str:
        first = (number + 1) * rows // 12 + rows // 16
        return f"DELETE FROM {table} WHERE id >= {first} AND id < {first + part}"

    return {"merge": merge, "update": update, "delete": delete}


def _create(both: dict[str, Engine], case: str, tail: str, mode: str = MODES[0]) -> dict[str, str]:
    """A table for each, by the same statement; 16 MB a file gives the changes files to choose from."""
    modes = "".join(f", 'write.{each}.mode'='{mode}'" for each in ("delete", "update", "merge"))
    target = ", 'write.target-file-size-bytes'='16777216'" if not case.startswith("append") else ""
    tables = {side: f"{CATALOG}.db.{case.replace('-', '_')}_{side}" for side in both}
    for side, engine in both.items():
        engine.sql(
            f"CREATE TABLE {tables[side]} ({COLUMNS[0]}) USING iceberg {tail}"
            f" TBLPROPERTIES ('format-version'='3'{modes}{target})"
        )
    return tables


def _row(
    case: str,
    both: dict[str, Engine],
    tables: dict[str, str],
    statement: Callable[[str, int], str],
    size: str,
    warm: dict[str, int],
) -> Row:
    """Some runs for warmth, then some that count, in turn; both tables have the same rows after each."""
    seconds: dict[str, list[float]] = {side: [] for side in both}
    for number in range(warm[size] + REPEAT[size]):
        for side, engine in both.items():
            taken, _ = engine.run("sql", text=statement(tables[side], number))
            if number >= warm[size]:
                seconds[side].append(taken)
        answers = [engine.sql(CHECK.format(table=tables[side])) for side, engine in both.items()]
        if answers[0] != answers[1]:
            raise EngineError(f"{case}: the tables differ: {answers}")
    mine, theirs = (Measured(tuple(seconds[side])) for side in both)
    note = f"{ours_and_java(mine, theirs)}; {written(both['ours'], tables)}"
    return Row(case, mine.median, theirs.median, GOAL, note)


def ours_and_java(mine: Measured, theirs: Measured) -> str:
    """The spread of both."""
    return f"ours {mine.spread}, Java {theirs.spread}"


def written(engine: Engine, tables: dict[str, str]) -> str:
    """What the last snapshot of each wrote."""
    found = []
    for side, table in tables.items():
        [[summary]] = engine.sql(
            f"SELECT concat_ws(' ', coalesce(summary['added-data-files'], '0'), 'files',"
            f" round(coalesce(summary['added-files-size'], 0) / 1e6, 1), 'MB')"
            f" FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
        )
        found.append(f"{side} wrote {summary}")
    return ", ".join(found)
