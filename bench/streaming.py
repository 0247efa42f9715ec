"""Streams from tables and into tables: icefloe against Java Iceberg on the same Spark, and against plain Parquet streams.

Seconds are those of the processors, of Python and the JVM together. Streams wait, and what else a machine does would decide.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from bench.engines.engine import CATALOG, Engine, EngineError, Measured, engines
from bench.report import Row

ROWS = {"small": 200_000, "medium": 4_000_000, "full": 20_000_000}
COMMITS = 4
BATCHES = {"small": 10, "medium": 30, "full": 30}
"""Micro-batches of ten rows."""
REPEAT = {"small": 1, "medium": 3, "full": 3}
WARM = 2
"""Runs that do not count: the first looks whether both show the same rows."""
GOAL, PLAIN_GOAL = 1.0, 1.2
FILES = {False: "streaming-max-files-per-micro-batch", True: "maxFilesPerTrigger"}
COLUMNS = (
    "id, timestamp_micros(1700006400000000 + pmod(xxhash64(id), 2592000000000)) AS ts,"
    " concat('value ', pmod(xxhash64(id), 1000)) AS kind, id % 97 AS amount, id * 0.25D AS score"
)
TYPES = "id BIGINT, ts TIMESTAMP, kind STRING, amount BIGINT, score DOUBLE"


class Streams:
    """Both engines, and the tables and folders of the comparison."""

    def __init__(self, ours: Engine, java: Engine, home: Path, size: str, cases: Sequence[str]) -> None:
        self.ours, self.java = ours, java
        self.size = size
        self._cases = cases
        self._home = home
        self._numbers = count()

    def folder(self, name: str) -> str:
        """A place for files."""
        return str(self._home / f"{name}-{next(self._numbers)}")

    def fill(self, name: str, commits: int, rows: int) -> tuple[str, str]:
        """A table and a folder of Parquet files with the same rows, by so many commits."""
        table, plain = f"{CATALOG}.db.{name}", self.folder(name)
        self.ours.sql(f"CREATE TABLE {table} ({TYPES}) USING iceberg TBLPROPERTIES ('format-version'='3')")
        for number in range(commits):
            first = number * rows
            query = f"SELECT {COLUMNS} FROM range({first}, {first + rows}, 1, 1)"
            self.ours.sql(f"INSERT INTO {table} {query}")
            self.ours.sql(f"INSERT OVERWRITE DIRECTORY '{plain}/{number}' USING parquet {query}")
        return table, f"{plain}/*"

    def targets(self, name: str, tail: str = "") -> tuple[str, str]:
        """A table to write to for us, and one for Java, each created by its writer."""
        mine, theirs = (f"{CATALOG}.db.{name}_{side}" for side in ("ours", "java"))
        for engine, table in ((self.ours, mine), (self.java, theirs)):
            engine.sql(f"CREATE TABLE {table} ({TYPES}) USING iceberg {tail} TBLPROPERTIES ('format-version'='3')")
        return mine, theirs

    def check_equal(self, mine: str, theirs: str) -> None:
        """Fail if two tables do not have the same rows, by count and sum."""
        counts = [self.ours.sql(f"SELECT count(*), sum(id) FROM {name}") for name in (mine, theirs)]
        if counts[0] != counts[1]:
            raise EngineError(f"{mine} and {theirs} differ: {counts}")

    def compare(self, case: str, ours: dict[str, Any], theirs: dict[str, Any], *, plain: bool = False) -> Iterator[Row]:
        """Both in turn, if the case is asked for: Java with its own arguments, or our Spark with plain files."""
        if case not in self._cases:
            return
        peer = self.ours if plain else self.java
        sides = ((self.ours, ours), (peer, theirs))
        seconds: tuple[list[float], list[float]] = ([], [])
        answers = [
            engine.run("stream", checkpoint=self.folder("c"), checks=True, **given)[1] for engine, given in sides
        ]
        if answers[0] != answers[1]:
            raise EngineError(f"{case}: the streams differ: {answers}")
        for number in range(WARM - 1 + REPEAT[self.size]):
            for found, (engine, given) in zip(seconds, sides, strict=True):
                # Spark's own sink skips a batch whose number it finds in a folder.
                fresh = {"to": self.folder("sink")} if "/" in given.get("to", "") else {}
                taken, _ = engine.run("stream", checkpoint=self.folder("c"), **{**given, **fresh})
                if number >= WARM - 1:
                    found.append(taken)
        mine, others = (Measured(tuple(each)) for each in seconds)
        note = f"seconds of the processors: ours {mine.spread}, {'plain' if plain else 'Java'} {others.spread}"
        yield Row(case, mine.median, others.median, PLAIN_GOAL if plain else GOAL, note)


def run(size: str, cases: str | None = None) -> Iterator[Row]:
    """Reads of all and of a few rows, writes, copies of a table, small micro-batches, and idle queries; or some cases alone."""
    wanted = ALL_CASES if cases is None else cases.split(",")
    if unknown := set(wanted) - set(ALL_CASES):
        raise SystemExit(f"streaming has no case {', '.join(sorted(unknown))}; there are: {', '.join(ALL_CASES)}")
    for part, of_part in PARTS.items():
        if chosen := [case for case in of_part if case in wanted]:
            yield from run_part(part, size, chosen)


def run_part(part: Callable[[Streams], Iterator[Row]], size: str, cases: Sequence[str]) -> Iterator[Row]:
    """Some of the cases, with engines of their own."""
    with engines() as (ours, java, home):
        yield from part(Streams(ours, java, home, size, cases))


def _reads(streams: Streams) -> Iterator[Row]:
    table, plain = streams.fill("large", COMMITS, ROWS[streams.size] // COMMITS)
    yield from streams.compare("read-all", {"source": table}, {"source": table})
    yield from streams.compare("read-all-plain", {"source": table}, {"source": plain}, plain=True)
    few = {"where": "id < 100", "columns": ["id", "amount"]}
    yield from streams.compare("read-few", {"source": table, **few}, {"source": table, **few})


def _writes(streams: Streams) -> Iterator[Row]:
    _, plain = streams.fill("large", COMMITS, ROWS[streams.size] // COMMITS)
    mine, theirs = streams.targets("write")
    yield from streams.compare("write", {"source": plain, "to": mine}, {"source": plain, "to": theirs})
    streams.check_equal(mine, theirs)
    files = streams.folder("sink")
    yield from streams.compare("write-plain", {"source": plain, "to": mine}, {"source": plain, "to": files}, plain=True)


def _buckets(streams: Streams) -> Iterator[Row]:
    _, plain = streams.fill("large", COMMITS, ROWS[streams.size] // COMMITS)
    mine, theirs = streams.targets("bucketed", "PARTITIONED BY (bucket(4, id))")
    yield from streams.compare("write-by-bucket", {"source": plain, "to": mine}, {"source": plain, "to": theirs})
    streams.check_equal(mine, theirs)


def _copies(streams: Streams) -> Iterator[Row]:
    table, _ = streams.fill("large", COMMITS, ROWS[streams.size] // COMMITS)
    mine, theirs = streams.targets("copied")
    yield from streams.compare("table-to-table", {"source": table, "to": mine}, {"source": table, "to": theirs})
    streams.check_equal(mine, theirs)


def _small(streams: Streams) -> Iterator[Row]:
    """Micro-batches of ten rows, from a table to nowhere and to a table, and one that finds nothing."""
    batches = BATCHES[streams.size]
    table, plain = streams.fill("little", batches, 10)
    one, plain_one = {FILES[False]: "1"}, {FILES[True]: "1"}
    ours = {"source": table, "options": one}
    yield from streams.compare("small-batches", ours, ours)
    yield from streams.compare("small-batches-plain", ours, {"source": plain, "options": plain_one}, plain=True)
    mine, theirs = streams.targets("little_copied")
    yield from streams.compare("small-batches-to-table", {**ours, "to": mine}, {**ours, "to": theirs})
    streams.check_equal(mine, theirs)
    empty = f"{CATALOG}.db.empty"
    streams.ours.sql(f"CREATE TABLE {empty} ({TYPES}) USING iceberg")
    yield from streams.compare("nothing-to-read", {"source": empty}, {"source": empty})


PARTS = {
    _reads: ("read-all", "read-all-plain", "read-few"),
    _writes: ("write", "write-plain"),
    _buckets: ("write-by-bucket",),
    _copies: ("table-to-table",),
    _small: ("small-batches", "small-batches-plain", "small-batches-to-table", "nothing-to-read"),
}
"""The cases of each part, which has its own engines, so that it can be run alone."""
ALL_CASES = [case for cases in PARTS.values() for case in cases]
