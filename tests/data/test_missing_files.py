"""Files of a table that are missing or cut off: the error names the file and the snapshot, whichever file it is."""

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe.errors import CorruptFileError, LocationNotFoundError, StorageError
from icefloe.manifests import read_manifest_list
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows

MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def filled(version: int) -> tuple[icefloe.Catalog, Table]:
    """Two data files, and deletes of one where the version has such."""
    catalog = icefloe.load_catalog(str(uuid.uuid4()), type="memory")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", "id long", properties={"format-version": str(version), **MERGE_ON_READ})
    table.append(pa.table({"id": [1, 2, 3]}))
    table.append(pa.table({"id": [4, 5]}))
    if allows(version, Feature.DELETE_FILES):
        table.delete("id = 2")
    return catalog, table


def manifest_list(table: Table) -> str:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    found = snapshot.manifest_list
    return found if ":" in found else f"{table.location()}/{found}"


def manifest(table: Table, place: int = 0) -> str:
    relative = allows(table.format_version, Feature.RELATIVE_PATHS)
    place_of = table.location() if relative else None
    return read_manifest_list(manifest_list(table), table.storage.read, table_location=place_of)[place].manifest_path


def data_file(table: Table) -> str:
    return next(task for task in table.scan().plan_files() if task.file.record_count == 3).file.file_path


def delete_file(table: Table) -> str:
    return next(task.deletes[0].file_path for task in table.scan().plan_files() if task.deletes)


KINDS: dict[str, Callable[[Table], str]] = {
    "manifest list": manifest_list,
    "manifest": manifest,
    "last manifest": lambda table: manifest(table, -1),
    "data file": data_file,
    "delete file": delete_file,
}
READERS: dict[str, Callable[[Any], Any]] = {
    "table": lambda scan: scan.to_arrow(),
    "stream": lambda scan: scan.to_arrow_batch_reader().read_all(),
    "count": lambda scan: scan.filter("id != 2").count(),
}
CASES = [
    (version, kind)
    for version in ALL_VERSIONS
    for kind in KINDS
    if kind != "delete file" or allows(version, Feature.DELETE_FILES)
]


@pytest.mark.parametrize(("version", "kind"), CASES)
@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "cut off"])
def test_the_file_and_the_snapshot_are_named(version: int, kind: str, is_there: bool) -> None:
    catalog, table = filled(version)
    place = KINDS[kind](table)
    content = table.storage.read(place)
    table.storage.delete([place])
    if is_there:
        # Of a Puffin file only the vector is read, which is near its start.
        table.storage.write(place, content[: 20 if kind == "delete file" else len(content) // 2])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for read in READERS.values():
        with pytest.raises((CorruptFileError, StorageError) if is_there else LocationNotFoundError) as caught:
            read(catalog.load_table("n.t").scan())
        assert place in str(caught.value)
        assert f"snapshot {snapshot.snapshot_id}" in str(caught.value)
