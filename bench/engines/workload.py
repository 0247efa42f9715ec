"""Whole workloads of queries on our tables, on Java Iceberg's and on plain Parquet: answers compared, times taken in turn, and added up.

The three run in processes of their own, on one set of files that we write. Tables can be kept in a folder, and queries be
measured by ranges: a run then takes as long as there is time for, and the next one goes on.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.engines.engine import CATALOG, PLAIN, Engine, EngineError, engine, engines
from bench.report import Row

_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Side:
    """An engine, and the namespace that has its tables."""

    engine: Engine
    namespace: str

    def run(self, text: str) -> tuple[float, list[list[str]]]:
        """Seconds of a query, and its rows in an order of their own."""
        seconds, rows = self.engine.run("sql", text=text, use=self.namespace)
        return seconds, sorted(rows)


@contextmanager
def duckdb_with(extension: Any) -> Iterator[Any]:
    """DuckDB with an extension that comes as a package."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    [file] = Path(str(extension.__file__)).parent.rglob("*.duckdb_extension")
    connection.execute(f"LOAD '{file}'")
    yield connection
    connection.close()


@contextmanager
def three_sides(make: Callable[[Engine, Path], None], tables: str | None) -> Iterator[list[Side]]:
    """Ours, Java's and plain Parquet over the same files; `make` makes the tables unless the folder has them."""
    with engines(tables) as (ours, java, home):
        made = home / "made"
        if not made.exists():
            make(ours, home)
            made.touch()
        with engine(PLAIN, home) as plain:
            _register(ours, plain)
            namespace = f"{CATALOG}.db"
            yield [Side(ours, namespace), Side(java, namespace), Side(plain, f"spark_catalog.{PLAIN}")]


def write_table(ours: Engine, duck: Any, table: str, home: Path, partitions: str = "") -> None:
    """A table of DuckDB as one of ours."""
    whole, file = f"{CATALOG}.db.{table}", f"{home}/{table}.parquet"
    duck.execute(f"COPY {table} TO '{file}' (FORMAT parquet)")
    ours.sql(f"CREATE TABLE {whole} USING iceberg {partitions} AS SELECT * FROM parquet.`{file}`")
    Path(file).unlink()
    [[found]] = ours.sql(f"SELECT count(*) FROM {whole}")
    [[expected]] = duck.execute(f"SELECT count(*) FROM {table}").fetchall()
    if int(found) != expected:
        raise EngineError(f"{table} has {found} rows of {expected}")


def _register(ours: Engine, plain: Engine) -> None:
    """Our files as plain tables of Spark, of whose partitions it knows nothing."""
    plain.sql(f"CREATE DATABASE spark_catalog.{PLAIN}")
    for _, table, *_ in ours.sql(f"SHOW TABLES IN {CATALOG}.db"):
        [[folder]] = ours.sql(
            f"SELECT DISTINCT regexp_extract(file_path, '^(.*/data)/', 1) FROM {CATALOG}.db.{table}.files"
        )
        plain.sql(
            f"CREATE TABLE spark_catalog.{PLAIN}.{table} USING parquet"
            f" OPTIONS (path '{folder}', recursiveFileLookup 'true')"
        )


def measured(sides: Sequence[Side], queries: Mapping[int, str], repeat: int) -> Iterator[Row]:
    """Each query against Java, with the seconds of plain Parquet beside it; the run that compares answers makes all warm.

    A JVM goes on compiling for a while after a query, beside the next one, so each side is first as often as the others.
    """
    for number, text in queries.items():
        note = _compare(sides, number, text)
        seconds: list[list[float]] = [[] for _ in sides]
        for turn in range(repeat):
            for place in range(len(sides)):
                which = (place + turn + number) % len(sides)
                seconds[which].append(sides[which].run(text)[0])
        mine, java, plain = (sorted(each)[len(each) // 2] for each in seconds)
        yield Row(f"q{number:02}", mine, java, 1.0, f"plain Parquet {plain:.3g} s{note}", plain)


def _compare(sides: Sequence[Side], number: int, text: str) -> str:
    """Raise if the answers differ; those of a query whose limit cuts through equal rows are compared without the limit."""
    if _same(answers := [side.run(text)[1] for side in sides]):
        return f", {len(answers[0])} rows"
    if (unlimited := without_limit(text)) != text:
        whole = [side.run(unlimited)[1] for side in sides]
        if _same(whole):
            return f", {len(answers[0])} of {len(whole[0])} rows, whose order leaves the choice open"
        answers = whole
    raise EngineError(f"the answers of query {number} differ: {_difference(answers)}")


def without_limit(text: str) -> str:
    """A query that answers with all of its rows."""
    return _LIMIT.sub("", text)


def _same(answers: Sequence[list[list[str]]]) -> bool:
    return all(answer == answers[0] for answer in answers)


def _difference(answers: Sequence[list[list[str]]]) -> str:
    """How many rows each has, and the first that the others lack."""
    held = [{tuple(row) for row in answer} for answer in answers]
    common = set.intersection(*held)
    return "; ".join(f"{len(rows)} rows, of its own {sorted(rows - common)[:3]}" for rows in held)


def totals(rows: Sequence[Row], scale: float) -> Iterator[Row]:
    """All queries together, against Java and against plain Parquet."""
    note = f"{len(rows)} queries at scale {scale:g}"
    mine, java, plain = (
        sum(getattr(row, each) for row in rows) for each in ("ours_seconds", "theirs_seconds", "third_seconds")
    )
    yield Row("all-against-java", mine, java, 1.0, note)
    yield Row("all-against-parquet", mine, plain, 1.0, note)


def chosen(queries: Mapping[int, str], numbers: str | None) -> dict[int, str]:
    """The queries of a text such as `1-20,23`; all without one."""
    if numbers is None:
        return dict(queries)
    wanted: set[int] = set()
    for part in numbers.split(","):
        first, _, last = part.partition("-")
        wanted |= set(range(int(first), int(last or first) + 1))
    return {number: text for number, text in queries.items() if number in wanted}
