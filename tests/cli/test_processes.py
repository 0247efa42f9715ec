"""The command as a process of its own: pipes, terminals, exit codes, and what it imports."""

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import icefloe
from icefloe.cli.main import main
from icefloe.server.app import create_app
from tests.catalog.rest.loopback import LoopbackServer
from tests.cli.conftest import Run

PROJECT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "icefloe"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def at_terminal(
    arguments: list[str], folder: Path, typed: str = "", command: Sequence[str] = COMMAND
) -> tuple[int, str]:
    """Run a command line at a terminal, with what a person types; the exit code and all that is on the screen."""
    primary, secondary = pty.openpty()
    settings = {**environment(), "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        cwd=folder,
        env=settings,
        close_fds=True,
    )
    os.close(secondary)
    os.write(primary, typed.encode())
    seen = b""
    while True:
        try:
            part = os.read(primary, 65536)
        except OSError:
            # Linux says so when the other side is closed.
            break
        if not part:
            break
        seen += part
    os.close(primary)
    return process.wait(60), seen.decode().replace("\r\n", "\n")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from icefloe.cli.main import main; main(['--help']); main([]); "
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr); "
        "print(*[name for name in sys.modules if name.startswith('icefloe.')], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    packages, own = done.stderr.splitlines()
    heavy = ("pyarrow", "numpy", "numba", "sqlalchemy", "pyspark", "duckdb", "sqlglot", "msgspec", "httpx2", "pydantic")
    assert [name for name in heavy if f"'{name}'" in packages] == []
    assert set(own.split()) == {
        "icefloe.cli",
        "icefloe.cli.app",
        "icefloe.cli.commands",
        "icefloe.cli.completing",
        "icefloe.cli.exits",
        "icefloe.cli.main",
        "icefloe.cli.options",
        "icefloe.errors",
    }
    assert "  describe " in done.stdout
    assert "\x1b[" not in done.stdout
    assert "╭" not in done.stdout


def test_whoever_reads_may_stop(lake: Path) -> None:
    line = f"{sys.executable} -m icefloe head shop.orders -n 1000 -o jsonl | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=lake, env=environment(), check=True)
    row, code = done.stdout.splitlines()
    assert set(json.loads(row)) == {"id", "region", "total", "ts"}
    assert code == "0"
    assert done.stderr == ""


def test_a_reader_that_is_gone_is_no_error(lake: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.run(
        [*COMMAND, "list"], stdout=writing, stderr=subprocess.PIPE, cwd=lake, env=environment(), check=False
    )
    os.close(writing)
    assert (process.returncode, process.stderr) == (0, b"")


def test_a_terminal_has_colours_and_cuts_long_cells(lake: Path) -> None:
    code, screen = at_terminal(["files", "shop.orders", "--columns", "file_path,record_count"], lake)
    assert code == 0
    assert "\x1b[1mfile_path" in screen
    assert "…" in screen
    assert max(len(line) for line in screen.splitlines()) < 100


def test_help_at_a_terminal_has_panels(tmp_path: Path) -> None:
    code, screen = at_terminal(["--help"], tmp_path)
    assert code == 0
    assert "╭─ Look " in re.sub(r"\x1b\[[0-9;]*m", "", screen)


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 4)])
def test_a_person_is_asked(tmp_path: Path, typed: str, code: int) -> None:
    (tmp_path / "icefloe.toml").write_text('[catalog.old]\ntype = "memory"\n')
    ended, screen = at_terminal(["catalog", "remove", "old"], tmp_path, typed)
    assert ended == code, screen
    assert "Remove catalog old from icefloe.toml? [y/N]" in screen
    assert ("old" in (tmp_path / "icefloe.toml").read_text()) is (code == 4)


def processor_seconds(code: str) -> float:
    """What a new Python takes for some code."""
    code = f"import sys, time; {code}; print(time.process_time(), file=sys.stderr)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    return float(done.stderr)


