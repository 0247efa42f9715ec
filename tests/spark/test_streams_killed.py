"""Streams that are killed with their JVM at every boundary of a micro-batch: each row is there exactly once.

Two queries write to one table, and a third one with state, updates or changes to another, while others write, compact and
expire. `python -m tests.spark.test_streams_killed FOLDER KILLS` goes on where it was stopped.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from icefloe.spark.connect import connect
from tests.maintenance.worn import FUTURE
from tests.spark.conftest import missing_java
from tests.spark.use_streams import ANYTIME, FOREIGN, MODES, PAIR, PLACES, READY, Lake, run, session

PROJECT = Path(__file__).parents[2]
KILLS, BETWEEN_CHECKS = 104, 26
"""Processes that are killed, and after how many all queries run to their end."""
LONGEST = 120
"""Seconds after which a process that was not killed is one that hangs."""
pytestmark = pytest.mark.skipif(missing_java() is not None, reason=str(missing_java()))


class Driver:
    """A program with a Spark of its own that runs queries until it is killed."""

    def __init__(self, folder: Path) -> None:
        self._log = (folder / "driver.log").open("wb")
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

    def run_until_killed(self, lake: Lake, place: str, *modes: str) -> None:
        """Run queries while others work on their tables; at the end all of its processes are gone, by signal 9."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"{READY}\n", self._words
        begin, kill_after = time.monotonic(), lake.rng.uniform(0.5, 10)
        self._process.stdin.write(",".join((place, str(lake.rng.randint(1, 4)), *modes)) + "\n")
        self._process.stdin.flush()
        while self._process.poll() is None:
            lake.work()
            taken = time.monotonic() - begin
            if place == ANYTIME and taken > kill_after:
                self.kill()
            assert taken < LONGEST, f"not killed at {place}: {self._words}"
            time.sleep(0.5)
        assert self._process.returncode == -signal.SIGKILL, self._words
        assert self._process.stdout.read() == ("" if place == ANYTIME else f"{place}\n")

    def kill(self) -> None:
        """End it and its Spark, if they are still there."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Nothing of it is left."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()

    @property
    def _words(self) -> str:
        return (Path(self._log.name)).read_text()[-5000:]


@contextmanager
def drivers(folder: Path, count: int) -> Iterator[Iterator[Driver]]:
    """So many programs, one after the other; the next one is started while one runs."""
    started = [Driver(folder)]

    def following() -> Iterator[Driver]:
        for number in range(count):
            if number + 1 < count:
                started.append(Driver(folder))
            yield started[0]
            started.pop(0).close()

    try:
        yield following()
    finally:
        for driver in started:
            driver.close()


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


def kill_many(lake: Lake, spark: Any, kills: int) -> Iterator[str]:
    """Drivers that are killed at all places in turn, with checks between; the places."""
    others = itertools.cycle(mode for mode in MODES if mode not in PAIR)
    places = [(*PLACES, ANYTIME)[number % (len(PLACES) + 1)] for number in range(kills)]
    lake.rng.shuffle(places)
    with drivers(lake.folder, kills) as started:
        for number, (driver, place) in enumerate(zip(started, places, strict=True), 1):
            driver.run_until_killed(lake, place, *PAIR, next(others))
            check_none_twice(lake)
            if number % BETWEEN_CHECKS == 0 or number == kills:
                check_exact(lake, spark, *MODES)
                for name in ("appended", "more", "changed"):
                    # What was read may expire.
                    lake.table(name).maintenance.expire_snapshots(older_than=FUTURE, retain_last=1)
            yield place


def test_a_killed_stream_goes_on_exactly(spark: Any, tmp_path: Path) -> None:
    lake = Lake.open(tmp_path, 7)
    with drivers(tmp_path, 1) as started:
        next(started).run_until_killed(lake, "swapped", *PAIR)
    check_exact(lake, spark, *PAIR)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_killed_streams_go_on_exactly(spark: Any, tmp_path: Path) -> None:
    killed = Counter(kill_many(Lake.open(tmp_path, 1), spark, KILLS))
    assert set(killed) == {*PLACES, ANYTIME}
    assert killed.total() == KILLS


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    begin = time.monotonic()
    for number, place in enumerate(
        kill_many(Lake.open(folder, random.randrange(2**32)), session(), int(sys.argv[2])), 1
    ):
        print(number, place, f"{time.monotonic() - begin:.0f} s", flush=True)  # noqa: T201  # it is run by hand
