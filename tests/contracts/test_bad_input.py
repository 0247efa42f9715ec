"""Bad input, in every catalog and format version: an error that says what is wrong, and a table that is as it was."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog
from icefloe.errors import (
    CommitFailed,
    IcefloeError,
    InvalidInputError,
    InvalidPartitionSpecError,
    InvalidPropertyError,
    InvalidSchemaError,
    InvalidValueError,
    NamespaceNotEmptyError,
    NoSuchTableError,
    ValidationError,
)
from icefloe.manifests import DataFile, FileContent
from icefloe.metadata import updates as up
from icefloe.schema.binary import encode
from icefloe.schema.types import LongType
from icefloe.table import Table
from icefloe.versions import Feature, allows
from tests.catalog.operations import DDL, files_of, rows
from tests.catalog.tables import KINDS_AND_VERSIONS, files_below, live_files

every_version = pytest.mark.parametrize(("kind", "version"), KINDS_AND_VERSIONS)
NAME = "shop.orders"


def create(catalog: Catalog, version: int, name: str = NAME, location: str | None = None) -> Table:
    """A table with one file."""
    properties = {"format-version": version}
    table = catalog.create_table(name, DDL, location, partition_spec=["region"], properties=properties)
    table.update_snapshot().fast_append(files_of(table, rows(1, 2)))
    return table


@contextmanager
def refused(catalog: Catalog, error: type[IcefloeError], message: str) -> Iterator[None]:
    """The block ends by that error, and leaves the table and all its files as they were."""
    before = catalog.load_table(NAME)
    files = files_below(catalog, before.location())
    with pytest.raises(error, match=message):
        yield
    assert catalog.load_table(NAME).metadata_location == before.metadata_location
    assert files_below(catalog, before.location()) == files


def append(*files: DataFile) -> Callable[[Table], object]:
    return lambda table: table.update_snapshot().fast_append(files)


@every_version
def test_what_does_not_exist(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    with refused(catalog, NoSuchTableError, r"no table shop\.ordres in catalog"):
        catalog.load_table("shop.ordres")
    with refused(catalog, NoSuchTableError, r"no table shop\.ordres"):
        catalog.drop_table("shop.ordres")
    catalog.drop_table(NAME)
    for change in (lambda: table.set_properties({"a": "b"}), lambda: table.append(rows(3)), lambda: table.refresh()):
        with pytest.raises(NoSuchTableError, match=r"no table shop\.orders"):
            change()
    assert not catalog.table_exists(NAME)


@every_version
def test_a_namespace_that_is_not_empty(catalog: Catalog, version: int) -> None:
    create(catalog, version)
    with refused(catalog, NamespaceNotEmptyError, r"shop is not empty; it has 1 tables: shop\.orders"):
        catalog.drop_namespace("shop")
    assert catalog.namespace_exists("shop")


@every_version
def test_reserved_properties_and_those_that_are_almost_so(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    for key in ("format_version", "Format-Version", "format-verison", "curent-snapshot-id", "uuid"):
        with refused(catalog, InvalidPropertyError, "reserved"):
            table.set_properties({key: "3"})
        with refused(catalog, InvalidPropertyError, "reserved"):
            table.transaction().set_properties({"fine": "yes", key: "3"}).commit_transaction()
        with pytest.raises(InvalidPropertyError, match="reserved"):
            catalog.create_table("shop.other", DDL, properties={key: "3"})
        assert not catalog.table_exists("shop.other")
    table.set_properties({"version": "mine", "my-format-version-of-choice": "x", "uuids": "y"})


@every_version
def test_values_of_known_properties_that_mean_nothing(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    with refused(catalog, InvalidPropertyError, r"commit\.retry\.num-retries.*many"):
        table.set_properties({"commit.retry.num-retries": "many"})


@every_version
def test_a_file_twice(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    (new,) = files_of(table, rows(3))
    (old,) = (task.file for task in table.scan().plan_files())
    with refused(catalog, InvalidInputError, "is added 2 times in one commit"):
        append(new, new)(table)
    with refused(catalog, ValidationError, "already in the table"):
        append(new, old)(table)
    stale = catalog.load_table(NAME)
    append(new)(table)
    with refused(catalog, ValidationError, "already in the table"):
        append(new)(stale)
    more = replace(new, file_path=f"{new.file_path}-more")
    with refused(catalog, ValidationError, "already in the table"), table.transaction() as tx:
        tx.update_snapshot().fast_append([more])
        tx.update_snapshot().fast_append([more])


@every_version
def test_a_file_that_does_not_fit_its_spec(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    (file,) = files_of(table, rows(3))
    for bad, error, message in (
        (replace(file, partition=()), InvalidInputError, "0 partition values; this manifest is of spec 0 with 1"),
        (replace(file, partition=("eu", "us")), InvalidInputError, "2 partition values"),
        (replace(file, partition=(5,)), InvalidValueError, "is not an internal value of type string"),
        (replace(file, partition=("us",)), InvalidInputError, "not in its partition, by the bounds of column 'region'"),
        (replace(file, spec_id=7), InvalidPartitionSpecError, "partition spec 7, which the table does not have"),
    ):
        with refused(catalog, error, message):
            append(bad)(table)


@every_version
@pytest.mark.commits_wrong_files
def test_wrong_field_ids(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    (file,) = files_of(table, rows(3))
    for field_id in (0, -1, 3, 99):
        counts = {1: 1, field_id: 1}
        with refused(catalog, InvalidInputError, f"has value_counts of column {field_id}, which the table never had"):
            append(replace(file, value_counts=counts))(table)
        with refused(catalog, InvalidInputError, f"has column_sizes of column {field_id}, which the table never had"):
            append(replace(file, column_sizes=counts))(table)
    bounds = {99: encode(5, LongType())}
    with refused(catalog, InvalidInputError, "has lower_bounds of column 99"):
        append(replace(file, lower_bounds=bounds))(table)
    if allows(version, Feature.DELETE_FILES):
        deletes = replace(file, content=FileContent.EQUALITY_DELETES, equality_ids=(9,))
        with refused(catalog, InvalidSchemaError, "refer to column 9, which is not in the schema"):
            table.update_snapshot().row_delta(None, deletes=[deletes])
    with refused(catalog, InvalidInputError, "nobody"):
        table.append(pa.table({"nobody": [1]}))
    # Columns that are gone now are fine: files from before are.
    with table.update_schema() as update:
        update.add_column("more", LongType())
    with table.update_schema() as update:
        update.delete_column("more")
    append(replace(file, value_counts={1: 1, 3: 1}))(table)


@every_version
def test_another_table_under_the_same_name(catalog: Catalog, version: int) -> None:
    stale = create(catalog, version)
    catalog.drop_table(NAME)
    create(catalog, version)
    with refused(catalog, CommitFailed, "a different table now: its UUID is"):
        stale.set_properties({"a": "b"})
    with refused(catalog, CommitFailed, "a different table now: its UUID is"):
        stale.refresh()
    with pytest.raises(CommitFailed, match="a different table now"):
        stale.append(rows(3))
    assert catalog.load_table(NAME).scan().count() == 2


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_tables_that_were_put_at_one_place_do_not_take_each_others_files(catalog: Catalog) -> None:
    place = f"{catalog.warehouse}/both"
    one, two = create(catalog, 2, "shop.one", place), create(catalog, 2, "shop.two", place)
    inner = create(catalog, 2, "shop.inner", f"{place}/data/inner")
    kept = {path: [catalog.storage.read(each) for each in live_files(path)] for path in (two, inner)}
    catalog.purge_table("shop.one")
    for table, contents in kept.items():
        assert [catalog.storage.read(each) for each in live_files(catalog.load_table(table.name()))] == contents
    assert one.location() == two.location()


BROKEN = "broken \ud800"
"""A text that UTF-8 cannot hold."""

UNWRITABLE: dict[str, Callable[[Table], object]] = {
    "property": lambda table: table.set_properties({"a": BROKEN}),
    "summary": lambda table: table.append(rows(3), {"a": BROKEN}),
    "branch": lambda table: table.append(rows(3), branch=BROKEN),
    "tag": lambda table: table.manage_snapshots().create_tag(BROKEN).commit(),
    "retention": lambda table: table.manage_snapshots().create_tag("a", max_ref_age_ms=2**70).commit(),
    "number": lambda table: table.transaction().apply_updates(up.SetPropertiesUpdate({"a": 1})).commit_transaction(),  # type: ignore[dict-item]  # what is wrong
    "object": lambda table: (
        table.transaction().apply_updates(up.SetPropertiesUpdate({"a": object()})).commit_transaction()  # type: ignore[dict-item]  # what is wrong
    ),
    "location": lambda table: table.transaction().update_location(f"memory://a/{BROKEN}").commit_transaction(),
}


@pytest.mark.parametrize(("kind", "version"), [("memory", 3), ("sqlite", 2), ("hadoop", 1)])
def test_what_no_document_can_hold_is_refused_with_nothing_sent(catalog: Catalog, version: int) -> None:
    table = create(catalog, version)
    for change in UNWRITABLE.values():
        with refused(catalog, InvalidInputError, "JSON|UTF-8|expected"):
            change(table)
        assert table.metadata_location == catalog.load_table(NAME).metadata_location
    table.append(rows(3))
