"""Makes a history in which the engines differ smaller, as long as they differ in the same way: statements, settings, columns, parts."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tests.peers.sql.histories.generating import History
from tests.peers.sql.histories.model import Statement
from tests.peers.sql.histories.parts import keys, reductions, without
from tests.peers.sql.histories.running import Difference

Judge = Callable[[History], Difference | None]
"""Runs a history, and gives the first difference that nobody has explained."""


def signature(found: Difference) -> tuple[str, ...]:
    """What two differences share if they are of one kind: what differs, who refuses, and the start of the reason."""
    return (found.what, _refusal(found.ours), _refusal(found.java))


def _refusal(text: str) -> str:
    if not text.startswith("refused: "):
        return ""
    return re.sub(r"[0-9]+|`[^`]*`|n[0-9]+\.t|'[^']*'", "", text)[9:60]


@dataclass
class Shrinker:
    """A history that gets smaller while time is left."""

    judge: Judge
    history: History
    found: Difference
    until: float
    runs: int = 0

    def attempt(self, candidate: History) -> bool:
        """Take the smaller one, if it shows the same."""
        if time.monotonic() > self.until or len(candidate.statements) < 1:
            return False
        self.runs += 1
        found = self.judge(candidate)
        if found is None or signature(found) != signature(self.found):
            return False
        self.history, self.found = candidate, found
        return True

    def statements(self) -> bool:
        """Fewer statements: those after the difference, then halves, then single ones."""
        smaller = False
        if 0 <= self.found.step < len(self.history.statements) - 1:
            smaller = self.attempt(replace(self.history, statements=self.history.statements[: self.found.step + 1]))
        size = max(1, (len(self.history.statements) - 2) // 2)
        while size:
            start = 1
            while start < len(self.history.statements):
                rest = self.history.statements[:start] + self.history.statements[start + size :]
                if self.attempt(replace(self.history, statements=rest)):
                    smaller = True
                else:
                    start += size
            size //= 2
        return smaller

    def settings(self) -> bool:
        """Fewer settings: none, then without each."""
        if not self.history.settings:
            return False
        if self.attempt(replace(self.history, settings=())):
            return True
        smaller = False
        for setting in self.history.settings:
            rest = tuple(each for each in self.history.settings if each != setting)
            smaller |= self.attempt(replace(self.history, settings=rest))
        return smaller

    def columns(self) -> bool:
        """Fewer columns and fields."""
        smaller = False
        named: set[str] = set().union(*(keys(each.part) for each in self.history.statements))
        for key in sorted(named, key=lambda each: (len(each), each)):
            rest = []
            for statement in self.history.statements:
                part = without(statement.part, key)
                if part is not None:
                    rest.append(replace(statement, part=part))
            if rest and tuple(rest) != self.history.statements:
                smaller |= self.attempt(replace(self.history, statements=tuple(rest)))
        return smaller

    def parts(self) -> bool:
        """Simpler statements, the last ones first."""
        smaller = False
        for index in reversed(range(len(self.history.statements))):
            while self._simpler(index):
                smaller = True
        return smaller

    def _simpler(self, index: int) -> bool:
        return any(self.attempt(candidate) for candidate in _simpler(self.history, index))


def _simpler(history: History, index: int) -> Iterator[History]:
    statement = history.statements[index]
    for part in reductions(statement.part):
        changed = Statement(part, statement.kind)
        yield replace(history, statements=(*history.statements[:index], changed, *history.statements[index + 1 :]))


def shrunk(history: History, found: Difference, judge: Judge, seconds: float) -> tuple[History, Difference]:
    """The smallest history that was found in the time, and the difference that it shows."""
    shrinker = Shrinker(judge, history, found, time.monotonic() + seconds)
    while True:
        smaller = [shrinker.statements(), shrinker.settings(), shrinker.columns(), shrinker.parts()]
        if not any(smaller) or time.monotonic() > shrinker.until:
            return shrinker.history, shrinker.found
