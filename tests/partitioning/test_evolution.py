"""Evolution of specs and sort orders: ids, names, what stays in v1 tables, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import (
    IcefloeError,
    IncompatibleChangeError,
    InvalidPartitionSpecError,
    InvalidTransformError,
    NoSuchColumnError,
    NoSuchObjectError,
)
from icefloe.partitioning import (
    UNPARTITIONED,
    UNSORTED,
    NullOrder,
    PartitionField,
    PartitionSpec,
    PartitionSpecUpdate,
    SortDirection,
    SortField,
    SortOrder,
    SortOrderUpdate,
    check_spec,
    parse_term,
    transforms as tr,
    unified_partition_type,
)
from icefloe.partitioning.evolution import EvolvedSpec
from icefloe.partitioning.spec import has_sequential_ids
from icefloe.schema import Schema, types
from icefloe.versions import ALL_VERSIONS, Feature, allows

SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType()),
    types.NestedField(2, "ts", types.TimestampType()),
    types.NestedField(3, "region", types.StringType()),
    types.NestedField(4, "data", types.StringType()),
    types.NestedField(5, "n", types.IntegerType()),
)
VERSIONS = pytest.mark.parametrize("version", ALL_VERSIONS)
DROPPING = [version for version in ALL_VERSIONS if allows(version, Feature.DROPPING_PARTITION_FIELDS)]
KEEPING = [version for version in ALL_VERSIONS if version not in DROPPING]

DAY = PartitionField(2, 1000, tr.DayTransform(), "ts_day")
SHARD = PartitionField(1, 1001, tr.BucketTransform(16), "shard")
REGION = PartitionField(3, 1000, tr.IdentityTransform(), "region")


def update(
    version: int, *specs: PartitionSpec, last: int | None = None, schema: Schema = SCHEMA
) -> PartitionSpecUpdate:
    """A change of the last of the specs."""
    specs = specs or (UNPARTITIONED,)
    highest = max(spec.last_field_id for spec in specs)
    return PartitionSpecUpdate(specs[-1], specs, schema, version, last if last is not None else highest)


@VERSIONS
def test_adding_to_an_unpartitioned_table(version: int) -> None:
    found = update(version).add_field("ts", tr.DayTransform()).add_identity("region").apply()
    assert found == EvolvedSpec(
        PartitionSpec(DAY, PartitionField(3, 1001, tr.IdentityTransform(), "region"), spec_id=1), 1001
    )


@VERSIONS
@pytest.mark.parametrize(
    ("arguments", "transform", "name"),
    [
        (("id", tr.BucketTransform(16)), tr.BucketTransform(16), "id_bucket_16"),
        (("id", "bucket[16]"), tr.BucketTransform(16), "id_bucket_16"),
        (("bucket(16, id)",), tr.BucketTransform(16), "id_bucket_16"),
        (("id", tr.TruncateTransform(100)), tr.TruncateTransform(100), "id_trunc_100"),
        (("id",), tr.IdentityTransform(), "id"),
        (("id", "void"), tr.VoidTransform(), "id_null"),
        (("id", tr.BucketTransform(4), "shard"), tr.BucketTransform(4), "shard"),
        ((parse_term("bucket(3, id)"),), tr.BucketTransform(3), "id_bucket_3"),
    ],
    ids=str,
)
def test_names_of_added_fields(version: int, arguments: tuple[Any, ...], transform: tr.Transform, name: str) -> None:
    field = update(version).add_field(*arguments).apply().spec.fields[0]
    assert field == PartitionField(1, 1000, transform, name)


@pytest.mark.parametrize("version", DROPPING)
def test_removed_fields_are_dropped(version: int) -> None:
    base = PartitionSpec(DAY, SHARD)
    assert update(version, base).remove_field("ts_day").apply() == EvolvedSpec(PartitionSpec(SHARD, spec_id=1), 1001)
    assert update(version, base).remove_field("bucket(16, id)").apply().spec.fields == (DAY,)
    assert update(version, base).remove_field(parse_term("days(ts)")).apply().spec.fields == (SHARD,)


@pytest.mark.parametrize("version", KEEPING)
def test_removed_fields_become_void(version: int) -> None:
    base = PartitionSpec(DAY, SHARD)
    void = PartitionField(2, 1000, tr.VoidTransform(), "ts_day")
    assert update(version, base).remove_field("ts_day").apply().spec.fields == (void, SHARD)


@pytest.mark.parametrize("version", KEEPING)
def test_a_name_that_a_void_field_has_is_freed(version: int) -> None:
    base = PartitionSpec(REGION)
    replaced = (
        update(version, base).remove_field("region").add_field("data", tr.IdentityTransform(), "part").apply().spec
    )
    assert [str(field) for field in replaced] == ["1000: region: void(3)", "1001: part: identity(4)"]
    taken = (
        update(version, PartitionSpec(DAY)).remove_field("ts_day").add_field("ts", tr.HourTransform(), "ts_day").apply()
    )
    assert [str(field) for field in taken.spec] == ["1000: ts_day_1000: void(2)", "1001: ts_day: hour(2)"]
    again = update(version, PartitionSpec(DAY), taken.spec).rename_field("ts_day", "h").apply().spec
    assert [field.name for field in again] == ["ts_day_1000", "h"]
    # A field that was void before gives up its name too, to an added and to a renamed one.
    void = PartitionSpec(
        PartitionField(2, 1000, tr.VoidTransform(), "x"), PartitionField(2, 1001, tr.HourTransform(), "h")
    )
    assert [f.name for f in update(version, void).add_field("n", "identity", "x").apply().spec] == ["x_1000", "h", "x"]
    assert [f.name for f in update(version, void).rename_field("h", "x").apply().spec] == ["x_1000", "x"]


@VERSIONS
def test_removing_and_adding_the_same_field_keeps_it(version: int) -> None:
    base = PartitionSpec(DAY, SHARD)
    assert update(version, base).remove_field("shard").add_field("bucket(16, id)").apply() == EvolvedSpec(base, 1001)
    renamed = update(version, base).remove_field("shard").add_field("id", tr.BucketTransform(16), "piece").apply().spec
    assert renamed.fields == (DAY, PartitionField(1, 1001, tr.BucketTransform(16), "piece"))


@VERSIONS
def test_renaming(version: int) -> None:
    base = PartitionSpec(DAY, SHARD)
    found = update(version, base).rename_field("shard", "piece").apply()
    assert found == EvolvedSpec(
        PartitionSpec(DAY, PartitionField(1, 1001, tr.BucketTransform(16), "piece"), spec_id=1), 1001
    )
    assert update(version, base).rename_field("shard", "shard").apply().spec == base


@pytest.mark.parametrize("version", DROPPING)
def test_an_equivalent_field_of_an_old_spec_keeps_its_id(version: int) -> None:
    specs = (PartitionSpec(DAY, SHARD, spec_id=0), PartitionSpec(DAY, spec_id=1))
    again = update(version, *specs).add_field("bucket(16, id)").apply()
    assert again == EvolvedSpec(specs[0], 1001)  # with the old name too, which makes the old spec
    renamed = update(version, *specs).add_field("id", tr.BucketTransform(16), "other").apply()
    assert renamed.spec.fields[1] == PartitionField(1, 1001, tr.BucketTransform(16), "other")
    other = update(version, *specs).add_field("bucket(8, id)").apply()
    assert (other.spec.fields[1].field_id, other.last_partition_id) == (1002, 1002)


@pytest.mark.parametrize("version", DROPPING)
def test_of_two_old_fields_the_one_of_the_same_name_is_taken(version: int) -> None:
    specs = (
        PartitionSpec(PartitionField(1, 1000, tr.BucketTransform(4), "a"), spec_id=0),
        PartitionSpec(PartitionField(1, 1001, tr.BucketTransform(4), "b"), spec_id=1),
        PartitionSpec(spec_id=2),
    )
    assert update(version, *specs).add_field("id", "bucket[4]", "a").apply().spec == specs[0]
    assert update(version, *specs).add_field("id", "bucket[4]").apply().spec == specs[1]


@pytest.mark.parametrize("version", DROPPING)
def test_an_id_that_meant_two_things_is_not_given_out_again(version: int) -> None:
    specs = (PartitionSpec(DAY, spec_id=0), PartitionSpec(REGION, spec_id=1))  # an old v1 table, upgraded
    found = update(version, *specs).add_field("ts", tr.DayTransform(), "day").apply()
    assert found.spec.fields == (REGION, PartitionField(2, 1001, tr.DayTransform(), "day"))
    void = PartitionSpec(PartitionField(2, 1000, tr.VoidTransform(), "ts_day"), spec_id=1)
    found = update(version, PartitionSpec(DAY), void).add_field("days(ts)").apply()
    assert [str(field) for field in found.spec] == ["1000: ts_day_1000: void(2)", "1001: ts_day: day(2)"]


@VERSIONS
def test_an_equivalent_spec_is_used_again(version: int) -> None:
    specs = (PartitionSpec(DAY, spec_id=0), PartitionSpec(DAY, SHARD, spec_id=7))
    assert update(version, *specs).apply() == EvolvedSpec(specs[1], 1001)
    assert update(version, *specs, last=1005).apply().last_partition_id == 1005
    found = update(version, *specs).add_identity("region").apply()
    assert (found.spec.spec_id, found.last_partition_id) == (8, 1002)


@pytest.mark.parametrize("version", DROPPING)
def test_ids_follow_the_last_of_the_table_and_are_never_below_one_in_use(version: int) -> None:
    assert update(version, last=1041).add_identity("id").apply() == EvolvedSpec(
        PartitionSpec(PartitionField(1, 1042, tr.IdentityTransform(), "id"), spec_id=1), 1042
    )
    assert update(version, PartitionSpec(DAY, SHARD), last=0).add_identity("id").apply().last_partition_id == 1002


@pytest.mark.parametrize("version", KEEPING)
def test_v1_fields_are_numbered_in_order_or_refused(version: int) -> None:
    specs = (PartitionSpec(DAY, SHARD, spec_id=1), PartitionSpec(DAY, spec_id=0))
    with pytest.raises(IncompatibleChangeError, match="numbered from 1000 in order"):
        update(version, *specs).add_identity("region").apply()


Change = Callable[[PartitionSpecUpdate], PartitionSpecUpdate]


@VERSIONS
@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        (lambda u: u.add_field("days(ts)"), IncompatibleChangeError, "already a partition field, 'ts_day'"),
        (lambda u: u.add_field("n").add_field("n"), IncompatibleChangeError, "are the same; add one"),
        (lambda u: u.add_field("n").add_field("data", name="n"), IncompatibleChangeError, "two added .* named 'n'"),
        (lambda u: u.add_field("n", name="shard"), IncompatibleChangeError, "already a partition field named 'shard'"),
        (
            lambda u: u.add_field("hours(ts)").add_field("years(ts)"),
            IncompatibleChangeError,
            "both units of time of one column",
        ),
        (lambda u: u.add_field("n").remove_field("n"), IncompatibleChangeError, "'n' is added in this change"),
        (
            lambda u: u.add_field("bucket(2, n)").remove_field("bucket(2, n)"),
            IncompatibleChangeError,
            "is added in this change",
        ),
        (lambda u: u.add_field("n").rename_field("n", "m"), IncompatibleChangeError, "add it as 'm'"),
        (lambda u: u.remove_field("shard").rename_field("shard", "m"), IncompatibleChangeError, "removed and renamed"),
        (lambda u: u.rename_field("shard", "m").remove_field("shard"), IncompatibleChangeError, "renamed and removed"),
        (lambda u: u.rename_field("shard", "m").rename_field("shard", "k"), IncompatibleChangeError, "renamed twice"),
        (lambda u: u.rename_field("shard", "ts_day"), IncompatibleChangeError, "already a partition field named"),
        (
            lambda u: u.add_field("n", name="m").rename_field("shard", "m"),
            IncompatibleChangeError,
            "given to an added field",
        ),
        (lambda u: u.remove_field("nope"), NoSuchObjectError, "partition fields are ts_day, shard"),
        (lambda u: u.remove_field("bucket(8, id)"), NoSuchObjectError, "no partition field named"),
        (lambda u: u.rename_field("nope", "x"), NoSuchObjectError, "no partition field named 'nope'"),
        (lambda u: u.add_field("nope"), NoSuchColumnError, "no column named 'nope'"),
        (lambda u: u.add_field("region", tr.DayTransform()), InvalidTransformError, "does not support columns"),
        (lambda u: u.add_field("id", "zorder[4]"), InvalidTransformError, "'zorder.4.' is unknown"),
        (lambda u: u.add_field("id", tr.UnknownTransform("x")), InvalidTransformError, "'x' is unknown"),
        (lambda u: u.add_field("id", "bucket[4]", "region"), InvalidPartitionSpecError, "has the name of a column"),
        (lambda u: u.rename_field("shard", "id"), InvalidPartitionSpecError, "has the name of a column"),
    ],
)
def test_conflicting_changes_are_refused(version: int, change: Change, error: type[IcefloeError], problem: str) -> None:
    with pytest.raises(error, match=problem):
        change(update(version, PartitionSpec(DAY, SHARD))).apply()


@VERSIONS
def test_a_renamed_field_leaves_its_name_to_another(version: int) -> None:
    found = update(version, PartitionSpec(DAY, SHARD)).rename_field("shard", "old").add_field("n", name="shard").apply()
    assert [field.name for field in found.spec] == ["ts_day", "old", "shard"]


@pytest.mark.parametrize("version", DROPPING)
def test_a_field_with_an_unknown_transform_is_kept_until_it_is_removed(version: int) -> None:
    base = PartitionSpec(DAY, PartitionField(1, 1001, tr.UnknownTransform("zorder"), "z"))
    assert update(version, base).add_identity("n").apply().spec.fields[:2] == base.fields
    assert update(version, base).remove_field("z").apply().spec.fields == (DAY,)


@pytest.mark.parametrize("version", DROPPING)
def test_a_field_over_a_dropped_column_must_go_in_the_same_change(version: int) -> None:
    schema = Schema(*(field for field in SCHEMA if field.name != "ts"))
    with pytest.raises(InvalidPartitionSpecError, match="source column 2 is not in the schema"):
        update(version, PartitionSpec(DAY), schema=schema).add_identity("n").apply()
    found = update(version, PartitionSpec(DAY), schema=schema).add_identity("n").remove_field("ts_day").apply()
    assert found.spec.fields == (PartitionField(5, 1001, tr.IdentityTransform(), "n"),)


@VERSIONS
def test_columns_may_be_found_without_regard_to_case(version: int) -> None:
    changed = PartitionSpecUpdate(UNPARTITIONED, [UNPARTITIONED], SCHEMA, version, 999, case_sensitive=False)
    assert changed.add_field("DAYS(TS)").apply().spec.fields == (DAY,)


TERMS = ["id", "bucket(4, id)", "bucket(8, id)", "days(ts)", "years(ts)", "region", "truncate(2, region)", "n"]
STEPS = st.one_of(
    st.tuples(st.just("add"), st.sampled_from(TERMS), st.none() | st.sampled_from(["x", "y", "z"])),
    st.tuples(st.just("remove"), st.sampled_from(TERMS), st.none()),
    st.tuples(st.just("rename"), st.integers(0, 3), st.sampled_from(["x", "y", "z", "u"])),
)


@VERSIONS
@given(history=st.lists(st.lists(STEPS, min_size=1, max_size=3), max_size=8))
def test_a_history_of_changes(version: int, history: list[list[tuple[str, Any, Any]]]) -> None:
    specs, current, last_id = [UNPARTITIONED], UNPARTITIONED, UNPARTITIONED.last_field_id
    for steps in history:
        change = PartitionSpecUpdate(current, specs, SCHEMA, version, last_id)
        try:
            for step in steps:
                _take(change, current, *step)
            found = change.apply()
        except IcefloeError:
            continue
        assert change.apply() == found, "apply is pure"
        check_spec(found.spec, SCHEMA)
        _check_ids(found, specs, last_id, version)
        if found.spec not in specs:
            assert found.spec.spec_id not in [spec.spec_id for spec in specs]
            assert not any(found.spec.equivalent(spec) for spec in specs)
            specs.append(found.spec)
        if not allows(version, Feature.DROPPING_PARTITION_FIELDS):
            assert has_sequential_ids(found.spec)
            kept = [field.source_ids for field in current.fields]
            assert [field.source_ids for field in found.spec.fields][: len(kept)] == kept
        current, last_id = found.spec, found.last_partition_id
    # No id ever meant two things, so that the union of all specs has a type.
    union = unified_partition_type(specs, SCHEMA)
    assert {field.field_id for field in union.fields} == {field.field_id for spec in specs for field in spec.fields}


def _take(change: PartitionSpecUpdate, current: PartitionSpec, verb: str, what: Any, name: Any) -> None:
    match verb:
        case "add":
            change.add_field(what, name=name)
        case "remove":
            change.remove_field(what)
        case _ if what < len(current.fields):
            change.rename_field(current.fields[what].name, name)


def _check_ids(found: EvolvedSpec, specs: list[PartitionSpec], last_id: int, version: int) -> None:
    known = {field.field_id: field for spec in specs for field in spec.fields}
    assert found.last_partition_id >= max(last_id, found.spec.last_field_id)
    values = {(f.source_ids, f.transform) for f in known.values() if not isinstance(f.transform, tr.VoidTransform)}
    for field in found.spec.fields:
        if field.field_id not in known:
            assert field.field_id > last_id, "a new id is above all that were given out"
            if allows(version, Feature.DROPPING_PARTITION_FIELDS):
                assert (field.source_ids, field.transform) not in values, "what had an id keeps it"


def test_a_new_sort_order() -> None:
    orders = [UNSORTED, SortOrder(SortField(1), order_id=1)]
    found = SortOrderUpdate(orders, SCHEMA).asc("id").desc("ts", tr.YearTransform(), NullOrder.NULLS_FIRST).apply()
    assert found == SortOrder(
        SortField(1), SortField(2, tr.YearTransform(), SortDirection.DESC, NullOrder.NULLS_FIRST), order_id=2
    )
    assert SortOrderUpdate(orders, SCHEMA).asc("id").apply() == orders[1]
    assert SortOrderUpdate(orders, SCHEMA).apply() == UNSORTED
    assert SortOrderUpdate([], SCHEMA).desc("bucket(4, id)").apply() == SortOrder(
        SortField(1, tr.BucketTransform(4), SortDirection.DESC), order_id=1
    )
    with pytest.raises(NoSuchColumnError):
        SortOrderUpdate(orders, SCHEMA).asc("nope")
    with pytest.raises(InvalidTransformError):
        SortOrderUpdate(orders, SCHEMA).asc("id", "zorder")
