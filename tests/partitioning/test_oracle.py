"""PyIceberg gives the same partition values, texts and JSON."""

import json
from typing import Any

from hypothesis import given, strategies as st
from pydantic import TypeAdapter
from pyiceberg.partitioning import PartitionSpec as TheirSpec
from pyiceberg.schema import Schema as TheirSchema
from pyiceberg.table.sorting import SortOrder as TheirOrder
from pyiceberg.transforms import parse_transform as their_transform
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType as TheirBase

from icefloe.errors import InvalidValueError
from icefloe.partitioning import (
    order_from_json,
    order_to_json,
    parse_partition_spec,
    partition_path,
    spec_from_json,
    spec_to_json,
    transforms as tr,
)
from icefloe.schema import Schema, schema_to_json, types
from tests.strategies import partition_specs, schemas, sort_orders, transforms_of, values_of

KINDS: tuple[types.IcebergType, ...] = (
    types.IntegerType(),
    types.LongType(),
    types.DecimalType(12, 3),
    types.DateType(),
    types.TimeType(),
    types.TimestampType(),
    types.TimestamptzType(),
    types.TimestampNanoType(),
    types.TimestamptzNanoType(),
    types.StringType(),
    types.UUIDType(),
    types.FixedType(6),
    types.BinaryType(),
)


def theirs(kind: types.IcebergType) -> Any:
    return TypeAdapter(TheirBase).validate_python(str(kind).replace(" ", ""))


@given(st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), transforms_of(kind), values_of(kind))))
def test_partition_values(case: tuple[types.IcebergType, tr.Transform, Any]) -> None:
    kind, transform, value = case
    try:
        ours = transform.apply(value, kind)
    except InvalidValueError:
        return  # they go below the least value of the type instead
    found = their_transform(str(transform)).transform(theirs(kind))(value)
    wrapped = tr.wrapped_range(transform, kind)
    if wrapped is not None and value < wrapped.end:
        return  # there, too; Java's writers come round to great values, and so do we
    assert found == ours


@given(schemas(version=2).flatmap(lambda schema: st.tuples(partition_specs(schema), sort_orders(schema))))
def test_json(case: tuple[Any, Any]) -> None:
    spec, order = case
    text = json.dumps(spec_to_json(spec, 2))
    assert spec_from_json(json.loads(TheirSpec.model_validate_json(text).model_dump_json())) == spec
    text = json.dumps(order_to_json(order, 2))
    assert order_from_json(json.loads(TheirOrder.model_validate_json(text).model_dump_json())) == order


SCHEMA = Schema(
    types.NestedField(1, "id", types.LongType()),
    types.NestedField(2, "ts", types.TimestampType()),
    types.NestedField(3, "a b", types.StringType()),
)


@given(
    st.tuples(
        st.none() | values_of(types.LongType()),
        st.none() | values_of(types.TimestampType()),
        st.none() | values_of(types.StringType()),
    )
)
def test_paths(row: tuple[Any, Any, Any]) -> None:
    spec = parse_partition_spec(["bucket(16, id)", "days(ts)", "`a b`"], SCHEMA)
    values = [field.transform.apply(row[field.source_id - 1], SCHEMA.find_type(field.source_id)) for field in spec]
    their_spec = TheirSpec.model_validate_json(json.dumps(spec_to_json(spec, 2)))
    their_schema = TheirSchema.model_validate_json(json.dumps(schema_to_json(SCHEMA)))
    path = their_spec.partition_to_path(Record(*values), their_schema)
    # Java leaves the asterisk as it is, and writes the tilde as %7E; they do the contrary.
    assert partition_path(spec, values, SCHEMA).replace("%7E", "~").replace("*", "%2A") == path
