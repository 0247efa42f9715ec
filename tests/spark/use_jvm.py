"""A program that uses Java classes of ours beside another one, in several sessions, and after a stop; run by test_jvm."""

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from icefloe.catalog import load_catalog
from icefloe.spark.connect import connect, local_spark
from icefloe.spark.jvm import door

TEXTS = {"scan_index": False, "live_rows": True, "row_changes": True}
"""Whether tasks need them."""


def new_session(folder: str, **more: str) -> Any:
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.shuffle.partitions": "1",
        **more,
    }
    return local_spark(settings)


def check(spark: Any, catalog: Any, name: str) -> None:
    """A table with deleted rows, and one that is changed, by a session."""
    ice = connect(catalog, spark=spark)
    left = ice.table(name).count()
    assert {row["id"] for row in ice.table(name).collect()} == {*range(1000 - left, 1000)}, left
    ice.sql(f"DELETE FROM {name} WHERE id <= {1000 - left}")
    assert ice.table(name).selectExpr("min(id)").collect()[0][0] == 1000 - left + 1


def main(folder: str, number: str) -> None:
    """Sessions of all kinds, as soon as the other program is there."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/{number}.db", warehouse=f"{folder}/warehouse")
    catalog.create_namespace("db")
    name = f"db.t{number}"
    options = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    catalog.create_table(name, "id long", properties=options).append(pa.table({"id": range(1000)}))
    catalog.load_table(name).delete("id < 10")
    spark = new_session(folder)
    connect(catalog, spark=spark)
    (units,) = door._UNITS.values()
    assert set(units) == {"parsers"}, "classes are compiled before anything needs them"
    spark.range(10).selectExpr("sum(id)").collect()
    (Path(folder) / f"ready-{number}").touch()
    while len(list(Path(folder).glob("ready-*"))) < 2:
        time.sleep(0.05)
    begin = time.perf_counter()
    for text, in_tasks in TEXTS.items():
        assert door.entry(spark, text, in_tasks=in_tasks) is not None, text
    sys.stdout.write(f"first use {time.perf_counter() - begin:.3f} s\n")
    check(spark, catalog, name)
    check(spark.newSession(), catalog, name)
    assert spark.sparkContext._jsc.sc().listJars().size() == sum(TEXTS.values())
    spark.stop()
    spark = new_session(folder, **{"spark.sql.artifact.isolation.enabled": "true"})
    begin = time.perf_counter()
    for text, in_tasks in TEXTS.items():
        assert door.entry(spark, text, in_tasks=in_tasks) is not None, text
    assert time.perf_counter() - begin < 1, "what was compiled outlives a stop"
    check(spark, catalog, name)
    check(spark.newSession(), catalog, name)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
