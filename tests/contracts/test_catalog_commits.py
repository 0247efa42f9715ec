"""How commits and staged tables work in every catalog: memory, SQLite, a real PostgreSQL and the file system."""

from dataclasses import replace

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog
from icefloe.commit import Prepared
from icefloe.errors import (
    CommitFailed,
    NoSuchTableError,
    StaleBaseError,
    TableAlreadyExistsError,
    UnsupportedVersionError,
    ValidationError,
)
from icefloe.metadata import MAIN_BRANCH, requirements as req, updates as up
from icefloe.schema.types import LongType
from tests.catalog.tables import (
    SCHEMA,
    Maker,
    append,
    create,
    every_kind,
    every_version,
    files_below,
    is_linear,
    live_files,
    write_rows,
)

# Commits


@every_version
def test_commits_follow_each_other(catalog: Catalog, make: Maker, version: int) -> None:
    table = create(catalog, version=version)
    files = [append(table, number).file_path for number in range(3)]
    loaded = catalog.load_table("shop.orders")
    assert loaded.metadata == table.metadata
    assert sorted(live_files(loaded)) == sorted(files)
    assert is_linear(loaded)
    log = [loaded.metadata.resolve(entry.metadata_file) for entry in loaded.metadata.metadata_log]
    assert len(log) == 3
    assert all(catalog.storage.exists(each) for each in log)
    assert (
        (loaded.metadata_location or "")
        .rpartition("/")[2]
        .startswith("v4." if catalog.properties["type"] == "hadoop" else "00003-")
    )


@every_kind
def test_a_stale_writer_is_told_and_succeeds_when_it_tries_again(catalog: Catalog) -> None:
    table = create(catalog)
    stale = catalog.load_table("shop.orders")
    before = stale.state
    append(table, 1)
    committer = stale._committer
    files = files_below(catalog, table.location())
    relying = (req.AssertRefSnapshotId(MAIN_BRANCH, None),)
    with pytest.raises(CommitFailed, match=r"(?i)requirement failed"):
        committer.commit(table.state, Prepared((up.SetPropertiesUpdate({"a": "b"}),), relying), lambda: None)
    # Whether or not the updates rely on anything that changed: they were not made for this state.
    with pytest.raises(StaleBaseError, match="it must be prepared again"):
        committer.commit(before, Prepared((up.SetPropertiesUpdate({"a": "b"}),)), lambda: None)
    assert files_below(catalog, table.location()) == files
    stale.set_properties({"a": "b"})
    append(stale, 2)
    assert len(live_files(catalog.load_table("shop.orders"))) == 2
    assert catalog.load_table("shop.orders").properties == {"a": "b"}


@every_kind
def test_nothing_is_written_when_nothing_changes(catalog: Catalog) -> None:
    table = create(catalog, properties={"a": "b"})
    files = files_below(catalog, table.location())
    table.set_properties({"a": "b"})
    assert files_below(catalog, table.location()) == files
    assert catalog.load_table("shop.orders").metadata_location == table.metadata_location


@every_kind
def test_another_table_of_the_same_name_is_not_changed(catalog: Catalog) -> None:
    table = create(catalog)
    catalog.drop_table("shop.orders")
    other = create(catalog)
    with pytest.raises(CommitFailed, match="a different table now"):
        append(table, 1)
    with pytest.raises(CommitFailed, match="a different table now"):
        table.refresh()
    assert catalog.load_table("shop.orders").metadata == other.metadata


@every_kind
def test_metadata_can_be_compressed(catalog: Catalog, make: Maker) -> None:
    table = create(catalog, properties={"write.metadata.compression-codec": "gzip"})
    append(table, 1)
    append(table, 2)
    location = table.metadata_location or ""
    assert location.endswith(".gz.metadata.json")
    assert catalog.storage.read(location).startswith(b"\x1f\x8b")
    assert len(live_files(catalog.load_table("shop.orders"))) == 2
    table.set_properties({"write.metadata.compression-codec": "none"})
    append(table, 3)
    assert (table.metadata_location or "").endswith(".metadata.json")
    assert not (table.metadata_location or "").endswith(".gz.metadata.json")
    assert len(live_files(catalog.load_table("shop.orders"))) == 3


