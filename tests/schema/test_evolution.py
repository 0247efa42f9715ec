"""Schema evolution: what each change gives, and every change that the spec forbids."""

import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import (
    AlreadyExistsError,
    IcefloeError,
    IncompatibleChangeError,
    InvalidSchemaError,
    InvalidTypeError,
    InvalidValueError,
    NoSuchColumnError,
    UnsupportedVersionError,
)
from icefloe.schema import (
    IcebergType,
    NestedField,
    Schema,
    SchemaUpdate,
    StructType,
    can_promote,
    parse_ddl,
    schema_from_json,
    schema_to_json,
)
from icefloe.schema.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    UnknownType,
    VariantType,
)
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.strategies import names, primitive_types, schemas, types

POINT = StructType(NestedField(3, "x", IntegerType(), True), NestedField(4, "y", IntegerType()))
SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), True),
    NestedField(2, "place", POINT, True, "where"),
    NestedField(5, "tags", ListType(6, StringType(), True)),
    NestedField(7, "props", MapType(8, POINT_KEY := StructType(NestedField(9, "k", IntegerType(), True)), 10,
                                    StructType(NestedField(11, "v", FloatType())), True)),
    NestedField(12, "steps", ListType(13, StructType(NestedField(14, "n", IntegerType())), False)),
    NestedField(15, "day", DateType()),
    NestedField(16, "price", DecimalType(9, 2)),
    schema_id=3,
    identifier_field_ids=[1],
)  # fmt: skip
LAST = 20


def update(version: int = 2, **options: Any) -> SchemaUpdate:
    return SchemaUpdate(SCHEMA, LAST, version, **options)


def test_nothing_changes_nothing() -> None:
    assert update().apply() == SCHEMA


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_add_columns(version: int) -> None:
    change = update(version)
    change.add_column("name", StringType(), "the name").add_column("place.z", LongType())
    change.add_column(("steps", "when"), DateType()).add_column(
        "props.value.w", parse_ddl("a int, b list<int>").as_struct
    )
    new = change.apply()
    assert new.find_field("name") == NestedField(21, "name", StringType(), False, "the name")
    assert new.find_field("place.z") == NestedField(22, "z", LongType())
    assert new.find_field("steps.element.when") == NestedField(23, "when", DateType())
    assert [new.find_field(f"props.value.{name}").field_id for name in ("w", "w.a", "w.b", "w.b.element")] == [
        24,
        25,
        26,
        27,
    ]
    assert [field.name for field in new][-1] == "name"
    assert change.last_column_id == 27
    assert new.find_field("place").required
    assert new.find_field("place").doc == "where"


def test_ids_go_on_from_the_last_one_ever_given() -> None:
    assert SchemaUpdate(SCHEMA, 99).add_column("a", LongType()).apply().find_field("a").field_id == 100
    assert SchemaUpdate(SCHEMA).add_column("a", LongType()).apply().find_field("a").field_id == 17
    assert SchemaUpdate(SCHEMA, 3).add_column("a", LongType()).apply().find_field("a").field_id == 17


def test_add_below_what_was_just_added() -> None:
    change = update().add_column("a", StructType(NestedField(1, "b", LongType())))
    change.add_column("a.c", StringType()).move_first("a.c").rename_column("a.b", "d")
    assert [field.name for field in change.apply().find_type("a").fields] == ["c", "d"]  # type: ignore[attr-defined]  # a struct


