"""What every catalog must do, run over memory, SQLite, a real PostgreSQL and the file system."""

import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from icefloe.catalog import Catalog
from icefloe.errors import (
    InvalidInputError,
    InvalidLocationError,
    InvalidPartitionSpecError,
    InvalidPropertyError,
    InvalidSchemaError,
    InvalidSortOrderError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    UnsupportedVersionError,
    ValidationError,
    ViewAlreadyExistsError,
)
from icefloe.partitioning import parse_partition_spec
from icefloe.schema import parse_ddl
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.catalog.tables import (
    PATIENT,
    SCHEMA,
    Maker,
    append,
    create,
    every_kind,
    every_version,
    files_below,
    home_of,
    is_linear,
    kinds_with_pointers,
    live_files,
)

# Namespaces


@every_kind
def test_namespaces_are_created_listed_and_dropped(make: Maker) -> None:
    catalog = make()
    assert catalog.list_namespaces() == []
    assert not catalog.namespace_exists("a")
    catalog.create_namespace("a")
    catalog.create_namespace(("b", "c"))
    catalog.create_namespace("b.c.d")
    assert catalog.list_namespaces() == [("a",), ("b",)]
    assert catalog.list_namespaces("b") == [("b", "c")]
    assert catalog.list_namespaces(("b", "c")) == [("b", "c", "d")]
    assert catalog.list_namespaces("a") == []
    assert catalog.namespace_exists("b")
    assert catalog.namespace_exists("b.c")
    with pytest.raises(NamespaceAlreadyExistsError, match=r"b\.c already exists"):
        catalog.create_namespace("b.c")
    catalog.create_namespace_if_not_exists("b.c")
    with pytest.raises(NamespaceNotEmptyError, match=r"b\.c is not empty; it has 1 namespaces: b\.c\.d"):
        catalog.drop_namespace("b.c")
    catalog.drop_namespace("b.c.d")
    catalog.drop_namespace("b.c")
    assert not catalog.namespace_exists("b.c.d")
    with pytest.raises(NoSuchNamespaceError, match=r"no namespace b\.c\.d"):
        catalog.drop_namespace("b.c.d")
    catalog.drop_namespace("a")
    assert ("a",) not in catalog.list_namespaces()


@every_kind
@pytest.mark.parametrize("one", ["a_b", "A", "a%", "ä", "a b", "🧊"])
def test_namespaces_that_look_alike_are_not_one(make: Maker, one: str) -> None:
    catalog = make()
    other = {"a_b": "axb", "A": "a", "a%": "ab", "ä": "a", "a b": "ab", "🧊": "💧"}[one]
    catalog.create_namespace((one, "inner"))
    catalog.create_namespace((other + "x", "inner"))
    assert catalog.namespace_exists((one,))
    assert not catalog.namespace_exists((other,))
    assert catalog.list_namespaces((one,)) == [(one, "inner")]


@kinds_with_pointers
def test_namespaces_have_properties(make: Maker) -> None:
    catalog = make()
    catalog.create_namespace("a", {"owner": "me", "level": 3, "on": True})
    catalog.create_namespace("b")
    assert catalog.load_namespace_properties("a") == {"owner": "me", "level": "3", "on": "true"}
    assert catalog.load_namespace_properties("b") == {}
    done = catalog.update_namespace_properties("a", {"level", "nothing"}, {"owner": "you", "new": "x"})
    assert (done.removed, done.updated, done.missing) == (("level",), ("new", "owner"), ("nothing",))
    assert catalog.load_namespace_properties("a") == {"owner": "you", "new": "x", "on": "true"}
    catalog.update_namespace_properties("a", {"owner", "new", "on"})
    assert catalog.namespace_exists("a")
    assert make().load_namespace_properties("a") == {} if catalog.properties["type"] == "sql" else True
    with pytest.raises(InvalidInputError, match="'x' cannot be both removed and set"):
        catalog.update_namespace_properties("a", {"x"}, {"x": "1"})
    with pytest.raises(InvalidPropertyError, match="'exists' is reserved"):
        catalog.create_namespace("c", {"exists": "true"})
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("missing")


