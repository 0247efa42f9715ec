"""What a run of the scenarios says on its page: how many agree, which differences are explained, and which are red."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.peers.page import END, START

KIND_TITLES = {
    "java": "Java is otherwise, and we follow Spark or the specification",
    "choice": "We chose otherwise",
    "defect": "To be repaired in icefloe",
}


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a scenario: whether it went as it must, and the differences that are known."""

    file: str
    name: str
    run: str
    passed: bool
    known: tuple[tuple[str, str], ...] = ()
    """Kinds and reasons."""


def sql_page_with(text: str, results: Sequence[Result], versions: str, day: dt.date) -> str:
    """The page with everything between the markers written anew."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"the page has no part between {START} and {END}")
    parts = [f"{versions}; seen on {day}.\n", _counts(results), *_red(results)]
    parts += [part for kind in KIND_TITLES for part in _explained(kind, results)]
    return f"{before}{START}\n\n" + "\n".join(parts) + f"\n{END}{after}"


def _counts(results: Sequence[Result]) -> str:
    rows = []
    for file in [*sorted({each.file for each in results}), None]:
        some = [each for each in results if file in (None, each.file)]
        rows.append(
            (
                "all" if file is None else file.replace("_", " "),
                str(len({(each.file, each.name) for each in some})),
                str(len(some)),
                str(sum(each.passed and not each.known for each in some)),
                str(sum(each.passed and bool(each.known) for each in some)),
                str(sum(not each.passed for each in some)),
            )
        )
    return _table(("Subject", "Scenarios", "Runs", "Agree", "Explained", "Red"), rows)


def _red(results: Iterable[Result]) -> list[str]:
    lines = [f"- {each.file}: {each.name}, {each.run}" for each in results if not each.passed]
    return ["### Red\n\n" + "\n".join(lines) + "\n"] if lines else []


def _explained(kind: str, results: Iterable[Result]) -> list[str]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in results:
        for its_kind, reason in each.known:
            if its_kind == kind and each.passed:
                found.setdefault((each.file.replace("_", " "), each.name, reason), []).append(each.run)
    rows = [(file, name, " ".join(runs), reason) for (file, name, reason), runs in found.items()]
    return (
        [f"### {KIND_TITLES[kind]}\n\n" + _table(("Subject", "Scenario", "Runs", "Difference"), rows)] if rows else []
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return (
        "\n".join([*lines, *(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in row)} |" for row in rows)])
        + "\n"
    )