def test_a_name_with_a_dot_needs_a_tuple() -> None:
    new = update().add_column(("a.b",), LongType()).apply()
    assert new.find_field("a.b").field_id == 21
    again = SchemaUpdate(new, 21).rename_column(("a.b",), "c").apply()
    assert again.find_field("c").field_id == 21
    assert SchemaUpdate(new, 21).rename_column("a.b", "c").apply() == again


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("id", AlreadyExistsError),
        ("place.x", AlreadyExistsError),
        (("steps", "n"), AlreadyExistsError),
        ("steps.element.n", AlreadyExistsError),
        ("nowhere.x", NoSuchColumnError),
        ("id.x", IncompatibleChangeError),
        ("tags.x", IncompatibleChangeError),
        ("tags.element.x", IncompatibleChangeError),
        ("props.key.x", IncompatibleChangeError),
        ("", InvalidSchemaError),
        (".x", InvalidSchemaError),
        ((), InvalidSchemaError),
        ((1,), InvalidSchemaError),
        (7, InvalidSchemaError),
    ],
)
def test_places_where_nothing_can_be_added(path: Any, error: type[IcefloeError]) -> None:
    with pytest.raises(error):
        update(3).add_column(path, LongType())


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_required_columns_need_a_default(version: int) -> None:
    with pytest.raises(IncompatibleChangeError, match="required column 'a'"):
        update(version).add_column("a", LongType(), required=True)
    forced = update(version, allow_incompatible_changes=True).add_column("a", LongType(), required=True).apply()
    assert forced.find_field("a").required
    if allows(version, Feature.COLUMN_DEFAULTS):
        new = update(version).add_column("a", DateType(), required=True, default_value="2020-01-01").apply()
        assert new.find_field("a") == NestedField(21, "a", DateType(), True, None, 18262, 18262)
    else:
        with pytest.raises(UnsupportedVersionError, match="default of column 'a'"):
            update(version).add_column("a", LongType(), required=True, default_value=3)


def test_a_required_struct_needs_defaults_in_it() -> None:
    bare = StructType(NestedField(1, "x", IntegerType(), True))
    filled = StructType(NestedField(1, "x", IntegerType(), True, None, 0, 0))
    with pytest.raises(IncompatibleChangeError, match="without a default"):
        update(3).add_column("p", bare, required=True, default_value={})
    new = update(3).add_column("p", filled, required=True, default_value={}).apply()
    assert new.find_field("p").initial_default == ()
    assert new.find_field("p.x").initial_default == 0


@pytest.mark.parametrize("kind", [VariantType(), UnknownType()], ids=str)
def test_types_that_have_no_defaults(kind: IcebergType) -> None:
    with pytest.raises((InvalidSchemaError, InvalidValueError)):
        update(3).add_column("a", kind, default_value=1)


def test_a_default_that_does_not_fit() -> None:
    with pytest.raises(InvalidValueError, match="default of column 'a'"):
        update(3).add_column("a", IntegerType(), default_value="x")


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_types_of_later_versions(version: int) -> None:
    change = update(version).add_column("v", VariantType())
    if allows(version, Feature.VARIANT):
        assert change.apply().find_type("v") == VariantType()
    else:
        with pytest.raises(UnsupportedVersionError, match="column 'v'"):
            change.apply()


def test_delete() -> None:
    new = update().delete_column("price").delete_column(("place", "x")).delete_column("steps.n").apply()
    assert set(SCHEMA.fields_by_id) - set(new.fields_by_id) == {16, 3, 14}
    assert [field.name for field in new.find_type("place").fields] == ["y"]  # type: ignore[attr-defined]  # a struct


