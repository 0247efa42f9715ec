"""A program that merges into a table again and again while others do; run by test_row_conflicts, once for each of them."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from icefloe.catalog import load_catalog
from icefloe.errors import CommitFailed, ValidationError
from icefloe.spark.connect import local_spark
from icefloe.spark.session import Session

ROWS = 20


def disjoint(number: int, turn: int) -> str:
    """Changes half of the rows of a partition, and adds as many."""
    start = turn * ROWS // 2
    return (
        f"MERGE INTO db.t t USING (SELECT id, {number} AS p FROM range({start}, {start + ROWS})) s"
        " ON t.p = s.p AND t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + 1"
        " WHEN NOT MATCHED THEN INSERT (id, p, n) VALUES (s.id, s.p, 0)"
    )


def overlapping(number: int, turn: int) -> str:
    """Changes the same rows as everybody, and adds one of its own."""
    own = 1000 * (number + 1) + turn
    return (
        f"MERGE INTO db.t t USING (SELECT * FROM range(5) UNION ALL SELECT {own}L) s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, p, n) VALUES (s.id, 0, 0)"
    )


def run_merges(ice: Session, kind: Any, number: int, turns: int) -> dict[str, int]:
    """How many were committed, and how many were refused because of others; any other error is one."""
    told = {"done": 0, "refused": 0}
    for turn in range(turns):
        try:
            ice.sql(kind(number, turn))
            told["done"] += 1
        except (ValidationError, CommitFailed):
            told["refused"] += 1
    return told


def main(folder: str, number: int, applications: int, turns: int) -> None:
    """Merge as soon as all applications are there."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    settings = {"spark.master": "local[1]", "spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "1"}
    spark = local_spark({**settings, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"})
    ice = Session(spark, {"lake": catalog})
    ice.table("db.t").count()
    told = []
    for place, kind in enumerate((disjoint, overlapping)):
        (Path(folder) / f"ready-{place}-{number}").touch()
        while len(list(Path(folder).glob(f"ready-{place}-*"))) < applications:
            time.sleep(0.05)
        told.append(run_merges(ice, kind, number, turns))
    sys.stdout.write(json.dumps(told) + "\n")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
