"""Blocks of code in the pages, and how they are run: those of Python one after the other among the same names, those of a shell as typed.

In the source of a page, `<!-- setup` begins Python that is run and not shown, and `<!-- not run: reason -->` above a block
says why nobody can run it here. `<!-- spark -->` at the top says that the page needs a Spark session.
"""

import contextlib
import io
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from icefloe.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
_BLOCK = re.compile(
    r"<!-- setup\n(?P<setup>.*?)-->|(?:<!-- not run: (?P<reason>[^>]+?) -->\s*\n)?^(?P<indent> *)```(?P<kind>\w+)[^\n]*\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
_RUN = ("python", "console")


@dataclass(frozen=True)
class Block:
    """Some code of a page."""

    page: Path
    line: int
    kind: str
    text: str
    reason: str | None = None
    """Why it is not run."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"


def blocks(page: Path) -> list[Block]:
    """The code of a page, set-up included."""
    text = page.read_text(encoding="utf-8")
    listed = []
    for match in _BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 2
        if match["setup"] is not None:
            listed.append(Block(page, line, "python", match["setup"]))
        else:
            indent = len(match["indent"])
            code = "\n".join(each[indent:] for each in match["text"].splitlines())
            listed.append(Block(page, line, match["kind"], code, match["reason"]))
    return listed


def needs_spark(page: Path) -> bool:
    """Whether a page says that it needs Spark."""
    return "<!-- spark -->" in page.read_text(encoding="utf-8")


def pages_with(kind: str) -> list[Path]:
    """Pages that have a block of a kind to run."""
    return [page for page in PAGES if any(each.kind == kind and each.reason is None for each in blocks(page))]


def run_python(page: Path, names: dict[str, Any]) -> int:
    """Run the Python of a page among these names; how many blocks there were."""
    done = 0
    for block in blocks(page):
        if block.kind == "python" and block.reason is None:
            code = compile("\n" * (block.line - 1) + block.text, str(block.page), "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)
            done += 1
    return done


@dataclass(frozen=True)
class Line:
    """A command line of a page, and what the page says that it prints."""

    command: str
    printed: tuple[str, ...]


def lines_of(block: Block) -> Iterator[Line]:
    """The commands of a console block."""
    command = ""
    printed: list[str] = []
    for line in [*block.text.splitlines(), "$ "]:
        if line.startswith("$ ") or line == "$":
            if command:
                yield Line(command, tuple(printed))
            command, printed = line[2:], []
        else:
            printed.append(line)


def run_console(page: Path) -> int:
    """Run the command lines of a page in the working directory, and compare what they print; how many there were."""
    done = 0
    for block in blocks(page):
        if block.kind != "console" or block.reason is not None:
            continue
        for line in lines_of(block):
            printed = _printed(line.command, block)
            expected = "\n".join(line.printed).rstrip()
            assert re.fullmatch(_pattern(expected), printed), (
                f"{block}: `{line.command}` prints\n{printed}\nthe page says\n{expected}"
            )
            done += 1
    return done


def _printed(command: str, block: Block) -> str:
    words = shlex.split(command, comments=True)
    if words[0] == "printf":
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.rstrip()
    assert words[0] == "icefloe", f"{block}: only `icefloe` and `printf` are run, not {command}"
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(words[1:])
    assert code in (0, 1), f"{block}: `{command}` ends with {code}: {said.getvalue()}"
    return said.getvalue().rstrip()


def _pattern(text: str) -> str:
    """What a text on a page stands for: other numbers, other spaces, and anything for an ellipsis."""
    parts = []
    for part in re.split(r"(\d(?:[\d,.]*\d)?|\s+|…)", text):
        if part == "…":
            parts.append(r"\S*")
        elif part.isspace():
            parts.append(r"\s+")
        elif _NUMBER.fullmatch(part):
            parts.append(r"\d(?:[\d,.]*\d)?")
        else:
            parts.append(re.escape(part))
    return "".join(parts)


def not_run() -> list[Block]:
    """Blocks of all pages that are not run."""
    return [each for page in PAGES for each in blocks(page) if each.kind in _RUN and each.reason is not None]
