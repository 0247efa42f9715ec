"""Runs a history on both engines, and says where they differ: in what they refuse, what they answer, and what the tables are."""

import re
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.peers.sql.engines import Both, Engine, Engines, Outcome
from tests.peers.sql.histories.generating import History
from tests.peers.sql.histories.known import EXPECTED_DIFFERENCES
from tests.peers.sql.histories.model import Statement
from tests.peers.sql.histories.parts import render
from tests.peers.sql.normal import Rows
from tests.peers.sql.state import CATALOG, State

ANSWERS = frozenset(("query", "travel", "view", "metadata"))
"""The kinds of statements whose rows are compared."""
COMPARED = ("rows", "schema", "spec", "order", "version", "properties", "refs")
"""What of a table is compared, the most important first."""
TABLES = {"«t»": "t", "«u»": "u"}
CHANGES = ("added-data", "deleted-data", "added-delete", "removed-delete")
"""What a summary counts of the files that a snapshot changed."""
AT_THE_END = -1
"""The step at which each engine reads the table of the other."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the engines part: at which step, in what, and what each says."""

    step: int
    kind: str
    statement: str
    what: str
    ours: str
    java: str
    explained: str = ""
    """Why it is as it should be; empty if nobody knows."""

    def __str__(self) -> str:
        where = "at the end" if self.step == AT_THE_END else f"step {self.step}"
        return f"{where}, {self.what}: {self.statement}\n  ours: {self.ours}\n  Java: {self.java}"


@dataclass(frozen=True, slots=True)
class Run:
    """What became of a history."""

    steps: int
    refused: int
    """Statements that both refuse."""
    seconds: float
    differences: tuple[Difference, ...]

    @property
    def findings(self) -> tuple[Difference, ...]:
        """Differences that nobody has explained."""
        return tuple(each for each in self.differences if not each.explained)


class Runner:
    """Both engines, for one history after the other."""

    def __init__(self, engines: Engines) -> None:
        self.engines = engines

    def run(self, history: History) -> Run:
        """Run it up to the first difference; all that it made is gone afterwards."""
        namespace = self.engines.new_namespace()
        start = time.monotonic()
        try:
            self._each([f"SET {key}={value}" for key, value in history.settings])
            found, steps, refused = self._steps(namespace, history)
        finally:
            self.engines.reset()
            self._each([f"DROP VIEW IF EXISTS {_view(namespace)}"])
            for engine in (self.engines.ours, self.engines.java):
                shutil.rmtree(engine.folder / "warehouse" / namespace, ignore_errors=True)
        return Run(steps, refused, time.monotonic() - start, tuple(found))

    def _each(self, texts: list[str]) -> None:
        self.engines.java.begin(texts)
        self.engines.ours.begin(texts)
        self.engines.ours.end()
        self.engines.java.end()

    def _steps(self, namespace: str, history: History) -> tuple[list[Difference], int, int]:
        refused = 0
        known: dict[str, Both[State | None]] = {}
        for step, statement in enumerate(history.statements):
            outcome, text = self._both(namespace, statement)
            refused += outcome.ours.failed and outcome.java.failed
            differences = list(_of_outcome(step, statement.kind, text, outcome))
            if differences and differences[0].what == "answer" and self._lists_snapshots_of_nothing(namespace, text):
                differences = []
            # Settings decide what a reader of the table sees.
            if statement.kind == "setting":
                known = {}
            if not differences and statement.kind not in ANSWERS:
                known = self.engines.states(namespace, known)
                differences = list(_of_states(step, statement.kind, text, known))
            if differences:
                return [_explained(each) for each in differences], step + 1, refused
        return [_explained(each) for each in self._end(namespace, known)], len(history.statements), refused

    def _lists_snapshots_of_nothing(self, namespace: str, text: str) -> bool:
        """Whether a statement asks for snapshots, of which Java has some that changed nothing."""
        table = self.engines.java.entries(namespace).get("t")
        snapshots = () if table is None else table.metadata.get("snapshots", ())
        return (
            text.endswith((".snapshots", ".history")) and table is not None and len(effective(table)) < len(snapshots)
        )

    def _both(self, namespace: str, statement: Statement) -> tuple[Both[Outcome], str]:
        text = render(statement.part)
        ours = resolved(text, namespace, self.engines.ours)
        outcome = self.engines.run(ours, resolved(text, namespace, self.engines.java))
        if statement.kind in ANSWERS:
            plain = [
                _plain(self.engines.ours, namespace, outcome.ours),
                _plain(self.engines.java, namespace, outcome.java),
            ]
            outcome = Both(*plain)
        return outcome, text

    def _end(self, namespace: str, known: Mapping[str, Both[State | None]]) -> Iterable[Difference]:
        """Each reads the table of the other, and both tables are sound."""
        for name, state in known.items():
            if state.ours is None or state.java is None or not isinstance(state.ours.rows, Rows):
                continue
            crossed = self.engines.crossed(namespace, name)
            for what, outcome in (("Java reads ours", crossed.java), ("we read Java's", crossed.ours)):
                if _shown(outcome, any_order=True) != _shown_rows(state.ours.rows):
                    yield Difference(
                        AT_THE_END,
                        "crossed",
                        what,
                        "rows",
                        _shown_rows(state.ours.rows),
                        _shown(outcome, any_order=True),
                    )
            tables = self.engines.tables(namespace, name)
            for what, table in (("ours", tables.ours), ("Java's", tables.java)):
                problems = [str(each) for each in table.verify(level="data").findings]
                if problems:
                    yield Difference(AT_THE_END, "verify", f"verify {what}", "verify", "; ".join(problems), "")


