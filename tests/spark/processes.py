"""Processes of Spark beside the tests: started in a folder of their own, with none of the tests' settings, and ended by their ids."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

SPARK_HOME = Path(pyspark.__file__).parent
_START_SECONDS = 120


def bare_environment(**more: str) -> dict[str, str]:
    """What a process needs to find Java and to start it soon, and nothing else of this one's settings."""
    names = ("PATH", "HOME", "JAVA_HOME", "JDK_JAVA_OPTIONS", "LANG")
    kept = {key: os.environ[key] for key in names if key in os.environ}
    return {**kept, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", **more}


@contextmanager
def process(folder: Path, script: str, *arguments: str, **environment: str) -> Iterator[Path]:
    """A script of Spark that runs until the end of the block; what it logs is in the file."""
    folder.mkdir()
    log = folder / "log"
    with log.open("wb") as output:
        started = subprocess.Popen(
            [str(SPARK_HOME / "bin" / script), *arguments],
            env=bare_environment(**environment),
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield log
    finally:
        started.terminate()
        started.wait(60)


def logged(log: Path, pattern: str) -> str:
    """What a log says, as soon as it does."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (found := re.search(pattern, log.read_text(errors="replace"))) is not None:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern} in {log.read_text(errors='replace')[-2000:]}")
