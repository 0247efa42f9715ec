"""DataFrames of Spark Connect are written too, against a real server."""

import os
import subprocess
import sys
from pathlib import Path
from uuid import UUID

from icefloe.catalog import load_catalog

PROGRAM = Path(__file__).with_name("write_over_connect.py")


def test_frames_of_spark_connect_are_written(tmp_path: Path) -> None:
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"{tmp_path}/warehouse"
    )
    catalog.create_namespace("db")
    table = catalog.create_table(
        "db.t", "id bigint not null, p int, u uuid, l list<string>", partition_spec=["p", "bucket(2, id)"]
    )
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("SPARK_REMOTE", None)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert [row["id"] for row in rows] == [0, 2, 3, 5, 6, 8, 9, 100]
    assert (rows[-1]["u"], rows[-1]["l"]) == (UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), ["y", None])
    folder = tmp_path / "warehouse" / "db" / "t" / "data"
    assert len(list(folder.iterdir())) == 2
