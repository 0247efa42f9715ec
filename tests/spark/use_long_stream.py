"""A stream of many micro-batches from table to table, and the memory that it takes on the way; run by test_streams_long."""

import gc
import json
import os
import re
import sys
import time
from pathlib import Path

import pyarrow as pa

from icefloe.catalog import load_catalog
from icefloe.spark.connect import connect
from tests.spark.use_streams import session

MEASURES = 10
"""How often memory is measured."""


def python_memory() -> int:
    """Resident KiB of this process, after its garbage is collected."""
    gc.collect()
    return resident(os.getpid())


def batches_done(folder: str) -> int:
    """How many batches Spark has noted as done; it keeps the notes of the last hundred."""
    return max((int(name) + 1 for name in os.listdir(f"{folder}/checkpoint/commits") if name.isdigit()), default=0)


def resident(pid: int) -> int:
    """Resident KiB of a process."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1])


def main(folder: str, batches: str) -> None:
    """Print how many batches there were, and the KiB of Python and of the JVM's heap then."""
    total = int(batches)
    catalog = load_catalog("long", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"{folder}/files")
    catalog.create_namespace("db")
    source = catalog.create_table("db.source", "id bigint, part bigint", partition_spec=["part"])
    numbers = pa.array(range(total), pa.int64())
    source.append(pa.table({"id": numbers, "part": numbers}))
    target = catalog.create_table("db.target", "id bigint, part bigint")
    spark = session()
    ice = connect(catalog, spark=spark)
    write = ice.write_stream(ice.read_stream("db.source", {"streaming-max-files-per-micro-batch": 1})).to("db.target")
    write = write.option("use-merge-append-for-streaming", True).trigger(processingTime="0 seconds")
    begin = time.monotonic()
    query = write.start(f"{folder}/checkpoint")
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    step = total // MEASURES
    for reached in range(step, total + 1, step):
        while batches_done(folder) < reached and query.isActive:
            time.sleep(0.2)
        # As any table that streams write to, it needs its snapshots to expire.
        target.refresh().maintenance.expire_snapshots(older_than=4_000_000_000_000, retain_last=10)
        for _ in range(2):
            spark._jvm.java.lang.System.gc()
        heap = (runtime.totalMemory() - runtime.freeMemory()) // 1024
        jvm = resident(spark.sparkContext._gateway.proc.pid)
        seconds = round(time.monotonic() - begin, 1)
        shown = {"batches": reached, "seconds": seconds, "python": python_memory(), "heap": heap, "jvm": jvm}
        os.write(1, (json.dumps(shown) + "\n").encode())
    query.processAllAvailable()
    query.stop()
    assert sorted(target.refresh().scan().to_arrow().column("id").to_pylist()) == list(range(total))
    assert target.verify(level="data").ok
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
