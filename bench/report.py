"""How a benchmark reports: rows of our time against a peer's, a ratio, a goal, and the same as JSON."""

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
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
    third_seconds: float = 0.0
    """Those of another peer, if there is one."""

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


def no_total(_: Sequence[Row]) -> Iterable[Row]:
    """No further rows."""
    return ()


def report(
    name: str,
    size: str,
    rows: Iterable[Row],
    total: Callable[[Sequence[Row]], Iterable[Row]] = no_total,
    *,
    goes_on: bool = False,
) -> None:
    """Print each row as soon as it is measured, and keep all of them as JSON in bench/results.

    A run that goes on keeps the cases of earlier ones that it has not, and loses nothing when it is ended early; `total` makes further rows of all of them.
    """
    started = time.perf_counter()
    earlier = _kept(name, size) if goes_on else []
    measured: list[Row] = []
    for row in rows:
        measured.append(row)
        print(shown(name, row), flush=True)
        if goes_on:
            _keep(name, size, _united(earlier, measured), total)
    print(f"{name}: {len(measured)} cases of size {size} in {time.perf_counter() - started:.0f} s", flush=True)
    for row in _keep(name, size, _united(earlier, measured), total):
        print(shown(name, row), flush=True)


def _united(earlier: Sequence[Row], measured: Sequence[Row]) -> list[Row]:
    """The cases of earlier runs that are not measured now, and those that are."""
    if not earlier:
        return list(measured)
    now = {row.case for row in measured}
    return sorted([*(row for row in earlier if row.case not in now), *measured], key=lambda row: row.case)


def _keep(name: str, size: str, rows: Sequence[Row], total: Callable[[Sequence[Row]], Iterable[Row]]) -> Sequence[Row]:
    """Write the rows, and what they come to, to the file of the benchmark; the latter are given back."""
    further = list(total(tuple(rows)))
    machine = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
    RESULTS.mkdir(exist_ok=True)
    document = {
        "name": name,
        "size": size,
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine,
        "rows": [asdict(row) | {"ratio": row.ratio, "met": row.met} for row in (*rows, *further)],
    }
    (RESULTS / f"{name}-{size}.json").write_text(json.dumps(document, indent=2) + "\n")
    return further


def _kept(name: str, size: str) -> list[Row]:
    """What earlier runs kept, but for totals."""
    path = RESULTS / f"{name}-{size}.json"
    if not path.exists():
        return []
    rows = (
        {key: value for key, value in row.items() if key not in ("ratio", "met")}
        for row in json.loads(path.read_text())["rows"]
    )
    return [Row(**row) for row in rows if not row["case"].startswith("all-")]


def shown(name: str, row: Row) -> str:
    """The line of a row: the ratio, how many times faster that is, and whether the goal is met."""
    note = f"  ({row.note})" if row.note else ""
    times = f"ours {row.ours_seconds:.4g} s, theirs {row.theirs_seconds:.4g} s, {1 / row.ratio:.3g}x"
    return (
        f"{name}/{row.case}: ratio {row.ratio:.3g} goal {row.goal:.3g} {'ok' if row.met else 'short'}  [{times}]{note}"
    )
