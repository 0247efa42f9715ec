"""Runs histories for hours: `make test-sql-deep`. What is done is kept in a folder, so that a run that was stopped goes on."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.peers.sql.histories.generating import history
from tests.peers.sql.histories.known import KNOWN_DEFECTS, Defect
from tests.peers.sql.histories.program import program
from tests.peers.sql.histories.running import Difference, Run, Runner
from tests.peers.sql.histories.shrinking import shrunk
from tests.peers.sql.histories.starting import started
from tests.peers.worker import PeerError

FRESH = 100
"""Histories after which both engines are started again."""


def seeds(environment: "dict[str, str] | os._Environ[str]") -> list[int]:
    """Those of SEEDS (`1,5,20-30`), or COUNT ones from START on."""
    given = environment.get("SEEDS")
    if not given:
        start = int(environment.get("START") or 0)
        return list(range(start, start + int(environment.get("COUNT") or 600)))
    found: list[int] = []
    for each in given.split(","):
        first, _, last = each.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def avoided(environment: "dict[str, str] | os._Environ[str]") -> frozenset[Defect]:
    """The defects that histories go around: those of AVOID (`NAME,NAME`, or nothing), or all that are known."""
    given = environment.get("AVOID")
    return KNOWN_DEFECTS if given is None else frozenset(Defect[each] for each in given.split(",") if each)


class Record:
    """What is known of each seed, as lines of JSON in a folder, with a page that sums it up."""

    def __init__(self, folder: Path, avoid: frozenset[Defect]) -> None:
        self.folder = folder
        self.avoid = avoid
        folder.mkdir(parents=True, exist_ok=True)
        self.lines = folder / "results.jsonl"
        self.known: dict[int, dict[str, Any]] = {}
        if self.lines.exists():
            for line in self.lines.read_text().splitlines():
                each = json.loads(line)
                self.known[each["seed"]] = each

    def add(self, result: dict[str, Any]) -> None:
        """Note a result."""
        self.known[result["seed"]] = result
        with self.lines.open("a") as file:
            file.write(json.dumps(result, ensure_ascii=False) + "\n")

    def summary(self) -> str:
        """A page: how much ran, and each finding with its program."""
        results = list(self.known.values())
        found = [each for each in results if each["findings"]]
        steps, refused = sum(each["steps"] for each in results), sum(each["refused"] for each in results)
        seconds = sum(each["seconds"] for each in results)
        explained: dict[str, int] = {}
        for each in results:
            for reason in each["explained"]:
                explained[reason] = explained.get(reason, 0) + 1
        lines = [
            f"{len(results)} histories, {steps} statements, of which both engines refused {refused}; {seconds:.0f} s.",
            f"{len(found)} histories with findings; what is avoided: {sorted(each.name for each in self.avoid)}.",
            *(f"- {count} times: {reason}" for reason, count in sorted(explained.items())),
        ]
        for each in found:
            lines += [f"\n## seed {each['seed']}: {each['findings'][0]['what']}\n", f"```python\n{each['program']}```"]
        return "\n".join(lines) + "\n"


def judged(runner: Runner, seed: int, avoid: frozenset[Defect], patience: float) -> dict[str, Any]:
    """Run the history of a seed, and shrink what it shows."""
    whole = history(seed, avoid)
    run = runner.run(whole)
    result: dict[str, Any] = {
        "seed": seed,
        "steps": run.steps,
        "refused": run.refused,
        "seconds": round(run.seconds, 1),
        "findings": [_shown(each) for each in run.findings],
        "explained": sorted({each.explained for each in run.differences if each.explained}),
        "program": "",
    }
    if run.findings:
        small, found = shrunk(whole, run.findings[0], lambda each: _first(runner.run(each)), patience)
        result["program"] = program(small, found)
        result["small"] = _shown(found)
    return result


def _first(run: Run) -> Difference | None:
    return run.findings[0] if run.findings else None


def _shown(found: Difference) -> dict[str, Any]:
    return {
        "step": found.step,
        "kind": found.kind,
        "what": found.what,
        "statement": found.statement,
        "ours": found.ours[:3000],
        "java": found.java[:3000],
    }


def _batches(wanted: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(wanted), FRESH):
        yield wanted[start : start + FRESH]


def main() -> int:
    """Run what is not done yet; the number of findings decides the outcome."""
    record = Record(Path(os.environ.get("FOLDER") or ".histories"), avoided(os.environ))
    wanted = [seed for seed in seeds(os.environ) if seed not in record.known]
    patience = float(os.environ.get("SHRINK") or 120)
    limit = float(os.environ.get("SECONDS_AT_MOST") or 1e9)
    start = time.monotonic()
    for batch in _batches(wanted):
        try:
            with started() as engines:
                runner = Runner(engines)
                for seed in batch:
                    if time.monotonic() - start > limit:
                        break
                    result = judged(runner, seed, record.avoid, patience)
                    record.add(result)
                    said = f"{result['findings'][0]['what']} differ" if result["findings"] else "same"
                    sys.stdout.write(f"{seed}: {said}, {result['steps']} statements, {result['seconds']} s\n")
                    sys.stdout.flush()
        except PeerError as error:
            sys.stdout.write(f"Java ended, the rest of these seeds is for the next run: {str(error)[:2000]}\n")
    (record.folder / "summary.md").write_text(record.summary())
    sys.stdout.write(record.summary())
    return 1 if any(each["findings"] for each in record.known.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