@pytest.mark.parametrize("kind", ["hadoop"])
def test_folders_have_no_properties(catalog: Catalog) -> None:
    assert catalog.load_namespace_properties("shop") == {"location": f"{home_of(catalog)}/shop"}
    with pytest.raises(InvalidInputError, match="cannot have properties"):
        catalog.update_namespace_properties("shop", updates={"a": "b"})
    with pytest.raises(InvalidInputError, match="cannot have properties"):
        catalog.create_namespace("other", {"a": "b"})
    assert not catalog.namespace_exists("other")


# Tables


@every_version
def test_a_table_is_what_it_was_created_as(catalog: Catalog, make: Maker, version: int) -> None:
    made = catalog.create_table(
        "shop.orders",
        "id long not null, ts timestamp, name string",
        partition_spec=["days(ts)", "bucket(16, id)"],
        sort_order="ts desc",
        properties={"format-version": version, "owner": "me"},
    )
    table = catalog.load_table(("shop", "orders"))
    assert table.metadata == made.metadata
    assert table.metadata_location == made.metadata_location
    assert table.name() == ("shop", "orders")
    assert table.format_version == version
    assert table.location() == f"{home_of(catalog)}/shop/orders"
    assert [field.name for field in table.spec().fields] == ["ts_day", "id_bucket"]
    assert len(table.sort_order().fields) == 1
    assert table.properties == {"owner": "me"}
    assert catalog.table_exists("shop.orders")
    assert catalog.list_tables("shop") == [("shop", "orders")]
    if catalog.properties["type"] != "memory":
        assert make().load_table("shop.orders").metadata == table.metadata


@every_kind
def test_schemas_come_in_many_forms(catalog: Catalog) -> None:
    ours = parse_ddl(SCHEMA)
    arrow = pa.schema([("id", pa.int64()), ("name", pa.string())])
    tables = [catalog.create_table(f"shop.t{i}", each) for i, each in enumerate([SCHEMA, ours, arrow])]
    assert len({str(table.schema()) for table in tables}) == 1
    spec = parse_partition_spec(["id"], ours)
    assert catalog.create_table("shop.t4", ours, partition_spec=spec).spec().fields == spec.fields


@every_kind
def test_a_name_is_taken_once(catalog: Catalog) -> None:
    first = create(catalog)
    before = files_below(catalog, home_of(catalog))
    with pytest.raises(TableAlreadyExistsError, match=r"shop\.orders already exists"):
        create(catalog)
    assert files_below(catalog, home_of(catalog)) == before
    again = catalog.create_table_if_not_exists("shop.orders", "other int")
    assert again.metadata.table_uuid == first.metadata.table_uuid
    assert catalog.create_table_if_not_exists("shop.more", SCHEMA).name() == ("shop", "more")


@every_kind
def test_many_create_one_table_at_the_same_time(catalog: Catalog) -> None:
    start = threading.Barrier(6)

    def one(_: int) -> str | None:
        start.wait()
        try:
            return create(catalog).metadata.table_uuid
        except TableAlreadyExistsError:
            return None

    with ThreadPoolExecutor(6) as pool:
        made = [uuid for uuid in pool.map(one, range(6)) if uuid is not None]
    assert made == [catalog.load_table("shop.orders").metadata.table_uuid]


@every_kind
def test_what_is_missing_is_said(catalog: Catalog) -> None:
    with pytest.raises(NoSuchTableError, match=r"no table shop\.missing in catalog 'lake"):
        catalog.load_table("shop.missing")
    with pytest.raises(NoSuchTableError):
        catalog.drop_table("shop.missing")
    with pytest.raises(NoSuchTableError):
        catalog.purge_table("shop.missing")
    with pytest.raises(NoSuchNamespaceError, match=r"no namespace nowhere .* create_namespace makes one"):
        catalog.create_table("nowhere.t", SCHEMA)
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("nowhere")
    assert not catalog.table_exists("nowhere.t")
    assert not catalog.table_exists("shop.missing")


