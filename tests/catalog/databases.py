"""A real PostgreSQL for tests: the server that is installed, started once on a Unix socket in a folder of its own.

Debian's package has it: `apt-get install postgresql`. It refuses to run as root, so that root starts it as `postgres`.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest


@dataclass(frozen=True)
class PostgresServer:
    """A running server; every test gets a database of its own, or shares one."""

    folder: Path

    def uri(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The URI of a new, empty database."""
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(host=str(self.folder), user="postgres", dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.uri(name)


def _program(name: str) -> str | None:
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: path.parent.parent.name)
    return str(versions[-1]) if versions else shutil.which(name)


def _user() -> str | None:
    """Who runs the server; None for whoever runs the tests."""
    if os.getuid() != 0:
        return None
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres to run it as")
    return "postgres"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a process."""
    initdb, server_program = _program("initdb"), _program("postgres")
    if initdb is None or server_program is None:
        pytest.skip("PostgreSQL is not installed; on Debian: apt-get install postgresql")
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="icefloe-pg-", dir="/tmp"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"
        start = [initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(start, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(folder),
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "max_connections": "100",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [server_program, "-D", str(data), *options], user=user, cwd=folder, stdout=log, stderr=log
            )
        try:
            _wait(server, folder)
            yield PostgresServer(folder)
        finally:
            # SIGINT is its fast shutdown: it does not wait for clients.
            server.send_signal(2)
            server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: "subprocess.Popen[bytes]", folder: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            pytest.fail(f"PostgreSQL did not start: {(folder / 'log').read_text()[-2000:]}")
        try:
            psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("PostgreSQL did not answer in 15 seconds")
