"""Files outside of a table's locations are read without asking, and deleted only if the table says so."""

import json
import logging
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.commit import Ownership
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS

FUTURE = 32_503_680_000_000
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def catalog_in(folder: Path) -> Catalog:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "w"))
    catalog.create_namespace_if_not_exists("db")
    return catalog


def with_foreign_file(folder: Path, properties: dict[str, str], version: int = 2) -> tuple[Table, str]:
    os.makedirs(folder / "elsewhere")
    path = f"{folder}/elsewhere/a.parquet"
    pq.write_table(ROWS, path)
    table = catalog_in(folder).create_table(
        "db.t", "id BIGINT", properties=properties | {"format-version": str(version)}
    )
    table.add_files([path])
    return table, path


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_expiry_leaves_foreign_files_alone_and_says_so(version: int, tmp_path: Path) -> None:
    table, path = with_foreign_file(tmp_path, {}, version)
    table.append(ROWS)
    table.delete("id > 0")
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.left_alone == (f"file://{path}",)
    assert done.deleted_data_files_count == 1
    assert os.path.exists(path)


def test_expiry_deletes_foreign_files_if_the_table_says_so(tmp_path: Path) -> None:
    table, path = with_foreign_file(tmp_path, {"gc.foreign-files.enabled": "true"})
    table.delete("id > 0")
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert (done.left_alone, done.deleted_data_files_count) == ((), 1)
    assert not os.path.exists(path)


@pytest.mark.parametrize("key", ["write.data.path", "write.object-storage.path", "write.folder-storage.path"])
def test_the_folders_that_a_table_names_are_its_own(key: str, tmp_path: Path) -> None:
    table, path = with_foreign_file(tmp_path, {key: f"file:{tmp_path}//elsewhere/"})
    table.delete("id > 0")
    assert table.maintenance.expire_snapshots(older_than=FUTURE).deleted_data_files_count == 1
    assert not os.path.exists(path)


@pytest.mark.parametrize("foreign", ["false", "true"])
def test_purging_leaves_foreign_files_alone(foreign: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table, path = with_foreign_file(tmp_path, {"gc.foreign-files.enabled": foreign})
    table.append(ROWS)
    with caplog.at_level(logging.WARNING):
        catalog_in(tmp_path).purge_table("db.t")
    assert os.path.exists(path) == (foreign == "false")
    assert ("left alone" in caplog.text) == (foreign == "false")
    assert [name for _, _, names in os.walk(tmp_path / "w") for name in names] == []


def test_superseded_metadata_files_elsewhere_are_left_alone(tmp_path: Path) -> None:
    catalog = catalog_in(tmp_path)
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    table = catalog.create_table("db.t", "id BIGINT", properties=properties)
    secret = tmp_path / "secret.metadata.json"
    secret.write_text("not of this table")
    place = Path(str(table.metadata_location).removeprefix("file://"))
    document = json.loads(place.read_text())
    document["metadata-log"] = [{"metadata-file": f"file://{secret}", "timestamp-ms": 1}]
    place.write_text(json.dumps(document))
    table = catalog.load_table("db.t")
    first = str(table.metadata_location)
    table.append(ROWS)
    table.append(ROWS)
    assert secret.exists()
    assert not table.storage.exists(first)


def test_what_is_beneath_is_told_by_names_and_not_by_letters() -> None:
    owner = Ownership(("s3://b/w/t", "file:/w/t/"), has_foreign=False)
    own = ("s3a://b/w/t/data/x", "/w/t/x", "file:///w//t/x", "/w/x/../t/y")
    foreign = (
        "s3://b/w/t2/x",
        "s3://c/w/t/x",
        "/w/t/../x",
        "/w/t",
        "/w/tt/x",
        "http://h/w/t/x",
        "w/t/x",
        "gs://b/w/t/x",
    )
    assert owner.split((*own, *foreign)) == ([*own], [*foreign])