@every_kind
def test_bad_definitions_are_refused_and_leave_nothing(catalog: Catalog) -> None:
    before = files_below(catalog, home_of(catalog))
    with pytest.raises(InvalidInputError, match=r"'orders' has no namespace; write it as namespace\.orders"):
        catalog.create_table("orders", SCHEMA)
    with pytest.raises(InvalidSchemaError, match="not int"):
        catalog.create_table("shop.t", 5)
    with pytest.raises(InvalidPartitionSpecError, match="not 7"):
        catalog.create_table("shop.t", SCHEMA, partition_spec=7)  # type: ignore[arg-type]  # that is the test
    with pytest.raises(InvalidSortOrderError, match=r"\[1\]"):
        catalog.create_table("shop.t", SCHEMA, sort_order=[1])  # type: ignore[list-item]  # that is the test
    with pytest.raises(InvalidPropertyError, match="'uuid' is reserved"):
        catalog.create_table("shop.t", SCHEMA, properties={"uuid": "x"})
    with pytest.raises(InvalidPropertyError, match="'a' is None"):
        catalog.create_table("shop.t", SCHEMA, properties={"a": None})
    with pytest.raises(InvalidPropertyError, match="not list"):
        catalog.create_table("shop.t", SCHEMA, properties=["a"])  # type: ignore[arg-type]  # that is the test
    with pytest.raises(UnsupportedVersionError, match="9"):
        catalog.create_table("shop.t", SCHEMA, properties={"format-version": 9})
    with pytest.raises(InvalidPropertyError, match=r"commit\.retry\.num-retries"):
        catalog.create_table("shop.t", SCHEMA, properties={"commit.retry.num-retries": "many"})
    assert catalog.list_tables("shop") == []
    assert files_below(catalog, home_of(catalog)) == before


@kinds_with_pointers
def test_odd_names_keep_to_their_places(catalog: Catalog) -> None:
    names = ["with.dot", "with space", "ünïcode-漢字-🧊", 'quo"te', "..", "a/b", "100%", "back`quote", "UPPER", "upper"]
    for name in names:
        table = catalog.create_table(("shop", name), SCHEMA)
        location = table.location() or ""
        assert location.startswith(f"{home_of(catalog)}/shop/")
        assert "/" not in location.removeprefix(f"{home_of(catalog)}/shop/")
        append(table, 1)
        assert len(live_files(catalog.load_table(("shop", name)))) == 1
    assert set(catalog.list_tables("shop")) == {("shop", name) for name in names}
    assert catalog.table_exists('shop."with.dot"')
    assert catalog.table_exists("shop.`with.dot`")
    assert len({catalog.load_table(("shop", name)).location() for name in names}) == len(names)


