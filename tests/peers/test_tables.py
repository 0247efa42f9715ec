"""Tables that we change in every way are read by PyIceberg and DuckDB with the same rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.formats.equality_deletes import EqualityDeleteWriter
from icefloe.manifests import FileContent
from icefloe.schema import LongType, StringType
from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.peers.tables import data_file
from tests.peers.test_files_floor import PEER_VERSIONS, PEERS, Peer, duckdb_rows

MODES = ("copy-on-write", "merge-on-read")
peers = pytest.mark.parametrize("peer", PEERS)
versions = pytest.mark.parametrize("version", PEER_VERSIONS)
modes = pytest.mark.parametrize("mode", MODES)


def create(folder: Path, version: int, mode: str, **options: Any) -> Table:
    catalog = icefloe.load_catalog("peers", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    properties = {f"write.{change}.mode": mode for change in ("delete", "update", "merge")}
    return catalog.create_table(
        "db.t",
        "id long not null, name string, n int",
        properties={"format-version": str(version), **properties},
        **options,
    )


def rows(*ids: int, name: str = "x") -> Any:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [name] * len(ids), "n": pa.array(ids, pa.int32())})


def same(peer: Peer, table: Table) -> list[dict[str, Any]]:
    """What the peer reads, which must be what we read."""
    theirs = sorted(peer(str(table.metadata_location)), key=lambda row: row["id"])
    ours = table.scan().to_arrow().sort_by("id").to_pylist()
    assert theirs == ours
    return theirs


@peers
@versions
@modes
def test_changed_rows(peer: Peer, version: int, mode: str, tmp_path: Path) -> None:
    table = create(tmp_path, version, mode, partition_spec=["bucket(2, id)"], sort_order=["name"])
    table.append(rows(*range(20)))
    table.delete("id in (3, 4) or id > 17")
    assert [row["id"] for row in same(peer, table)] == [0, 1, 2, *range(5, 18)]
    table.upsert(rows(1, 2, 30, name="new"), join_cols=["id"])
    table.delete("id = 5")
    table.overwrite(rows(40), "id >= 10 and id < 15")
    found = {row["id"]: row["name"] for row in same(peer, table)}
    assert {i for i, name in found.items() if name == "new"} == {1, 2, 30}
    assert sorted(found) == [0, 1, 2, *range(6, 10), 15, 16, 17, 30, 40]


@peers
@versions
def test_evolved_tables(peer: Peer, version: int, tmp_path: Path) -> None:
    table = create(tmp_path, version, MODES[0])
    table.append(rows(1, 2))
    with table.update_schema() as update:
        update.rename_column("name", "label")
        update.add_column("note", StringType())
        update.update_column("n", LongType())
        update.move_first("note")
    with table.update_spec() as spec:
        spec.add_field("label")
    table.append(pa.table({"id": [3], "label": ["y"], "note": ["new"], "n": [2**40]}))
    found = same(peer, table)
    assert [(row["id"], row["label"], row["note"], row["n"]) for row in found] == [
        (1, "x", None, 1),
        (2, "x", None, 2),
        (3, "y", "new", 2**40),
    ]


@pytest.mark.parametrize("version", [version for version in PEER_VERSIONS if allows(version, Feature.DELETE_FILES)])
def test_equality_deletes_are_read_by_duckdb(version: int, tmp_path: Path) -> None:
    """PyIceberg does not read equality deletes yet."""
    table = create(tmp_path, version, MODES[1])
    table.append(rows(1, 2, 3))
    place = f"{table.location()}/data/deletes.parquet"
    with table.storage.open_output(place) as sink:
        writer = EqualityDeleteWriter(sink, table.schema(), [1], version)
        writer.write(pa.table({"id": pa.array([2, 9], pa.int64())}))
        done = writer.close()
    delete = data_file(place, "parquet", done, content=FileContent.EQUALITY_DELETES, equality_ids=(1,))
    table.update_snapshot().row_delta(None, deletes=[delete])
    table.append(rows(2, name="later"))
    assert [row["id"] for row in same(duckdb_rows, table)] == [1, 2, 3]
