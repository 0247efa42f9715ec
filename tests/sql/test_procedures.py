"""Procedures: their arguments, their effects and the columns that Java's have."""

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import IcefloeError, InvalidInputError, NoSuchObjectError, NoSuchSnapshotError, ValidationError
from icefloe.sql.procedures import PROCEDURES, call
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.shared_rows import ids_in, rows_of


@pytest.fixture(params=ALL_VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = load_catalog("lake", type="memory", warehouse=str(tmp_path))
    made.create_namespace("db")
    return made


@pytest.fixture
def table(catalog: Catalog, version: int) -> Table:
    made = catalog.create_table(
        "db.t", "id BIGINT", properties={"format-version": str(version), "write.wap.enabled": "true"}
    )
    for number in range(3):
        made.append(rows_of(number))
        time.sleep(0.002)
    return made


def only(result: pa.Table) -> dict[str, Any]:
    (row,) = result.to_pylist()
    return dict(row)


def test_rollback_by_id_and_by_time(catalog: Catalog, table: Table) -> None:
    first, second, third = table.snapshots()
    done = only(call(catalog, "rollback_to_snapshot", ("db.t", second.snapshot_id)))
    assert done == {"previous_snapshot_id": third.snapshot_id, "current_snapshot_id": second.snapshot_id}
    assert ids_in(table.refresh()) == [0, 1]
    moment = dt.datetime.fromtimestamp(second.timestamp_ms / 1000, dt.UTC)
    done = only(call(catalog, "rollback_to_timestamp", (), {"table": "lake.db.t", "timestamp": moment}))
    assert done == {"previous_snapshot_id": second.snapshot_id, "current_snapshot_id": first.snapshot_id}
    with pytest.raises(IcefloeError, match=str(third.snapshot_id)):
        call(catalog, "rollback_to_snapshot", ("db.t", third.snapshot_id))


def test_the_current_snapshot_by_id_or_ref(catalog: Catalog, table: Table) -> None:
    first, _, third = table.snapshots()
    table.manage_snapshots().create_tag("v1", first.snapshot_id).commit()
    done = only(call(catalog, "set_current_snapshot", (), {"table": "db.t", "ref": "v1"}))
    assert done == {"previous_snapshot_id": third.snapshot_id, "current_snapshot_id": first.snapshot_id}
    only(call(catalog, "set_current_snapshot", ("db.t", third.snapshot_id)))
    assert ids_in(table.refresh()) == [0, 1, 2]
    with pytest.raises(InvalidInputError, match="either"):
        call(catalog, "set_current_snapshot", ("db.t",))
    with pytest.raises(InvalidInputError, match="either"):
        call(catalog, "set_current_snapshot", ("db.t", 1, "v1"))
    with pytest.raises(NoSuchSnapshotError, match="v2"):
        call(catalog, "set_current_snapshot", (), {"table": "db.t", "ref": "v2"})


def test_staged_snapshots_are_picked_and_published(catalog: Catalog, table: Table) -> None:
    for wap_id, number in (("one", 10), ("two", 20)):
        table.append(rows_of(number), snapshot_properties={"wap.id": wap_id})
    staged = {each.summary.get("wap.id"): each for each in table.snapshots() if each.summary}
    table.append(rows_of(3))
    done = only(call(catalog, "cherrypick_snapshot", ("db.t", staged["one"].snapshot_id)))
    assert done["source_snapshot_id"] == staged["one"].snapshot_id
    done = only(call(catalog, "publish_changes", (), {"table": "db.t", "wap_id": "two"}))
    current = table.refresh().current_snapshot()
    assert current is not None
    assert done == {"source_snapshot_id": staged["two"].snapshot_id, "current_snapshot_id": current.snapshot_id}
    assert ids_in(table.refresh()) == [0, 1, 2, 3, 10, 20]
    with pytest.raises(NoSuchSnapshotError, match="three"):
        call(catalog, "publish_changes", ("db.t", "three"))
    with pytest.raises(ValidationError, match="it already was"):
        call(catalog, "publish_changes", ("db.t", "two"))


def test_fast_forward_and_ancestors(catalog: Catalog, table: Table) -> None:
    before = table.current_snapshot()
    table.manage_snapshots().create_branch("audit").commit()
    made = table.append(rows_of(9), branch="audit")
    assert before is not None
    assert made is not None
    done = only(call(catalog, "fast_forward", ("db.t", "main", "audit")))
    assert done == {"branch_updated": "main", "previous_ref": before.snapshot_id, "updated_ref": made.snapshot_id}
    found = call(catalog, "ancestors_of", ("db.t",)).to_pylist()
    assert [each["snapshot_id"] for each in found] == [
        each.snapshot_id for each in reversed(table.refresh().snapshots())
    ]
    some = call(catalog, "ancestors_of", ("db.t", before.snapshot_id)).to_pylist()
    assert some == found[1:]
    with pytest.raises(NoSuchSnapshotError, match="77"):
        call(catalog, "ancestors_of", ("db.t", 77))


def test_register_table(catalog: Catalog, table: Table) -> None:
    current = table.current_snapshot()
    assert current is not None
    done = only(call(catalog, "register_table", ("db.again", str(table.metadata_location))))
    assert done == {
        "current_snapshot_id": current.snapshot_id,
        "total_records_count": 3,
        "total_data_files_count": 3,
    }
    assert ids_in(catalog.load_table("db.again")) == [0, 1, 2]
    location, manifests = str(table.metadata_location), table.metadata.snapshots[-1].manifest_list
    for name, file, problem in (
        ("db.again", location, "again"),
        ("nowhere.t", location, "nowhere"),
        ("db.new", " ", "metadata_file"),
        ("db.new", f"{location}.not", "metadata.json.not"),
        ("db.new", str(manifests), "metadata"),
    ):
        with pytest.raises(IcefloeError, match=problem):
            call(catalog, "register_table", (name, file))
    assert not catalog.table_exists("db.new")
    empty = catalog.create_table("db.empty", "id BIGINT")
    done = only(call(catalog, "register_table", ("db.new", str(empty.metadata_location))))
    assert set(done.values()) == {None}


def test_expire_snapshots(catalog: Catalog, table: Table) -> None:
    table.overwrite(rows_of(7))
    later = dt.datetime.now(dt.UTC) + dt.timedelta(days=1)
    done = only(call(catalog, "expire_snapshots", ("db.t", later, 1)))
    assert done["deleted_data_files_count"] == 3
    assert len(table.refresh().snapshots()) == 1
    assert ids_in(table.refresh()) == [7]


def test_rewrite_manifests(catalog: Catalog, table: Table) -> None:
    done = only(call(catalog, "rewrite_manifests", ("db.t",)))
    assert done == {"rewritten_manifests_count": 3, "added_manifests_count": 1}
    assert only(call(catalog, "rewrite_manifests", ("db.t",), {"spec_id": 0})) == dict.fromkeys(done, 0)
    assert ids_in(table.refresh()) == [0, 1, 2]
    with pytest.raises(InvalidInputError, match="spec_id is 7"):
        call(catalog, "rewrite_manifests", ("db.t",), {"spec_id": 7})


@pytest.mark.parametrize(
    ("name", "positional", "named", "problem"),
    [
        ("expire_snapshot", (), {}, "did you mean 'expire_snapshots'"),
        ("nothing_like_it", (), {}, "there are add_files, ancestors_of"),
        ("rollback_to_snapshot", ("db.t",), {}, "'snapshot_id' is missing"),
        ("rollback_to_snapshot", ("db.t", "x"), {}, "type bigint"),
        ("rollback_to_snapshot", ("db.t", True), {}, "type bigint"),
        ("rollback_to_snapshot", ("db.t", 1, 2), {}, "too many"),
        ("rollback_to_snapshot", ("db.t",), {"table": "db.t"}, "given twice"),
        ("rollback_to_snapshot", (), {"tabel": "db.t"}, "no parameter 'tabel'"),
        ("rollback_to_timestamp", ("db.t", "yesterday"), {}, "TIMESTAMP"),
        ("expire_snapshots", ("db.t",), {"snapshot_ids": ["x"]}, "array<bigint>"),
        ("expire_snapshots", ("db.t",), {"retain_last": 0}, "1 or more"),
        ("ancestors_of", ("db.nowhere",), {}, "nowhere"),
    ],
)
def test_bad_calls_say_what_would_be_right(
    catalog: Catalog, name: str, positional: tuple[Any, ...], named: dict[str, Any], problem: str
) -> None:
    catalog.create_table("db.t", "id BIGINT")
    with pytest.raises((InvalidInputError, NoSuchObjectError), match=problem):
        call(catalog, name, positional, named)


def test_a_name_without_a_namespace_is_in_the_current_one(catalog: Catalog) -> None:
    catalog.create_table("db.t", "id BIGINT").append(rows_of(1))
    assert call(catalog, "ancestors_of", ("t",), namespace=("db",)).num_rows == 1


def test_each_procedure_has_its_result_columns_even_without_rows() -> None:
    for name, procedure in PROCEDURES.items():
        assert procedure.name == name
        assert len(procedure.output) > 0
        assert procedure.parameters[0].name in ("table", "source_table")