@pytest.mark.parametrize("kind", ["hadoop"])
@pytest.mark.parametrize("name", ["..", "a/b", "."])
def test_names_that_are_no_folders_are_refused(catalog: Catalog, name: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be the name of a folder"):
        catalog.create_table(("shop", name), SCHEMA)
    with pytest.raises(InvalidInputError, match="cannot be the name of a folder"):
        catalog.create_namespace(("shop", name))


@kinds_with_pointers
def test_a_table_can_be_anywhere(catalog: Catalog) -> None:
    place = f"{home_of(catalog)}-elsewhere/t"
    table = catalog.create_table("shop.t", SCHEMA, location=f"{place}/")
    assert table.location() == place
    append(table, 1)
    assert len(live_files(catalog.load_table("shop.t"))) == 1


@kinds_with_pointers
def test_a_namespace_may_have_a_place_of_its_own(catalog: Catalog) -> None:
    catalog.create_namespace("far", {"location": f"{home_of(catalog)}-far/"})
    assert catalog.create_table("far.t", SCHEMA).location() == f"{home_of(catalog)}-far/t"
    catalog.create_namespace("far.deep")
    assert catalog.create_table("far.deep.t", SCHEMA).location() == f"{home_of(catalog)}/far/deep/t"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_every_table_may_have_a_place_of_its_own(make: Maker) -> None:
    catalog = make(**{"unique-table-location": True})
    catalog.create_namespace("shop")
    location = catalog.create_table("shop.t", SCHEMA).location() or ""
    assert location.startswith(f"{home_of(catalog)}/shop/t-")


@pytest.mark.parametrize("kind", ["hadoop"])
def test_a_folder_is_its_own_place(catalog: Catalog) -> None:
    with pytest.raises(InvalidLocationError, match="cannot be at"):
        catalog.create_table("shop.t", SCHEMA, location=f"{home_of(catalog)}/elsewhere")
    table = catalog.create_table("shop.t", SCHEMA, location=f"{home_of(catalog)}/shop/t")
    with pytest.raises(InvalidLocationError, match="cannot move"):
        table.transaction().update_location(f"{home_of(catalog)}/other").commit_transaction()
    with pytest.raises(InvalidPropertyError, match=r"write\.metadata\.path"):
        table.set_properties({"write.metadata.path": f"{home_of(catalog)}/meta"})


@kinds_with_pointers
def test_two_tables_never_share_a_folder(catalog: Catalog) -> None:
    one = create(catalog)
    append(one, 1)
    catalog.rename_table("shop.orders", "shop.old")
    other = create(catalog)
    assert other.location() != one.location()
    catalog.purge_table("shop.orders")
    assert len(live_files(catalog.load_table("shop.old"))) == 1
    catalog.drop_table("shop.old")
    assert create(catalog, "shop.old").location() != one.location()


@kinds_with_pointers
def test_tables_are_renamed(catalog: Catalog) -> None:
    catalog.create_namespace("other.deep")
    table = create(catalog)
    create(catalog, "shop.taken")
    moved = catalog.rename_table("shop.orders", "other.deep.sales")
    assert moved.metadata.table_uuid == table.metadata.table_uuid
    assert moved.location() == table.location()
    assert catalog.list_tables("shop") == [("shop", "taken")]
    assert catalog.list_tables("other.deep") == [("other", "deep", "sales")]
    append(moved, 1)
    with pytest.raises(NoSuchTableError):
        catalog.load_table("shop.orders")
    with pytest.raises(NoSuchTableError):
        catalog.rename_table("shop.orders", "shop.x")
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_table("shop.taken", "nowhere.x")
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table("shop.taken", "other.deep.sales")
    assert catalog.rename_table("shop.taken", "shop.taken").name() == ("shop", "taken")
    with pytest.raises(NoSuchTableError):
        append(table, 2)


@pytest.mark.parametrize("kind", ["hadoop"])
def test_folders_are_not_renamed_or_registered(catalog: Catalog) -> None:
    table = create(catalog)
    with pytest.raises(InvalidInputError, match="uses the folder as the name"):
        catalog.rename_table("shop.orders", "shop.other")
    with pytest.raises(InvalidInputError, match="cannot be registered"):
        catalog.register_table("shop.other", table.metadata_location or "")
    assert catalog.list_tables("shop") == [("shop", "orders")]


@every_version
def test_dropped_tables_are_gone(catalog: Catalog, version: int) -> None:
    table = create(catalog, version=version)
    file = append(table, 1)
    with pytest.raises(NamespaceNotEmptyError, match=r"shop is not empty; it has 1 tables: shop\.orders"):
        catalog.drop_namespace("shop")
    catalog.drop_table("shop.orders")
    assert not catalog.table_exists("shop.orders")
    assert catalog.storage.exists(file.file_path) is (catalog.properties["type"] != "hadoop")
    with pytest.raises(NoSuchTableError):
        table.refresh()
    catalog.drop_namespace("shop")


@every_version
def test_purged_tables_leave_no_file_of_any_snapshot(catalog: Catalog, version: int) -> None:
    table = create(catalog, version=version)
    other = create(catalog, "shop.other", version=version)
    kept = append(other, 1)
    for number in range(3):
        append(table, number)
    table.manage_snapshots().create_tag("first", table.snapshots()[0].snapshot_id)
    outsider = f"{table.location()}/data/not-of-this-table.parquet"
    catalog.storage.write(outsider, b"1")
    catalog.purge_table("shop.orders")
    assert not catalog.table_exists("shop.orders")
    left = files_below(catalog, table.location())
    assert left == (set() if catalog.properties["type"] == "hadoop" else {outsider})
    assert live_files(catalog.load_table("shop.other")) == [kept.file_path]


@every_kind
def test_purge_does_nothing_when_in_doubt(catalog: Catalog) -> None:
    table = create(catalog, properties={"gc.enabled": "false"})
    file = append(table, 1)
    with pytest.raises(ValidationError, match=r"gc\.enabled=false"):
        catalog.purge_table("shop.orders")
    assert live_files(catalog.load_table("shop.orders")) == [file.file_path]
    table.set_properties({"gc.enabled": "true"})
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    catalog.storage.delete([snapshot.manifest_list])
    with pytest.raises(FileNotFoundError):
        catalog.purge_table("shop.orders")
    assert catalog.table_exists("shop.orders")
    assert catalog.storage.exists(file.file_path)


@kinds_with_pointers
def test_tables_are_registered(catalog: Catalog) -> None:
    table = create(catalog)
    first = table.metadata_location or ""
    append(table, 1)
    catalog.drop_table("shop.orders")
    again = catalog.register_table("shop.back", table.metadata_location or "")
    assert again.metadata == table.metadata
    append(again, 2)
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("shop.back", first)
    old = catalog.register_table("shop.back", first, overwrite=True)
    assert old.snapshots() == []
    assert catalog.load_table("shop.back").snapshots() == []
    assert catalog.register_table("shop.new", first, overwrite=True).name() == ("shop", "new")
    with pytest.raises(NoSuchNamespaceError):
        catalog.register_table("nowhere.t", first)
    with pytest.raises(FileNotFoundError):
        catalog.register_table("shop.t", f"{home_of(catalog)}/nothing.metadata.json")
    assert not catalog.table_exists("shop.t")


@kinds_with_pointers
@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if allows(version, Feature.OPTIONAL_LOCATION)])
def test_a_table_without_a_location_is_where_its_files_are(catalog: Catalog, version: int) -> None:
    table = create(catalog, version=version)
    append(table, 1)
    old, new = table.location() or "", f"{home_of(catalog)}-moved/t"
    for location in files_below(catalog, old):
        catalog.storage.write(location.replace(old, new), catalog.storage.read(location))
    moved = (table.metadata_location or "").replace(old, new)
    document = json.loads(catalog.storage.read(moved))
    del document["location"]
    catalog.storage.write(moved, json.dumps(document).encode())
    catalog.purge_table("shop.orders")
    again = catalog.register_table("shop.moved", moved)
    assert again.location() == new
    append(again, 2)
    files = live_files(catalog.load_table("shop.moved"))
    assert len(files) == 2
    assert all(each.startswith(f"{new}/data/") and catalog.storage.exists(each) for each in files)
    elsewhere = f"{home_of(catalog)}-moved/lost.metadata.json"
    catalog.storage.write(elsewhere, json.dumps(document).encode())
    with pytest.raises(InvalidInputError, match="names no table location"):
        catalog.register_table("shop.lost", elsewhere)


