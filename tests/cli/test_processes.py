"""The command as a process of its own: pipes, terminals, exit codes, and what it imports."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "icefloe"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT)}


def at_terminal(arguments: list[str], folder: Path, typed: str = "") -> tuple[int, str]:
    """Run a command line at a terminal, with what a person types; the exit code and all that is on the screen."""
    primary, secondary = pty.openpty()
    settings = {**environment(), "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
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
