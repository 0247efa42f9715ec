"""A PostgreSQL of its own on a free port of loopback, which Java's driver needs."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg


@contextmanager
def running_postgres() -> Iterator[int]:
    """The port; the user is `postgres`, without a password. Commits are not flushed, for both sides alike."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        raise SystemExit("this benchmark needs PostgreSQL; on Debian: apt-get install postgresql")
    user = "postgres" if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="icefloe-bench-pg-"))
    if user is not None:
        shutil.chown(folder, user)
    data, port = folder / "data", free_port()
    start = [str(programs[-1] / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(start, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    settings = (f"port={port}", f"unix_socket_directories={folder}", "fsync=off", "max_connections=200")
    options = [part for setting in settings for part in ("-c", setting)]
    command = [str(programs[-1] / "postgres"), "-D", str(data), "-h", "127.0.0.1", *options]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, user=user, cwd=folder, stdout=log, stderr=log)
    try:
        _wait(port)
        yield port
    finally:
        server.send_signal(2)
        server.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
