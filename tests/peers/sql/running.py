"""How a scenario is run: each statement on both engines, what differs after it, and at the end what each reads from the other's tables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icefloe.errors import IcefloeError
from icefloe.table import Table
from tests.peers.sql.engines import CATALOG, Both, Engine, Engines, Outcome
from tests.peers.sql.normal import Rows, rows_of
from tests.peers.sql.scenario import Expected, Run, Scenario, filled, with_snapshots
from tests.peers.sql.state import State

States = Mapping[str, Both[State | None]]
APART = ("exists", "version", "schema.fields", "rows", "history", "sql")
"""Parts after whose difference two tables cannot be compared any more."""
_STAYING = ("spark.sql.caseSensitive",)
"""Settings of a scenario without which its tables may have no columns that can be told apart."""
_ORDERED = re.compile(r"^\s*(SELECT|WITH)\b.*\bORDER\s+BY\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same on both engines after a step: ours / Java's."""

    step: int
    statement: str
    part: str
    """`outcome`, or a part of the state of `t`; of another table with its name in front."""
    shown: str

    def __str__(self) -> str:
        return f"step {self.step}, {self.part}: {self.shown}\n    after {self.statement}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a run found: differences that nobody expected, and expected ones that are no more."""

    unexpected: tuple[Difference, ...]
    vanished: tuple[tuple[str, Expected], ...]
    seen: tuple[tuple[Difference, Expected], ...]
    statements: int

    def __str__(self) -> str:
        lines = [str(each) for each in self.unexpected]
        lines += [
            f"no difference any more in {', '.join(each.parts)} after {text}: {each}" for text, each in self.vanished
        ]
        return "\n".join(lines)


def run_scenario(engines: Engines, scenario: Scenario, run: Run) -> Report:
    """Run it in a namespace of its own, with its settings, which are reset afterwards."""
    namespace = engines.new_namespace()
    try:
        engines.configure(scenario.settings)
        return _Running(engines, scenario, run, namespace).report()
    finally:
        engines.reset()


