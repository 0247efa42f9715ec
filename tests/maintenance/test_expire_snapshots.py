"""Expiry with files: exactly what no remaining snapshot needs goes, over branches, tags, deletes and other writers."""

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe import load_catalog
from icefloe.catalog import Catalog
from icefloe.errors import InvalidInputError, InvalidPropertyError, ValidationError
from icefloe.formats.equality_deletes import equality_delete_writer
from icefloe.maintenance import reachable_files
from icefloe.maintenance.expiry.expired_files import ExpiredFiles
from icefloe.manifests import FileContent
from icefloe.schema.types import StringType
from icefloe.storage.local import LocalFiles
from icefloe.table import Table
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.peers.tables import data_file
from tests.shared_rows import ids_in, rows_of

FUTURE = 32_503_680_000_000


def new_table(folder: Path, version: int, **properties: str) -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    return catalog.create_table(
        "db.t",
        "id BIGINT",
        properties={"format-version": str(version), "write.delete.mode": "merge-on-read"} | properties,
    )


def on_disk(table: Table) -> set[str]:
    folder = str(table.location()).removeprefix("file://")
    return {os.path.join(base, name) for base, _, names in os.walk(folder) for name in names}


def needed(table: Table) -> set[str]:
    found = reachable_files(table.metadata, table.metadata_location, table.storage)
    return {each.removeprefix("file://") for each in found.all()}


