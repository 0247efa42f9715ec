"""Projection by id, against a naive definition; and the choice of columns by name."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import IcefloeError, IncompatibleChangeError, InvalidSchemaError, NoSuchColumnError
from icefloe.schema import (
    IcebergType,
    NestedField,
    Schema,
    SchemaUpdate,
    StructType,
    parse_ddl,
    plan_projection,
    promote_value,
    select,
    select_ids,
)
from icefloe.schema.projection import (
    Constant,
    Default,
    FromFile,
    Keep,
    Null,
    ProjectField,
    ProjectList,
    ProjectMap,
    ProjectStruct,
    Promote,
    ValuePlan,
    default_value,
)
from icefloe.schema.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedType,
    StringType,
    TimestampType,
    TimestamptzType,
    UnknownType,
    UUIDType,
    VariantType,
)
from tests.strategies import names, primitive_types, schemas, types, values_of


def struct(*fields: NestedField) -> StructType:
    return StructType(*fields)


def test_columns_come_by_id_whatever_their_name_and_place() -> None:
    file = Schema(NestedField(1, "a", IntegerType()), NestedField(2, "b", StringType()))
    wanted = Schema(NestedField(2, "a", StringType()), NestedField(1, "z", LongType()))
    assert plan_projection(wanted, file) == ProjectStruct(
        (
            ProjectField(wanted.fields[0], FromFile(1, file.fields[1], Keep())),
            ProjectField(wanted.fields[1], FromFile(0, file.fields[0], Promote(IntegerType(), LongType()))),
        )
    )


def source_of(field: NestedField, file: Schema, constants: dict[int, Any] | None = None) -> object:
    return plan_projection(Schema(field), file, constants).fields[0].source


def test_what_stands_in_for_a_missing_column() -> None:
    file = Schema(NestedField(9, "x", IntegerType()))
    plain = NestedField(1, "a", IntegerType())
    defaulted = NestedField(1, "a", IntegerType(), True, None, 7, 8)
    assert source_of(plain, file) == Null()
    assert source_of(plain, file, {1: 5}) == Constant(5)
    assert source_of(plain, file, {1: None}) == Constant(None)
    assert source_of(defaulted, file) == Default(7)
    assert source_of(defaulted, file, {1: 5}) == Constant(5)
    with pytest.raises(NoSuchColumnError, match=r"required column 'a' \(id 1\)"):
        source_of(NestedField(1, "a", IntegerType(), True), file)


def test_the_file_goes_before_the_partition_value() -> None:
    file = Schema(NestedField(1, "a", IntegerType()))
    assert isinstance(source_of(NestedField(1, "a", IntegerType()), file, {1: 5}), FromFile)


POINT = struct(NestedField(2, "x", IntegerType(), False, None, 0, 0), NestedField(3, "y", IntegerType(), False, None, 0, 0))  # fmt: skip


def test_defaults_of_structs() -> None:
    """The table of the spec's section on default values."""
    empty = Schema()
    assert source_of(NestedField(1, "point", POINT), empty) == Null()
    assert source_of(NestedField(1, "point", POINT, initial_default=()), empty) == Default(((2, 0), (3, 0)))
    for default in (None, ()):
        field = NestedField(1, "point", POINT, initial_default=default)
        file = Schema(NestedField(1, "point", struct(NestedField(2, "x", IntegerType()))))
        source = source_of(field, file)
        assert isinstance(source, FromFile)
        assert isinstance(source.plan, ProjectStruct)
        assert [each.source.__class__ for each in source.plan.fields] == [FromFile, Default]
    nested = NestedField(1, "p", struct(NestedField(4, "q", POINT, initial_default=())), initial_default=())
    assert default_value(nested) == ((4, ((2, 0), (3, 0))),)


def test_columns_of_type_unknown_are_null_on_both_sides() -> None:
    assert source_of(NestedField(1, "a", UnknownType()), Schema(NestedField(1, "a", IntegerType()))) == Null()
    assert source_of(NestedField(1, "a", IntegerType()), Schema(NestedField(1, "a", UnknownType()))) == Null()


def test_elements_keys_and_values_need_no_id_in_the_file() -> None:
    file = Schema(
        NestedField(1, "l", ListType(-1, IntegerType())),
        NestedField(2, "m", MapType(-2, StringType(), -3, FloatType())),
        NestedField(3, "s", ListType(-4, StringType())),
    )
    wanted = Schema(
        NestedField(1, "l", ListType(4, LongType())),
        NestedField(2, "m", MapType(5, StringType(), 6, DoubleType())),
        NestedField(3, "s", ListType(7, StringType())),
    )
    plans = [each.source.plan for each in plan_projection(wanted, file).fields if isinstance(each.source, FromFile)]
    assert plans == [
        ProjectList(Promote(IntegerType(), LongType())),
        ProjectMap(Keep(), Promote(FloatType(), DoubleType())),
        Keep(),
    ]


