"""Streams from tables and into tables: icefloe against Java Iceberg on the same Spark, and against plain Parquet streams.

Seconds are those of the processors, of Python and the JVM together. Streams wait, and what else a machine does would decide.
"""

from collections.abc import Iterator
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

    def __init__(self, ours: Engine, java: Engine, home: Path, size: str) -> None:
        self.ours, self.java = ours, java
        self.size = size
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

    def compare(self, case: str, ours: dict[str, Any], theirs: dict[str, Any], *, plain: bool = False) -> Row:
        """Both in turn: Java with its own arguments, or our Spark with plain files."""
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
        return Row(case, mine.median, others.median, PLAIN_GOAL if plain else GOAL, note)


def run(size: str) -> Iterator[Row]:
    """Reads of all and of a few rows, writes, small micro-batches, and queries that have nothing to do."""
    with engines() as (ours, java, home):
        streams = Streams(ours, java, home, size)
        table, plain = streams.fill("large", COMMITS, ROWS[size] // COMMITS)
        yield streams.compare("read-all", {"source": table}, {"source": table})
        yield streams.compare("read-all-plain", {"source": table}, {"source": plain}, plain=True)
        few = {"where": "id < 100", "columns": ["id", "amount"]}
        yield streams.compare("read-few", {"source": table, **few}, {"source": table, **few})
        yield from _writes(streams, plain)
        yield from _small(streams)


def _writes(streams: Streams, plain: str) -> Iterator[Row]:
    for case, tail in (("write", ""), ("write-by-bucket", "PARTITIONED BY (bucket(4, id))")):
        mine, theirs = (f"{CATALOG}.db.{case.replace('-', '_')}_{side}" for side in ("ours", "java"))
        for engine, name in ((streams.ours, mine), (streams.java, theirs)):
            engine.sql(f"CREATE TABLE {name} ({TYPES}) USING iceberg {tail} TBLPROPERTIES ('format-version'='3')")
        yield streams.compare(case, {"source": plain, "to": mine}, {"source": plain, "to": theirs})
        counts = [streams.ours.sql(f"SELECT count(*), sum(id) FROM {name}") for name in (mine, theirs)]
        if counts[0] != counts[1]:
            raise EngineError(f"{case}: the tables differ: {counts}")
        if not tail:
            files = streams.folder("sink")
            yield streams.compare(
                f"{case}-plain", {"source": plain, "to": mine}, {"source": plain, "to": files}, plain=True
            )


def _small(streams: Streams) -> Iterator[Row]:
    """Micro-batches of ten rows, from a table to nowhere and to a table, and one that finds nothing."""
    batches = BATCHES[streams.size]
    table, plain = streams.fill("little", batches, 10)
    one, plain_one = {FILES[False]: "1"}, {FILES[True]: "1"}
    ours = {"source": table, "options": one}
    yield streams.compare("small-batches", ours, ours)
    yield streams.compare("small-batches-plain", ours, {"source": plain, "options": plain_one}, plain=True)
    names = [f"{CATALOG}.db.little_{side}" for side in ("ours", "java")]
    for name in names:
        streams.ours.sql(f"CREATE TABLE {name} ({TYPES}) USING iceberg TBLPROPERTIES ('format-version'='3')")
    yield streams.compare("small-batches-to-table", {**ours, "to": names[0]}, {**ours, "to": names[1]})
    empty = f"{CATALOG}.db.empty"
    streams.ours.sql(f"CREATE TABLE {empty} ({TYPES}) USING iceberg")
    yield streams.compare("nothing-to-read", {"source": empty}, {"source": empty})
