"""Rows from plain Python against PyIceberg: append, scan, scan with a filter, delete and upsert, each in a SQLite catalog of its own.

Each step runs in a new process, which first does the same to a tiny table, so that times are without imports and peaks of memory
are of the step alone (with its imports and incoming rows). After each step both tables must hold the same rows.
"""

import multiprocessing
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
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
SEVERAL = 200_000
"""Tables up to this many rows are measured three times; the peer's upsert of the largest size takes minutes."""
SAME = 1.0
UPSERT_GOAL = 1 / 50
SIDES = ("ours", "theirs")
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
    tiny = open_table(side, home, f"tiny_{step.replace('-', '_')}_{time.monotonic_ns()}", mode)
    tiny.append(rows(TINY[0]))
    step_of(step, tiny, TINY)()
    work = step_of(step, open_table(side, home, name, mode), size)
    start, cpu = time.perf_counter(), time.process_time()
    found = work()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    divisor = 1024 * 1024 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // divisor
    return Measured(seconds, cpu_seconds, peak, found.num_rows if isinstance(found, pa.Table) else 0)


def run(size: str) -> list[Row]:
    """All steps at each of the sizes, in both modes of changing rows."""
    found: list[Row] = []
    for each in SIZES[size]:
        found += _compared(each, "copy-on-write", STEPS)
        found += _compared(each, "merge-on-read", ("append", "delete", "upsert"))
    return found


def _compared(size: tuple[int, int], mode: str, steps: tuple[str, ...]) -> list[Row]:
    repeat = 3 if size[0] <= SEVERAL else 1
    times: dict[tuple[str, str], list[Measured]] = {}
    for _ in range(repeat):
        home = tempfile.mkdtemp(prefix="icefloe-bench-")
        try:
            for step in steps:
                for side in SIDES:
                    times.setdefault((step, side), []).append(_in_new_process(side, home, "t", step, size, mode))
                _check(home, size, step, mode, [times[step, side][-1] for side in SIDES])
        finally:
            shutil.rmtree(home, ignore_errors=True)
    return [_row(step, size, mode, *(times[step, side] for side in SIDES)) for step in steps]


def _in_new_process(*arguments: Any) -> Measured:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, arguments)


def _check(home: str, size: tuple[int, int], step: str, mode: str, found: list[Measured]) -> None:
    assert len({each.rows for each in found}) == 1, found
    if step.startswith("scan"):
        return
    tables = [open_table(side, home, "t", mode).scan().to_arrow().sort_by("id") for side in SIDES]
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
