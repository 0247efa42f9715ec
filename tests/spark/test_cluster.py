"""Tables on a real cluster: a master and two workers, each a process that shares only the installed package and a folder."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from tests.spark.conftest import missing_java
from tests.spark.processes import bare_environment, logged, process
from tests.spark.use_cluster import EXECUTORS

PROGRAM = Path(__file__).with_name("use_cluster.py")
_DAEMON = {"SPARK_DAEMON_MEMORY": "256m"}


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a master with two workers."""
    if (reason := missing_java()) is not None:
        pytest.skip(reason)
    settings = tmp_path / "settings.conf"
    settings.write_text("spark.master.rest.enabled false\n")
    common = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--properties-file", str(settings))
    with ExitStack() as stack:

        def daemon(name: str, kind: str, *arguments: str) -> Path:
            started = process(
                tmp_path / name, "spark-class", f"org.apache.spark.deploy.{kind}", *arguments, *common, **_DAEMON
            )
            return stack.enter_context(started)

        address = logged(daemon("master", "master.Master"), r"Starting Spark master at (spark://[\d.:]+)")
        size = ("--cores", "1", "--memory", "600m")
        workers = [
            daemon(f"worker-{each}", "worker.Worker", address, *size, "--work-dir", str(tmp_path / f"work-{each}"))
            for each in range(EXECUTORS)
        ]
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