def test_a_deleted_name_may_be_used_again_with_another_id() -> None:
    new = update().delete_column("price").add_column("price", StringType()).apply()
    assert new.find_field("price") == NestedField(21, "price", StringType())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda u: u.delete_column("tags.element"), "list or map"),
        (lambda u: u.delete_column("props.value"), "list or map"),
        (lambda u: u.delete_column("props.key"), "map keys"),
        (lambda u: u.delete_column("props.key.k"), "map keys"),
        (lambda u: u.rename_column("props.key.k", "a"), "map keys"),
        (lambda u: u.update_column("props.key.k", LongType()), "map keys"),
        (lambda u: u.make_column_optional("props.key.k"), "map keys"),
        (lambda u: u.set_doc("props.key.k", "d"), "map keys"),
        (lambda u: u.move_first("props.key.k"), "map keys"),
        (lambda u: u.rename_column("tags.element", "a"), "structs"),
        (lambda u: u.set_doc("tags.element", "a"), "structs"),
        (lambda u: u.move_first("tags.element"), "structs"),
        (lambda u: u.delete_column("id").apply(), "identifier field 'id'"),
        (lambda u: u.rename_column("id", "a").delete_column("id"), "also changes or adds"),
        (lambda u: u.delete_column("price").rename_column("price", "a"), "this update deletes it"),
        (lambda u: u.delete_column("price").update_column("price", DecimalType(10, 2)), "this update deletes it"),
        (lambda u: u.delete_column("price").delete_column("price"), "this update deletes it"),
        (lambda u: u.delete_column("place").set_doc("place.x", "d"), "this update deletes it"),
        (lambda u: u.set_doc("place.x", "d").delete_column("place"), "also changes or adds"),
        (lambda u: u.add_column("place.z", LongType()).delete_column("place"), "also changes or adds"),
        (lambda u: u.add_column("z", LongType()).delete_column("z"), "this update adds it"),
        (lambda u: u.update_column("id", StringType()), "do not allow this type promotion"),
        (lambda u: u.update_column("place", LongType()), "do not allow this type promotion"),
        (lambda u: u.update_column("id", POINT), "do not allow this type promotion"),
        (lambda u: u.require_column("price"), "rows may hold null"),
        (lambda u: u.update_column("price", required=True), "rows may hold null"),
        (lambda u: u.require_column("steps.element"), "rows may hold null"),
        (lambda u: u.move_before("id", "id"), "itself"),
        (lambda u: u.move_after("id", "place.x"), "same struct"),
        (lambda u: u.move_after("place.x", "id"), "same struct"),
        (lambda u: u.union_by_name(parse_ddl("place int")), "do not allow this type promotion"),
        (lambda u: u.union_by_name(parse_ddl("id string")), "do not allow this type promotion"),
        (lambda u: u.union_by_name(parse_ddl("props map<struct<k: long not null>, struct<v: float>>")), "map keys"),
    ],
)  # fmt: skip
def test_forbidden(change: Callable[[SchemaUpdate], object], message: str) -> None:
    with pytest.raises(IncompatibleChangeError, match=message):
        change(update())


@pytest.mark.parametrize(
    "change",
    [
        lambda u: u.delete_column("nope"),
        lambda u: u.rename_column("nope", "a"),
        lambda u: u.update_column("nope", LongType()),
        lambda u: u.make_column_optional("place.nope"),
        lambda u: u.require_column("nope"),
        lambda u: u.set_doc("nope", None),
        lambda u: u.set_default_value("nope", None),
        lambda u: u.move_first("nope"),
        lambda u: u.move_before("id", "nope"),
        lambda u: u.move_after("nope", "id"),
        lambda u: u.set_identifier_fields("nope").apply(),
    ],
)
def test_missing_columns(change: Callable[[SchemaUpdate], object]) -> None:
    with pytest.raises(NoSuchColumnError, match="nope"):
        change(update())


@pytest.mark.parametrize("options", [{"partition_source_ids": [3]}, {"sort_source_ids": [3]}])
def test_columns_in_use_cannot_be_dropped(options: dict[str, Any]) -> None:
    with pytest.raises(IncompatibleChangeError, match=r"uses place\.x"):
        update(**options).delete_column("place.x")
    with pytest.raises(IncompatibleChangeError, match=r"uses place\.x"):
        update(**options).delete_column("place")
    assert "price" not in update(**options).delete_column("price").apply().ids_by_name


def test_an_identifier_field_goes_when_others_are_set() -> None:
    new = update().delete_column("id").set_identifier_fields().apply()
    assert new.identifier_field_ids == ()
    new = update().delete_column("id").set_identifier_fields(("place", "x")).apply()
    assert new.identifier_field_ids == (3,)
    with pytest.raises(IncompatibleChangeError, match=r"place\.x"):
        SchemaUpdate(new).delete_column("place").apply()


def test_identifier_fields_follow_renames() -> None:
    new = update().rename_column("id", "key").apply()
    assert new.identifier_field_names == ("key",)
    assert update().rename_column("id", "key").set_identifier_fields("key").apply() == new


def test_identifier_fields_are_checked() -> None:
    with pytest.raises(InvalidSchemaError, match="optional"):
        update().set_identifier_fields("price").apply()
    with pytest.raises(InvalidSchemaError, match="optional"):
        update().make_column_optional("id").apply()