@every_kind
def test_catalogs_set_and_enforce_table_properties(make: Maker) -> None:
    catalog = make(**{"table-default.a": "1", "table-default.b": "1", "table-override.c": "3"})
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.t", SCHEMA, properties={"b": "2", "c": "2"})
    assert table.properties == {"a": "1", "b": "2", "c": "3"}


# Views


@kinds_with_pointers
def test_views_are_created_changed_and_dropped(catalog: Catalog) -> None:
    catalog.create_namespace("other")
    view = catalog.create_view("shop.v", "id long", "SELECT id FROM orders", properties={"comment": "x"})
    assert view.sql_for() == "SELECT id FROM orders"
    assert view.version().default_namespace == ("shop",)
    loaded = catalog.load_view("shop.v")
    assert loaded == view
    assert loaded.metadata_location.rpartition("/")[2].startswith("00000-")
    assert catalog.list_views("shop") == [("shop", "v")]
    assert catalog.list_tables("shop") == []
    assert catalog.view_exists("shop.v")
    changed = catalog.views.replace("shop.v", "id long, n int", {"spark": "SELECT 1", "trino": "SELECT 2"})
    assert changed.sql_for("trino") == "SELECT 2"
    assert len(changed.metadata.versions) == 2
    assert changed.metadata.view_uuid == view.metadata.view_uuid
    assert [field.name for field in changed.schema().fields] == ["id", "n"]
    assert changed.location() == view.location()
    queries = {"spark": "SELECT 1", "trino": "SELECT 1"}
    moved = catalog.views.replace("shop.v", "id long", queries, location=f"{view.location()}-moved")
    assert moved.location() == f"{view.location()}-moved"
    assert moved.metadata_location.startswith(f"{moved.location()}/metadata/")
    edited = catalog.views.update_properties("shop.v", {"comment"}, {"a": "b"})
    assert edited.properties == {"a": "b"}
    assert catalog.views.rename("shop.v", "other.w").name() == ("other", "w")
    assert not catalog.view_exists("shop.v")
    with pytest.raises(NamespaceNotEmptyError, match="1 views"):
        catalog.drop_namespace("other")
    assert catalog.views.create_or_replace("other.w", "id long", {"spark": "SELECT 3", "trino": "SELECT 3"}).sql_for()
    assert catalog.views.create_or_replace("other.x", "id long", "SELECT 4").sql_for() == "SELECT 4"
    catalog.drop_view("other.w")
    with pytest.raises(NoSuchViewError, match=r"no view other\.w"):
        catalog.drop_view("other.w")
    with pytest.raises(NoSuchViewError):
        catalog.load_view("other.w")
    with pytest.raises(NoSuchViewError):
        catalog.views.replace("other.w", "id long", "SELECT 1")