class _Running:
    """One run of a scenario."""

    def __init__(self, engines: Engines, scenario: Scenario, run: Run, namespace: str) -> None:
        self._engines = engines
        self._scenario = scenario
        self._run = run
        self._namespace = namespace
        self._states: States = {}
        self._known: set[str] = set()
        self._apart: set[str] = set()

    def report(self) -> Report:
        unexpected: list[Difference] = []
        vanished: list[tuple[str, Expected]] = []
        seen: list[tuple[Difference, Expected]] = []
        for number, step in enumerate(self._scenario.steps, 1):
            text = step.text or "the last statement"
            expected = step.of(self._run)
            used: set[Expected] = set()
            for part, shown in self._end() if step.text is None else self._step(step.text):
                difference = Difference(number, text, part, shown)
                cause = next((each for each in expected if each.covers(part)), None)
                if cause is None:
                    unexpected.append(difference)
                else:
                    used.add(cause)
                    seen.append((difference, cause))
            vanished += [(text, each) for each in expected if each not in used]
        return Report(tuple(unexpected), tuple(vanished), tuple(seen), len(self._scenario.statements))

    def _step(self, text: str) -> list[tuple[str, str]]:
        named = filled(text, self._run, f"{CATALOG}.{self._namespace}")
        engines = self._engines
        outcome = engines.run(self._with_ids(engines.ours, named), self._with_ids(engines.java, named))
        self._states = engines.states(self._namespace, self._states)
        found = self._outcomes(outcome, text)
        changes = [each for name, both in self._states.items() for each in self._new_differences(name, both)]
        # Where one engine refuses a statement, that the tables differ afterwards says nothing more.
        return found or changes

    def _with_ids(self, engine: Engine, text: str) -> str:
        return with_snapshots(text, lambda table, place: engine.snapshot(self._namespace, table, place))

    def _outcomes(self, outcome: Both[Outcome], text: str) -> list[tuple[str, str]]:
        ours, java = outcome.ours, outcome.java
        if ours.rows is None or java.rows is None:
            return [] if ours.failed and java.failed else [("outcome", f"{_said(ours)} / {_said(java)}")]
        mine, its = (
            engine.plain(self._namespace, rows if _ORDERED.match(text) else rows.in_any_order())
            for engine, rows in ((self._engines.ours, ours.rows), (self._engines.java, java.rows))
        )
        if not _ORDERED.match(text):
            mine, its = mine.in_any_order(), its.in_any_order()
        if self._apart:
            return []
        return [] if mine == its else [("outcome", _two_rows(mine, its))]

    def _new_differences(self, name: str, both: Both[State | None]) -> list[tuple[str, str]]:
        """What differs now and did not before: a difference stays, and after another history nothing can be compared."""
        prefix = "" if name == "t" else f"{name}."
        if name in self._apart:
            return []
        if both.ours is None or both.java is None:
            all_parts = [("exists", f"{both.ours is not None} / {both.java is not None}")]
        else:
            all_parts = both.ours.differences(both.java)
        found = [(f"{prefix}{part}", shown) for part, shown in all_parts if f"{prefix}{part}" not in self._known]
        self._known |= {part for part, _ in found}
        if any(part in APART for part, _ in all_parts):
            self._apart.add(name)
        return found

    def _end(self) -> list[tuple[str, str]]:
        """What each reads from the other's tables, and what verification says of both."""
        found: list[tuple[str, str]] = []
        self._engines.reset()
        self._engines.configure({key: value for key, value in self._scenario.settings.items() if key in _STAYING})
        for name, both in self._states.items():
            if both.ours is None or both.java is None or "sql" in both.ours.parts or "sql" in both.java.parts:
                continue
            prefix = "" if name == "t" else f"{name}."
            tables = self._engines.tables(self._namespace, name)
            found += [(prefix + part, shown) for part, shown in self._crossed(name, Both(both.ours, both.java), tables)]
            found += [(prefix + part, shown) for part, shown in _verified(tables)]
        return found

    def _crossed(self, name: str, both: Both[State], tables: Both[Table]) -> list[tuple[str, str]]:
        read = self._engines.crossed(self._namespace, name)
        own = self._own_rows(name, both)
        found = [
            (f"crossed.{who}", f"{_said(theirs)} / {mine}")
            for who, theirs, mine in (("ours", read.ours, own.java), ("java", read.java, own.ours))
            if _values(theirs) != mine
        ]
        for ref in sorted({*both.ours.metadata.get("refs", {})} & {*both.java.metadata.get("refs", {})} - {"main"}):
            found += self._of_ref(name, ref, tables)
        return found

    def _own_rows(self, name: str, both: Both[State]) -> Both[Sequence[object] | None]:
        """What each reads from its own table; as it was after the last step, unless settings may have changed it then."""
        if not self._scenario.changes_session and isinstance(both.ours.rows, Rows) and isinstance(both.java.rows, Rows):
            return Both(both.ours.rows.values, both.java.rows.values)
        read = self._engines.read(self._namespace, name)
        return Both(_values(read.ours), _values(read.java))

    def _of_ref(self, name: str, ref: str, tables: Both[Table]) -> list[tuple[str, str]]:
        own = self._engines.read(self._namespace, name, f" VERSION AS OF '{ref}'")
        plain = [_plainly(table, ref) for table in (tables.ours, tables.java)]
        pairs = [(_values(own.ours), plain[0]), (_values(own.java), plain[1])]
        if name not in self._apart:
            pairs.append((plain[0], plain[1]))
        return [(f"ref.{ref}", f"{one} / {two}") for one, two in pairs if one != two]


def _plainly(table: Table, ref: str) -> Sequence[object] | None:
    """What plain Python reads; None if it cannot, as for a query that is refused."""
    try:
        return rows_of(table.scan(ref=ref).to_arrow()).in_any_order().values
    except IcefloeError:
        return None


def _verified(tables: Both[Table]) -> list[tuple[str, str]]:
    found = []
    for who, table in (("ours", tables.ours), ("java", tables.java)):
        report = table.verify(level="data")
        if report.codes:
            found.append((f"verify.{who}", str(report)))
    return found


def _values(outcome: Outcome) -> Sequence[object] | None:
    return None if outcome.rows is None else outcome.rows.in_any_order().values


def _said(outcome: Outcome) -> str:
    if outcome.rows is None:
        # Py4J has the words of the JVM in its second line.
        return f"refused: {' '.join(str(outcome.error).splitlines()[:2])[:300]}"
    return f"done: {outcome.rows.values}"


def _two_rows(mine: Rows, its: Rows) -> str:
    if mine.columns != its.columns:
        return f"{mine.columns} / {its.columns}"
    ours = [row for row in mine.values if row not in its.values]
    theirs = [row for row in its.values if row not in mine.values]
    return f"{ours or mine.values} / {theirs or its.values}"
