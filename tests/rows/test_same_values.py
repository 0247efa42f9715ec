"""Two columns hold the same where their values do, nested ones too, with null and NaN the same as themselves."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from icefloe.rows.same_values import same_values
from icefloe.schema import NestedField, Schema
from icefloe.versions import ALL_VERSIONS
from tests.formats.rows import arrow_table, contents, objects_of
from tests.strategies import types


@pytest.mark.parametrize("version", ALL_VERSIONS)
@given(st.data())
def test_the_same_where_values_are(version: int, data: st.DataObject) -> None:
    kind = data.draw(types(version))
    schema = Schema(NestedField(1000, "c", kind))
    values = data.draw(st.lists(objects_of(kind, False), min_size=1, max_size=4))
    pairs = data.draw(st.lists(st.tuples(st.sampled_from(values), st.sampled_from(values)), max_size=6))
    left, right = (arrow_table(schema, [{"c": pair[side]} for pair in pairs]) for side in (0, 1))
    wanted = [here == there for here, there in zip(contents(left), contents(right), strict=True)]
    assert same_values(left.column(0), right.column(0)).tolist() == wanted
    if pairs:
        sliced = [each.slice(1).column(0).combine_chunks() for each in (left, right)]
        assert same_values(*sliced).tolist() == wanted[1:]
        assert same_values(*(each.column(0).chunk(0).slice(1) for each in (left, right))).tolist() == wanted[1:]


def test_bits_of_floats_and_the_order_of_maps() -> None:
    kind = pa.map_(pa.string(), pa.float64())
    left = pa.array([[("a", 0.0), ("b", math.nan)], [("a", 0.0)], [("a", 1.0), ("b", 2.0)], None, []], kind)
    right = pa.array([[("a", 0.0), ("b", math.nan)], [("a", -0.0)], [("b", 2.0), ("a", 1.0)], [], []], kind)
    assert same_values(left, right).tolist() == [True, False, False, False, True]
