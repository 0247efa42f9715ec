"""What the tests of catalogs share: catalogs of every kind, and small data files to commit."""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog, load_catalog
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.manifests import DataFile, read_manifest, read_manifest_list
from icefloe.metadata import resolve_location
from icefloe.schema import schema_to_arrow
from icefloe.server.app import create_app
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.catalog.databases import PostgresServer
from tests.catalog.rest.loopback import LoopbackServer
from tests.peers.tables import data_file

SCHEMA = "id long, name string"

PATIENT = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "20",
    "commit.retry.max-wait-ms": "1000",
}
"""Properties of a table that many write to at once."""

HOME = "tests.home"
"""A property by which tests know where tables go, although a REST catalog does not."""

KINDS = ("memory", "sqlite", "postgres", "hadoop", "rest")
"""Every kind of catalog; behind the REST server is SQLite."""

KINDS_AND_VERSIONS = [
    pytest.param(kind, version, id=f"{kind}-v{version}")
    for kind in KINDS
    for version in ALL_VERSIONS
    if kind != "hadoop" or allows(version, Feature.FILE_SYSTEM_TABLES)
]
"""Every kind of catalog with every format version that it takes."""

every_kind = pytest.mark.parametrize("kind", KINDS)
kinds_with_pointers = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "hadoop"])
every_version = pytest.mark.parametrize(("kind", "version"), KINDS_AND_VERSIONS)


@dataclass
class Maker:
    """Makes catalogs of one kind, all over the same names and files."""

    kind: str
    properties: dict[str, str]
    name: str
    made: list[Catalog]
    server: ExitStack = field(default_factory=ExitStack)
    """What runs behind the catalogs."""
    served: Catalog | None = None
    """What is behind the server."""

    def __call__(self, **more: object) -> Catalog:
        catalog = load_catalog(self.name, **{**self.properties, **more})
        self.made.append(catalog)
        return catalog


def maker(kind: str, folder: Path, request: pytest.FixtureRequest) -> Maker:
    """A maker whose catalogs are empty at first."""
    warehouse = str(folder / "warehouse")
    match kind:
        case "memory":
            properties = {"type": "memory"}
        case "sqlite":
            properties = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": warehouse}
        case "rest":
            return rest_maker(folder)
        case "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            properties = {"type": "sql", "uri": server.uri(), "warehouse": warehouse}
        case _:
            properties = {"type": "hadoop", "warehouse": warehouse}
    # A name of its own keeps a test apart from all others in the one database of the server.
    return Maker(kind, properties, f"lake_{uuid.uuid4().hex}", [])


def rest_maker(folder: Path) -> Maker:
    """The same for catalogs behind a server of ours, on the loopback."""
    served = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "warehouse"))
    server = ExitStack()
    url = server.enter_context(LoopbackServer(create_app({"lake": served}), lifespan="on")).url
    server.callback(served.close)
    return Maker("rest", {"type": "rest", "uri": url, HOME: str(served.warehouse)}, "lake", [], server, served)


@pytest.fixture
def make(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Maker]:
    """The maker for the kind that a test is parametrized with."""
    made = maker(kind, tmp_path, request)
    with made.server:
        yield made
        for catalog in made.made:
            catalog.close()


@pytest.fixture
def catalog(make: Maker) -> Catalog:
    """A catalog with the one namespace `shop`."""
    made = make()
    made.create_namespace("shop")
    return made


def write_rows(table: Table, *ids: int, name: str = "row") -> DataFile:
    """A data file of the table with these rows, which no snapshot holds yet."""
    rows = pa.table({"id": list(ids), "name": [name] * len(ids)}, schema=schema_to_arrow(table.schema()))
    path = f"{table.location()}/data/{uuid.uuid4()}.parquet"
    with table.storage.open_output(path) as sink:
        writer = ParquetFileWriter(sink, table.schema(), table.properties)
        writer.write(rows)
        done = writer.close()
    return data_file(path, "parquet", done)


def append(table: Table, *ids: int) -> DataFile:
    """Commit one data file with these rows."""
    file = write_rows(table, *ids)
    # Its name is made up here, so that no search for duplicates is needed.
    table.update_snapshot().fast_append([file], check_duplicates=False)
    return file


def live_files(table: Table, snapshot_id: int | None = None) -> list[str]:
    """The locations of all data files of a snapshot, once for each time that they are in it."""
    metadata = table.metadata
    snapshot = metadata.current_snapshot() if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        return []
    relative = metadata.location if allows(metadata.format_version, Feature.RELATIVE_PATHS) else None
    place = resolve_location(relative, snapshot.manifest_list or "") if relative else snapshot.manifest_list or ""
    found: list[str] = []
    for manifest in read_manifest_list(place, table.storage.read, table_location=relative):
        columns = read_manifest(manifest, table.storage.read, table_location=relative)
        found += columns.filter(columns.is_live).column("file_path").to_pylist()
    return found


def home_of(catalog: Catalog) -> str:
    """Where the tables of a catalog go."""
    return catalog.warehouse or catalog.properties[HOME]


def files_below(catalog: Catalog, location: str | None) -> set[str]:
    """Every file beneath a location."""
    assert location is not None
    return {info.location for info in catalog.storage.list_prefix(location)}


def is_linear(table: Table) -> bool:
    """Whether every snapshot but the first has the one before it as its parent."""
    snapshots: list[Any] = table.snapshots()
    parents = [None, *(each.snapshot_id for each in snapshots[:-1])]
    return [each.parent_snapshot_id for each in snapshots] == parents


def create(
    catalog: Catalog, name: str = "shop.orders", version: int = 2, properties: Mapping[str, object] | None = None
) -> Table:
    """A new table of the schema that all tests share."""
    return catalog.create_table(name, SCHEMA, properties={"format-version": version, **(properties or {})})
