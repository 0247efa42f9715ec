"""How time and memory grow: planning, commit and scan at three sizes each, every one in a process of its own.

The peer of a row is the same work at the size before, scaled up: a ratio of one is growth in step with the size.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.report import Row

SIZES: dict[str, dict[str, tuple[int, int, int]]] = {
    "small": {"plan": (100, 1_000, 2_000), "commit": (1, 100, 1_000), "scan": (1_000, 10_000, 100_000)},
    "medium": {
        "plan": (10_000, 100_000, 1_500_000),
        "commit": (1_000, 10_000, 100_000),
        "scan": (100_000, 1_000_000, 10_000_000),
    },
}
SIZES["full"] = SIZES["medium"] | {"commit": (1_000, 100_000, 1_000_000), "scan": (1_000_000, 8_000_000, 64_000_000)}
GOAL = 1.1
REPEAT = 3


def run(size: str) -> Iterator[Row]:
    """Each work at each size."""
    for work, sizes in SIZES[size].items():
        before: tuple[int, float] | None = None
        for count in sizes:
            seconds, base, peak = _in_a_process(work, count)
            note = f"{count:,} {UNITS[work]}, {count / seconds:,.0f}/s, peak memory {peak} MiB, of which {base} before"
            if before is not None:
                smaller, their_seconds = before
                yield Row(f"{work}-{count}", seconds, their_seconds * count / smaller, GOAL, note)
            else:
                yield Row(f"{work}-{count}", seconds, seconds, 1.0, f"{note}; the first size, its own peer")
            before = count, seconds


def _in_a_process(work: str, count: int) -> tuple[float, int, int]:
    """The least seconds of some runs, and the most memory before and in all."""
    command = [sys.executable, "-m", "bench.scaling", work, str(count)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, base, peak = json.loads(found.stdout.splitlines()[-1])
    return float(seconds), int(base), int(peak)


def _plan(folder: Path, count: int) -> Callable[[], object]:
    from icefloe.planning import TableScan

    # Made in another process: what writing takes would count as memory of the plan.
    code = "import sys; from pathlib import Path; from bench.planning import MadeTable; MadeTable(Path(sys.argv[1]), int(sys.argv[2]))"
    subprocess.run([sys.executable, "-c", code, str(folder), str(count)], check=True)
    from icefloe.metadata import decode_metadata_file
    from icefloe.storage import Storage

    storage = Storage()
    metadata = decode_metadata_file(storage.read(f"{folder.as_uri()}/metadata/v1.metadata.json"))
    return lambda: sum(1 for _ in TableScan(metadata, storage).plan_files())


def _commit(folder: Path, count: int) -> Callable[[], object]:
    from icefloe.manifests import DataFile

    table = _table(folder)
    made = [
        [DataFile(f"file:///data/{run_number}-{number:08d}.parquet", "parquet", 100, 1000) for number in range(count)]
        for run_number in range(REPEAT)
    ]
    return lambda: table.update_snapshot().fast_append(made.pop(), check_duplicates=False)


def _scan(folder: Path, count: int) -> Callable[[], object]:
    table = _table(folder)
    step = min(count, 1_000_000)
    with table.transaction() as tx:
        for start in range(0, count, step):
            ids = pa.array(range(start, start + step), pa.int64())
            tx.append(pa.table({"id": ids, "name": ids.cast(pa.string())}))

    def work() -> int:
        with table.scan().to_arrow_batch_reader() as reader:
            return sum(batch.num_rows for batch in reader)

    return work


def _table(folder: Path) -> Any:
    import icefloe

    catalog = icefloe.load_catalog("bench", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id long, name string")


WORK: dict[str, Callable[[Path, int], Callable[[], object]]] = {"plan": _plan, "commit": _commit, "scan": _scan}
UNITS = {"plan": "files", "commit": "files", "scan": "rows"}


def _peak() -> int:
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) // 1024 if found else 0


def main(work: str, count: str) -> None:
    """One work at one size, in this process."""
    with tempfile.TemporaryDirectory(prefix="icefloe-bench-") as folder:
        ready = WORK[work](Path(folder), int(count))
        before, seconds = _peak(), []
        for _ in range(REPEAT):
            start = time.perf_counter()
            ready()
            seconds.append(time.perf_counter() - start)
        print(json.dumps([min(seconds), before, _peak()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
