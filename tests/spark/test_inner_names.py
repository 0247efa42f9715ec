"""Names inside of a relation: a field's own where no file can mean something else by it, and else one that no file has."""

from typing import Any

import pytest

import icefloe
from icefloe.schema.types import IntegerType, walk_fields
from icefloe.spark.inner_names import PREFIX, InnerColumns, inner_columns
from icefloe.table import Table


def create(columns: str) -> Table:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://names")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", columns)


def inside(table: Table) -> InnerColumns:
    return inner_columns(table.schema().fields, table.metadata)


def renamed(table: Table) -> set[str]:
    """The fields, by their full names, that go by other names."""
    own = table.schema().names_by_id
    return {own[each.field_id] for each in walk_fields(inside(table).fields) if each.name == f"{PREFIX}{each.field_id}"}


def whole(table: Table) -> set[str]:
    return {table.schema().names_by_id[each] for each in inside(table).whole}


def change(table: Table, *steps: tuple[Any, ...]) -> None:
    for what, *more in steps:
        with table.update_schema() as update:
            getattr(update, what)(*more)


def test_names_that_never_changed_are_kept() -> None:
    table = create("id int, s struct<a: int, t: struct<b: string>>, l list<struct<d: double>>, m map<string, float>")
    assert (renamed(table), whole(table), inside(table).needs_ids) == (set(), set(), False)


def test_numbers_that_may_be_nan_are_not_filtered_by_name() -> None:
    table = create("d double, s struct<a: int, f: float, t: struct<d: double>>, l list<struct<d: double>>")
    assert renamed(table) == {"d", "s.f", "s.t.d"}
    assert (whole(table), inside(table).needs_ids) == (set(), True)


@pytest.mark.parametrize("path", [("s",), ("l", "element"), ("m", "value")])
def test_a_name_that_was_used_again_is_not_kept(path: tuple[str, ...]) -> None:
    inner = "struct<a: int, b: int, c: int>"
    table = create(f"id int, s {inner}, l list<{inner}>, m map<string, {inner}>")
    change(table, ("delete_column", (*path, "a")), ("add_column", (*path, "a"), IntegerType()))
    assert (renamed(table), whole(table)) == ({".".join((*path, "a"))}, set())
    change(table, ("rename_column", (*path, "b"), "e"), ("rename_column", (*path, "c"), "b"))
    assert renamed(table) == {".".join((*path, each)) for each in ("a", "b")}


def test_a_name_that_was_used_in_the_same_change_is_not_kept() -> None:
    table = create("s struct<a: int, b: int>")
    with table.update_schema() as update:
        update.rename_column("s", "t")
        update.rename_column("s.a", "c")
        update.rename_column("s.b", "a")
    assert (renamed(table), whole(table)) == ({"t", "t.a"}, {"t"})


def test_a_nested_column_that_had_another_name_is_read_whole() -> None:
    table = create("id int, s struct<a: int>, r int, l list<struct<a: int>>")
    change(table, ("rename_column", "s", "t"), ("rename_column", "r", "q"), ("add_column", "s", IntegerType()))
    assert whole(table) == {"t"}
    assert renamed(table) == {"t", "s"}, "a number is found by its id whatever its name is"


def test_names_that_java_writes_otherwise_are_other_names() -> None:
    table = create("s struct<a: int>")
    change(table, ("rename_column", "s", "a-b"), ("add_column", "a_x2Db", IntegerType()))
    assert renamed(table) == {"a-b", "a_x2Db"}


def test_nothing_is_known_once_a_schema_is_gone() -> None:
    table = create("id int, s struct<a: int>")
    change(table, ("rename_column", "id", "k"))
    metadata = table.metadata.evolve(schemas=(table.schema(),))
    found = inner_columns(table.schema().fields, metadata)
    assert all(each.name.startswith(PREFIX) for each in walk_fields(found.fields))
    assert found.whole == {table.schema().find_field("s").field_id}


def test_names_that_differ_by_case_are_told_apart() -> None:
    table = create("id int, s struct<a: int, A: int>, S struct<b: int>, t struct<a: int, A: int, b: int>")
    assert renamed(table) == {"s", "s.a", "s.A", "S", "t.a", "t.A"}
    assert whole(table) == {"s", "S"}
