"""Tables on a real cluster: a master and two workers, each a process that shares only the installed package and a folder."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from tests.shared_rows import row_modes
from tests.spark.conftest import missing_java
from tests.spark.processes import bare_environment, logged, process
from tests.spark.use_cluster import EXECUTORS

ROOT = Path(__file__).parents[2]
_DAEMON = {"SPARK_DAEMON_MEMORY": "256m"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master with two workers."""
    if (reason := missing_java()) is not None:
        pytest.skip(reason)
    tmp_path = tmp_path_factory.mktemp("cluster")
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
    """A catalog with two tables of some files, which changes mark or copy, and empty ones with geometries and with lists."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    catalog.create_namespace("db")
    for name, mode in (("plain", "merge-on-read"), ("copied", "copy-on-write")):
        modes = row_modes(mode)
        table = catalog.create_table(
            f"db.{name}",
            "id bigint, v string, p int",
            partition_spec=["p"],
            properties={"format-version": "3", **modes},
        )
        for start in (0, 50):
            ids = range(start, start + 50)
            rows = {"id": ids, "v": ["old"] * 50, "p": pa.array([each % 4 for each in ids], pa.int32())}
            table.append(pa.table(rows))
    # No type of Spark's own, so that rows have bytes.
    catalog.create_table("db.shapes", "id bigint, g geometry(EPSG:25832)", properties={"format-version": "3"})
    for name, spread in (("lists", "false"), ("spread", "true")):
        properties = {"format-version": "3", "write.object-storage.enabled": spread}
        catalog.create_table(f"db.{name}", "id bigint, l list<string>, u uuid", properties=properties)
    return catalog


def run_program(name: str, folder: Path, master: str) -> None:
    """Run a program beside this one as the driver."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.spark.{name}", str(folder), master],
        env=bare_environment(PYSPARK_PYTHON=sys.executable, PYTHONPATH=str(ROOT)),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]


@pytest.mark.timeout(600)
def test_tables_are_read_written_and_changed_on_a_cluster(master: str, tmp_path: Path) -> None:
    catalog = lake(tmp_path)
    run_program("use_cluster", tmp_path, master)
    rows = catalog.load_table("db.plain").scan().to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["v"], row["p"]) for row in rows] == expected_rows()
    lists = catalog.load_table("db.lists").scan().to_arrow().sort_by("id").to_pylist()
    assert [row["id"] for row in lists] == [each for each in range(40) if each != 3]
    assert {tuple(row["l"]) for row in lists if row["id"] in (4, 5)} == {("changed",), ("5", None)}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="an executor is found by /proc, which is not here")
def test_killed_executors_leave_all_rows_or_none(master: str, tmp_path: Path) -> None:
    """The program checks the tables after each statement."""
    lake(tmp_path)
    run_program("use_killed_executor", tmp_path, master)


def expected_rows() -> list[tuple[int, str, int]]:
    """What the statements of the program leave."""
    found = {each: ("old" if each < 100 else "new", each % 4) for each in range(200) if each % 7}
    found |= {each: (value.upper(), p) for each, (value, p) in found.items() if each < 10 or each > 190}
    found |= {each: ("merged", found[each][1]) if each in found else ("made", 0) for each in range(195, 205)}
    del found[195]
    # The last statement loses an executor.
    found |= {each: (f"u{each}", p) for each, (_, p) in found.items() if each % 2}
    return [(key, *value) for key, value in sorted(found.items())]
