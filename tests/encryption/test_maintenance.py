"""Maintenance of encrypted tables: each call works on them and leaves nothing in clear, or refuses with a sentence."""

import csv
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe import manifests as mf
from icefloe.catalog import Catalog
from icefloe.commit import now_ms
from icefloe.errors import EncryptionError, StateError
from icefloe.formats.puffin.files import read_footer
from icefloe.metadata import apply_all, updates as up
from icefloe.table import Table
from tests.encryption.test_tables import VERSIONS, check_sealed, created, either, found, lake, rows

__all__ = ["either", "lake"]


def grown(catalog: Catalog, version: int, **properties: str) -> Table:
    table = created(catalog, version, write__delete__mode="merge-on-read", **properties)
    for start in range(0, 12, 4):
        table.append(rows(*range(start, start + 4)))
    table.delete("id in (3, 4)")
    return table


LEFT = [i for i in range(12) if i not in (3, 4)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_what_works(lake: Catalog, version: int, form: str) -> None:
    table = grown(lake, version, write__format__default=form)
    before = len(table.metadata.encryption_keys)
    assert table.maintenance.health() is not None
    table.maintenance.rewrite_position_delete_files(options={"rewrite-all": "true"})
    table.maintenance.rewrite_manifests()
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    table.maintenance.remove_dangling_deletes()
    assert found(table) == LEFT
    table.maintenance.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=1)
    table.maintenance.remove_orphan_files(dry_run=True)
    again = lake.load_table("n.t")
    assert found(again) == LEFT
    assert len(again.metadata.snapshots) == 1
    assert len(again.metadata.encryption_keys) == 2 < before, "keys go with their lists"
    check_sealed(again)
    report = again.verify(level="data")
    assert report.clean, str(report)


def test_what_is_refused(lake: Catalog, tmp_path: Path) -> None:
    table = grown(lake, 3)
    with pytest.raises(EncryptionError, match="no place for the key"):
        table.maintenance.compute_partition_stats()
    earlier = table.metadata.metadata_log[-1].metadata_file.rpartition("/")[2]
    with pytest.raises(EncryptionError, match="vouches for its current metadata file alone"):
        table.maintenance.rewrite_table_path(
            str(table.location()),
            str(tmp_path / "elsewhere"),
            end_version=earlier,
            staging_location=str(tmp_path / "s"),
        )
    assert not (tmp_path / "s").exists()
    plain = lake.create_table("n.plain", "id bigint, name string, region string")
    plain.append(rows(1))
    with pytest.raises(StateError):
        table.add_files([task.file.file_path for task in plain.scan().plan_files()])
    assert found(table) == LEFT


@pytest.mark.parametrize("version", VERSIONS)
def test_statistics_are_encrypted(lake: Catalog, version: int) -> None:
    table = grown(lake, version)
    done = table.maintenance.compute_table_stats(columns=["id", "name"])
    assert done.distinct_counts == {"id": 10, "name": 10}
    [file] = table.refresh().statistics()
    path = Path(str(done.statistics_file).removeprefix("file://"))
    stored = path.read_bytes()
    assert stored.startswith(b"AGS1")
    assert len(stored) == file.file_size_in_bytes
    # The entry names a key of the table's, which is sealed: no key is in clear.
    [key] = [key for key in table.metadata.encryption_keys if key.key_id.encode() == file.key_metadata]
    wrapping = {each.key_id for each in table.metadata.encryption_keys if "KEY_TIMESTAMP" in each.properties}
    assert key.encrypted_by_id in wrapping
    read, size = mf.statistics_reader(table.metadata, file, table.storage)
    assert read is not None
    plain = read_footer(read, size, str(path), footer_size=file.file_footer_size_in_bytes)
    assert [blob.fields for blob in plain.blobs] == [(1,), (2,)]
    assert table.verify(level="footers").clean
    manifest_list = Path(
        str(table.metadata.resolve(str(table.metadata.snapshots[-1].manifest_list))).removeprefix("file://")
    )
    flipped = [stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :] for at in (0, 50, len(stored) - 1)]
    for changed in (*flipped, b"", stored[:-1], stored + b"\x00", manifest_list.read_bytes()):
        path.write_bytes(changed)
        problems = table.verify(level="footers").findings
        assert any(path.name in str(problem) for problem in problems), changed[:60]
    path.write_bytes(stored)
    # A file that is replaced takes its key along, and so does an expired snapshot.
    before = {each.key_id for each in table.metadata.encryption_keys}
    table.maintenance.compute_table_stats(columns=["id"])
    after = {each.key_id for each in table.refresh().metadata.encryption_keys}
    assert key.key_id in before - after
    assert len(after) == len(before)
    key_id = (table.statistics()[0].key_metadata or b"").decode()
    with pytest.raises(EncryptionError, match="statistics of"):
        apply_all(table.metadata, [up.RemoveEncryptionKeyUpdate(key_id)], now_ms=0)
    table.append(rows(20))
    table.maintenance.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=1)
    assert [key.key_id for key in table.refresh().metadata.encryption_keys if not key.properties] == [
        snapshot.key_id for snapshot in table.metadata.snapshots
    ]
    assert not table.statistics()


