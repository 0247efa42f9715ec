"""Updates of schemas, partition specs and sort orders: what each one changes, and what is refused."""

import pytest

from icefloe.errors import (
    IncompatibleChangeError,
    InvalidInputError,
    InvalidPartitionSpecError,
    NoSuchObjectError,
    UnsupportedVersionError,
)
from icefloe.metadata import updates as up
from icefloe.partitioning import (
    UNPARTITIONED,
    UNSORTED,
    PartitionField,
    PartitionSpec,
    parse_partition_spec,
    parse_sort_order,
    transforms as tr,
)
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import StringType, VariantType
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.metadata.tables import BY_DAY, SCHEMA, commit, new_table

versions = pytest.mark.parametrize("version", ALL_VERSIONS)


WIDER = Schema(*SCHEMA.fields, NestedField(7, "extra", StringType()))


@versions
def test_schemas(version: int) -> None:
    metadata = commit(new_table(version), up.AddSchemaUpdate(WIDER), up.SetCurrentSchemaUpdate())
    assert metadata.current_schema_id == 1
    assert metadata.schema() == WIDER.with_id(1)
    assert metadata.last_column_id == 7
    back = commit(metadata, up.AddSchemaUpdate(SCHEMA.with_id(9)), up.SetCurrentSchemaUpdate())
    assert back.schemas == metadata.schemas
    assert back.current_schema_id == 0
    assert back.last_column_id == 7
    assert commit(back, up.RemoveSchemasUpdate((1,))).schemas == back.schemas[:1]
    third = commit(back, up.RemoveSchemasUpdate((1,)), up.AddSchemaUpdate(WIDER)).schemas[-1]
    assert third.schema_id == 1
    with pytest.raises(IncompatibleChangeError, match="schema 0 is the current"):
        commit(back, up.RemoveSchemasUpdate((0, 1)))
    with pytest.raises(NoSuchObjectError, match="no schema with id 5"):
        commit(back, up.SetCurrentSchemaUpdate(5))


@versions
def test_a_schema_must_suit_the_version(version: int) -> None:
    variant = Schema(*SCHEMA.fields, NestedField(4, "v", VariantType()))
    if allows(version, Feature.VARIANT):
        assert commit(new_table(version), up.AddSchemaUpdate(variant)).last_column_id == 4
    else:
        with pytest.raises(UnsupportedVersionError, match="variant"):
            commit(new_table(version), up.AddSchemaUpdate(variant))


@pytest.mark.parametrize(
    "update", [up.SetCurrentSchemaUpdate(), up.SetDefaultSpecUpdate(), up.SetDefaultSortOrderUpdate()]
)
def test_the_last_added_must_have_been_added(update: up.TableUpdate) -> None:
    with pytest.raises(InvalidInputError, match="added last"):
        commit(new_table(2), update)


def test_the_last_added_is_one_that_was_there_before() -> None:
    metadata = commit(new_table(2), up.AddSchemaUpdate(WIDER), up.AddSchemaUpdate(SCHEMA), up.SetCurrentSchemaUpdate())
    assert metadata.current_schema_id == 0


@versions
def test_the_default_spec_must_fit_the_current_schema(version: int) -> None:
    metadata = new_table(version, BY_DAY)
    narrow = Schema(SCHEMA.fields[0])
    with pytest.raises(IncompatibleChangeError, match="'day'"):
        commit(metadata, up.AddSchemaUpdate(narrow), up.SetCurrentSchemaUpdate())
    void = PartitionSpec(PartitionField(2, 1000, tr.VoidTransform(), "day"))
    fits = commit(
        metadata,
        up.AddPartitionSpecUpdate(void),
        up.SetDefaultSpecUpdate(),
        up.AddSchemaUpdate(narrow),
        up.SetCurrentSchemaUpdate(),
    )
    assert fits.spec().is_unpartitioned