@every_kind
def test_old_metadata_goes_when_asked_for(catalog: Catalog) -> None:
    table = create(
        catalog,
        properties={"write.metadata.previous-versions-max": 2, "write.metadata.delete-after-commit.enabled": "true"},
    )
    for number in range(5):
        append(table, number)
    files = {each for each in files_below(catalog, table.location()) if "metadata.json" in each}
    assert len(table.metadata.metadata_log) == 2
    # Without a catalog the names of old versions must stay taken.
    assert len(files) == (6 if catalog.properties["type"] == "hadoop" else 3)
    assert table.metadata_location in files
    assert len(live_files(catalog.load_table("shop.orders"))) == 5


@every_version
def test_format_versions_only_go_up(catalog: Catalog, version: int) -> None:
    table = create(catalog)
    if version < 2:
        with pytest.raises(UnsupportedVersionError):
            table.upgrade_format_version(version)
    else:
        table.upgrade_format_version(version)
        append(table, 1)
        assert catalog.load_table("shop.orders").format_version == version


@pytest.mark.parametrize("kind", ["hadoop"])
def test_file_systems_hold_no_v4_tables(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedVersionError, match="v1 to v3 tables support; this table is v4"):
        create(catalog, version=4)
    table = create(catalog, version=3)
    with pytest.raises(UnsupportedVersionError, match="v1 to v3"):
        table.upgrade_format_version(4)
    assert catalog.load_table("shop.orders").format_version == 3


# Staged


@every_version
def test_a_staged_table_comes_with_its_first_rows(catalog: Catalog, version: int) -> None:
    transaction = catalog.create_table_transaction("shop.orders", SCHEMA, properties={"format-version": version})
    assert not catalog.table_exists("shop.orders")
    table = transaction._table
    file = write_rows(table, 1, 2)
    transaction.update_snapshot().fast_append([file])
    transaction.set_properties({"owner": "me"})
    assert not catalog.table_exists("shop.orders")
    made = transaction.commit_transaction()
    loaded = catalog.load_table("shop.orders")
    assert loaded.metadata == made.metadata
    assert live_files(loaded) == [file.file_path]
    assert loaded.properties.items() >= {"owner": "me"}.items()
    append(made, 3)
    assert len(live_files(catalog.load_table("shop.orders"))) == 2