def copied(table: Table, target: str, start_version: str | None = None) -> str:
    """All files of a copy, at their places; where its metadata is."""
    done = table.maintenance.rewrite_table_path(
        str(table.location()), target, start_version=start_version, create_file_list=True
    )
    assert done.listed_files_count
    for source, place in csv.reader(table.storage.read(done.file_list_location).decode().splitlines()):
        table.storage.write(place, table.storage.read(source))
    return done.metadata_location


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("length", [16, 24])
def test_a_copy_at_another_place_is_encrypted_and_whole(
    lake: Catalog, tmp_path: Path, version: int, length: int
) -> None:
    table = grown(lake, version, encryption__data_key_length=str(length))
    table.maintenance.compute_table_stats(columns=["id"])
    table = lake.load_table("n.t")
    first = str(table.metadata_location).rpartition("/")[2]
    target = f"file://{tmp_path}/a-place-with-a-longer-name"
    copy = lake.register_table("n.copy", copied(table, target))
    check_whole_copy(copy, table, LEFT, target)
    table.append(rows(20, 21))
    table.delete("id = 5")
    lake.drop_table("n.copy")
    later = [*(i for i in LEFT if i != 5), 20, 21]
    copy = lake.register_table("n.copy", copied(table, target, first))
    check_whole_copy(copy, table, later, target)
    # The copy goes on as a table of its own.
    copy.append(rows(30))
    copy.maintenance.rewrite_manifests()
    assert found(copy) == [*later, 30]
    assert found(table) == later


def check_whole_copy(copy: Table, table: Table, ids: list[int], target: str) -> None:
    """The same rows in every snapshot, from files below the target alone, none of them in clear."""
    home = Path(str(table.location()).removeprefix("file://"))
    home.rename(home.with_name("hidden"))
    try:
        assert found(copy) == ids
        assert str(copy.location()) == target
        report = copy.verify(level="data")
        assert report.clean, str(report)
        sealed = [info for info in copy.storage.list_prefix(target) if not info.location.endswith(".json")]
        assert {bytes(copy.storage.read(info.location)[:4]) for info in sealed} <= {b"AGS1", b"PARE"}
        copies = [found_at(copy, snapshot.snapshot_id) for snapshot in copy.metadata.snapshots]
    finally:
        home.with_name("hidden").rename(home)
    assert copies == [found_at(table, snapshot.snapshot_id) for snapshot in table.metadata.snapshots]


def found_at(table: Table, snapshot_id: int) -> list[int]:
    ids: list[int] = table.scan(snapshot_id=snapshot_id).to_arrow().sort_by("id")["id"].to_pylist()
    return ids


def test_files_in_clear_make_no_encrypted_table(lake: Catalog, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    pq.write_table(rows(1, 2), source / "f.parquet")
    for version in VERSIONS:
        for make in (lake.snapshot, lake.migrate):
            properties = {"format-version": str(version), "encryption.key-id": "k1"}
            with pytest.raises(StateError, match="encrypt"):
                make(str(source), "n.copy", properties=properties)
            assert not lake.table_exists("n.copy")
    assert [path.name for path in source.rglob("*") if path.is_file()] == ["f.parquet"]


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_are_replaced_after_two_years(lake: Catalog, version: int) -> None:
    created(lake, version)
    day = 24 * 3600 * 1000
    start = now_ms()
    wrapping: list[set[str]] = []
    for number, days in enumerate((0, 729, 731, 1460, 1470)):
        table = lake.load_table("n.t")
        table._timing = replace(table._timing, clock_ms=lambda days=days: start + days * day)  # type: ignore[misc]  # of this round
        table.append(rows(number))
        keys = lake.load_table("n.t").metadata.encryption_keys
        wrapping.append({key.key_id for key in keys if "KEY_TIMESTAMP" in key.properties})
    assert [len(keys) for keys in wrapping] == [1, 1, 2, 2, 3], "a new one is made by the first commit after 730 days"
    table = lake.load_table("n.t")
    assert found(table) == [0, 1, 2, 3, 4]
    for number, snapshot in enumerate(table.metadata.snapshots):
        assert table.scan(snapshot_id=snapshot.snapshot_id).count() == number + 1, "each list is opened by its own key"
    table.maintenance.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=1)
    assert found(lake.load_table("n.t")) == [0, 1, 2, 3, 4]
    check_sealed(table)


