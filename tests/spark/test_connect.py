"""Tables over Spark Connect: written and read with the public API only, against a real server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from icefloe.catalog import load_catalog
from icefloe.table import Table
from tests.encryption.keys import key_file
from tests.encryption.test_tables import check_sealed
from tests.spark.conftest import missing_java
from tests.spark.processes import bare_environment, logged, process

PROGRAM = Path(__file__).with_name("use_connect.py")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a Connect server."""
    if (reason := missing_java()) is not None:
        pytest.skip(reason)
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    given = [each for key, value in settings.items() for each in ("--conf", f"{key}={value}")]
    service = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    with process(tmp_path / "server", "spark-submit", *given, *service, PYSPARK_PYTHON=sys.executable) as log:
        yield f"sc://127.0.0.1:{logged(log, r'Spark Connect server started at: .*:([0-9]+)')}"


def check_secret(table: Table) -> None:
    """The rows of the encrypted table are there, and its files are sealed."""
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(5))
    check_sealed(table)


@pytest.mark.timeout(500)
def test_tables_are_written_and_read_over_spark_connect(server: str, tmp_path: Path) -> None:
    keys = {"encryption.kms-type": "file", "encryption.kms-file": str(key_file(tmp_path))}
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse", **keys
    )
    catalog.create_namespace("db")
    secret = catalog.create_table(
        "db.secret", "id bigint, name string", properties={"format-version": "3", "encryption.key-id": "k1"}
    )
    table = catalog.create_table(
        "db.t",
        "id bigint not null, p int, u uuid, l list<string>",
        partition_spec=["p", "bucket(2, id)"],
        properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
    )
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), server],
        env=bare_environment(),
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert [row["id"] for row in rows] == [0, 2, 3, 6, 8, 9, 100]
    assert (rows[-1]["u"], rows[-1]["l"]) == (UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), ["y", None])
    check_secret(secret.refresh())
    folder = tmp_path / "warehouse" / "db" / "t" / "data"
    # One folder of each write that was committed; those of the others are gone.
    assert sum(each.is_dir() for each in folder.iterdir()) == 2
