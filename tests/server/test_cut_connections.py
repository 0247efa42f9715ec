"""Appends of real rows over connections that break anywhere: none is lost, none comes twice, and every outcome is true."""

import json
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe.catalog import load_catalog
from icefloe.errors import CommitFailed, CommitStateUnknown, ServiceUnavailableError
from icefloe.server.settings import ServerSettings
from tests.catalog.databases import PostgresServer
from tests.server.cutting_proxy import CUTS, CuttingProxy
from tests.server.processes import PROJECT, server_processes
from tests.server.running import Maker, serving

PATIENT = {"commit.retry.num-retries": "200", "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "200"}


def append_all(url: str, writer: int, rows: int) -> tuple[list[int], list[int]]:
    """Append one row after the other: those that were told to be committed, and those that nobody knows of."""
    done, unknown = [], []
    with load_catalog("there", type="rest", uri=url, warehouse="lake") as catalog:
        table = catalog.load_table("ns.t")
        for step in range(rows):
            number = writer * 1000 + step
            try:
                table.append(pa.table({"id": pa.array([number], pa.int64())}))
                done.append(number)
            except (CommitStateUnknown, ServiceUnavailableError):
                unknown.append(number)
            except CommitFailed:
                pass
            table = catalog.load_table("ns.t")
    return done, unknown


def check(ids: list[int], done: list[int], unknown: list[int]) -> None:
    assert len(ids) == len(set(ids)), "a row came twice"
    assert set(done) <= set(ids), "a row is lost"
    assert set(ids) <= {*done, *unknown}, "a row is there that was told to be refused"


@pytest.mark.parametrize("make_catalog", ["postgres"], indirect=True)
def test_connections_that_break_anywhere(make_catalog: Maker) -> None:
    catalog, outcomes = make_catalog(), list[tuple[list[int], list[int]]]()
    with serving({"lake": catalog}, ServerSettings(commit_attempts=1)) as server:
        port = int(server.url.rpartition(":")[2])
        server.done("POST", "namespaces", {"namespace": ["ns"]})
        catalog.create_table("ns.t", "id bigint", properties=PATIENT)
        with CuttingProxy(lambda: [port], 0.15, seed=7) as proxy:
            threads = [
                threading.Thread(target=lambda writer=writer: outcomes.append(append_all(proxy.url, writer, 4)))
                for writer in range(3)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(120)
        assert len(outcomes) == 3
        assert len(proxy.cuts) > 3, "hardly a connection was cut"
        ids = catalog.load_table("ns.t").scan().to_arrow()["id"].to_pylist()
    check(
        ids, [number for done, _ in outcomes for number in done], [number for _, open_ in outcomes for number in open_]
    )
    assert len(ids) > 4


PROGRAM = """
import json, sys
from tests.server.test_cut_connections import append_all
print(json.dumps(append_all(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
"""


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_eight_processes_two_servers_kills_and_cuts(postgres: PostgresServer, tmp_path: Path) -> None:
    uri = postgres.new_database()
    config = tmp_path / "server.toml"
    config.write_text(f'[catalog.lake]\ntype = "sql"\nuri = "{uri}"\nwarehouse = "{tmp_path}/warehouse"\n')
    with load_catalog("lake", type="sql", uri=uri, warehouse=str(tmp_path / "warehouse")) as catalog:
        catalog.create_namespace("ns")
        catalog.create_table("ns.t", "id bigint", properties=PATIENT)
        with (
            server_processes(tmp_path, "--config", str(config), count=2) as servers,
            CuttingProxy(lambda: [server.port for server in servers], 0.05, seed=11) as proxy,
        ):
            command = [sys.executable, "-c", PROGRAM, proxy.url]
            writers = [
                subprocess.Popen([*command, str(number), "50"], stdout=subprocess.PIPE, cwd=PROJECT)
                for number in range(8)
            ]
            kills = 0
            while any(writer.poll() is None for writer in writers):
                time.sleep(random.uniform(2, 8))
                victim = random.choice(servers)
                victim.kill()
                victim.start()
                kills += 1
            outcomes = [json.loads(writer.communicate()[0]) for writer in writers]
            assert set(proxy.cuts) == set(CUTS)
            assert kills > 3
        ids = catalog.load_table("ns.t").scan().to_arrow()["id"].to_pylist()
    check(
        ids, [number for done, _ in outcomes for number in done], [number for _, open_ in outcomes for number in open_]
    )
    assert len(ids) > 350