def test_inspection(lake: Catalog) -> None:
    table = grown(lake, 3)
    inspect = table.inspect
    assert inspect.files().num_rows == 8
    assert inspect.position_deletes().num_rows == 2
    assert (
        inspect.entries()["data_file"].combine_chunks().field("key_metadata").null_count == inspect.entries().num_rows
    )
    assert inspect.all_manifests()["key_metadata"].null_count == inspect.all_manifests().num_rows
    assert inspect.partitions().num_rows == 2


def test_branches_tags_and_time_travel(lake: Catalog) -> None:
    table = created(lake, 3)
    table.append(rows(1, 2))
    with table.manage_snapshots() as refs:
        refs.create_tag("first")
    table.append(rows(3), branch="work")
    table.append(rows(4))
    assert found(table) == [1, 2, 4]
    assert table.scan(snapshot_id=table.refs()["first"].snapshot_id).to_arrow().num_rows == 2
    assert table.scan(snapshot_id=table.refs()["work"].snapshot_id).to_arrow().num_rows == 3


def test_names_go_with_their_seals(either: Catalog) -> None:
    lake = either
    created(lake, 3).append(rows(1))
    moved = lake.rename_table("n.t", "n.moved")
    assert found(lake.load_table("n.moved")) == [1]
    location = str(moved.metadata_location)
    lake.drop_table("n.moved")
    again = lake.register_table("n.again", location)
    again.append(rows(2))
    assert found(lake.load_table("n.again")) == [1, 2]
    plain = lake.create_table("n.plain", "id bigint, name string, region string", properties={"format-version": "3"})
    with pytest.raises(StateError, match="is permanent"):
        lake.register_table("n.again", str(plain.metadata_location), overwrite=True)
    lake.purge_table("n.again")
    assert created(lake, 3, "n.again").scan().to_arrow().num_rows == 0


def test_several_tables_in_one_commit(either: Catalog) -> None:
    lake = either
    one, two = created(lake, 3, "n.one"), created(lake, 4, "n.two")
    with lake.transaction() as tx:
        tx.table("n.one").append(rows(1))
        tx.table("n.two").append(rows(2))
    assert found(lake.load_table("n.one")) == [1]
    assert found(lake.load_table("n.two")) == [2]
    check_sealed(one)
    check_sealed(two)


def test_created_with_rows(either: Catalog) -> None:
    lake = either
    properties = {"format-version": "3", "encryption.key-id": "k1"}
    with lake.create_table_transaction("n.t", "id bigint, name string, region string", properties=properties) as tx:
        tx.append(rows(1, 2))
    assert found(lake.load_table("n.t")) == [1, 2]
    with lake.create_or_replace_table_transaction("n.t", "id bigint, name string, region string") as tx:
        tx.append(rows(3))
    table = lake.load_table("n.t")
    assert found(table) == [3]
    assert table.properties["encryption.key-id"] == "k1", "a table that is replaced stays encrypted"
    check_sealed(table)


def test_a_lost_race_leaves_no_keys_behind(either: Catalog) -> None:
    lake = either
    created(lake, 3)
    first, second = lake.load_table("n.t"), lake.load_table("n.t")
    first.append(rows(1))
    second.append(rows(2))
    table = lake.load_table("n.t")
    assert found(table) == [1, 2]
    named = {snapshot.key_id for snapshot in table.metadata.snapshots}
    lists = {key.key_id for key in table.metadata.encryption_keys if not key.properties}
    assert named == lists
    assert len(table.metadata.encryption_keys) == len(lists) + 1


def test_variants_and_large_files(lake: Catalog) -> None:
    table = lake.create_table(
        "n.v", "id bigint, doc variant", properties={"format-version": "3", "encryption.key-id": "k1"}
    )
    count = 300_000
    ids = pa.array(range(count), pa.int64())
    five = pa.array(
        [{"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}], table.scan().to_arrow().schema.field("doc").type
    )
    table.append(pa.table({"id": ids, "doc": five.take(pa.array([0]).take(pa.nulls(count, pa.int64()).fill_null(0)))}))
    assert table.scan("id = 299999").to_arrow()["id"].to_pylist() == [299999]
    check_sealed(table)
    assert table.verify(level="data").clean


def test_a_v4_table_becomes_one_for_java(lake: Catalog) -> None:
    """Manifests with relative paths are found and written anew though they are encrypted."""
    table = grown(lake, 4)
    table.set_properties({"icefloe.v4.compat": "java-1.12"})
    assert "relative" in str(table.maintenance.rewrite_manifests(dry_run=True))
    table.maintenance.rewrite_manifests()
    assert not table.maintenance.rewrite_manifests(dry_run=True).groups
    assert found(table) == LEFT
