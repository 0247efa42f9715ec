"""Tables made of folders of files that are there already, and tables deleted by their metadata file alone."""

from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from icefloe import Table, load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import IncompatibleChangeError, InvalidInputError, ValidationError
from icefloe.schema.types import DateType, LongType, StringType
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS
from tests.maintenance.worn import NAME, worn_table


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "files"))
    made.create_namespace("db")
    return made


def put(folder: Path, *ids: int, **more: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = {"id": pa.array(ids, pa.int64()), "s": pa.array([{"x": key} for key in ids])}
    pq.write_table(
        pa.table(rows | {key: pa.array([value] * len(ids)) for key, value in more.items()}), folder / "f.parquet"
    )


def ids_of(table: Table) -> list[int]:
    report = table.verify(level="data", progress=silent)
    assert report.ok, report
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def stored(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_snapshot_leaves_its_source_alone(catalog: Catalog, tmp_path: Path, version: int) -> None:
    source = tmp_path / "source"
    put(source / "day=2026-01-01" / "n=1", 1, 2)
    put(source / "day=2026-01-02" / "n=2", 3, name="new")
    before = stored(source)
    table = catalog.snapshot(str(source), "db.t", properties={"format-version": str(version), "gc.enabled": "true"})
    assert table.properties["gc.enabled"] == "false"
    assert table.properties["snapshot"] == "true"
    assert "schema.name-mapping.default" in table.properties
    types = {field.name: field.field_type for field in table.schema().fields}
    assert (types["day"], types["n"], types["name"]) == (DateType(), LongType(), StringType())
    assert [field.name for field in table.spec().fields] == ["day", "n"]
    assert ids_of(table) == [1, 2, 3]
    table.delete("id = 1 or n = 2")
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        catalog.purge_table("db.t")
    assert stored(source) == before
    assert ids_of(catalog.load_table("db.t")) == [2]


def test_a_folder_becomes_a_table(catalog: Catalog, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    orc.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), str(source / "f.orc"))
    table = catalog.migrate(str(source), "db.t", {"owner": "me"}, file_format="orc")
    assert Path(str(table.location()).removeprefix("file://")) == source
    assert (table.properties["migrated"], table.properties["owner"]) == ("true", "me")
    table.append(pa.table({"id": pa.array([3], pa.int64())}))
    assert ids_of(table) == [1, 2, 3]
    catalog.purge_table("db.t")
    assert not stored(source)


def test_what_is_refused_leaves_nothing(catalog: Catalog, tmp_path: Path) -> None:
    source = tmp_path / "source"
    put(source / "p=1", 1)
    before = stored(tmp_path)
    with pytest.raises(InvalidInputError, match="share a folder"):
        catalog.snapshot(str(source), "db.t", location=str(source / "inside"))
    with pytest.raises(InvalidInputError, match="share a folder"):
        catalog.snapshot(str(source), "db.t", location=str(tmp_path))
    with pytest.raises(InvalidInputError, match="parallelism is 0"):
        catalog.snapshot(str(source), "db.t", parallelism=0)
    with pytest.raises(IncompatibleChangeError):
        catalog.snapshot(str(source), "db.t", schema="id boolean, p int")
    with pytest.raises(InvalidInputError, match="no files"):
        catalog.snapshot(str(tmp_path / "nowhere"), "db.t")
    with pytest.raises(InvalidInputError, match="neither a file nor a folder"):
        catalog.snapshot(str(tmp_path / "nowhere"), "db.t", schema="id bigint")
    put(source / "p=2", 2, id=True)
    with pytest.raises(InvalidInputError, match="'id' is boolean"):
        catalog.snapshot(str(source), "db.t")
    assert not catalog.table_exists("db.t")
    assert stored(tmp_path) == before | {source / "p=2" / "f.parquet"}
    table = catalog.snapshot(str(tmp_path / "nowhere"), "db.t", schema="id bigint", ignore_missing_files=True)
    assert table.scan().count() == 0


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_files_of_a_dropped_table_are_deleted_by_its_metadata_file(
    catalog: Catalog, tmp_path: Path, version: int
) -> None:
    table = worn_table(catalog, version)
    location = str(table.metadata_location)
    with pytest.raises(ValidationError, match="purge_table"):
        catalog.delete_reachable_files(location)
    table.set_properties({"gc.enabled": "false"})
    kept = str(table.metadata_location)
    catalog.drop_table(NAME)
    with pytest.raises(ValidationError, match=r"gc\.enabled"):
        catalog.delete_reachable_files(kept)
    again = catalog.register_table(NAME, kept).set_properties({"gc.enabled": "true"})
    catalog.drop_table(NAME)
    before = stored(tmp_path / "files")
    done = catalog.delete_reachable_files(str(again.metadata_location))
    left = stored(tmp_path / "files")
    counts = [getattr(done, name) for name in done.__slots__ if name.endswith("count")]
    assert sum(counts) == len(before) - len(left)
    assert not left
    assert (done.deleted_position_delete_files_count > 0) == (version > 1)
    assert not done.left_alone