@kinds_with_pointers
def test_tables_and_views_share_their_names(catalog: Catalog) -> None:
    create(catalog)
    catalog.create_view("shop.v", "id long", "SELECT 1")
    with pytest.raises(ViewAlreadyExistsError, match="is a view"):
        create(catalog, "shop.v")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_view("shop.orders", "id long", "SELECT 1")
    with pytest.raises(ViewAlreadyExistsError):
        catalog.rename_table("shop.orders", "shop.v")
    with pytest.raises(TableAlreadyExistsError):
        catalog.views.rename("shop.v", "shop.orders")
    with pytest.raises(NoSuchTableError, match="is a view, not a table"):
        catalog.load_table("shop.v")
    with pytest.raises(NoSuchViewError, match="is a table, not a view"):
        catalog.load_view("shop.orders")
    with pytest.raises(NoSuchTableError, match="is a view"):
        catalog.drop_table("shop.v")
    with pytest.raises(InvalidInputError, match="a view needs a query"):
        catalog.create_view("shop.bad", "id long", {})
    with pytest.raises(InvalidInputError, match="for dialect 'spark' is ''"):
        catalog.create_view("shop.bad", "id long", "")
    assert catalog.list_tables("shop") == [("shop", "orders")]
    assert catalog.list_views("shop") == [("shop", "v")]


@pytest.mark.parametrize("kind", ["hadoop"])
def test_folders_hold_no_views(catalog: Catalog) -> None:
    with pytest.raises(InvalidInputError, match="does not support views"):
        catalog.create_view("shop.v", "id long", "SELECT 1")
    assert catalog.list_views("shop") == []
    assert not catalog.view_exists("shop.v")
    with pytest.raises(NoSuchViewError):
        catalog.load_view("shop.v")


# The catalog itself


@every_kind
def test_a_catalog_travels_and_comes_back_from_being_closed(catalog: Catalog) -> None:
    table = create(catalog)
    with pickle.loads(pickle.dumps(catalog)) as copy:
        assert copy.load_table("shop.orders").metadata == table.metadata
        append(copy.load_table("shop.orders"), 1)
    catalog.close()
    assert len(catalog.load_table("shop.orders").snapshots()) == 1


@every_kind
def test_a_table_travels_with_its_catalog_and_goes_on_where_it_is(catalog: Catalog) -> None:
    table = create(catalog)
    append(table, 1)
    copy = pickle.loads(pickle.dumps(table))
    assert copy.state == table.state
    assert copy.name() == table.name()
    append(copy, 2)
    assert len(table.refresh().snapshots()) == 2
    assert copy.storage.properties == table.storage.properties


@every_kind
def test_threads_share_a_catalog(catalog: Catalog) -> None:
    create(catalog, properties=PATIENT)

    def one(number: int) -> str:
        return append(catalog.load_table("shop.orders"), number).file_path

    with ThreadPoolExecutor(4) as pool:
        files = list(pool.map(one, range(12)))
    table = catalog.load_table("shop.orders")
    assert sorted(live_files(table)) == sorted(files)
    assert len(table.snapshots()) == 12
    assert is_linear(table)