def test_help_takes_little() -> None:
    """Less than 2.5 times what some modules of the standard library take, by what takes least of five; NumPy alone would take more."""
    ours, theirs = [], []
    for _ in range(5):
        ours.append(processor_seconds("from icefloe.cli.main import main; main(['--help'])"))
        theirs.append(
            processor_seconds("import argparse, dataclasses, importlib.metadata, json, logging, pathlib, typing")
        )
        if min(ours) <= 2 * min(theirs):
            break
    assert min(ours) <= 2.5 * min(theirs), f"`icefloe --help` takes {min(ours):.3f} s of processor time"


def test_names_are_completed_in_a_shell(lake: Path) -> None:
    settings = {"_ICEFLOE_COMPLETE": "complete_bash", "COMP_WORDS": "icefloe describe shop.o", "COMP_CWORD": "2"}
    done = subprocess.run(
        COMMAND, capture_output=True, text=True, cwd=lake, env={**environment(), **settings}, check=True
    )
    assert done.stdout.split() == ["shop.orders"]


def test_a_bar_is_shown_where_a_person_looks(lake: Path) -> None:
    code = (
        "import icefloe.progress as p, sys; p._SECONDS_BEFORE = 0; from icefloe.cli.main import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code]
    ended, screen = at_terminal(["verify", "shop.orders"], lake, command=command)
    assert ended == 0
    assert re.search(r"\r\w+ +\[#+\] \d+/\d+", screen), screen
    done = subprocess.run(
        [*command, "verify", "shop.orders"], capture_output=True, text=True, cwd=lake, env=environment(), check=True
    )
    assert "[##" not in done.stderr


@pytest.mark.slow
def test_statements_at_a_prompt(lake: Path) -> None:
    typed = "SELECT count(*) AS n\nFROM shop.orders;\nSELECT nope;\nSELECT 40 + 2 AS x;\nexit;\n"
    ended, screen = at_terminal(["sql"], lake, typed)
    assert ended == 0, screen
    assert "end statements with a semicolon" in screen
    assert "icefloe> " in screen
    assert "      -> " in screen
    assert "Error: " in screen
    assert "\n19\n" in screen
    assert "\n42\n" in screen


class Fault:
    """A server whose answers to commits are lost, or that is gone after one, or refuses everybody."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.status = 0
        self.is_gone = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_commit = scope["type"] == "http" and scope["method"] == "POST" and "/tables/" in scope["path"]
        if self.status and (is_commit or self.is_gone):
            self.is_gone = True
            body = json.dumps({"error": {"message": "gone", "type": "Fault", "code": self.status}}).encode()
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": self.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await self.app(scope, receive, send)


@contextmanager
def faulty(tmp_path: Path) -> Iterator[tuple[Fault, str]]:
    catalog = icefloe.load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/f.db", warehouse=str(tmp_path / "f"))
    catalog.create_namespace("shop")
    checks = {"commit.status-check.num-retries": "1", "commit.status-check.min-wait-ms": "1"}
    catalog.create_table("shop.t", "id long", properties=checks)
    fault = Fault(create_app({"lake": catalog}))
    with LoopbackServer(fault, lifespan="on") as server:
        yield fault, server.url
    catalog.close()


def test_an_outcome_that_nobody_knows_is_code_6(tmp_path: Path) -> None:
    with faulty(tmp_path) as (fault, url):
        options = ["--uri", url, "-p", "rest.client.max-retries=0", "-o", "json"]
        line = [*options, "properties", "set", "table", "shop.t", "a", "b"]
        fault.status = 500
        done = subprocess.run(
            [*COMMAND, *line], capture_output=True, text=True, cwd=tmp_path, env=environment(), check=False
        )
        assert (done.returncode, done.stdout) == (6, ""), done.stderr
        error = json.loads(done.stderr)["error"]
        assert (error["code"], error["retryable"]) == (6, False)
        assert "may or may not have been committed" in error["hint"]
        for status, code in ((502, 6), (403, 4), (401, 4)):
            fault.status, fault.is_gone = status, False
            assert main(line) == code


def test_codes(lake: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("diff", "shop.orders@v1", "shop.orders", code=1)
    run("describe", "shop.none", code=3)
    run("expire-snapshots", "shop.orders", "--older-than", "0s", code=4)
    run("-c", "other", "--uri", "http://127.0.0.1:1", "-p", "rest.client.max-retries=0", "list", code=7)
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 1 AS x"))
    assert run("query", "-", "-o", "csv").out == "x\n1\n"
