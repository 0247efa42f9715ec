"""Tables whose metadata leads to what is no file of theirs: errors of ours, at once, which show nothing of what is there."""

import json
import os
import time
from pathlib import Path

import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import CorruptFileError, InvalidPropertyError, StorageError
from icefloe.manifests import DataFile
from icefloe.table import Table


def catalog_in(folder: Path, **limits: str) -> Catalog:
    properties = {f"read.limits.{name.replace('_', '-')}": value for name, value in limits.items()}
    return load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "w"), **properties)


def new_table(folder: Path) -> Table:
    catalog = catalog_in(folder)
    catalog.create_namespace("db")
    return catalog.create_table("db.t", "id BIGINT")


def with_manifest_list(folder: Path, place: str) -> Table:
    table = new_table(folder)
    table.update_snapshot().fast_append([DataFile(f"{table.location()}/data/x.parquet", "parquet", 1, 10)])
    metadata = Path(str(table.metadata_location).removeprefix("file://"))
    document = json.loads(metadata.read_text())
    document["snapshots"][-1]["manifest-list"] = place
    metadata.write_text(json.dumps(document))
    return catalog_in(folder).load_table("db.t")


def test_what_a_foreign_file_begins_with_is_not_shown(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("root:secret:" * 100)
    table = with_manifest_list(tmp_path, f"file://{foreign}")
    for attempt in (lambda: table.scan().to_arrow(), lambda: table.delete("id = 1"), lambda: table.inspect.files()):
        with pytest.raises(CorruptFileError, match="not an Avro file") as caught:
            attempt()
        assert "root" not in str(caught.value).replace(str(tmp_path), "")


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_pipes_and_devices_are_no_files_of_a_table(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "x.parquet"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    table = new_table(tmp_path)
    table.update_snapshot().fast_append([DataFile(f"file://{place}", "parquet", 1, 10)])
    started = time.monotonic()
    for attempt in (lambda: table.scan().to_arrow(), lambda: table.delete("id = 1")):
        with pytest.raises(StorageError, match="pipe, socket or device"):
            attempt()
    assert not table.verify().ok
    assert time.monotonic() - started < 30
    (tmp_path / "2").mkdir()
    other = with_manifest_list(tmp_path / "2", f"file://{place}")
    with pytest.raises(StorageError, match="pipe, socket or device"):
        other.scan().to_arrow()


def test_bounds_are_properties_of_the_catalog(tmp_path: Path) -> None:
    new_table(tmp_path)
    with pytest.raises(CorruptFileError, match=r"too large: .*read\.limits\.metadata-bytes"):
        catalog_in(tmp_path, metadata_bytes="10").load_table("db.t")
    with pytest.raises(StorageError, match=r"read\.limits\.file-bytes"):
        catalog_in(tmp_path, file_bytes="10").load_table("db.t")
    with pytest.raises(InvalidPropertyError, match=r"read\.limits\.expansion"):
        catalog_in(tmp_path, expansion="none")