def test_rename() -> None:
    new = update().rename_column("place", "spot").rename_column("place.x", "lon").rename_column("steps.n", "m").apply()
    assert new.find_field("spot.lon").field_id == 3
    assert new.find_field("steps.element.m").field_id == 14
    swapped = update().rename_column("day", "price").rename_column("price", "day").apply()
    assert (swapped.find_field("day").field_id, swapped.find_field("price").field_id) == (16, 15)
    with pytest.raises(InvalidSchemaError, match="two fields are named 'price'"):
        update().rename_column("day", "price").apply()
    for bad in ("", None, 3):
        with pytest.raises(InvalidSchemaError):
            update().rename_column("day", bad)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_promotions(version: int) -> None:
    new = update(version).update_column("id", LongType()).update_column("props.value.v", DoubleType()).apply()
    assert (new.find_type("id"), new.find_type("props.value.v")) == (LongType(), DoubleType())
    assert update(version).update_column("price", DecimalType(12, 2)).apply().find_type("price") == DecimalType(12, 2)
    for bad in (DecimalType(8, 2), DecimalType(12, 3), DoubleType()):
        with pytest.raises(IncompatibleChangeError):
            update(version).update_column("price", bad)
    for kind in (TimestampType(), TimestampNanoType()):
        if allows(version, Feature.DATE_TO_TIMESTAMP_PROMOTION):
            assert update(version).update_column("day", kind).apply().find_type("day") == kind
        else:
            with pytest.raises(IncompatibleChangeError):
                update(version).update_column("day", kind)
    with pytest.raises(IncompatibleChangeError):
        update(version).update_column("day", TimestamptzType())


def test_a_partition_source_keeps_its_meaning() -> None:
    with pytest.raises(IncompatibleChangeError, match="partition field"):
        update(3, partition_source_ids=[15]).update_column("day", TimestampType())
    with pytest.raises(IncompatibleChangeError, match="partition field"):
        update(3, type_bound_source_ids=[15]).update_column("day", TimestampType())
    change = update(3, partition_source_ids=[15, 1], type_bound_source_ids=[]).update_column("day", TimestampType())
    assert change.update_column("id", LongType()).apply().find_type("day") == TimestampType()


def test_unknown_becomes_anything_in_v3() -> None:
    schema = Schema(NestedField(1, "u", UnknownType()))
    new = SchemaUpdate(schema, 1, 3).update_column("u", StructType(NestedField(9, "a", LongType()))).apply()
    assert new.find_field("u") == NestedField(1, "u", StructType(NestedField(2, "a", LongType())))
    with pytest.raises(IncompatibleChangeError):
        SchemaUpdate(schema, 1, 2).update_column("u", LongType())


def test_defaults_are_promoted_with_their_column() -> None:
    schema = Schema(NestedField(1, "d", DateType(), False, None, 1, 2))
    new = SchemaUpdate(schema, 1, 3).update_column("d", TimestampType()).apply()
    assert (new.fields[0].initial_default, new.fields[0].write_default) == (86_400_000_000, 172_800_000_000)


def test_nullability() -> None:
    new = update().make_column_optional("place.x").make_column_optional("tags.element").apply()
    assert new.find_field("place.x").optional
    assert new.find_field("tags.element").optional
    assert update().require_column("id").make_column_optional("price").apply() == SCHEMA
    forced = update(allow_incompatible_changes=True).require_column("price").require_column("steps.element").apply()
    assert forced.find_field("price").required
    assert forced.find_field("steps.element").required
    added = update(3).add_column("a", LongType(), default_value=1).require_column("a").apply()
    assert added.find_field("a").required


def test_docs_and_several_changes_to_one_column() -> None:
    new = update().update_column("price", DecimalType(18, 2), doc="EUR").rename_column("price", "cost").apply()
    assert new.find_field("cost") == NestedField(16, "cost", DecimalType(18, 2), False, "EUR")
    assert update().set_doc("place", None).apply().find_field("place").doc is None


