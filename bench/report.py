"""How a benchmark reports: rows of our time against a peer's, a ratio, a goal, and the same as JSON."""

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Row:
    """One measured case: seconds of ours and theirs for the same work, and the highest ratio that meets the goal."""

    case: str
    ours_seconds: float
    theirs_seconds: float
    goal: float
    note: str = ""

    @property
    def ratio(self) -> float:
        """Our time over theirs: below one is faster."""
        return self.ours_seconds / self.theirs_seconds

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio <= self.goal


def interleave(
    ours: Callable[[], object], theirs: Callable[[], object], repeat: int = 3, peer_repeat: int | None = None
) -> tuple[float, float]:
    """Median seconds of both, run in turn so that a slow moment of the machine hits both; each is first as often as second.

    A peer that takes long runs only in the first rounds, `peer_repeat` of them.
    """
    seconds: tuple[list[float], list[float]] = ([], [])
    for number in range(repeat):
        both = list(zip((ours, theirs), seconds, strict=True))
        is_shared = peer_repeat is None or number < peer_repeat
        for work, found in both[:: -1 if number % 2 else 1] if is_shared else both[:1]:
            gc.collect()
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return statistics.median(seconds[0]), statistics.median(seconds[1])


def report(name: str, size: str, rows: Iterable[Row]) -> None:
    """Print each row as soon as it is measured, and keep all of them as JSON in bench/results."""
    started = time.perf_counter()
    measured: list[Row] = []
    for row in rows:
        measured.append(row)
        print(shown(name, row), flush=True)
    print(f"{name}: {len(measured)} cases of size {size} in {time.perf_counter() - started:.0f} s", flush=True)
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    cases = [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in measured]
    RESULTS.mkdir(exist_ok=True)
    document = {
        "name": name,
        "size": size,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine,
        "rows": cases,
    }
    (RESULTS / f"{name}-{size}.json").write_text(json.dumps(document, indent=2) + "\n")


def shown(name: str, row: Row) -> str:
    """The line of a row: the ratio, how many times faster that is, and whether the goal is met."""
    note = f"  ({row.note})" if row.note else ""
    times = f"ours {row.ours_seconds:.4g} s, theirs {row.theirs_seconds:.4g} s, {1 / row.ratio:.3g}x"
    return (
        f"{name}/{row.case}: ratio {row.ratio:.3g} goal {row.goal:.3g} {'ok' if row.met else 'short'}  [{times}]{note}"
    )
