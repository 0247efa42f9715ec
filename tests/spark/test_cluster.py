"""Tables on a real cluster: a master and two workers, each a process that shares only the installed package and a folder."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

from icefloe.catalog import Catalog, load_catalog
from tests.spark.conftest import missing_java
from tests.spark.use_cluster import EXECUTORS

PROGRAM = Path(__file__).with_name("use_cluster.py")
SPARK_HOME = Path(pyspark.__file__).parent
_START_SECONDS = 90


def bare_environment(**more: str) -> dict[str, str]:
    """What a process needs to find Java, and nothing of this one's settings."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "JAVA_HOME", "LANG") if key in os.environ}
    return {**kept, "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", **more}


@contextmanager
def daemon(folder: Path, name: str, kind: str, *arguments: str) -> Iterator[Path]:
    """A process of the cluster in a folder of its own, and its log; it is ended with the block."""
    folder.mkdir()
    settings = folder / "settings.conf"
    settings.write_text("spark.master.rest.enabled false\n")
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}.{kind}", *arguments]
            + ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--properties-file", str(settings)],
            env=bare_environment(SPARK_DAEMON_MEMORY="256m"),
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


def logged(log: Path, pattern: str) -> str:
    """What a log says, as soon as it does."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (found := re.search(pattern, log.read_text(errors="replace"))) is not None:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"no {pattern} in {log.read_text(errors='replace')[-2000:]}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers."""
    if (reason := missing_java()) is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        log = stack.enter_context(daemon(tmp_path / "master", "master", "Master"))
        address = logged(log, r"Starting Spark master at (spark://[\d.:]+)")
        workers = []
        for number in range(EXECUTORS):
            folder = tmp_path / f"worker-{number}"
            size = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder))
            workers.append(stack.enter_context(daemon(folder, "worker", "Worker", address, *size)))
        for each in workers:
            logged(each, r"(Successfully registered with master)")
        yield address


def lake(folder: Path) -> Catalog:
    """A catalog with a table of some files, and an empty one with lists."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    catalog.create_namespace("db")
    modes = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
    table = catalog.create_table(
        "db.plain",
        "id bigint, v string, p int",
        partition_spec=["p"],
        properties={"format-version": "3", **modes},
    )
    for start in (0, 50):
        ids = range(start, start + 50)
        table.append(pa.table({"id": ids, "v": ["old"] * 50, "p": pa.array([each % 4 for each in ids], pa.int32())}))
    catalog.create_table("db.lists", "id bigint, l list<string>, u uuid", properties={"format-version": "3"})
    return catalog


@pytest.mark.timeout(600)
def test_tables_are_read_written_and_changed_on_a_cluster(master: str, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    catalog = lake(folder)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), master],
        env=bare_environment(PYSPARK_PYTHON=sys.executable),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    rows = catalog.load_table("db.plain").scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["v"], row["p"]) for row in rows] == expected_rows()
    lists = catalog.load_table("db.lists").scan().to_arrow().sort_by("id").to_pylist()
    assert [row["id"] for row in lists] == [each for each in range(40) if each != 3]
    assert {tuple(row["l"]) for row in lists if row["id"] in (4, 5)} == {("changed",), ("5", None)}


def expected_rows() -> list[tuple[int, str, int]]:
    """What the statements of the program leave."""
    found = {each: ("old" if each < 100 else "new", each % 4) for each in range(200) if each % 7}
    found |= {each: (value.upper(), p) for each, (value, p) in found.items() if each < 10 or each > 190}
    found |= {each: ("merged", found[each][1]) if each in found else ("made", 0) for each in range(195, 205)}
    del found[195]
    return [(key, *value) for key, value in sorted(found.items())]
