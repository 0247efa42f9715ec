"""A program that reads, writes and changes tables on a cluster; run by test_cluster, on a driver that shares only the tables' folder."""

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import icefloe
from icefloe.catalog import load_catalog
from icefloe.spark.engine import why_not_written
from icefloe.spark.gateway import is_at_least
from icefloe.spark.session import Session
from icefloe.spark.shape_writes import FIRST_WITH_SHAPES
from tests.spark.losing_executors import LosingExecutors

EXECUTORS = 2


def cluster_session(master: str, **more: str) -> SparkSession:
    """A session with one small executor on each worker, and more settings, with `_` for each dot."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    builder = SparkSession.builder.master(master).appName("icefloe-cluster")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def wait_for_executors(spark: SparkSession) -> None:
    """Until all executors are there; the driver counts as one more."""
    while spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < EXECUTORS + 1:
        time.sleep(0.1)


def same_everywhere(ice: Session, name: str) -> list[tuple[Any, ...]]:
    """The rows by both engines and by plain Python, which must be equal."""
    table = ice.load_table(name)
    plain = sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())
    for engine in ("native", "arrow"):
        # Its manifests are read by tasks of executors, too.
        found = ice.table(name, options={"read.engine": engine, "read.data-planning-mode": "distributed"}).collect()
        assert sorted(map(tuple, found)) == plain, f"{name} by {engine}"
    return plain


def change_rows(ice: Session) -> None:
    """Append natively to a table that has files already, and change rows with each statement."""
    frame = ice.spark.range(100, 200, 1, 4).selectExpr("id", "'new' v", "cast(id % 4 as int) p")
    assert why_not_written(ice.spark, ice.load_table("db.plain").metadata) is None
    ice.write(frame).to("db.plain").append()
    for statement in (
        "DELETE FROM db.plain WHERE id % 7 = 0",
        "UPDATE db.plain SET v = upper(v) WHERE id < 10 OR id > 190",
        """MERGE INTO db.plain t USING (SELECT id FROM range(195, 205)) s ON t.id = s.id
           WHEN MATCHED AND t.id = 195 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged'
           WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (s.id, 'made', 0)""",
    ):
        ice.sql(statement)
    rows = same_everywhere(ice, "db.plain")
    ice.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    joined = ice.table("db.plain").join(ice.table("db.plain").select("id"), "id").filter("p = 1")
    assert joined.count() == sum(row[2] == 1 for row in rows)


def write_shapes(ice: Session) -> None:
    """A table of geometries, which executors write by a class of ours; Spark 4.0 has no way to them."""
    if is_at_least(ice.spark, FIRST_WITH_SHAPES):
        assert why_not_written(ice.spark, ice.load_table("db.shapes").metadata) is None
    frame = ice.spark.range(0, 40, 1, 4).selectExpr("id", "X'0101000000000000000000F03F0000000000000040' g")
    ice.write(frame).to("db.shapes").append()
    ice.sql("UPDATE db.shapes SET g = null WHERE id % 4 = 0")
    assert [row[0] for row in same_everywhere(ice, "db.shapes") if row[1] is None] == [*range(0, 40, 4)]


def change_lists(ice: Session) -> None:
    """The same for a table that only our own writer can write."""
    frame = ice.spark.range(0, 40, 1, 4).selectExpr("id", "array(cast(id as string), null) l", "uuid() u")
    assert why_not_written(ice.spark, ice.load_table("db.lists").metadata) is not None
    ice.write(frame).to("db.lists").append()
    ice.sql("DELETE FROM db.lists WHERE l[0] = '3'")
    ice.sql("UPDATE db.lists SET l = array('changed') WHERE id = 4")
    same = {row[0]: row[1] for row in ice.table("db.lists").select("id", "l").collect()}
    assert len(same) == 39
    assert (same[4], same[5]) == (["changed"], ["5", None])


def main(folder: str, master: str) -> None:
    """Change tables; what they hold then is for the caller to look at. The last changes lose an executor each."""
    spark = cluster_session(master)
    wait_for_executors(spark)
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"{folder}/warehouse")
    ice = icefloe.connect(catalog, spark=spark)
    change_rows(ice)
    jars = str(spark.sparkContext._jsc.sc().listJars().mkString(" "))
    assert jars.count("icefloe_") == 2, f"executors know of the reader and of row changes: {jars}"
    write_shapes(ice)
    change_lists(ice)
    if Path("/proc/self/status").exists():
        losing = LosingExecutors(ice, Path(folder))
        losing.statements("db.copied", "merge")
        losing.statements("db.plain", "update")
        assert losing.failed == [], losing.failed
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
