"""Servers as operators run them: several on one database, killed at any moment, stopped gently, and set up by files."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from icefloe.__main__ import main
from icefloe.catalog import load_catalog
from tests.catalog.databases import PostgresServer
from tests.server.processes import PROJECT, ServerProcess, server_processes
from tests.server.running import SCHEMA, Client, commit

PATIENT = {"write.metadata.previous-versions-max": "10000"}


def configuration(folder: Path, uri: str, more: str = "") -> str:
    path = folder / "server.toml"
    path.write_text(f'[catalog.lake]\ntype = "sql"\nuri = "{uri}"\nwarehouse = "{folder}/warehouse"\n\n{more}')
    return str(path)


class Writer(threading.Thread):
    """Commits one change after the other to any of the servers, each with a key, until it is told how it ended."""

    def __init__(self, number: int, servers: list[ServerProcess], commits: int) -> None:
        super().__init__(daemon=True)
        self.number, self.servers, self.commits = number, servers, commits
        self.done: list[str] = []
        self.problems: list[str] = []
        self.retries = 0

    def run(self) -> None:
        with httpx.Client(trust_env=False, timeout=20) as http:
            for step in range(self.commits):
                self._commit(http, f"w{self.number}-{step}")

    def _commit(self, http: httpx.Client, name: str) -> None:
        key = {"Idempotency-Key": str(uuid.uuid4())}
        for _ in range(400):
            client = Client(http, random.choice(self.servers).url)
            try:
                answer = client.ask("POST", "namespaces/ns/tables/t", commit({name: "1"}), key)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code == 200:
                self.done.append(name)
                return
            if answer is not None and answer.status_code not in (409, 500, 503):
                self.problems.append(answer.text)
                return
            # A refusal is told again for the same key, so that another one is needed; an open outcome keeps its key.
            if answer is not None and answer.status_code == 409:
                key = {"Idempotency-Key": str(uuid.uuid4())}
            self.retries += 1
            time.sleep(0.05)
        self.problems.append(f"{name} was never answered")


def kill_and_write(postgres: PostgresServer, folder: Path, writers: int, commits: int, kills: int) -> None:
    config = configuration(folder, postgres.new_database(), "[server]\ncommit-attempts = 50\n")
    with (
        server_processes(folder, "--config", config, count=2) as servers,
        httpx.Client(trust_env=False, timeout=20) as http,
    ):
        client = Client(http, servers[0].url)
        client.done("POST", "namespaces", {"namespace": ["ns"]})
        client.done("POST", "namespaces/ns/tables", {"name": "t", "schema": SCHEMA, "properties": PATIENT})
        threads = [Writer(number, servers, commits) for number in range(writers)]
        for thread in threads:
            thread.start()
        for _ in range(kills):
            time.sleep(random.uniform(0.1, 1.0))
            victim = random.choice(servers)
            assert victim.kill() == -signal.SIGKILL
            victim.start()
        for thread in threads:
            thread.join(120)
        assert [problem for thread in threads for problem in thread.problems] == []
        client = Client(http, servers[1].url)
        metadata = client.done("GET", "namespaces/ns/tables/t")["metadata"]
    told = sorted(name for thread in threads for name in thread.done)
    assert len(told) == writers * commits
    # None is lost, and none was done twice.
    assert sorted(key for key in metadata["properties"] if key.startswith("w") and "." not in key) == told
    assert len(metadata["metadata-log"]) == writers * commits


def test_two_servers_one_of_which_is_killed(postgres: PostgresServer, tmp_path: Path) -> None:
    kill_and_write(postgres, tmp_path, writers=3, commits=6, kills=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_eight_writers_and_many_kills(postgres: PostgresServer, tmp_path: Path) -> None:
    kill_and_write(postgres, tmp_path, writers=8, commits=50, kills=8)


def test_the_command_with_nothing_set_up(tmp_path: Path) -> None:
    """It works at once, and stopped gently, it finishes what is under way, and ends by itself."""
    with server_processes(tmp_path) as [server], httpx.Client(trust_env=False, timeout=20) as http:
        with load_catalog("there", type="rest", uri=server.url) as catalog:
            catalog.create_namespace("ns")
            catalog.create_table("ns.t", "id bigint")
        assert (tmp_path / "icefloe-warehouse" / "catalog.db").exists()
        process = server.process
        assert process is not None

        def slow_body() -> Iterator[bytes]:
            yield b'{"namespace": '
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            yield b'["late"]}'

        answer = http.post(f"{server.url}/v1/icefloe/namespaces", content=slow_body())
        assert answer.status_code == 200
        assert process.wait(20) in (0, -signal.SIGTERM)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_everybody_is_let_in_on_this_machine_alone(
    host: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--host", host]) == 2
    assert "can be reached from other machines" in capsys.readouterr().err


def test_configurations_that_mean_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/lake.db"
    for more, problem in (
        ("[server]\nprot = 1\n", "has the key 'prot'"),
        ("[server]\nport = 'x'\n", "a whole number"),
        ("[server]\nread-only = 'maybe'\n", "true or false"),
        ("[server]\nbody-timeout = 'soon'\n", "PT30M"),
        ("[server]\ndefault-warehouse = 'sea'\n", "default-warehouse is 'sea'"),
        ("[access.sea]\nmode = 'none'\n", "for no catalog"),
        ("server = 1\n", "not a table"),
    ):
        path = configuration(tmp_path, uri)
        Path(path).write_text(
            more + "\n" + Path(path).read_text() if more.startswith("server") else Path(path).read_text() + more
        )
        assert main(["serve", "--config", path]) == 2, more
        assert problem in capsys.readouterr().err
    assert main(["serve", "--config", str(tmp_path / "absent.toml")]) == 2
    assert main(["serve", "--config", configuration(tmp_path, uri), "--warehouse", "x"]) == 2
    monkeypatch.setenv("ICEFLOE_SERVER__PORT", "many")
    assert main(["serve"]) == 2


def test_commands_are_listed() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "icefloe", "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )
    assert run.returncode == 0
    assert "serve" in run.stdout