def test_a_struct_is_kept_whole_only_if_nothing_in_it_changes() -> None:
    inner = struct(NestedField(2, "x", IntegerType()), NestedField(3, "y", IntegerType()))
    file = Schema(NestedField(1, "p", inner))

    def plan(kind: StructType) -> ValuePlan:
        source = source_of(NestedField(1, "q", kind, False, "doc"), file)
        assert isinstance(source, FromFile)
        return source.plan

    assert plan(inner) == Keep()
    for other in (
        struct(*reversed(inner.fields)),
        struct(inner.fields[0]),
        struct(NestedField(2, "renamed", IntegerType()), inner.fields[1]),
        struct(*inner.fields, NestedField(4, "z", IntegerType())),
        struct(NestedField(2, "x", LongType()), inner.fields[1]),
    ):
        assert isinstance(plan(other), ProjectStruct)


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (FixedType(16), UUIDType()),
        (BinaryType(), StringType()),
        (BinaryType(), GeographyType()),
        (DateType(), TimestampType()),
        (DecimalType(5, 2), DecimalType(9, 2)),
    ],
    ids=str,
)
def test_what_may_be_read_as_something_else(present: IcebergType, wanted: IcebergType) -> None:
    file = Schema(NestedField(1, "a", present))
    source = source_of(NestedField(1, "a", wanted), file)
    assert isinstance(source, FromFile)
    assert source.plan == Promote(present, wanted)


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        (LongType(), IntegerType()),
        (StringType(), IntegerType()),
        (IntegerType(), StringType()),
        (FixedType(15), UUIDType()),
        (DateType(), TimestamptzType()),
        (IntegerType(), ListType(3, IntegerType())),
        (ListType(3, IntegerType()), IntegerType()),
        (VariantType(), StringType()),
        (DecimalType(9, 2), DecimalType(5, 2)),
    ],
    ids=str,
)
def test_what_may_not(present: IcebergType, wanted: IcebergType) -> None:
    file = Schema(NestedField(1, "a", struct(NestedField(2, "b", present))))
    with pytest.raises(IncompatibleChangeError, match=r"column 'a\.b'"):
        plan_projection(Schema(NestedField(1, "a", struct(NestedField(2, "b", wanted)))), file)


def run(plan: ValuePlan, value: Any) -> Any:
    """What a reader does with a plan, on single values."""
    if value is None:
        return None
    match plan:
        case Keep():
            return value
        case Promote(old, new):
            return promote_value(value, old, new)
        case ProjectList(element):
            return tuple(run(element, each) for each in value)
        case ProjectMap(key, item):
            return tuple((run(key, k), run(item, v)) for k, v in value)
        case ProjectStruct(fields):
            return tuple((each.field.field_id, run_field(each, value)) for each in fields)


def run_field(each: ProjectField, row: Any) -> Any:
    match each.source:
        case FromFile(position, file_field, plan):
            field_id, value = row[position]
            assert field_id == file_field.field_id
            return run(plan, value)
        case Constant(value) | Default(value):
            return value
        case Null():
            return None


def naive(wanted: IcebergType, present: IcebergType, value: Any) -> Any:
    """The definition: by id in structs, by place in lists and maps, promoted at the leaves."""
    if value is None:
        return None
    match wanted, present:
        case StructType(), StructType():
            types_there = {field.field_id: field.field_type for field in present}
            values_there = dict(value)
            return tuple(
                (
                    field.field_id,
                    naive(field.field_type, types_there[field.field_id], values_there[field.field_id])
                    if field.field_id in types_there
                    else default_value(field),
                )
                for field in wanted
            )
        case ListType(), ListType():
            return tuple(naive(wanted.element_type, present.element_type, each) for each in value)
        case MapType(), MapType():
            return tuple(
                (naive(wanted.key_type, present.key_type, k), naive(wanted.value_type, present.value_type, v))
                for k, v in value
            )
        case _:
            return promote_value(value, present, wanted)


def has_variant(kind: IcebergType) -> bool:
    if isinstance(kind, NestedType):
        return any(has_variant(field.field_type) for field in kind.fields)
    return isinstance(kind, VariantType)


@given(st.data())
def test_projection_of_an_old_file_into_a_later_schema(data: st.DataObject) -> None:
    old = data.draw(schemas().filter(lambda schema: not has_variant(schema.as_struct)))
    new, last = old, old.highest_field_id
    for _ in range(data.draw(st.integers(1, 5))):
        change = SchemaUpdate(new, last, 4)
        try:
            evolve(data, change, new)
            new = change.apply()
        except IcefloeError:
            continue
        last = change.last_column_id
    row = data.draw(values_of(old.as_struct))
    try:
        expected = naive(new.as_struct, old.as_struct, row)
    except IcefloeError:
        return  # a date out of the range of timestamps
    assert repr(run(plan_projection(new, old), row)) == repr(expected)
    assert repr(run(plan_projection(old, old), row)) == repr(row)