def test_write_defaults() -> None:
    new = update(3).add_column("a", LongType(), default_value=1).set_default_value("a", 2).apply()
    assert (new.find_field("a").initial_default, new.find_field("a").write_default) == (1, 2)
    again = SchemaUpdate(new, 21, 3).set_default_value("a", None).apply()
    assert (again.find_field("a").initial_default, again.find_field("a").write_default) == (1, None)
    with pytest.raises(UnsupportedVersionError):
        update(2).set_default_value("price", 1)
    required = update(3).add_column("a", LongType(), required=True, default_value=1)
    with pytest.raises(IncompatibleChangeError, match="required column 'a'"):
        required.set_default_value("a", None)
    with pytest.raises(InvalidSchemaError, match="empty struct"):
        update(3).set_default_value("place", {"x": 1})


def order(schema: Schema) -> str:
    return " ".join(field.name for field in schema)


def test_moves() -> None:
    assert order(update().move_first("day").apply()) == "day id place tags props steps price"
    assert order(update().move_before("price", "place").apply()) == "id price place tags props steps day"
    assert order(update().move_after("id", "price").apply()) == "place tags props steps day price id"
    assert order(update().move_after("day", "id").move_after("price", "id").apply()).startswith("id price day place")
    assert order(update().add_column("new", LongType()).move_first("new").apply()).startswith("new id")
    assert [f.name for f in update().move_first("place.y").apply().find_type("place").fields] == ["y", "x"]  # type: ignore[attr-defined]  # a struct


def test_case_may_be_ignored() -> None:
    assert update(case_sensitive=False).rename_column("PLACE.X", "lon").apply().find_field("place.lon").field_id == 3
    with pytest.raises(AlreadyExistsError):
        update(case_sensitive=False).add_column("ID", LongType())
    with pytest.raises(NoSuchColumnError):
        update().rename_column("PLACE.X", "lon")
    both = Schema(NestedField(1, "a", LongType()), NestedField(2, "A", LongType()))
    with pytest.raises(NoSuchColumnError, match="ambiguous"):
        SchemaUpdate(both, case_sensitive=False).rename_column("a", "b")
    assert update(case_sensitive=False).set_identifier_fields("PLACE.x").apply().identifier_field_ids == (3,)


def test_union_adds_promotes_and_relaxes() -> None:
    other = parse_ddl(
        "new string comment 'd', id long not null, place struct<x: int, z: struct<q: int not null>> not null comment 'there',"
        " tags list<string>, steps list<struct<m: int>>, price decimal(5,2)"
    )
    new = update().union_by_name(other).apply()
    assert new.find_field("new") == NestedField(21, "new", StringType(), False, "d")
    assert new.find_type("id") == LongType()
    assert new.find_field("id").required
    assert new.find_field("place").doc == "there"
    assert new.find_field("place.x").optional
    assert new.find_field("place.y").field_id == 4
    assert new.find_field("place.z.q").required
    assert new.find_field("tags.element").optional
    assert new.find_field("steps.element.m").optional
    assert new.find_type("price") == DecimalType(9, 2)


def test_union_with_an_arrow_schema() -> None:
    arrow = pa.schema([pa.field("id", pa.int16(), False), ("extra", pa.timestamp("us")), ("day", pa.null())])
    new = update().union_by_name(arrow).apply()
    assert new.find_field("extra") == NestedField(21, "extra", TimestampType())
    assert (new.find_type("id"), new.find_type("day")) == (IntegerType(), DateType())


def test_union_may_ignore_case() -> None:
    other = parse_ddl("ID long not null, Place struct<X: int not null, W: int> not null")
    new = update(case_sensitive=False).union_by_name(other).apply()
    assert new.column_names[:5] == ("id", "place", "place.x", "place.y", "place.W")


def test_union_takes_defaults_along() -> None:
    other = Schema(
        NestedField(1, "a", LongType(), True, None, 1, 2), NestedField(2, "day", DateType(), write_default=5)
    )
    new = update(3).union_by_name(other).apply()
    assert new.find_field("a") == NestedField(21, "a", LongType(), False, None, 1, 2)
    assert new.find_field("day").write_default == 5


@given(schemas(), schemas())
def test_union_with_another_schema_covers_both(mine: Schema, other: Schema) -> None:
    change = SchemaUpdate(mine, version=4).union_by_name
    try:
        new = change(other).apply()
    except IncompatibleChangeError:
        return
    assert set(mine.fields_by_id) <= set(new.fields_by_id)
    assert {field.name for field in other} <= {field.name for field in new}
    assert SchemaUpdate(new, version=4).union_by_name(other).apply() == new


