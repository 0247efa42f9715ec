"""A disk that is really full: a file system of a few bytes, which only a child process sees; or files that may not grow."""

import functools
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MOUNT = 'size=$1; folder=$2; shift 2; mount -t tmpfs -o "size=$size" tmpfs "$folder" && exec "$@"'


@functools.cache
def why_no_small_disk() -> str | None:
    """Why no process may mount a disk of its own here; None if one may."""
    if shutil.which("unshare") is None:
        return "there is no `unshare`, which makes a disk that only one process sees"
    tried = _run("64k", Path("/tmp"), "true", timeout=60)  # only as a place to mount on, in a child
    return None if tried.returncode == 0 else f"a process may not mount a disk of its own here: {tried.stderr.strip()}"


def run_on_small_disk(module: str, folder: Path, size: str, *arguments: str, timeout: int = 250) -> list[str]:
    """Run a module with a folder that is a disk of this size; the lines that it prints."""
    folder.mkdir()
    done = _run(size, folder, sys.executable, "-m", module, str(folder), *arguments, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    return done.stdout.splitlines()


def _run(size: str, folder: Path, *command: str, timeout: int) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, "sh", size, str(folder), *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@contextmanager
def no_file_beyond(size: int, processes: Iterable[int]) -> Iterator[None]:
    """Let the system refuse to make any file of these processes larger, as a quota does."""
    kind = resource.RLIMIT_FSIZE
    before = {each: resource.prlimit(each, kind) for each in processes}
    try:
        for each, (_, hard) in before.items():
            resource.prlimit(each, kind, (size, hard))
        yield
    finally:
        for each, limits in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(each, kind, limits)


def descendants() -> set[int]:
    """All processes that this one started, and those that they did."""
    parents: dict[int, int] = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # The name of the program, in brackets, may hold anything.
            parents[int(each.parent.name)] = int(each.read_text().rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}
