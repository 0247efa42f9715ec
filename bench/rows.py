"""Rows from plain Python against PyIceberg: append, scan, scan with a filter, delete and upsert, each in a SQLite catalog of its own.

Each side runs in a process of its own, which does every step to a tiny table first, so that times are without imports. Peaks of
memory are those of the process during the step, with its imports and incoming rows. After each step both tables must hold the
same rows.
"""

import gc
import multiprocessing
import re
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.report import Row

SIZES = {
    "small": ((20_000, 4_000),),
    "medium": ((20_000, 4_000), (200_000, 40_000), (1_000_000, 200_000)),
    "full": ((200_000, 40_000), (5_000_000, 1_000_000)),
}
"""Rows of the table, and rows of the upsert, half of whose keys are in the table."""
TINY = (200, 40)
REPEAT = 3
SEVERAL = 20_000
"""The peer is measured as often as we are in tables up to this many rows, and once in others: there it takes minutes."""
SAME = 1.0
UPSERT_GOAL = 1 / 50
SIDES = ("ours", "theirs")
MODES = ("copy-on-write", "merge-on-read")
STEPS = ("append", "scan", "scan-filtered", "delete", "upsert")
FILTER = "region = 'r3' and amount < 250.0"
GONE = "region = 'r5'"


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of a step, also those of processors, the peak memory of its process, and what it gave."""

    seconds: float
    cpu_seconds: float
    peak_mib: int
    rows: int


def rows(count: int, first: int = 0, changed: bool = False, every: int = 1) -> pa.Table:
    """Rows with keys from `first` on, `every` apart; others of the same keys if they are to change something."""
    ids = np.arange(first, first + count * every, every, dtype=np.int64)
    amounts = (ids * 7919 % 100_000) / 100 + (1 if changed else 0)
    return pa.table(
        {
            "id": ids,
            "region": pc.binary_join_element_wise("r", pa.array(ids % 8).cast(pa.string()), ""),
            "amount": amounts,
            "day": pa.array((20_000 + ids % 365).astype(np.int32)).cast(pa.date32()),
            "note": pc.binary_join_element_wise("note of ", pa.array(ids * 31 % 100_003).cast(pa.string()), ""),
        }
    )


def upserted(table_rows: int, count: int) -> pa.Table:
    """Rows for an upsert: half change rows all over the table, half are new."""
    half = count // 2
    return pa.concat_tables([rows(half, changed=True, every=table_rows // half), rows(count - half, first=table_rows)])


def open_table(side: str, home: str, name: str, mode: str) -> Any:
    """The table of a side, made if it is not there."""
    folder = Path(home) / side
    folder.mkdir(exist_ok=True)
    catalog: Any
    if side == "theirs":
        from pyiceberg.catalog.sql import SqlCatalog

        catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder.as_uri())
    else:
        import icefloe

        catalog = icefloe.load_catalog("c", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace_if_not_exists("db")
    if catalog.table_exists(f"db.{name}"):
        return catalog.load_table(f"db.{name}")
    properties = {"format-version": "2", "write.delete.mode": mode, "write.merge.mode": mode}
    return catalog.create_table(f"db.{name}", schema=rows(0).schema, properties=properties)


def step_of(name: str, table: Any, size: tuple[int, int]) -> Callable[[], Any]:
    """What is timed of a step; incoming rows are made before."""
    match name:
        case "append":
            incoming = rows(size[0])
            return lambda: table.append(incoming)
        case "scan":
            return lambda: table.scan().to_arrow()
        case "scan-filtered":
            return lambda: table.scan(row_filter=FILTER, selected_fields=("id", "amount")).to_arrow()
        case "delete":
            return lambda: table.delete(GONE)
        case _:
            incoming = upserted(*size)
            return lambda: table.upsert(incoming, join_cols=["id"])


def measure(side: str, home: str, name: str, step: str, size: tuple[int, int], mode: str) -> Measured:
    """Run a step in this process."""
    work = step_of(step, open_table(side, home, name, mode), size)
    gc.collect()
    _forget_peak()
    start, cpu = time.perf_counter(), time.process_time()
    found = work()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    return Measured(seconds, cpu_seconds, _peak_mib(), found.num_rows if isinstance(found, pa.Table) else 0)


def _forget_peak() -> None:
    """The peak is from now on, where the system can do that."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mib() -> int:
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) >> 10
    divisor = 1024 * 1024 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // divisor