@every_kind
def test_a_staged_table_may_hold_nothing_or_never_come(catalog: Catalog) -> None:
    with catalog.create_table_transaction("shop.empty", SCHEMA):
        pass
    assert catalog.load_table("shop.empty").snapshots() == []
    with pytest.raises(ZeroDivisionError), catalog.create_table_transaction("shop.never", SCHEMA) as transaction:
        transaction.set_properties({"a": str(1 // 0)})
    assert not catalog.table_exists("shop.never")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table_transaction("shop.empty", SCHEMA)


@every_kind
def test_a_staged_table_may_come_too_late(catalog: Catalog) -> None:
    transaction = catalog.create_table_transaction("shop.orders", SCHEMA)
    file = write_rows(transaction._table, 1)
    transaction.update_snapshot().fast_append([file])
    faster = create(catalog)
    kept = append(faster, 2)
    with pytest.raises(TableAlreadyExistsError):
        transaction.commit_transaction()
    assert catalog.load_table("shop.orders").metadata.table_uuid == faster.metadata.table_uuid
    assert live_files(catalog.load_table("shop.orders")) == [kept.file_path]


@every_version
def test_a_replaced_table_keeps_its_identity_and_history(catalog: Catalog, version: int) -> None:
    table = catalog.create_table(
        "shop.orders", SCHEMA, partition_spec=["id"], properties={"format-version": version, "a": "1"}
    )
    table.update_snapshot().fast_append([replace(write_rows(table, 1), partition=(1,))])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    transaction = catalog.replace_table_transaction(
        "shop.orders", "name string, extra int", sort_order=["extra"], properties={"b": "2"}
    )
    transaction.commit_transaction()
    new = catalog.load_table("shop.orders")
    assert new.metadata.table_uuid == table.metadata.table_uuid
    assert new.current_snapshot() is None
    assert [each.snapshot_id for each in new.snapshots()] == [snapshot.snapshot_id]
    assert [(field.field_id, field.name) for field in new.schema().fields] == [(2, "name"), (3, "extra")]
    assert new.spec().is_unpartitioned
    assert new.properties.items() >= {"a": "1", "b": "2"}.items()
    assert new.location() == table.location()
    assert len(new.sort_order().fields) == 1
    with pytest.raises(NoSuchTableError):
        catalog.replace_table("shop.missing", SCHEMA)


@every_version
def test_create_or_replace_does_what_fits(catalog: Catalog, version: int) -> None:
    properties = {"format-version": version}
    one = catalog.create_or_replace_table("shop.orders", SCHEMA, properties=properties)
    append(one, 1)
    two = catalog.create_or_replace_table("shop.orders", "id long, name string, more int", partition_spec=["id"])
    assert two.metadata.table_uuid == one.metadata.table_uuid
    assert two.format_version == version
    assert two.current_snapshot() is None
    assert len(two.snapshots()) == 1
    three = catalog.create_or_replace_table("shop.orders", SCHEMA)
    assert three.schema().same_columns(one.schema())
    assert three.metadata.current_schema_id == one.metadata.current_schema_id
    append(three, 5)
    assert len(live_files(catalog.load_table("shop.orders"))) == 1
    assert len(three.snapshots()) == 2


@every_kind
def test_a_replacement_loses_no_commit_of_others(catalog: Catalog) -> None:
    table = create(catalog)
    transaction = catalog.replace_table_transaction("shop.orders", "other string")
    file = append(table, 1)
    done = transaction.commit_transaction()
    assert len(done.snapshots()) == 1
    assert live_files(done, done.snapshots()[0].snapshot_id) == [file.file_path]
    assert done.current_snapshot() is None


@every_kind
def test_a_replacement_with_rows_keeps_the_ids_that_they_were_written_with(catalog: Catalog) -> None:
    table = create(catalog)
    transaction = catalog.replace_table_transaction("shop.orders", "id long, extra string")
    transaction.append(pa.table({"id": [1], "extra": ["x"]}))
    with table.update_schema() as update:
        update.add_column("more", LongType())
    # The id that `extra` has in the file of the rows is that of `more` by now.
    with pytest.raises(ValidationError, match="would get other ids"):
        transaction.commit_transaction()
    assert catalog.load_table("shop.orders").schema() == table.schema()
    assert live_files(catalog.load_table("shop.orders")) == []
    # Without rows there is nothing to be in the way.
    transaction = catalog.replace_table_transaction("shop.orders", "id long, extra string")
    with table.update_schema() as update:
        update.add_column("again", LongType())
    done = transaction.commit_transaction()
    assert [(each.field_id, each.name) for each in done.schema().fields] == [(1, "id"), (5, "extra")]
    # What others do beside the columns is not in the way either.
    transaction = catalog.replace_table_transaction("shop.orders", "id long, extra string")
    transaction.append(pa.table({"id": [1], "extra": ["x"]}))
    done.append(pa.table({"id": [7], "extra": ["y"]}))
    done.set_properties({"a": "b"})
    now = transaction.commit_transaction()
    assert now.scan().to_arrow().to_pylist() == [{"id": 1, "extra": "x"}]
    assert now.properties["a"] == "b"
