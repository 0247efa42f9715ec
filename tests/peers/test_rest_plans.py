"""Scan planning over REST between Java Iceberg and us: Java's client on our server, and ours on Java's."""

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.catalog.rest.planner import RestPlanner
from icefloe.errors import InvalidMetadataError
from icefloe.table import Table
from tests.peers.java import JavaPeer
from tests.peers.java_rest.installation import find_java_rest
from tests.peers.java_rest.server import java_rest_server, sqlite_properties
from tests.server.running import Client, serving

pytestmark = pytest.mark.java

SCHEMA = (
    "id BIGINT, region STRING, bytes BINARY, day DATE, at TIMESTAMP, zoned TIMESTAMPTZ, price DECIMAL(9, 2), ratio FLOAT,"
    " score DOUBLE, small INT, flag BOOLEAN"
)
TABLES = [
    (1, ["region"]),
    (2, ["days(at)", "bucket(4, id)"]),
    (3, ["truncate(1, bytes)", "day"]),
    pytest.param(2, ["score"], marks=pytest.mark.slow),
    pytest.param(3, [], marks=pytest.mark.slow),
]
"""Versions that Java reads and writes as a whole, and partitions."""
FILTERS = (
    "",
    "id > 12",
    "id in (1, 3, 14, 15)",
    "region = 'eu' and id < 9",
    "region like 'u%'",
    "day >= DATE '2020-01-15'",
    "at = TIMESTAMP '2020-01-01 00:00:07'",
    "zoned < TIMESTAMP '2020-01-01 00:00:05+00:00'",
    "price in (1, 2.50)",
    "ratio < 0.35",
    "score >= 1.5",
    "not (small = 5 or flag)",
    "bytes = X'05'",
    "region is null",
)


def fill(table: Table, *deletes: str) -> None:
    """Two commits of rows, and deletes."""
    start = dt.datetime(2020, 1, 1)
    for first in (0, 10):
        ids = list(range(first, first + 10))
        times = [start + dt.timedelta(seconds=number) for number in ids]
        columns = {
            "id": ids,
            "region": ["eu", "us", None, "eu", "us"] * 2,
            "bytes": [bytes([number]) for number in ids],
            "day": [(start + dt.timedelta(days=number)).date() for number in ids],
            "at": pa.array(times, pa.timestamp("us")),
            "zoned": pa.array(times, pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(number) / 2 for number in ids], pa.decimal128(9, 2)),
            "ratio": pa.array([number / 10 for number in ids], pa.float32()),
            "score": [number / 10 for number in ids],
            "small": pa.array([number % 7 for number in ids], pa.int32()),
            "flag": [number % 3 == 0 for number in ids],
        }
        table.append(pa.table(columns))
    for text in deletes:
        table.delete(text)


def new_table(catalog: Catalog, version: int, spec: list[str], *deletes: str) -> Table:
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    name = f"db.t{uuid.uuid4().hex}"
    table = catalog.create_table(name, SCHEMA, partition_spec=spec, properties=properties)
    fill(table, *deletes)
    return table


def numbers(rows: Any) -> list[int]:
    return sorted(row["id"] for row in rows)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("plans")
    lake = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/lake.db", warehouse=str(folder / "warehouse"))
    lake.create_namespace("db")
    with serving({"lake": lake}) as client:
        yield client


def plans_made(server: Client) -> float:
    text = server.http.get(f"{server.url}/metrics").text
    made = [line for line in text.splitlines() if line.startswith("icefloe_requests_total") and '/plan"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in made if "POST" in line)


@pytest.mark.parametrize(("version", "spec"), TABLES)
def test_java_reads_what_our_server_planned(java: JavaPeer, server: Client, version: int, spec: list[str]) -> None:
    name = f"planned_{uuid.uuid4().hex}"
    conf = {
        f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{name}.type": "rest",
        f"spark.sql.catalog.{name}.uri": server.url,
        f"spark.sql.catalog.{name}.scan-planning-mode": "server",
        f"spark.sql.catalog.{name}.cache-enabled": "false",
    }
    with closing(load_catalog("ours", type="rest", uri=server.url)) as catalog:
        # Both vectors of v3 are in one file.
        table = new_table(catalog, version, spec, "id in (3, 14)")
        before = plans_made(server)
        parts = [
            f"SELECT {index} AS which, id FROM {name}.{'.'.join(table.name())} {f'WHERE {text}' if text else ''}"
            for index, text in enumerate(text.replace("+00:00'", "Z'") for text in FILTERS)
        ]
        rows = java.rows(" UNION ALL ".join(parts), **conf)
        assert plans_made(server) >= before + len(FILTERS) / 2
        for index, text in enumerate(FILTERS):
            found = numbers(row for row in rows if row["which"] == index)
            assert found == numbers(table.scan(text).to_arrow().to_pylist()), text


@pytest.fixture(scope="module")
def javas_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    installation = find_java_rest()
    if isinstance(installation, str):
        pytest.skip(installation)
    with java_rest_server(installation, sqlite_properties(tmp_path_factory.mktemp("java"))) as uri:
        with closing(load_catalog("java", type="rest", uri=uri)) as catalog:
            catalog.create_namespace("db")
        yield uri


@pytest.fixture
def on_java(javas_server: str) -> Iterator[Catalog]:
    with closing(load_catalog("java", type="rest", uri=javas_server, **{"scan-planning-mode": "server"})) as catalog:
        yield catalog


@pytest.mark.parametrize(("version", "spec"), TABLES)
def test_we_read_what_javas_server_planned(on_java: Catalog, version: int, spec: list[str]) -> None:
    table = new_table(on_java, version, spec, "id = 3", "id = 14")
    for text in FILTERS:
        remote = table.scan(text)
        assert isinstance(remote.planner, RestPlanner)
        local = replace(remote, planner=None)
        assert numbers(remote.to_arrow().to_pylist()) == numbers(local.to_arrow().to_pylist()), text
        assert remote.report is None


def test_a_server_that_confuses_vectors_is_found_out(on_java: Catalog) -> None:
    # Until 1.12 Java took all vectors of one Puffin file for one.
    table = new_table(on_java, 3, [], "id in (3, 14)")
    with pytest.raises(
        InvalidMetadataError, match=r"the server gives the deletion vector of .* to .* set scan-planning"
    ):
        table.scan().to_arrow()
