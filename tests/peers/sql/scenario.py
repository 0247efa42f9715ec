"""What a scenario is, and how the files in `scenarios/` say it; `README.md` there shows how to add one."""

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.peers.lake import MODES, row_level

FOLDER = Path(__file__).with_name("scenarios")
SHORT_MODES = {"cow": MODES[0], "mor": MODES[1]}
DEFAULT_RUNS = "v2-cow v3-mor"
KINDS = ("java", "choice", "defect")
"""Whose difference it is: a defect of Java, a choice that we made otherwise, or a defect of ours that is to be repaired."""
SESSION_WORDS = ("SET", "RESET", "USE", "CACHE")
"""Statements that change how later ones read."""
_HEADER = re.compile(r"--\s*(name|runs|set|differs)\b([^:]*):\s*(.*)")
_PROPERTIES = re.compile(r"\$props(?:\(([^)]*)\))?")
_SNAPSHOT = re.compile(r"\$(?:(\w+):)?(s|ms|at)(\d+)\b")


@dataclass(frozen=True, slots=True)
class Run:
    """A format version, and a mode of changing rows where it matters."""

    version: int
    mode: str | None = None

    @property
    def title(self) -> str:
        """As the files write it."""
        short = next((short for short, mode in SHORT_MODES.items() if mode == self.mode), None)
        return f"v{self.version}" if short is None else f"v{self.version}-{short}"

    def properties(self, more: str | None) -> str:
        """The clause of a new table."""
        given = {"format-version": str(self.version), **({} if self.mode is None else row_level(self.mode))}
        texts = [f"'{key}'='{value}'" for key, value in given.items()]
        return f"TBLPROPERTIES ({', '.join(texts + ([more] if more else []))})"


@dataclass(frozen=True, slots=True)
class Expected:
    """A difference that is known: in which parts, whose it is, and why."""

    parts: tuple[str, ...]
    kind: str
    reason: str
    runs: tuple[str, ...] = ()
    """The runs that show it; all if there are none."""

    def covers(self, part: str) -> bool:
        """Whether it speaks of a part; `counts` speaks of `counts.s2` too."""
        return any(part == each or part.startswith(f"{each}.") for each in self.parts)


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, and the differences that are known after it; no statement at the end."""

    text: str | None
    expected: tuple[Expected, ...] = ()

    def of(self, run: Run) -> tuple[Expected, ...]:
        """What is known of one run."""
        return tuple(each for each in self.expected if not each.runs or run.title in each.runs)


@dataclass(frozen=True)
class Scenario:
    """Statements that must do the same on both engines."""

    file: str
    name: str
    runs: tuple[Run, ...]
    settings: Mapping[str, str]
    steps: tuple[Step, ...]

    @property
    def statements(self) -> tuple[str, ...]:
        """The statements as they are written."""
        return tuple(step.text for step in self.steps if step.text is not None)

    @property
    def changes_session(self) -> bool:
        """Whether settings other than those of the start were there at a step."""
        return bool(self.settings) or any(each.split()[0].upper() in SESSION_WORDS for each in self.statements)


@dataclass
class _Draft:
    name: str
    runs: str
    settings: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


@cache
def all_scenarios(folder: Path = FOLDER) -> tuple[Scenario, ...]:
    """Every scenario of every file."""
    return tuple(each for path in sorted(folder.glob("*.sql")) for each in read_file(path))


def read_file(path: Path) -> list[Scenario]:
    """The scenarios of a file."""
    found = [_finished(path, draft) for draft in _drafts(path)]
    names = [each.name for each in found]
    if len(set(names)) != len(names):
        raise ValueError(
            f"{path.name} has a name twice: {sorted(each for each in set(names) if names.count(each) > 1)}"
        )
    return found


def _drafts(path: Path) -> Iterator[_Draft]:
    draft: _Draft | None = None
    runs = DEFAULT_RUNS
    for number, line in enumerate(path.read_text().splitlines(), 1):
        header = _HEADER.fullmatch(line.strip())
        if header is not None:
            key, qualifier, value = header[1], header[2].split(), header[3]
            if key == "name":
                if draft is not None:
                    yield draft
                draft = _Draft(value, runs)
            elif draft is None:
                if key != "runs":
                    raise ValueError(f"{path.name}:{number}: `{key}` before the first name")
                runs = value
            elif key == "runs":
                draft.runs = value
            elif key == "set":
                name, _, setting = value.partition("=")
                draft.settings[name.strip()] = setting.strip()
            else:
                draft.expected.append(_expected(path, number, qualifier, value))
        elif draft is not None and line.strip() and not line.startswith("--"):
            draft.text.append(line.rstrip())
            if line.rstrip() == "END;" or (line.rstrip().endswith(";") and draft.text[0] != "BEGIN"):
                draft.steps.append(Step("\n".join(draft.text)[:-1], tuple(draft.expected)))
                draft.text, draft.expected = [], []
    if draft is not None:
        yield draft


def _expected(path: Path, number: int, runs: Iterable[str], value: str) -> Expected:
    parts, _, rest = value.partition("|")
    kind, _, reason = rest.partition("|")
    if kind.strip() not in KINDS or not reason.strip():
        raise ValueError(f"{path.name}:{number}: a difference is `parts | {' or '.join(KINDS)} | reason`")
    names = tuple(each.strip() for each in parts.split(",") if each.strip())
    return Expected(names, kind.strip(), reason.strip(), tuple(runs))


def _finished(path: Path, draft: _Draft) -> Scenario:
    if draft.text:
        raise ValueError(f"{path.name}: the last statement of {draft.name!r} has no `;`")
    steps = (*draft.steps, Step(None, tuple(draft.expected)))
    runs = tuple(_run(path, each) for each in draft.runs.split())
    return Scenario(path.stem, draft.name, runs, draft.settings, steps)


def _run(path: Path, text: str) -> Run:
    version, _, mode = text.removeprefix("v").partition("-")
    if not version.isdigit() or (mode and mode not in SHORT_MODES):
        raise ValueError(f"{path.name}: {text!r} is no run; write v2, v2-cow or v2-mor")
    return Run(int(version), SHORT_MODES.get(mode))


def filled(text: str, run: Run, namespace: str) -> str:
    """A statement with the names of this run: `$t` and `$db` for the table and its namespace, `$ns` without catalog, `$props` for properties."""
    text = _PROPERTIES.sub(lambda found: run.properties(found[1]), text)
    alone = namespace.partition(".")[2]
    for name, value in (("t", f"{namespace}.t"), ("db", namespace), ("ns", alone)):
        text = re.sub(rf"\${name}\b", value, text)
    return text


def with_snapshots(text: str, find: Callable[[str, int], tuple[int, int]]) -> str:
    """A statement with ids of snapshots: `$s1`, `$ms1`, `$at1` for the id and time of the first of `t`; `$u:s1` of `u`."""

    def value(found: re.Match[str]) -> str:
        snapshot_id, milliseconds = find(found[1] or "t", int(found[3]))
        match found[2]:
            case "s":
                return str(snapshot_id)
            case "ms":
                return str(milliseconds)
            case _:
                return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    return _SNAPSHOT.sub(value, text)