def evolve(data: st.DataObject, change: SchemaUpdate, schema: Schema) -> None:
    paths = list(schema.names_by_id.values()) or ["none"]
    path = data.draw(st.sampled_from(paths))
    match data.draw(st.integers(0, 6)):
        case 0:
            change.add_column(data.draw(names()), data.draw(types()))
        case 1:
            change.add_column(f"{path}.{data.draw(names())}", IntegerType(), default_value=data.draw(st.integers(0, 9)))
        case 2:
            change.delete_column(path)
        case 3:
            change.rename_column(path, data.draw(names()))
        case 4:
            wider: dict[IcebergType, IcebergType] = {
                IntegerType(): LongType(),
                FloatType(): DoubleType(),
                DateType(): TimestampType(),
            }
            kind = schema.find_type(path)
            change.update_column(path, wider.get(kind) or data.draw(primitive_types()))
        case 5:
            change.move_first(path)
        case _:
            change.make_column_optional(path)


TABLE = Schema(
    *parse_ddl(
        "id long not null, place struct<x: int, y: struct<a: int, b: int>>, tags list<string>,"
        " steps list<struct<n: int, m: int>>, props map<struct<k: int>, struct<v: int, w: int>>"
    ).fields,
    schema_id=4,
    identifier_field_ids=[1],
)


@pytest.mark.parametrize(
    ("wanted", "result"),
    [
        (["*"], TABLE.column_names),
        ([], ()),
        (["tags", "id"], ("id", "tags", "tags.element")),
        (["place.y"], ("place", "place.y", "place.y.a", "place.y.b")),
        (["place.y.b", "place.x"], ("place", "place.x", "place.y", "place.y.b")),
        (["place", "place.x"], ("place", "place.x", "place.y", "place.y.a", "place.y.b")),
        (["tags.element"], ("tags", "tags.element")),
        (["steps.element.m"], ("steps", "steps.element", "steps.element.m")),
        (["steps.m"], ("steps", "steps.element", "steps.element.m")),
        (["props.value.v"], ("props", "props.key", "props.key.k", "props.value", "props.value.v")),
        (["props.v"], ("props", "props.key", "props.key.k", "props.value", "props.value.v")),
        (["props.key"], ("props", "props.key", "props.key.k", "props.value", "props.value.v", "props.value.w")),
        (["props.value"], ("props", "props.key", "props.key.k", "props.value", "props.value.v", "props.value.w")),
    ],
)
def test_select(wanted: list[str], result: tuple[str, ...]) -> None:
    chosen = select(TABLE, wanted)
    assert chosen.column_names == result
    assert chosen.schema_id == 4
    assert chosen.identifier_field_ids == ((1,) if "id" in result else ())
    assert all(TABLE.names_by_id[field_id] == name for field_id, name in chosen.names_by_id.items())


def test_select_and_case() -> None:
    assert select(TABLE, ["PLACE.X"], case_sensitive=False).column_names == ("place", "place.x")
    with pytest.raises(NoSuchColumnError, match=r"PLACE\.X"):
        select(TABLE, ["PLACE.X"])


def test_select_ids() -> None:
    assert select_ids(TABLE, [TABLE.find_field("place.x").field_id]).column_names == ("place", "place.x")
    with pytest.raises(NoSuchColumnError, match="999"):
        select_ids(TABLE, [999])


@given(st.data(), schemas())
def test_a_selection_is_the_wanted_fields_and_their_parents(data: st.DataObject, schema: Schema) -> None:
    ids = data.draw(st.sets(st.sampled_from(sorted(schema.fields_by_id))))
    kept = set(select_ids(schema, ids).fields_by_id)
    needed = ids | {parent.field_id for field_id in ids for parent in schema.ancestors(field_id)}
    assert needed <= kept
    for field_id in kept - needed:
        parents = {parent.field_id for parent in schema.ancestors(field_id)}
        in_key_or_map = any(isinstance(parent.field_type, MapType) for parent in schema.ancestors(field_id))
        assert parents & ids or in_key_or_map


def test_selected_fields_keep_what_is_said_of_them() -> None:
    inner = struct(NestedField(2, "x", IntegerType(), True, "d", 1, 2), NestedField(3, "y", IntegerType()))
    schema = Schema(NestedField(1, "p", inner, True, "doc", (), ()))
    assert select(schema, ["p.x"]).fields == (NestedField(1, "p", struct(inner.fields[0]), True, "doc", (), ()),)
    with pytest.raises(InvalidSchemaError):
        Schema(inner.fields[0], inner.fields[0])
