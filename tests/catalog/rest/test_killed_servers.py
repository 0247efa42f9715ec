"""Clients in processes of their own, and servers that are killed under them: what each was told of its commits is true."""

import multiprocessing
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from icefloe import errors
from icefloe.catalog import load_catalog
from tests.catalog.databases import PostgresServer
from tests.catalog.tables import is_linear
from tests.server.processes import ServerProcess, server_processes
from tests.server.test_processes import configuration

PATIENT = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "20",
    "commit.retry.max-wait-ms": "500",
    "commit.status-check.min-wait-ms": "100",
    "commit.status-check.max-wait-ms": "2000",
}


@dataclass
class Told:
    """What a writer was told of its rows, by their ids."""

    done: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    refusals: int = 0


def write(number: int, urls: Sequence[str], commits: int, told: "multiprocessing.Queue[Told]") -> None:
    """Append rows one by one, through any of the servers, until each is done, or nobody knows."""
    known = Told()
    catalogs = [load_catalog("lake", type="rest", uri=url) for url in urls]
    for row in range(number * 1000, number * 1000 + commits):
        while row not in (*known.done, *known.unknown):
            try:
                random.choice(catalogs).load_table("shop.t").append(pa.table({"id": [row]}))
            except errors.CommitStateUnknown:
                known.unknown.append(row)
            except errors.IcefloeError:
                # Nothing happened, as when a server is not there yet: so the row is not there twice if it is tried again.
                known.refusals += 1
                time.sleep(0.2)
            else:
                known.done.append(row)
    for catalog in catalogs:
        catalog.close()
    told.put(known)


def kill_some(servers: Sequence[ServerProcess], kills: int) -> None:
    for _ in range(kills):
        time.sleep(random.uniform(0.5, 2.0))
        victim = random.choice(servers)
        assert victim.kill() == -signal.SIGKILL
        victim.start()


def run(postgres: PostgresServer, folder: Path, writers: int, commits: int, kills: int) -> None:
    config = configuration(folder, postgres.new_database(), "[server]\ncommit-attempts = 50\n")
    with server_processes(folder, "--config", config, count=2) as servers:
        with load_catalog("lake", type="rest", uri=servers[0].url) as catalog:
            catalog.create_namespace("shop")
            catalog.create_table("shop.t", "id bigint", properties=PATIENT)
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        urls = [server.url for server in servers]
        processes = [
            context.Process(target=write, args=(number, urls, commits, answers), daemon=True)
            for number in range(writers)
        ]
        for process in processes:
            process.start()
        kill_some(servers, kills)
        all_told = [answers.get(timeout=600) for _ in processes]
        for process in processes:
            process.join(60)
        done = {row for each in all_told for row in each.done}
        unknown = {row for each in all_told for row in each.unknown}
        with load_catalog("lake", type="rest", uri=servers[1].url) as catalog:
            table = catalog.load_table("shop.t")
            rows = Counter(table.scan().to_arrow().column("id").to_pylist())
            assert table.verify().clean
            assert is_linear(table)
    assert set(rows.values()) <= {1}, "a row was appended twice"
    assert done <= rows.keys(), "a row is lost"
    assert rows.keys() <= done | unknown, "a row is there that was refused"
    assert len(done) + len(unknown) == writers * commits
    assert len(unknown) <= kills * writers, "more is unknown than was under way"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_eight_clients_of_two_servers_that_are_killed(postgres: PostgresServer, tmp_path: Path) -> None:
    run(postgres, tmp_path, writers=8, commits=50, kills=8)