@versions
def test_the_default_order_must_fit_the_current_schema(version: int) -> None:
    metadata = new_table(version, order=parse_sort_order(["name"], SCHEMA))
    with pytest.raises(InvalidInputError, match="3 is not in the schema"):
        commit(metadata, up.AddSchemaUpdate(Schema(SCHEMA.fields[0])), up.SetCurrentSchemaUpdate())


@versions
def test_specs(version: int) -> None:
    metadata = commit(new_table(version), up.AddPartitionSpecUpdate(BY_DAY), up.SetDefaultSpecUpdate())
    assert metadata.spec() == BY_DAY.with_id(1)
    assert metadata.last_partition_id == 1000
    renumbered = PartitionSpec(PartitionField(2, 1005, tr.IdentityTransform(), "day"), spec_id=8)
    again = commit(metadata, up.AddPartitionSpecUpdate(renumbered), up.SetDefaultSpecUpdate())
    assert again is metadata
    back = commit(metadata, up.SetDefaultSpecUpdate(0))
    assert back.spec().is_unpartitioned
    assert commit(back, up.RemovePartitionSpecsUpdate((1,))).partition_specs == (UNPARTITIONED,)
    with pytest.raises(IncompatibleChangeError, match="partition spec 0 is the default"):
        commit(back, up.RemovePartitionSpecsUpdate((0,)))
    with pytest.raises(NoSuchObjectError, match="no partition spec with id 5"):
        commit(back, up.SetDefaultSpecUpdate(5))
    with pytest.raises(InvalidPartitionSpecError, match="not in the schema"):
        commit(back, up.AddPartitionSpecUpdate(PartitionSpec(PartitionField(77, 1001, tr.IdentityTransform(), "gone"))))


@versions
def test_partition_field_ids_are_not_given_twice(version: int) -> None:
    metadata = new_table(version, BY_DAY)
    other = PartitionSpec(PartitionField(1, 1000, tr.BucketTransform(4), "id_bucket"))
    fresh = PartitionSpec(PartitionField(1, 1001, tr.BucketTransform(4), "id_bucket"))
    both = parse_partition_spec(["day", "bucket(4, id)"], SCHEMA)
    assert commit(metadata, up.AddPartitionSpecUpdate(both)).last_partition_id == 1001
    if allows(version, Feature.PARTITION_FIELD_IDS):
        with pytest.raises(InvalidPartitionSpecError, match="1000"):
            commit(metadata, up.AddPartitionSpecUpdate(other))
        assert commit(metadata, up.AddPartitionSpecUpdate(fresh)).last_partition_id == 1001
    else:
        with pytest.raises(InvalidPartitionSpecError, match="1001"):
            commit(metadata, up.AddPartitionSpecUpdate(fresh))


@versions
def test_sort_orders(version: int) -> None:
    by_id, by_name = parse_sort_order(["id"], SCHEMA), parse_sort_order(["name"], SCHEMA)
    metadata = commit(new_table(version), up.AddSortOrderUpdate(by_id), up.SetDefaultSortOrderUpdate())
    assert metadata.default_sort_order_id == 1
    metadata = commit(
        metadata, up.AddSortOrderUpdate(by_name), up.AddSortOrderUpdate(by_id), up.SetDefaultSortOrderUpdate()
    )
    assert [each.order_id for each in metadata.sort_orders] == [0, 1, 2]
    assert metadata.sort_order() == by_id
    assert commit(metadata, up.AddSortOrderUpdate(UNSORTED), up.SetDefaultSortOrderUpdate()).sort_order().is_unsorted
    with pytest.raises(NoSuchObjectError, match="no sort order with id 5"):
        commit(metadata, up.SetDefaultSortOrderUpdate(5))


def test_unsorted_keeps_id_0_when_it_comes_later() -> None:
    metadata = new_table(2, order=parse_sort_order(["id"], SCHEMA))
    assert [each.order_id for each in metadata.sort_orders] == [1]
    metadata = commit(metadata, up.AddSortOrderUpdate(UNSORTED), up.SetDefaultSortOrderUpdate())
    assert [each.order_id for each in metadata.sort_orders] == [1, 0]
    assert metadata.default_sort_order_id == 0
