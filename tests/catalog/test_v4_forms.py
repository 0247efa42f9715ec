"""The forms of v4 tables: as the spec has them, as Java 1.12 reads them, and with a location that the catalog supplies."""

import datetime as dt
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefloe
from icefloe import errors, manifests as mf
from icefloe.catalog import Catalog
from icefloe.schema import VARIANT_STORAGE, types
from icefloe.table import Table
from icefloe.variant.writing import encode
from icefloe.verification import silent

COMPAT = {"icefloe.v4.compat": "java-1.12"}
SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("day", pa.date32()), ("price", pa.float64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = icefloe.load_catalog("forms", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    made.create_namespace("db")
    return made


def rows(*ids: int) -> pa.Table:
    day = dt.date(2026, 1, 1)
    columns: dict[str, Any] = {"id": ids, "name": [f"name {i}" for i in ids]}
    columns |= {"day": [day + dt.timedelta(i) for i in ids], "price": [i / 2 for i in ids]}
    return pa.table(columns, schema=SCHEMA)


def made(catalog: Catalog, properties: dict[str, str], name: str = "db.t") -> Table:
    modes = {"write.delete.mode": "merge-on-read"}
    settings = {"format-version": "4", **properties, **modes}
    table = catalog.create_table(name, SCHEMA, partition_spec=["truncate(4, name)"], properties=settings)
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    table.delete("id = 2")
    return table


def document(table: Table) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(table.storage.read(str(table.metadata_location)))
    return found


def stored_paths(table: Table) -> list[str]:
    """Every path that the files of the current snapshot, and the metadata, hold as it is written."""
    content = document(table)
    paths = [each["metadata-file"] for each in content["metadata-log"]]
    paths += [each["manifest-list"] for each in content["snapshots"]]
    paths += [each["statistics-path"] for each in (*content["statistics"], *content["partition-statistics"])]
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    data = table.storage.read(table.metadata.resolve(str(snapshot.manifest_list)))
    for manifest in mf.decode_manifest_list(data, ""):
        paths.append(manifest.manifest_path)
        entries = mf.decode_manifest(table.storage.read(table.metadata.resolve(manifest.manifest_path)), "")
        for name in ("file_path", "referenced_data_file"):
            paths += [path for path in entries.column(name).to_pylist() if path is not None]
    return paths


def found(table: Table) -> list[int]:
    ids: list[int] = table.scan().to_arrow().sort_by("id").column("id").to_pylist()
    return ids


def test_every_path_is_relative_by_the_spec(catalog: Catalog) -> None:
    table = made(catalog, {})
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    paths = stored_paths(table)
    assert len(paths) >= 15
    assert [path for path in paths if ":" in path] == []
    assert all(table.storage.exists(table.metadata.resolve(path)) for path in paths)
    assert table.verify(level="data", progress=silent).ok


def test_metadata_files_that_left_a_relative_log_are_deleted(catalog: Catalog) -> None:
    limits = {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
    table = made(catalog, limits)
    left = [
        info.location for info in table.storage.list_prefix(str(table.location())) if "metadata.json" in info.location
    ]
    assert len(left) == 3
    assert table.verify(progress=silent).ok


@pytest.mark.parametrize("container", ["avro", "parquet"])
def test_every_path_is_a_location_for_java(catalog: Catalog, container: str) -> None:
    table = made(catalog, COMPAT | {"icefloe.v4.manifest-format": container})
    table.maintenance.compute_table_stats()
    table.maintenance.compute_partition_stats()
    paths = stored_paths(table)
    assert len(paths) >= 15
    assert [path for path in paths if not path.startswith("file:///")] == []
    assert {path.rpartition(".")[2] for path in paths if "-m" in path.rpartition("/")[2][36:]} == {container}
    assert found(table) == [1, 3, 4]
    # Statistics are there in both forms.
    assert len(list(table.scan("id = 4").plan_files())) == 1
    assert table.inspect.data_files().column("lower_bounds").null_count == 0
    assert table.verify(level="data", progress=silent).ok


def test_a_table_changes_its_form_at_any_time(catalog: Catalog) -> None:
    table = made(catalog, {})
    table.set_properties(COMPAT)
    table.append(rows(5))
    mixed = stored_paths(table)
    assert {path.startswith("file:///") for path in mixed} == {True, False}
    plan = table.maintenance.rewrite_manifests(dry_run=True)
    assert "relative" in str(plan)
    table.maintenance.rewrite_manifests()
    assert {path.startswith("file:///") for path in stored_paths(table)} == {True}
    assert not table.maintenance.rewrite_manifests(dry_run=True).groups
    assert found(table) == [1, 3, 4, 5]
    table.remove_properties("icefloe.v4.compat")
    table.append(rows(6))
    assert {path.startswith("file:///") for path in stored_paths(table)} == {True, False}
    assert found(table) == [1, 3, 4, 5, 6]
    assert table.verify(level="data", progress=silent).ok


def test_forms_that_nobody_knows_are_refused(catalog: Catalog) -> None:
    table = made(catalog, {})
    with pytest.raises(errors.InvalidPropertyError, match=r"icefloe\.v4\.compat.*java-1\.12"):
        table.set_properties({"icefloe.v4.compat": "java-9"})
    table.refresh().set_properties({"icefloe.v4.manifest-format": "parquet"})
    with pytest.raises(errors.InvalidPropertyError, match=r"requires 'icefloe\.v4\.compat'"):
        table.append(rows(9))
    assert found(table.refresh()) == [1, 3, 4]


def test_a_table_without_a_location_moves_with_its_folder(catalog: Catalog, tmp_path: Path) -> None:
    table = made(catalog, {})
    first = Path(str(table.metadata_location).removeprefix("file://"))
    content = json.loads(first.read_text())
    del content["location"]
    first.write_text(json.dumps(content))
    table = catalog.load_table("db.t")
    table.append(rows(5))
    assert "location" not in document(table)
    assert found(table) == [1, 3, 4, 5]
    shutil.move(tmp_path / "wh" / "db" / "t", tmp_path / "elsewhere")
    name = str(table.metadata_location).rpartition("/")[2]
    moved = catalog.register_table("db.moved", f"file://{tmp_path}/elsewhere/metadata/{name}")
    moved.append(rows(6))
    moved.delete("id = 1")
    assert moved.location() == f"file://{tmp_path}/elsewhere"
    assert found(moved) == [3, 4, 5, 6]
    assert moved.verify(level="data", progress=silent).ok
    with pytest.raises(errors.InvalidLocationError, match="set the location"):
        moved.set_properties({"write.metadata.path": f"file://{tmp_path}/other"})
    moved.refresh().set_properties(COMPAT)
    # Java needs one.
    assert document(moved)["location"] == f"file://{tmp_path}/elsewhere"


def test_a_location_without_the_files_of_relative_paths_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    table = made(catalog, {})
    location = f"file://{tmp_path}/copied"

    def move() -> None:
        with table.transaction() as transaction:
            transaction.update_location(location)

    with pytest.raises(
        errors.StateError, match=f"relative to its location .* 'main' would need {location}/metadata/snap-"
    ):
        move()
    with pytest.raises(errors.StateError, match="copy the table's files"):
        catalog.create_or_replace_table("db.t", SCHEMA, location=location)
    assert found(catalog.load_table("db.t")) == [1, 3, 4]
    shutil.copytree(tmp_path / "wh" / "db" / "t", tmp_path / "copied")
    table = catalog.load_table("db.t")
    move()
    table = catalog.load_table("db.t")
    assert table.location() == location
    table.append(rows(5))
    shutil.rmtree(tmp_path / "wh" / "db" / "t" / "data")
    assert found(table) == [1, 3, 4, 5]
    # A table of full locations, or without rows, may go anywhere.
    for name, properties in (("db.java", COMPAT), ("db.v3", {"format-version": "3"})):
        other = made(catalog, properties, name)
        with other.transaction() as transaction:
            transaction.update_location(f"file://{tmp_path}/{name}")
        assert found(other.refresh()) == [1, 3, 4]
    empty = catalog.create_table("db.empty", SCHEMA, properties={"format-version": "4"})
    with empty.transaction() as transaction:
        transaction.update_location(f"file://{tmp_path}/empty")
    empty.append(rows(1))
    assert found(empty) == [1]


def test_stats_follow_the_columns(catalog: Catalog) -> None:
    """Entries that are written anew have stats of the columns that are there, in the types that these have."""
    table = made(catalog, {})
    with table.update_schema() as update:
        update.update_column("id", "long").update_column("day", "timestamp").delete_column("price").add_column(
            "x", "int"
        )
    table.maintenance.rewrite_manifests()
    assert found(table) == [1, 3, 4]
    kept = _stats(table)
    assert [(each["lower_bounds"], each["upper_bounds"]) for each in kept if each["file"].endswith("parquet")] != []
    micros = 86_400_000_000
    first = dt.date(2026, 1, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
    for each in kept:
        assert set(each["lower_bounds"]) == {1, 2, 3}, "price is gone, and x was never there"
        assert each["lower_bounds"][1] in (1, 4)
        assert each["lower_bounds"][3] == (first + each["lower_bounds"][1]) * micros
        assert each["tight"] == {1: 1, 2: 1, 3: 1}
        assert each["sizes"] == {2: 6}
    assert sorted(table.scan("day >= timestamp '2026-01-04'").to_arrow().column("id").to_pylist()) == [3, 4]
    assert table.verify(level="data", progress=silent).ok


def _stats(table: Table) -> list[dict[str, Any]]:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    source = mf.SnapshotManifests(table.metadata, table.storage.read)
    result = []
    for manifest in source.of(snapshot):
        if manifest.content is mf.ManifestContent.DATA:
            kinds = {1: types.LongType(), 2: types.StringType(), 3: types.TimestampType()}
            for file in source.entries(manifest).files():
                bounds = {
                    name: {key: _decoded(value, kinds[key]) for key, value in getattr(file, name).items()}
                    for name in ("lower_bounds", "upper_bounds")
                }
                result.append(
                    {"file": file.file_path, "tight": dict(file.tight_bounds), "sizes": dict(file.avg_value_sizes)}
                    | bounds
                )
    return result


def _decoded(value: bytes, kind: types.IcebergType) -> Any:
    return icefloe.schema.decode(value, kind)


def test_bounds_that_were_cut_are_not_tight(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties={"format-version": "4"})
    long = rows(1).set_column(1, "name", pa.array(["a text of more than sixteen letters"]))
    zero = long.set_column(3, "price", pa.array([0.0]))
    table.append(zero)
    [stats] = _stats_of(table)
    assert dict(stats.tight_bounds) == {1: 1, 2: 0, 3: 1, 4: 0}
    assert dict(stats.avg_value_sizes) == {2: 35}


def _stats_of(table: Table) -> list[mf.DataFile]:
    snapshot = table.metadata.current_snapshot()
    assert snapshot is not None
    source = mf.SnapshotManifests(table.metadata, table.storage.read)
    return [file for manifest in source.of(snapshot) for file in source.entries(manifest).files()]


def test_counts_of_variants_are_kept(catalog: Catalog) -> None:
    table = catalog.create_table("db.t", "id long, doc variant", properties={"format-version": "4"})
    docs = [{"metadata": encode(doc).metadata, "value": encode(doc).value} for doc in ({"a": 1}, [1, 2])]
    column = pa.array([docs[0], None, docs[1]], VARIANT_STORAGE)
    table.append(pa.table({"id": [1, 2, 3], "doc": column}))
    [file] = _stats_of(table)
    assert (file.value_counts[2], file.null_value_counts[2]) == (3, 1)
    assert file.avg_value_sizes[2] > 0
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    [file] = [each for each in _stats_of(table) if each.first_row_id is not None][-1:]
    assert (file.value_counts[2], file.null_value_counts[2]) == (3, 1)
    table.append(pa.table({"id": [4], "doc": column[:1]}))
    table.maintenance.rewrite_manifests()
    assert {each.value_counts[2] for each in _stats_of(table)} == {1, 3}