def run(size: str) -> Iterator[Row]:
    """All steps at each of the sizes, in both modes of changing rows."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as ours, ProcessPoolExecutor(1, spawn) as theirs:
        sides = {"ours": ours, "theirs": theirs}
        for mode in MODES:
            _warm(sides, mode)
        for each in SIZES[size]:
            yield from _compared(sides, each, "copy-on-write", STEPS)
            yield from _compared(sides, each, "merge-on-read", ("append", "delete", "upsert"))


Sides = dict[str, ProcessPoolExecutor]


def _warm(sides: Sides, mode: str) -> None:
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as home:
        for step in STEPS:
            for side, process in sides.items():
                process.submit(measure, side, home, "tiny", step, TINY, mode).result()


def _compared(sides: Sides, size: tuple[int, int], mode: str, steps: tuple[str, ...]) -> Iterator[Row]:
    """Rows for the steps, in the first round of each as it ends; more rounds are for ours alone in large tables."""
    homes = [tempfile.mkdtemp(prefix="icefloe-bench-") for _ in range(REPEAT)]
    try:
        for step in steps:
            times: dict[str, list[Measured]] = {side: [] for side in SIDES}
            for number, home in enumerate(homes):
                present = [side for side in SIDES if side == "ours" or number == 0 or size[0] <= SEVERAL]
                for side in present:
                    done = sides[side].submit(measure, side, home, "t", step, size, mode)
                    times[side].append(done.result())
                _check(home, size, step, mode, {side: times[side][-1] for side in present})
            yield _row(step, size, mode, times["ours"], times["theirs"])
    finally:
        for home in homes:
            shutil.rmtree(home, ignore_errors=True)


def _check(home: str, size: tuple[int, int], step: str, mode: str, found: dict[str, Measured]) -> None:
    assert len({each.rows for each in found.values()}) == 1, found
    if step.startswith("scan"):
        return
    tables = [open_table(side, home, "t", mode).scan().to_arrow().sort_by("id") for side in found]
    wanted = _expected(size, STEPS.index(step))
    for table in tables:
        assert table.cast(wanted.schema).equals(wanted), f"{step} of {size} gave other rows than it should have"


def _expected(size: tuple[int, int], steps: int) -> pa.Table:
    """What the table must hold after a step."""
    found = rows(size[0])
    if steps >= STEPS.index("delete"):
        found = found.filter(pc.not_equal(found["region"], "r5"))
    if steps >= STEPS.index("upsert"):
        changes = upserted(*size)
        kept = found.filter(pc.invert(pc.is_in(found["id"], changes["id"].combine_chunks())))
        found = pa.concat_tables([kept, changes]).sort_by("id")
    return found


def _row(step: str, size: tuple[int, int], mode: str, ours: list[Measured], theirs: list[Measured]) -> Row:
    seconds, peer = (statistics.median(each.seconds for each in side) for side in (ours, theirs))
    cpu, peer_cpu = (statistics.median(each.cpu_seconds for each in side) for side in (ours, theirs))
    peak, peer_peak = (max(each.peak_mib for each in side) for side in (ours, theirs))
    count = size[1] if step == "upsert" else size[0]
    case = f"{step}-{size[1]}-into-{size[0]}" if step == "upsert" else f"{step}-{size[0]}"
    note = (
        f"{count / seconds:,.0f} rows/s, processors {cpu:.3g} s against {peer_cpu:.3g}, "
        f"peak {peak} MiB against {peer_peak}"
    )
    return Row(f"{case}-{mode}", seconds, peer, UPSERT_GOAL if step == "upsert" else SAME, note)