@st.composite
def steps(draw: st.DrawFn, change: SchemaUpdate, schema: Schema, version: int) -> None:
    """One random change that may or may not be allowed."""
    fields = list(schema.names_by_id.values()) or ["none"]
    path, other = draw(st.sampled_from(fields)), draw(st.sampled_from(fields))
    match draw(st.integers(0, 9)):
        case 0 | 1:
            place = draw(st.sampled_from(["", f"{path}."]))
            change.add_column(place + draw(names()), draw(types(version)), required=False)
        case 2:
            change.delete_column(path)
        case 3:
            change.rename_column(path, draw(names()))
        case 4:
            change.update_column(path, draw(primitive_types(version)))
        case 5:
            change.make_column_optional(path)
        case 6:
            change.require_column(path)
        case 7:
            change.move_before(path, other)
        case 8:
            change.move_first(path)
        case _:
            change.set_doc(path, draw(st.none() | st.text(max_size=3)))


@given(st.data(), st.sampled_from(ALL_VERSIONS))
def test_any_history_keeps_ids_unique_and_never_reuses_one(data: st.DataObject, version: int) -> None:
    schema = data.draw(schemas(version))
    last = schema.highest_field_id
    ever = dict(schema.fields_by_id)
    for _ in range(data.draw(st.integers(1, 4))):
        before = pickle.dumps(schema_to_json(schema))
        change = SchemaUpdate(schema, last, version)
        for _ in range(data.draw(st.integers(1, 4))):
            try:
                data.draw(steps(change, schema, version))
            except IcefloeError:
                continue
        try:
            new = change.apply()
        except InvalidSchemaError:
            continue
        assert change.apply() == new
        assert pickle.dumps(schema_to_json(schema)) == before
        assert schema_from_json(schema_to_json(new)) == new
        for field_id, field in new.fields_by_id.items():
            if field_id in ever:
                _check_kept(ever[field_id], field, version)
                assert field_id in schema.fields_by_id, "a dropped id came back"
            else:
                assert field_id > last
        last = change.last_column_id
        assert last >= new.highest_field_id
        ever |= new.fields_by_id
        schema = new


def _check_kept(before: NestedField, after: NestedField, version: int) -> None:
    assert not (before.optional and after.required)
    if isinstance(before.field_type, StructType | ListType | MapType):
        assert type(before.field_type) is type(after.field_type)
    else:
        assert can_promote(before.field_type, after.field_type, version)


@pytest.mark.parametrize(
    "change",
    [
        lambda u: u.add_column("a", "lang"),
        lambda u: u.add_column("a", "long, b long"),
        lambda u: u.add_column("a", LongType),
        lambda u: u.update_column("id", "lang"),
        lambda u: u.add_column("a", LongType(), doc=3),
        lambda u: u.set_doc("id", b"x"),
        lambda u: u.union_by_name({"a": "long"}),
    ],
)
def test_things_that_are_neither_type_nor_doc_nor_schema(change: Callable[[SchemaUpdate], object]) -> None:
    with pytest.raises((InvalidTypeError, InvalidSchemaError)):
        change(update())


@pytest.mark.parametrize("text", ["string", "decimal(9, 2)", "list<struct<a: int not null, b: map<string, date>>>"])
def test_types_may_be_texts(text: str) -> None:
    by_text = update().add_column("new", text).apply()
    assert by_text == update().add_column("new", parse_ddl(f"new {text}").fields[0].field_type).apply()
    assert by_text.find_field("new").field_id not in update().apply().fields_by_id


def test_a_promotion_may_be_a_text() -> None:
    schema = Schema(NestedField(1, "n", IntegerType()))
    assert SchemaUpdate(schema, 1).update_column("n", "long").apply().find_type("n") == LongType()


def test_binary_and_string_do_not_mix() -> None:
    schema = Schema(NestedField(1, "b", BinaryType()))
    for version in ALL_VERSIONS:
        with pytest.raises(IncompatibleChangeError):
            SchemaUpdate(schema, 1, version).update_column("b", StringType())