def resolved(text: str, namespace: str, engine: Engine) -> str:
    """A statement with the names and the snapshots that an engine has."""
    for mark, name in TABLES.items():
        text = text.replace(mark, f"{CATALOG}.{namespace}.{name}")
    text = text.replace("«v»", _view(namespace)).replace("«catalog»", CATALOG).replace("«name»", f"{namespace}.t")

    if "«" not in text:
        return text
    table = engine.entries(namespace).get("t")
    snapshots = [] if table is None else effective(table)

    def place(match: "re.Match[str]") -> str:
        found = snapshots[(int(match[2]) - 1) % len(snapshots)] if snapshots else {"snapshot-id": 1, "timestamp-ms": 1}
        return str(found["snapshot-id"]) if match[1] == "snapshot" else f"timestamp_millis({found['timestamp-ms']})"

    return re.sub("«(snapshot|time) ([0-9]+)»", place, text)


def effective(state: State) -> list[Mapping[str, Any]]:
    """The snapshots of a table that changed something: Java makes one for a change of no row too, and we do not."""
    return [
        each
        for each in state.metadata.get("snapshots", ())
        if any(int(each["summary"].get(f"{change}-files", 0)) for change in CHANGES)
    ]


def _view(namespace: str) -> str:
    return f"view_{namespace}"


def _plain(engine: Engine, namespace: str, outcome: Outcome) -> Outcome:
    rows = None if outcome.rows is None else engine.plain(namespace, outcome.rows)
    return Outcome(rows, outcome.error, outcome.seconds)


def _of_outcome(step: int, kind: str, text: str, outcome: Both[Outcome]) -> Iterable[Difference]:
    ours, java = _shown(outcome.ours, any_order=True), _shown(outcome.java, any_order=True)
    if outcome.ours.failed != outcome.java.failed:
        yield Difference(step, kind, text, "refusal", ours, java)
    elif kind in ANSWERS and not outcome.ours.failed and ours != java:
        yield Difference(step, kind, text, "answer", ours, java)


def _of_states(step: int, kind: str, text: str, states: Mapping[str, Both[State | None]]) -> Iterable[Difference]:
    for name, state in states.items():
        if state.ours is None or state.java is None:
            yield Difference(
                step, kind, text, "table", f"{name}: {state.ours is not None}", f"{state.java is not None}"
            )
            continue
        ours, java = state.ours, state.java
        for what in COMPARED:
            mine, its = _shown_part(ours, what), _shown_part(java, what)
            if what == "rows" and isinstance(ours.rows, str) and isinstance(java.rows, str):
                continue
            if mine != its:
                yield Difference(step, kind, text, what, mine, its)


def _explained(found: Difference) -> Difference:
    for each in EXPECTED_DIFFERENCES:
        if each.explains(found.kind, found.statement, found.what, found.ours, found.java):
            return Difference(
                found.step,
                found.kind,
                found.statement,
                found.what,
                found.ours,
                found.java,
                f"{each.reason} ({each.issue})",
            )
    return found


def _shown(outcome: Outcome, *, any_order: bool) -> str:
    if outcome.rows is None:
        return f"refused: {(outcome.error or '')[:1500]}"
    return _shown_rows(outcome.rows.in_any_order() if any_order else outcome.rows)


def _shown_part(state: State, what: str) -> str:
    match what:
        case "rows":
            return _shown_rows(state.rows)
        case "refs":
            return repr(
                sorted((name, ref[0], ref[2:]) for name, ref in state.parts.get("refs", {}).items() if name != "main")
            )
        case _:
            part = state.parts.get(what)
            return repr(sorted(part.items())) if isinstance(part, dict) else repr(part)


def _shown_rows(rows: Rows | str | None) -> str:
    if isinstance(rows, Rows):
        return f"{[f'{name} {kind}' for name, kind in rows.columns]}: {list(rows.values)}"
    return f"refused: {(rows or '')[:1500]}"
