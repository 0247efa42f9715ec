"""Maintenance of encrypted tables: each call works on them and leaves nothing in clear, or refuses with a sentence."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefloe.catalog import Catalog
from icefloe.commit import now_ms
from icefloe.errors import EncryptionError, StateError
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
    for refused in (
        table.maintenance.compute_table_stats,
        table.maintenance.compute_partition_stats,
        lambda: table.maintenance.rewrite_table_path(str(table.location()), str(tmp_path / "elsewhere")),
    ):
        with pytest.raises(EncryptionError, match="the table is encrypted"):
            refused()
    plain = lake.create_table("n.plain", "id bigint, name string, region string")
    plain.append(rows(1))
    with pytest.raises(StateError):
        table.add_files([task.file.file_path for task in plain.scan().plan_files()])
    assert found(table) == LEFT


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
    with pytest.raises(StateError, match="stays for ever"):
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