def drop_old_metadata_files(found: set[str]) -> set[str]:
    return {each for each in found if not each.endswith(".metadata.json")}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_only_the_current_snapshot_stays_and_only_its_files(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(rows_of(1, 2, 3))
    table.append(rows_of(4))
    table.overwrite(rows_of(5, 6))
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert len(table.snapshots()) == 1
    assert len(done.snapshot_ids) >= 2
    assert (done.deleted_data_files_count, done.deleted_manifest_lists_count) == (2, len(done.snapshot_ids))
    assert ids_in(table) == [5, 6]
    assert drop_old_metadata_files(on_disk(table)) == drop_old_metadata_files(needed(table))


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_deletes_that_still_apply_stay(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(rows_of(1, 2, 3))
    table.delete("id = 1")
    table.delete("id = 2")
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.deleted_data_files_count == 0
    assert ids_in(table) == [3]
    table.overwrite(rows_of(9))
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.deleted_data_files_count == 1
    assert done.deleted_position_delete_files_count >= 1
    assert drop_old_metadata_files(on_disk(table)) == drop_old_metadata_files(needed(table))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_branches_and_tags_keep_their_files(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    first = table.append(rows_of(1))
    assert first is not None
    table.manage_snapshots().create_tag("v1").commit()
    table.overwrite(rows_of(2))
    table.manage_snapshots().create_branch("side").commit()
    table.append(rows_of(3), branch="side")
    table.overwrite(rows_of(4))
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert ids_in(table) == [4]
    assert ids_in(table, ref="v1") == [1]
    assert ids_in(table, ref="side") == [2, 3]


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("leading", ["tag", "expiring branch"])
def test_young_snapshots_that_no_branch_keeps_have_their_files(version: int, leading: str, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(rows_of(1))
    table.manage_snapshots().create_branch("side").commit()
    young = table.append(rows_of(2), branch="side")
    assert young is not None
    table.overwrite(rows_of(3), branch="side")
    if leading == "tag":
        table.manage_snapshots().create_tag("t", table.refs()["side"].snapshot_id).remove_branch("side").commit()
    else:
        table.manage_snapshots().set_retention("side", max_ref_age_ms=1).commit()
    table.append(rows_of(4))
    table.maintenance.expire_snapshots(older_than=young.timestamp_ms)
    assert "side" not in table.refs()
    assert ids_in(table, snapshot_id=young.snapshot_id) == [1, 2]
    assert drop_old_metadata_files(on_disk(table)) == drop_old_metadata_files(needed(table))
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert young.snapshot_id not in {each.snapshot_id for each in table.snapshots()}
    assert ids_in(table) == [1, 4]
    assert drop_old_metadata_files(on_disk(table)) == drop_old_metadata_files(needed(table))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_named_snapshots_and_a_count_to_retain(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    made = [table.append(rows_of(n)) for n in range(4)]
    assert made[1] is not None
    assert made[3] is not None
    done = table.maintenance.expire_snapshots(snapshot_ids=[made[1].snapshot_id])
    assert done.snapshot_ids == (made[1].snapshot_id,)
    assert ids_in(table) == [0, 1, 2, 3]
    table.maintenance.expire_snapshots(older_than=FUTURE, retain_last=2)
    assert len(table.snapshots()) == 2
    with pytest.raises(ValidationError, match="main"):
        table.maintenance.expire_snapshots(snapshot_ids=[made[3].snapshot_id])


def test_metadata_alone_on_request(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows_of(1))
    table.overwrite(rows_of(2))
    before = on_disk(table)
    done = table.maintenance.expire_snapshots(older_than=FUTURE, delete_files=False)
    assert done.snapshot_ids
    assert done == ExpiredFiles(done.snapshot_ids)
    assert before <= on_disk(table)


def test_nothing_to_do_is_no_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows_of(1))
    location = table.metadata_location
    assert table.maintenance.expire_snapshots(by_retention=True) == ExpiredFiles()
    assert table.metadata_location == location


def test_without_arguments_nothing_happens_before_the_commit(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    for number in range(5):
        table.overwrite(rows_of(number))
    first, second, *_ = (each.snapshot_id for each in table.snapshots())
    location = table.metadata_location
    expiry = table.maintenance.expire_snapshots()
    assert expiry.commit() == ExpiredFiles()
    expiry.by_id(first)
    assert table.refresh().metadata_location == location
    assert expiry.commit().snapshot_ids == (first,)
    with table.maintenance.expire_snapshots() as more:
        more.older_than(FUTURE).retain_last(2)
    assert second not in {each.snapshot_id for each in table.refresh().snapshots()}
    assert len(table.snapshots()) == 2
    with pytest.raises(InvalidInputError, match="zone"), table.maintenance.expire_snapshots() as stopped:
        stopped.older_than(FUTURE).older_than(dt.datetime(2030, 1, 1))
    assert len(table.refresh().snapshots()) == 2
    assert table.maintenance.expire_snapshots(clean_expired_metadata=True) == ExpiredFiles()


def test_a_writer_in_between_keeps_its_files(tmp_path: Path) -> None:
    table = new_table(tmp_path, 3)
    table.append(rows_of(1))
    table.append(rows_of(2))
    other = load_again(tmp_path).load_table("db.t")
    other.append(rows_of(3))
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert ids_in(table) == [1, 2, 3]
    assert drop_old_metadata_files(needed(table)) <= on_disk(table)


def load_again(folder: Path) -> Catalog:
    return load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files"))


def missing(table: Table) -> set[str]:
    """Files that the table needs and that are not there, and those that are there for nothing."""
    found, wanted = drop_old_metadata_files(on_disk(table)), drop_old_metadata_files(needed(table))
    return found ^ wanted


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_expiry_through_a_handle_that_is_behind_deletes_what_it_has_dropped(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    made = [table.overwrite(rows_of(number)) for number in range(6)]
    named = [each.snapshot_id for each in made if each is not None]
    one, two = (load_again(tmp_path).load_table("db.t") for _ in range(2))
    assert two.maintenance.expire_snapshots(snapshot_ids=named[:2]).snapshot_ids == tuple(named[:2])
    done = one.maintenance.expire_snapshots(snapshot_ids=named[:4])
    # Those that the other one dropped are none of its business; their files are gone.
    assert done.snapshot_ids == tuple(named[2:4])
    assert (done.deleted_data_files_count, done.problem) == (2, None)
    assert [each.snapshot_id for each in one.snapshots()] == named[4:]
    assert missing(one) == set()


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_both_of_two_that_drop_the_same_are_done(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path, version)
    for number in range(4):
        table.overwrite(rows_of(number))
    other = load_again(tmp_path).load_table("db.t")
    load = Table.refresh

    def slow(self: Table) -> Table:
        # Between its commit and its look at the files, another one drops more, with files that it still counts on.
        if self is table:
            monkeypatch.setattr(Table, "refresh", load)
            other.append(rows_of(9))
            other.maintenance.expire_snapshots(older_than=FUTURE)
        return load(self)

    monkeypatch.setattr(Table, "refresh", slow)
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert len(done.snapshot_ids) == 3
    assert ids_in(table) == [3, 9]
    assert missing(table) == set()


def test_what_cannot_be_read_after_the_commit_is_a_problem_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path, 2)
    table.overwrite(rows_of(1))
    table.overwrite(rows_of(2))
    before = on_disk(table)

    def fail(self: Table) -> Table:
        raise OSError("the network is down")

    monkeypatch.setattr(Table, "refresh", fail)
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done == ExpiredFiles(done.snapshot_ids, problem="the network is down")
    assert len(done.snapshot_ids) == 1
    assert before <= on_disk(table)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_rows_change_through_a_handle_whose_snapshots_have_expired(version: int, mode: str, tmp_path: Path) -> None:
    table = new_table(tmp_path, version, **{"write.delete.mode": mode, "write.merge.mode": mode})
    table.append(rows_of(1, 2))
    behind = [load_again(tmp_path).load_table("db.t") for _ in range(4)]
    # Not one file that those handles know is left.
    table.overwrite(rows_of(1, 2, 3))
    table.maintenance.expire_snapshots(older_than=FUTURE)
    behind[0].append(rows_of(4))
    behind[1].delete("id = 2")
    behind[2].overwrite(rows_of(5), "id = 3")
    behind[3].upsert(rows_of(1, 6), ["id"])
    assert ids_in(table.refresh()) == [1, 4, 5, 6]
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert missing(table) == set()
    assert table.verify(level="data").clean


def test_an_unreadable_manifest_deletes_nothing(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows_of(1))
    table.overwrite(rows_of(2))
    for path in on_disk(table):
        if path.endswith("m0.avro"):
            Path(path).write_bytes(b"not avro")
    before = {path for path in on_disk(table) if path.endswith(".parquet")}
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert before <= on_disk(table)
    # The snapshots are gone all the same: to say that nothing happened would be wrong.
    assert len(table.refresh().snapshots()) == 1
    assert done == ExpiredFiles(done.snapshot_ids, problem=done.problem)
    assert "m0.avro" in str(done.problem)


def test_a_file_that_cannot_be_deleted_changes_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(tmp_path, 2)
    table.append(rows_of(1))
    table.overwrite(rows_of(2))

    def refuse(self: LocalFiles, *arguments: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(LocalFiles, "delete", refuse)
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.snapshot_ids
    assert done.deleted_data_files_count == 0
    assert ids_in(table) == [2]


def test_bad_input(tmp_path: Path) -> None:
    table = new_table(tmp_path, 2)
    with pytest.raises(InvalidInputError, match="retain_last is 0"):
        table.maintenance.expire_snapshots(retain_last=0)
    table.set_properties({"gc.enabled": "false"})
    with pytest.raises(InvalidPropertyError, match=r"gc\.enabled"):
        table.maintenance.expire_snapshots(older_than=FUTURE)


STEPS = st.lists(st.sampled_from(["append", "overwrite", "delete", "tag", "branch", "expire"]), min_size=3, max_size=10)


@pytest.mark.parametrize("version", ALL_VERSIONS)
@given(steps=STEPS)
@settings(max_examples=settings().max_examples // 6)
def test_every_ref_reads_the_same_before_and_after(
    version: int, steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = new_table(tmp_path_factory.mktemp("expire"), version)
    for number, step in enumerate(steps):
        match step:
            case "append":
                table.append(rows_of(number, number + 100))
            case "overwrite":
                table.overwrite(rows_of(number), "id < 50")
            case "delete":
                table.delete(f"id = {number - 1}")
            case "tag" if table.current_snapshot():
                table.manage_snapshots().create_tag(f"t{number}").commit()
            case "branch" if table.current_snapshot():
                table.manage_snapshots().create_branch(f"b{number}").commit()
                table.append(rows_of(1000 + number), branch=f"b{number}")
            case "expire":
                expected = {name: ids_in(table, ref=name) for name in table.refs()}
                table.maintenance.expire_snapshots(older_than=FUTURE)
                assert {name: ids_in(table, ref=name) for name in table.refs()} == expected
                assert drop_old_metadata_files(needed(table)) == drop_old_metadata_files(on_disk(table))
            case _:
                pass
    report = table.verify(level="data", progress=silent)
    assert report.clean, str(report)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_schemas_and_specs_that_nothing_needs_go_on_request(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    table.append(rows_of(1))
    with table.update_schema() as schema:
        schema.add_column("a", StringType())
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    table.overwrite(pa.table({"id": [2], "a": ["x"]}))
    # The manifest that says what was deleted is of the old spec, and goes with the next commit.
    table.append(pa.table({"id": [3], "a": ["y"]}))
    assert (len(table.schemas()), len(table.specs())) == (2, 2)
    table.maintenance.expire_snapshots(older_than=FUTURE)
    assert (len(table.schemas()), len(table.specs())) == (2, 2)
    table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    assert list(table.schemas()) == [table.schema().schema_id]
    assert list(table.specs()) == [table.spec().spec_id]
    assert ids_in(table) == [2, 3]


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_schema_of_a_column_that_a_spec_needs_stays(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    with table.update_schema() as schema:
        schema.add_column("a", StringType())
    with table.update_spec() as spec:
        spec.add_field("a")
    table.append(pa.table({"id": [1], "a": ["x"]}))
    having = table.schema().schema_id
    with table.update_spec() as spec:
        spec.remove_field("a")
    with table.update_schema() as schema:
        schema.delete_column("a")
    table.append(rows_of(2))
    table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    assert sorted(table.schemas()) == sorted([having, table.schema().schema_id])
    shown = table.scan(selected_fields=("id", "_partition")).to_arrow().sort_by("id").to_pylist()
    assert [each["_partition"]["a"] for each in shown] == ["x", None]
    assert table.verify(level="data").ok
    table.overwrite(rows_of(3))
    table.append(rows_of(4))
    table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    # In v1 a dropped field stays in the spec, without values.
    assert list(table.schemas()) == [table.schema().schema_id]


@pytest.mark.parametrize("version", [each for each in ALL_VERSIONS if allows(each, Feature.DELETE_FILES)])
def test_the_schema_of_a_column_that_equality_deletes_compare_stays(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, version)
    with table.update_schema() as schema:
        schema.add_column("a", StringType())
    table.append(pa.table({"id": [1, 2], "a": ["x", "y"]}))
    ids_compared = (table.schema().find_field("a").field_id,)
    place = f"{table.location()}/data/deletes.parquet"
    with table.storage.open_output(place) as sink:
        writer = equality_delete_writer(sink, table.schema(), ids_compared, version)
        writer.write(pa.table({"a": ["x"]}))
        done = writer.close()
    table.update_snapshot().row_delta(
        None,
        deletes=[data_file(place, "parquet", done, content=FileContent.EQUALITY_DELETES, equality_ids=ids_compared)],
    )
    with table.update_schema() as schema:
        schema.delete_column("a")
    table.append(rows_of(3))
    table.maintenance.expire_snapshots(older_than=FUTURE, clean_expired_metadata=True)
    assert len(table.schemas()) == 2
    assert ids_in(table) == [2, 3]


WITH_VECTORS = [each for each in ALL_VERSIONS if allows(each, Feature.DELETION_VECTORS)]
WITH_POSITIONS = next(each for each in ALL_VERSIONS if allows(each, Feature.NEW_POSITION_DELETE_FILES))


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_position_deletes_that_became_vectors_go_with_their_snapshots(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, WITH_POSITIONS)
    table.append(rows_of(1, 2, 3, 4))
    table.delete("id = 1")
    table.upgrade_format_version(version)
    table.delete("id = 2")
    assert ids_in(table) == [3, 4]
    assert len([each for each in on_disk(table) if each.endswith("-deletes.parquet")]) == 1
    done = table.maintenance.expire_snapshots(older_than=FUTURE)
    assert done.deleted_position_delete_files_count == 1
    assert drop_old_metadata_files(needed(table)) == drop_old_metadata_files(on_disk(table))
    assert ids_in(table) == [3, 4]


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_position_deletes_that_an_upgrade_came_before_do_not_stay_behind(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, WITH_POSITIONS)
    table.append(rows_of(1, 2, 3, 4))
    with table.transaction() as tx:
        tx.delete("id = 1")
        other = load_catalog(
            "lake", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "files")
        )
        other.load_table("db.t").upgrade_format_version(version)
    assert ids_in(table) == [2, 3, 4]
    assert drop_old_metadata_files(needed(table)) == drop_old_metadata_files(on_disk(table))


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_position_deletes_of_before_an_upgrade_in_one_commit_stay(version: int, tmp_path: Path) -> None:
    table = new_table(tmp_path, WITH_POSITIONS)
    table.append(rows_of(1, 2, 3, 4))
    with table.transaction() as tx:
        tx.delete("id = 1")
        tx.upgrade_format_version(version)
    assert ids_in(table) == [2, 3, 4]
    assert drop_old_metadata_files(needed(table)) == drop_old_metadata_files(on_disk(table))
