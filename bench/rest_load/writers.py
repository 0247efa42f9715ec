"""Several processes that append to one table through a REST server, by our client."""

import multiprocessing
import time
from multiprocessing.synchronize import Barrier

import pyarrow as pa

from bench.rest_load.servers import Server
from icefloe import load_catalog
from icefloe.errors import CommitFailed

_MANY_RETRIES = {"commit.retry.num-retries": "50", "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "200"}


def append_for(server: Server, identifier: tuple[str, ...], writers: int, seconds: int) -> int:
    """How many rows were committed, one by each commit."""
    with (
        load_catalog("bench", type="rest", uri=server.uri, **server.properties) as catalog,
        catalog.load_table(identifier).transaction() as tx,
    ):
        tx.set_properties(_MANY_RETRIES)
    spawning = multiprocessing.get_context("spawn")
    # Processes take long to start on a busy machine: the time runs from when all of them are there.
    ready = spawning.Barrier(writers)
    with spawning.Pool(writers, initializer=_begin, initargs=(ready,)) as pool:
        work = [(server.uri, dict(server.properties), identifier, number, seconds) for number in range(writers)]
        return sum(pool.starmap(_append, work, chunksize=1))


_READY: list[Barrier] = []


def _begin(ready: Barrier) -> None:
    _READY.append(ready)


def _append(uri: str, properties: dict[str, str], identifier: tuple[str, ...], writer: int, seconds: int) -> int:
    committed = 0
    rows = pa.table({"id": pa.array([writer], pa.int64())})
    with load_catalog(f"writer{writer}", type="rest", uri=uri, **properties) as catalog:
        table = catalog.load_table(identifier)
        table.scan().count()
        _READY[0].wait(300)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                table.append(rows)
                committed += 1
            except CommitFailed:
                # Nothing happened: others were faster, too often.
                table.refresh()
    return committed
