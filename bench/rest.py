"""Our REST server against Java Iceberg's, over the same tables in one PostgreSQL: loads, loads of large tables, and commits.

Both serve the same pointers and metadata files, in turn, on the same machine as the load generator: so CPU time a thousand
requests is shown beside requests a second. Java's server is the fixture of its project, not a product of somebody.
Answers are checked before they are counted.
"""

import json
import shutil
import tempfile
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from bench.metadata_json import example
from bench.report import Row
from bench.rest_load.load import Load, Request, Side, property_commit, run_in_turn
from bench.rest_load.postgres import running_postgres
from bench.rest_load.servers import CATALOG, Server, java_server, our_server
from bench.rest_load.writers import append_for
from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.metadata import TableMetadata, encode_metadata_file

TABLES = {"small": 20, "medium": 1_000, "full": 1_000}
SNAPSHOTS = 50
MANY_SNAPSHOTS = {"small": 500, "medium": 10_000, "full": 10_000}
SECONDS = {"small": 3, "medium": 5, "full": 20}
"""How long one turn is."""
TURNS = 3
COMMITTED = 200
WRITERS = 8
GOALS = {
    "load-table": 0.5,
    "load-table-304": 0.5,
    "load-large-table-refs": 0.2,
    "commit-properties": 1.0,
    "append": 1.0,
}


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a run happens."""

    home: Path
    seconds: int
    tables: int


def run(size: str) -> Iterator[Row]:
    """Every case."""
    home = Path(tempfile.mkdtemp(prefix="icefloe-bench-rest-"))
    try:
        with running_postgres() as port:
            database = _new_database(port)
            catalog = _fill(home, database, TABLES[size], MANY_SNAPSHOTS[size])
            with our_server(home, database) as ours, java_server(home, database) as java:
                yield from _cases(Setting(home, SECONDS[size], TABLES[size]), catalog, ours, java)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _cases(setting: Setting, catalog: Catalog, ours: Server, java: Server) -> Iterator[Row]:
    loads = [Request(f"/v1/namespaces/db/tables/t{number}") for number in range(setting.tables)]
    yield _row("load-table", *_compared(setting, _Asked(ours, loads), _Asked(java, loads)))
    known = [Request(each.path, etag=_etag(ours, each.path)) for each in loads]
    both = _compared(setting, _Asked(ours, known, "304"), _Asked(ours, loads))
    yield _row("load-table-304", *both, peer="ours without If-None-Match")
    large = [Request("/v1/namespaces/db/tables/large?snapshots=refs")]
    # One long turn: Java's server takes seconds for one answer.
    patient = replace(setting, seconds=TURNS * setting.seconds)
    yield _row("load-large-table-refs", *_compared(patient, _Asked(ours, large), _Asked(java, large), turns=1))
    count = min(COMMITTED, setting.tables)
    commits = [Request(each.path, "POST", property_commit("counter")) for each in loads[:count]]
    yield _row("commit-properties", *_compared(setting, _Asked(ours, commits), _Asked(java, commits)))
    yield _appends(setting, catalog, ours, java)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Requests by their paths without a prefix, and how a server is expected to answer all of them."""

    server: Server
    requests: list[Request]
    expected: str = "200"

    def side(self, folder: Path) -> Side:
        requests = [replace(each, path=self.server.path(each.path)) for each in self.requests]
        return Side.of(self.server.uri, self.server.pid, requests, folder)


def _compared(setting: Setting, mine: _Asked, theirs: _Asked, turns: int = TURNS) -> tuple[Load, Load]:
    sides = [each.side(setting.home) for each in (mine, theirs)]
    first, second = run_in_turn(sides, setting.seconds, turns)
    for asked, load in ((mine, first), (theirs, second)):
        # Two clients may commit to one table at the same moment, and one of them is told so.
        if set(load.statuses) - {asked.expected, "409"}:
            raise RuntimeError(f"{asked.server.name} answered {load.statuses}; {asked.expected} is expected")
    return first, second


def _row(case: str, mine: Load, theirs: Load, peer: str = "Java's fixture") -> Row:
    note = f"ours {mine}; {peer} {theirs}"
    return Row(case, mine.seconds_per_thousand, theirs.seconds_per_thousand, GOALS[case], note)


def _appends(setting: Setting, catalog: Catalog, ours: Server, java: Server) -> Row:
    """Appends by several processes to one table, each through our client: a table of its own for each server."""
    rates = []
    for server in (ours, java):
        identifier = ("db", f"appended_{server.name}")
        catalog.create_table(identifier, "id bigint")
        committed = append_for(server, identifier, WRITERS, setting.seconds)
        table = catalog.load_table(identifier)
        if not committed or table.scan().count() != committed:
            raise RuntimeError(f"{server.name}: {committed} rows were committed, {table.scan().count()} are there")
        rates.append(setting.seconds / committed)
    note = f"{WRITERS} writers on one table, seconds a commit; every row was found again"
    return Row("append", rates[0], rates[1], GOALS["append"], note)


def _new_database(port: int) -> str:
    name = f"bench{uuid.uuid4().hex}"
    with psycopg.connect(
        host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"127.0.0.1:{port}/{name}"


def _fill(home: Path, database: str, tables: int, snapshots: int) -> Catalog:
    """Tables of many snapshots that nobody wrote: only their metadata is served."""
    uri, warehouse = f"postgresql://postgres@{database}", (home / "warehouse").as_uri()
    catalog = load_catalog(CATALOG, type="sql", uri=uri, warehouse=warehouse)
    catalog.create_namespace("db")
    small, large = example(SNAPSHOTS), example(snapshots)
    for number in range(tables):
        _register(catalog, f"t{number}", small)
    _register(catalog, "large", large)
    return catalog


def _register(catalog: Catalog, name: str, metadata: TableMetadata) -> None:
    location = f"{catalog.warehouse}/db/{name}"
    file = f"{location}/metadata/00000-{uuid.uuid4()}.metadata.json"
    last_ms = metadata.snapshot_log[-1].timestamp_ms
    own = metadata.evolve(table_uuid=str(uuid.uuid4()), location=location, last_updated_ms=last_ms)
    catalog.storage.write(file, encode_metadata_file(own))
    catalog.register_table(("db", name), file)


def _etag(server: Server, path: str) -> str:
    with urllib.request.urlopen(server.uri + server.path(path)) as response:
        json.load(response)
        return str(response.headers["ETag"])
