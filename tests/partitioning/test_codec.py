"""Specs and orders as JSON: what is written, what is read, and what is refused."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from icefloe.errors import IcefloeError, InvalidMetadataError, UnsupportedVersionError
from icefloe.partitioning import (
    UNSORTED,
    NullOrder,
    PartitionField,
    PartitionSpec,
    SortDirection,
    SortField,
    SortOrder,
    fields_from_json,
    fields_to_json,
    order_from_json,
    order_to_json,
    spec_from_json,
    spec_to_json,
    transforms as tr,
)
from icefloe.schema import Schema
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.golden import golden
from tests.strategies import partition_specs, schemas, sort_orders, unknown_transforms

SPEC = PartitionSpec(
    PartitionField(4, 1000, tr.DayTransform(), "ts_day"),
    PartitionField(1, 1001, tr.BucketTransform(16), "id_bucket"),
    PartitionField(2, 1002, tr.TruncateTransform(4), "id_truncate"),
    spec_id=3,
)
SPEC_JSON = {
    "spec-id": 3,
    "fields": [
        {"name": "ts_day", "transform": "day", "source-id": 4, "field-id": 1000},
        {"name": "id_bucket", "transform": "bucket[16]", "source-id": 1, "field-id": 1001},
        {"name": "id_truncate", "transform": "truncate[4]", "source-id": 2, "field-id": 1002},
    ],
}
ORDER = SortOrder(
    SortField(4, tr.IdentityTransform(), SortDirection.ASC, NullOrder.NULLS_LAST),
    SortField(1, tr.BucketTransform(4), SortDirection.DESC, NullOrder.NULLS_FIRST),
    order_id=1,
)
ORDER_JSON = {
    "order-id": 1,
    "fields": [
        {"transform": "identity", "source-id": 4, "direction": "asc", "null-order": "nulls-last"},
        {"transform": "bucket[4]", "source-id": 1, "direction": "desc", "null-order": "nulls-first"},
    ],
}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_the_form_is_the_same_in_every_version(version: int) -> None:
    assert json.dumps(spec_to_json(SPEC, version)) == json.dumps(SPEC_JSON)
    assert json.dumps(order_to_json(ORDER, version)) == json.dumps(ORDER_JSON)
    assert fields_to_json(SPEC, version) == SPEC_JSON["fields"]
    assert order_to_json(UNSORTED, version) == {"order-id": 0, "fields": []}
    assert spec_from_json(SPEC_JSON) == SPEC
    assert order_from_json(ORDER_JSON) == ORDER


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_several_sources_are_written_alone_and_only_where_allowed(version: int) -> None:
    spec = PartitionSpec(PartitionField((1, 2), 1000, tr.UnknownTransform("zorder"), "z"))
    order = SortOrder(SortField((1, 2), tr.UnknownTransform("zorder")))
    if not allows(version, Feature.MULTI_ARGUMENT_TRANSFORMS):
        with pytest.raises(UnsupportedVersionError, match="transforms with several source columns"):
            spec_to_json(spec, version)
        with pytest.raises(UnsupportedVersionError, match="transforms with several source columns"):
            order_to_json(order, version)
        return
    field = spec_to_json(spec, version)["fields"][0]
    assert field == {"name": "z", "transform": "zorder", "source-ids": [1, 2], "field-id": 1000}
    assert "source-id" not in order_to_json(order, version)["fields"][0]
    assert spec_from_json(spec_to_json(spec, version)) == spec
    assert order_from_json(order_to_json(order, version)) == order


@pytest.mark.parametrize("version", ALL_VERSIONS)
@given(data=st.data())
def test_round_trips(version: int, data: st.DataObject) -> None:
    schema: Schema = data.draw(schemas(version))
    spec = data.draw(partition_specs(schema))
    order = data.draw(sort_orders(schema))
    unknown = PartitionField(1, 1900, data.draw(unknown_transforms()), "other")
    spec = PartitionSpec(*spec.fields, unknown, spec_id=spec.spec_id)
    assert spec_from_json(json.loads(json.dumps(spec_to_json(spec, version)))) == spec
    assert fields_from_json(fields_to_json(spec, version), spec.spec_id) == spec
    assert order_from_json(json.loads(json.dumps(order_to_json(order, version)))) == order


def test_fields_without_ids_are_numbered_from_1000() -> None:
    bare = [{key: value for key, value in field.items() if key != "field-id"} for field in _fields(SPEC_JSON)]
    assert fields_from_json(bare, 3) == SPEC
    with pytest.raises(InvalidMetadataError, match="1 of 3 fields have no `field-id`"):
        fields_from_json([*_fields(SPEC_JSON)[:2], bare[2]])


def test_a_transform_of_several_columns_is_not_known_whatever_its_name() -> None:
    field = {"name": "x", "transform": "Bucket[4]", "source-ids": [1, 2], "field-id": 1000}
    assert fields_from_json([field]).fields[0] == PartitionField((1, 2), 1000, tr.UnknownTransform("Bucket[4]"), "x")


def test_a_list_of_one_source_is_one_source() -> None:
    for field in (
        {"name": "x", "transform": "bucket[4]", "source-ids": [1], "field-id": 1000},
        {"name": "x", "transform": "bucket[4]", "source-ids": [1], "source-id": 1, "field-id": 1000},
    ):
        assert fields_from_json([field]).fields[0] == PartitionField(1, 1000, tr.BucketTransform(4), "x")


def test_directions_and_transforms_are_read_in_any_case_and_unknown_keys_passed_over() -> None:
    field = {"transform": "DAY", "source-id": 4, "direction": "DESC", "null-order": "NULLS-LAST", "more": 1}
    assert order_from_json({"order-id": 2, "fields": [field], "x": None}) == SortOrder(
        SortField(4, tr.DayTransform(), SortDirection.DESC), order_id=2
    )


def test_ids_may_be_given_for_requests_that_have_none() -> None:
    assert spec_from_json({"fields": []}, default_id=5).spec_id == 5
    assert spec_from_json({"spec-id": 1, "fields": []}, default_id=5).spec_id == 1
    assert order_from_json({"fields": ORDER_JSON["fields"]}, default_id=6).order_id == 6


FIELD = {"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}
KEY = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (None, "partition spec is None; it must be a JSON object"),
        ([], r"partition spec is \[\]"),
        ({"fields": []}, "has no `spec-id`"),
        ({"spec-id": "1", "fields": []}, "`spec-id` is '1'"),
        ({"spec-id": True, "fields": []}, "`spec-id` is True"),
        ({"spec-id": 2**31, "fields": []}, "`spec-id` is 2147483648"),
        ({"spec-id": 1}, "has no `fields`"),
        ({"spec-id": 1, "fields": {}}, "`fields` is {}; it must be a JSON array"),
        ({"spec-id": 1, "fields": [7]}, "partition spec 1, field 0 is 7"),
        ({"spec-id": 1, "fields": [{**FIELD, "name": 3}]}, "field 0: `name` is 3"),
        ({"spec-id": 1, "fields": [{**FIELD, "transform": None}]}, "`transform` is None"),
        ({"spec-id": 1, "fields": [{**FIELD, "transform": "bucket[0]"}]}, "`transform`: number of buckets 0"),
        ({"spec-id": 1, "fields": [{**FIELD, "source-id": 1.0}]}, r"`source-id` is 1\.0"),
        ({"spec-id": 1, "fields": [{**FIELD, "field-id": "x"}]}, "`field-id` is 'x'"),
        ({"spec-id": 1, "fields": [{**FIELD, "source-ids": []}]}, "`source-ids` is empty"),
        ({"spec-id": 1, "fields": [{**FIELD, "source-ids": 1}]}, "`source-ids` is 1; it must be a JSON array"),
        ({"spec-id": 1, "fields": [{**FIELD, "source-ids": ["a"]}]}, "`source-ids` is 'a'"),
        ({"spec-id": 1, "fields": [{**FIELD, "source-ids": [2, 1]}]}, "is not the first of `source-ids`"),
        ({"spec-id": 1, "fields": [{"name": "x", "transform": "day"}]}, "has no `source-id`"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_broken_specs_are_refused_with_the_name_of_the_field(document: Any, problem: str) -> None:
    with pytest.raises(InvalidMetadataError, match=problem):
        spec_from_json(document)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("x", "sort order is 'x'"),
        ({"order-id": 1, "fields": None}, "`fields` is None"),
        ({"fields": []}, "has no `order-id`"),
        ({"order-id": 1, "fields": []}, "only order 0 is unsorted"),
        ({"order-id": 0, "fields": [KEY]}, "reserved for unsorted"),
        ({"order-id": 1, "fields": [{**KEY, "direction": "up"}]}, "`direction` is 'up'; it must be one of asc, desc"),
        ({"order-id": 1, "fields": [{**KEY, "null-order": "first"}]}, "`null-order` is 'first'"),
        ({"order-id": 1, "fields": [{**KEY, "null-order": 1}]}, "`null-order` is 1"),
        ({"order-id": 1, "fields": [{"transform": "day"}]}, "sort order 1, field 0 has no `source-id`"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_broken_orders_are_refused_with_the_name_of_the_field(document: Any, problem: str) -> None:
    with pytest.raises(InvalidMetadataError, match=problem):
        order_from_json(document)


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 2**33), st.text(max_size=3), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ("spec-id", "order-id", "fields", "name", "transform", "source-id", "source-ids", "field-id")
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_json_is_read_or_our_error(document: Any) -> None:
    for read in (spec_from_json, order_from_json, fields_from_json):
        with contextlib.suppress(IcefloeError):
            assert isinstance(read(document), PartitionSpec | SortOrder)


@pytest.mark.parametrize("name", ["TableMetadataV1Valid.json", "TableMetadataV2Valid.json"])
def test_specs_and_orders_of_the_golden_tables(name: str) -> None:
    document = json.loads((golden("table-metadata") / name).read_text())
    version = document["format-version"]
    specs = document.get("partition-specs", [])
    for spec in specs:
        assert spec_to_json(spec_from_json(spec), version) == spec
    if "partition-spec" in document:
        assert [f.field_id for f in fields_from_json(document["partition-spec"])] == [1000]
    for order in document.get("sort-orders", []):
        assert order_to_json(order_from_json(order), version) == order
    assert specs or "partition-spec" in document


def _fields(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["fields"])
