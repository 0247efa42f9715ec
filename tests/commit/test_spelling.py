"""One file under several spellings of its path: it is added once, found by each of them, and never deleted while it is live."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe import load_catalog
from icefloe.commit import Planned
from icefloe.errors import InvalidInputError, ValidationError
from icefloe.formats.position_deletes import write_position_deletes
from icefloe.manifests import DataFile, FileContent, ManifestContent
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.commit.tables import data_file, entries, live_paths, new_table as memory_table

FUTURE = 32_503_680_000_000
VERSIONS_WITH_VECTORS = [each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)]
VERSIONS_WITH_POSITION_DELETES = [
    each
    for each in ALL_VERSIONS
    if allows(each, Feature.DELETE_FILES) and allows(each, Feature.NEW_POSITION_DELETE_FILES)
]


def new_table(folder: Path, version: int, name: str = "db.t", **properties: str) -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "w"))
    catalog.create_namespace_if_not_exists("db")
    return catalog.create_table(
        name,
        "id BIGINT",
        properties={"format-version": str(version), "write.delete.mode": "merge-on-read", **properties},
    )


def written(folder: Path) -> str:
    os.makedirs(folder / "in", exist_ok=True)
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), folder / "in" / "a.parquet")
    return f"{folder}/in/a.parquet"


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_file_is_added_once_however_it_is_spelled(version: int, tmp_path: Path) -> None:
    path = written(tmp_path)
    table = new_table(tmp_path, version)
    table.add_files([f"file:{path}"])
    for other in (path, f"file://{path}", f"{tmp_path}/in/../in/a.parquet", f"file://{tmp_path}//in/./a.parquet"):
        with pytest.raises(ValidationError, match="is already in the table"):
            table.add_files([other])
    assert table.inspect.files()["file_path"].to_pylist() == [f"file:{path}"]
    with pytest.raises(InvalidInputError, match="added 2 times"):
        new_table(tmp_path, version, "db.u").add_files([path, f"file:{path}"])


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_expiry_keeps_a_file_that_is_live_under_another_spelling(version: int, tmp_path: Path) -> None:
    path = written(tmp_path)
    table = new_table(tmp_path, version, **{"gc.foreign-files.enabled": "true"})
    table.add_files([f"file:{path}"])
    table.delete("id > 0")
    table.add_files([f"file://{tmp_path}/in//a.parquet"])
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert len(done.snapshot_ids) == 2
    assert done.deleted_data_files_count == 0
    assert table.scan().to_arrow()["id"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_expiry_keeps_a_file_whose_name_node_may_be_the_default_one(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    for path in ("hdfs:/t/a", "hdfs:/t/b"):
        table.update_snapshot().fast_append([DataFile(path, "parquet", 1, 10)])
    planned = Planned.on(table.metadata)
    table.update_snapshot().overwrite(planned, add=[DataFile("hdfs://nn/t/a", "parquet", 1, 10)], row_filter=True)
    table.update_snapshot().fast_append([DataFile("hdfs://nn/t/c", "parquet", 1, 10)])
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    # Neither is deleted, as they are not beneath the table; `a` is not even looked at.
    assert done.left_alone == ("hdfs:///t/b",)


@pytest.mark.parametrize(("scheme", "other"), [("s3", "s3a"), ("s3a", "s3n"), ("gs", "gcs"), ("file", "FILE")])
def test_schemes_of_one_store_are_one(scheme: str, other: str) -> None:
    table, _ = memory_table(2)
    table.update_snapshot().fast_append([data_file(f"{scheme}:///b/a" if scheme == "file" else f"{scheme}://b/a")])
    same = f"{other}:/b/a" if scheme == "file" else f"{other}://b/a"
    with pytest.raises(ValidationError, match="is already in the table"):
        table.update_snapshot().fast_append([data_file(same)])
    table.update_snapshot().fast_append([data_file(f"{same}//b")])
    table.update_snapshot().overwrite(planned=Planned.on(table.metadata), remove=[same])
    assert live_paths(table) == [f"{same}//b"]


@pytest.mark.parametrize("version", VERSIONS_WITH_VECTORS)
def test_a_vector_is_of_a_file_by_any_spelling_and_is_stored_under_the_one_of_the_table(
    version: int, tmp_path: Path
) -> None:
    table = new_table(tmp_path, version)
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    path = live_paths(table)[0]
    other = path.replace("file:///", "/").replace("/db/", "/db//./")
    table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={other: [0]})
    assert table.scan().to_arrow()["id"].to_pylist() == [2, 3]
    table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={path: [1]})
    found = entries(table, ManifestContent.DELETES)
    assert [each.data_file.referenced_data_file for each in found] == [path]
    assert table.scan().to_arrow()["id"].to_pylist() == [3]
    assert table.verify(level="data").ok


@pytest.mark.parametrize("version", VERSIONS_WITH_POSITION_DELETES)
@pytest.mark.parametrize("named", [True, False])
def test_position_deletes_are_of_a_file_by_any_spelling(version: int, named: bool, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    path = live_paths(table)[0]
    other = path.replace("file:///", "file:/")
    place = f"{table.location()}/data/deletes.parquet"
    with table.storage.open_output(place) as sink:
        done = write_position_deletes(sink, {other: [0]}, version)
    deletes = DataFile(
        place,
        "parquet",
        1,
        table.storage.stat(place).size,
        FileContent.POSITION_DELETES,
        referenced_data_file=other if named else None,
        lower_bounds=done.file.metrics.lower_bounds,
        upper_bounds=done.file.metrics.upper_bounds,
    )
    table.update_snapshot().row_delta(Planned.on(table.metadata), deletes=[deletes], referenced=[other])
    assert table.scan().to_arrow()["id"].to_pylist() == [2, 3]
    if named:
        # The file leaves, and so does what deletes its rows.
        table.update_snapshot().overwrite(planned=Planned.on(table.metadata), remove=[other])
        assert entries(table) == []
