"""Queries by Spark on the same tables: icefloe against Java Iceberg, each in a process of its own on the same Spark, in turn."""

from collections.abc import Iterator

from bench.engines.engine import CATALOG, Engine, engines, in_turn
from bench.report import Row

ROWS = {"small": 200_000, "medium": 8_000_000, "full": 16_000_000}
FILES = {"small": 4, "medium": 32, "full": 64}
SMALL_FILES = {"small": 20, "medium": 500, "full": 2_000}
REPEAT = {"small": 1, "medium": 5, "full": 7}
GOAL = 1.0
ONE_IN = 20
"""So many rows have one that is deleted."""
COLUMNS = (
    "id, id % 1000 AS v1, id * 0.5D AS v2, CAST(id % 100 AS INT) AS v3, concat('name-', id % 5000) AS name,"
    " date_add(date'2024-01-01', CAST(id * {files} DIV {rows} AS INT)) AS day"
)
TWO = "sum(id), sum(v1)"
FIVE = "sum(id), sum(v1), sum(v2), sum(v3), sum(length(name))"


def run(size: str, cases: str | None = None) -> Iterator[Row]:
    """Clean, filtered, with deleted rows, evolved, and many small files; or some cases alone."""
    wanted = None if cases is None else cases.split(",")
    with engines() as (ours, java, _):
        _make(ours, size)
        third = ROWS[size] // 3
        queries = {
            "aggregate": f"SELECT {TWO} FROM {{}}.clean",
            "wide": f"SELECT {FIVE}, count(day) FROM {{}}.clean",
            "filter": f"SELECT {FIVE} FROM {{}}.clean WHERE v1 = 7 AND v3 < 50",
            "selective": f"SELECT {FIVE} FROM {{}}.clean WHERE id >= {third} AND id < {third + ROWS[size] // 100}",
            "one-day": f"SELECT {FIVE} FROM {{}}.clean WHERE day = date'2024-01-02'",
            "group": "SELECT v3, count(*), sum(v1) FROM {}.clean GROUP BY v3 ORDER BY v3",
            "vectors-five-columns": f"SELECT {FIVE} FROM {{}}.vectors",
            "vectors-two-columns": f"SELECT {TWO} FROM {{}}.vectors",
            "equality-deletes": f"SELECT {FIVE} FROM {{}}.equal",
            "evolved": f"SELECT {TWO}, count(more), sum(wide) FROM {{}}.evolved",
            "many-small-files": f"SELECT {TWO} FROM {{}}.tiny",
        }
        for case, text in queries.items():
            if wanted is not None and case not in wanted:
                continue
            arguments = {"text": text.format(f"{CATALOG}.db")}
            mine, theirs = in_turn([(ours, "sql", arguments), (java, "sql", arguments)], REPEAT[size])
            note = f"{ROWS[size]:,} rows; ours {mine.spread}, Java {theirs.spread}"
            yield Row(case, mine.median, theirs.median, GOAL, note)
        for engine in (ours, java):
            print(f"peak memory of {engine.name}: {engine.run('peak')[1]} MiB (Python, JVM)", flush=True)


def _make(ours: Engine, size: str) -> None:
    """The tables, written by us; both read the same files."""
    rows, files = ROWS[size], FILES[size]
    columns = COLUMNS.format(rows=rows, files=files)
    place = f"{CATALOG}.db"
    properties = "TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read')"
    source = f"SELECT {columns} FROM range(0, {rows}, 1, {files})"
    for name in ("clean", "vectors", "equal"):
        ours.sql(f"CREATE TABLE {place}.{name} USING iceberg {properties} AS {source}")
    ours.sql(f"DELETE FROM {place}.vectors WHERE pmod(hash(id), {ONE_IN}) = 0")
    ours.run("delete_equal", table=f"{place}.equal", column="id", keys=[0, rows, ONE_IN])
    half = rows // 2
    ours.sql(f"CREATE TABLE {place}.evolved (id BIGINT, v1 BIGINT, wide INT) USING iceberg {properties}")
    ours.sql(f"INSERT INTO {place}.evolved SELECT id, id % 1000, 1 FROM range(0, {half}, 1, {files // 2})")
    ours.sql(f"ALTER TABLE {place}.evolved ADD COLUMN more STRING")
    ours.sql(f"ALTER TABLE {place}.evolved ALTER COLUMN wide TYPE BIGINT")
    ours.sql(f"INSERT INTO {place}.evolved SELECT id, id % 1000, 2, 'x' FROM range({half}, {rows}, 1, {files // 2})")
    count = SMALL_FILES[size]
    ours.sql(
        f"CREATE TABLE {place}.tiny USING iceberg {properties} AS SELECT id, id % 1000 AS v1"
        f" FROM range(0, {count * 100}, 1, {count})"
    )
