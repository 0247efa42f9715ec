"""A local Spark in this process, and the Java that it needs."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from icefloe.errors import NotInstalledError

OLDEST_JAVA = 17
_GIB = 1 << 30


def local_spark(config: Mapping[str, str]) -> SparkSession:
    """A quiet local Spark session on all processors, with half of the memory, at most 8 GiB."""
    check_java()
    settings = {
        "spark.master": "local[*]",
        "spark.app.name": "icefloe",
        "spark.driver.memory": f"{_sensible_memory()}g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        **config,
    }
    # Workers must be this Python, with what is installed here, and not any that is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _sensible_memory() -> int:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 2
    return max(1, min(8, total // 2 // _GIB))


def check_java() -> None:
    """Raise a clear error if Spark's Java is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    version = None if program is None else java_version(program)
    if version is None:
        raise NotInstalledError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and there is none"
            f"{f' in JAVA_HOME, {home}' if home else ' on the path'}; install one, or set JAVA_HOME"
        )
    if version < OLDEST_JAVA:
        raise NotInstalledError(
            f"Spark needs Java {OLDEST_JAVA} or newer, and {program} is Java {version}; install one, or set JAVA_HOME"
        )


def java_version(program: str) -> int | None:
    """The major version of a Java program; None if it is not Java."""
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return None if match is None else int(match[1])
