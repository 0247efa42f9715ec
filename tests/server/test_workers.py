"""One server in several processes: clients see one, counts are of all, and none stays when it is stopped or its parent is killed."""

import os
import re
import signal
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx2 as httpx
import pytest

from icefloe.__main__ import main
from icefloe.catalog import load_catalog
from icefloe.server.workers import default_number
from tests.catalog.databases import PostgresServer
from tests.server.processes import ServerProcess, server_processes


def children(server: ServerProcess) -> set[int]:
    """The processes that serve, and not the one of Python's own that keeps track of them."""
    assert server.process is not None
    found = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    return {int(each) for each in found if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()}


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_gone(process: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True


def connections(process: int, port: int) -> int:
    """How many clients a process has at a port."""
    lines = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    ours = {f"socket:[{line[9]}]" for line in lines if line[1].endswith(f":{port:04X}") and line[3] == "01"}
    return sum(os.readlink(file) in ours for file in Path(f"/proc/{process}/fd").iterdir() if file.is_symlink())


def counted(server: ServerProcess) -> float:
    """How many tables were loaded, of whatever process."""
    text = httpx.get(f"{server.url}/metrics", trust_env=False, timeout=30).text
    counts = re.findall(r'icefloe_requests_total\{operation="GET [^"]*/tables/\{table\}",status="200"\} (\S+)', text)
    return sum(map(float, counts))


def test_several_processes_are_one_server(tmp_path: Path) -> None:
    with server_processes(tmp_path, "--workers", "2") as [server]:
        wait_until(lambda: len(children(server)) == 2)
        processes = children(server)
        with load_catalog("there", type="rest", uri=server.url) as catalog:
            catalog.create_namespace("ns")
            catalog.create_table("ns.t", "id bigint")
        # A connection belongs to one of the processes, so each of these may come to another.
        for _ in range(10):
            url = f"{server.url}/v1/icefloe/namespaces/ns/tables/t"
            assert httpx.get(url, trust_env=False, timeout=30).status_code == 200
        # Each process tells of what it counted from time to time.
        wait_until(lambda: counted(server) == 10)
        assert counted(server) == 10
        with ExitStack() as stack:
            port = httpx.URL(server.url).port
            assert port is not None
            for _ in range(32):
                stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            # None of them has all: that comes by chance once in 2**31 times.
            wait_until(lambda: sum(connections(process, port) for process in processes) == 32)
            assert all(0 < connections(process, port) < 32 for process in processes)
        assert server.kill(signal.SIGTERM) == 0
        wait_until(lambda: all(map(is_gone, processes)))


@pytest.mark.slow
def test_a_process_that_is_killed_is_replaced_and_none_outlives_the_parent(tmp_path: Path) -> None:
    with server_processes(tmp_path, "--workers", "2") as [server]:
        wait_until(lambda: len(children(server)) == 2)
        victim = min(children(server))
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: len(children(server) - {victim}) == 2)
        for _ in range(10):
            assert httpx.get(f"{server.url}/v1/config", trust_env=False, timeout=60).status_code == 200
        processes = children(server)
        server.kill()
        wait_until(lambda: all(map(is_gone, processes)))


def test_what_several_processes_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "server.toml"
    config.write_text(f'[catalog.lake]\ntype = "memory"\nwarehouse = "{tmp_path}"\n')
    assert main(["serve", "--config", str(config), "--workers", "2"]) == 2
    assert "in memory, which several workers do not share" in capsys.readouterr().err
    assert main(["serve", "--config", str(config), "--workers", "-1"]) == 2
    assert "workers is -1" in capsys.readouterr().err


def test_so_many_processes_as_cores_serve_a_database_server(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(3)))
    warehouse = tmp_path.as_uri()
    with (
        load_catalog("embedded", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=warehouse) as embedded,
        load_catalog("shared", type="sql", uri=postgres.new_database(), warehouse=warehouse) as shared,
    ):
        assert default_number({"shared": shared}) == 3
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
        assert default_number({"shared": shared}) == 4
        assert default_number({"embedded": embedded}) == 1
        assert default_number({"shared": shared, "embedded": embedded}) == 1
