"""Streams that are killed, some with their JVM, at every boundary of a micro-batch: each row is there exactly once.

Two queries write to one table, and a third one with state, updates or changes to another, while others write, compact and
expire. `python -m tests.spark.test_streams_killed FOLDER FIRST END` runs a part of all kills, and goes on
in the folder of another part.
"""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from icefloe.spark.connect import connect
from tests.catalog.faults import wired
from tests.maintenance.worn import FUTURE
from tests.spark.conftest import missing_java
from tests.spark.use_streams import (
    ALL,
    ANYTIME,
    DRIVER,
    FOREIGN,
    MODES,
    PAIR,
    PLACES,
    READY,
    RUNNING,
    Lake,
    Places,
    run,
    session,
)

PROJECT = Path(__file__).parents[2]
KILLS, BETWEEN_CHECKS = 128, 32
"""Drivers that are killed, and after how many all queries run to their end."""
WHERE = (*PLACES, ANYTIME)
LONGEST = 180
"""Seconds after which a process that was not killed is one that hangs."""
pytestmark = pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))


class Drivers:
    """A JVM, and drivers on it, one after the other, that run queries until they are killed."""

    def __init__(self, folder: Path) -> None:
        self._log = (folder / "drivers.log").open("ab")
        environment = os.environ | {"PYTHONPATH": str(PROJECT), "SPARK_LOCAL_IP": "127.0.0.1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.use_streams", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=folder,
            env=environment | {"PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
            text=True,
        )
        self._lines: Queue[str] = Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._next() == READY, self._words

    def run_until_killed(self, lake: Lake, place: str, who: str, *modes: str) -> None:
        """Run queries while others work on their tables, until a driver is gone by signal 9, or all processes are."""
        assert self._process.stdin is not None
        self._process.stdin.write(",".join((place, str(lake.rng.randint(1, 4)), who, *modes)) + "\n")
        self._process.stdin.flush()
        driver = int(self._next())
        lake.work()
        assert self._next() == RUNNING, self._words
        if place == ANYTIME:
            time.sleep(lake.rng.uniform(0, 4))
            try:
                os.kill(driver if who == DRIVER else -self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                raise AssertionError(self._words) from None
        else:
            begin = time.monotonic()
            while self._lines.empty():
                lake.work()
                assert time.monotonic() - begin < LONGEST, f"not killed at {place}: {self._words}"
                time.sleep(0.2)
            assert self._next() == place, self._words
        killed = self._process.wait() if who == ALL else int(self._next())
        assert killed == -signal.SIGKILL, self._words

    def close(self) -> None:
        """Nothing of them is left."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.strip())

    def _next(self) -> str:
        """The next line that a driver or their parent writes."""
        try:
            return self._lines.get(timeout=LONGEST)
        except Empty:
            raise AssertionError(self._words) from None

    @property
    def _words(self) -> str:
        return Path(self._log.name).read_text()[-5000:]


def check_none_twice(lake: Lake) -> None:
    """What queries have brought to the table of the pair so far are rows of their sources, each once."""
    brought = Counter(row for row in lake.rows("append") if row[0] < FOREIGN)
    assert brought <= Counter([*lake.rows("appended"), *lake.rows("more")])


def check_exact(lake: Lake, spark: Any, *modes: str) -> None:
    """Every query goes on to its end, from its checkpoint: then the targets have their rows, and are whole."""
    ice = connect(lake.catalog, spark=spark.newSession())
    assert run(ice, lake, *modes) is None
    for mode in modes:
        target = "append" if mode in PAIR else mode
        assert lake.rows(target) == lake.expected(mode), mode
        assert lake.table(target).verify(level="data").ok


def kill_many(lake: Lake, spark: Any, kills: range) -> Iterator[tuple[str, str]]:
    """Drivers that are killed at all places in turn, and every fourth time with their JVM, with checks between; what and where."""
    others = itertools.cycle(mode for mode in MODES if mode not in PAIR)
    plan = [
        (ALL if (number + number // len(WHERE)) % 4 == 3 else DRIVER, WHERE[number % len(WHERE)]) for number in kills
    ]
    lake.rng.shuffle(plan)
    with ExitStack() as stack:
        drivers: Drivers | None = None
        for number, (who, place) in enumerate(plan, 1):
            if drivers is None:
                drivers = Drivers(lake.folder)
                stack.callback(drivers.close)
            drivers.run_until_killed(lake, place, who, *PAIR, next(others))
            check_none_twice(lake)
            if who == ALL:
                stack.close()
                drivers = None
            if number % BETWEEN_CHECKS == 0 or number == len(kills):
                check_exact(lake, spark, *MODES)
                for name in ("appended", "more", "changed"):
                    # What was read may expire.
                    lake.table(name).maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
            yield who, place


@pytest.mark.slow
def test_a_killed_stream_goes_on_exactly(spark: Any, tmp_path: Path) -> None:
    lake, drivers = Lake.open(tmp_path, 7), Drivers(tmp_path)
    try:
        drivers.run_until_killed(lake, "swapped", DRIVER, *PAIR)
        drivers.run_until_killed(lake, "added", ALL, *PAIR)
    finally:
        drivers.close()
    check_exact(lake, spark, *PAIR)


def test_a_query_that_fails_goes_on_exactly(spark: Any, tmp_path: Path) -> None:
    """Also one that does not get the answer to its commit."""
    lake, places = Lake.open(tmp_path, 3), Places()
    ice = connect(wired(lake.catalog, places), spark=spark.newSession())  # type: ignore[arg-type]  # all that is asked of a wire
    with places.watching():
        for place in ("written", "lost", "added"):
            lake.work()
            places.arm(place)
            failure = run(ice, lake, "append")
            # A commit whose answer is lost is looked up in the table, and may turn out well.
            assert place == "lost" if failure is None else "the query fails" in failure
    check_exact(lake, spark, *PAIR)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_killed_streams_go_on_exactly(spark: Any, tmp_path: Path) -> None:
    killed = Counter(kill_many(Lake.open(tmp_path, 1), spark, range(KILLS)))
    assert set(killed) == set(itertools.product((DRIVER, ALL), WHERE))
    assert killed.total() == KILLS


if __name__ == "__main__":
    folder, kills = Path(sys.argv[1]), range(*map(int, sys.argv[2:]))
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    begin = time.monotonic()
    for who, place in kill_many(Lake.open(folder, kills.start), session(), kills):
        print(who, place, f"{time.monotonic() - begin:.0f} s", flush=True)  # noqa: T201  # it is run by hand
