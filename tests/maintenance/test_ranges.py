"""Ranges of keys: sorted one by one, they are the rows sorted as a whole."""

import pyarrow as pa
from hypothesis import given, settings, strategies as st

from icefloe.data import OrderKeys, sort_by_keys
from icefloe.maintenance.rewrite.ranges import KeyRanges
from icefloe.partitioning import NullOrder, SortDirection, SortField, SortOrder, transforms as tr
from icefloe.schema import Schema, types

COLUMNS = {
    1: (types.LongType(), pa.int64(), st.integers(-3, 3)),
    2: (types.StringType(), pa.string(), st.sampled_from(["", "a", "ab", "ä", "b"])),
    3: (types.DoubleType(), pa.float64(), st.sampled_from([float("nan"), -0.0, 0.0, float("-inf"), 1.5])),
    4: (types.BooleanType(), pa.bool_(), st.booleans()),
    5: (types.DateType(), pa.date32(), st.dates()),
    6: (types.BinaryType(), pa.binary(), st.binary(max_size=2)),
    7: (types.DecimalType(9, 2), pa.decimal128(9, 2), st.decimals(-2, 2, places=2)),
}
SCHEMA = Schema(*(types.NestedField(key, f"c{key}", kind[0], required=False) for key, kind in COLUMNS.items()))
ROWS = st.lists(st.fixed_dictionaries({f"c{key}": st.none() | kind[2] for key, kind in COLUMNS.items()}), max_size=30)
FIELDS = st.builds(
    SortField,
    st.sampled_from(list(COLUMNS)),
    st.just(tr.IdentityTransform()),
    st.sampled_from(SortDirection),
    st.sampled_from(NullOrder),
)
ARROW = pa.schema([(f"c{key}", kind[1]) for key, kind in COLUMNS.items()])


@given(ROWS, ROWS, st.lists(FIELDS, min_size=1, max_size=3), st.integers(1, 6))
def test_ranges_follow_one_another(
    rows: list[dict[str, object]], sampled: list[dict[str, object]], fields: list[SortField], count: int
) -> None:
    table = pa.Table.from_pylist(rows, ARROW)
    keys = OrderKeys(SortOrder(*fields), SCHEMA)
    ranges = KeyRanges.of_sample(keys, pa.Table.from_pylist(sampled, ARROW), count)
    assert 1 <= ranges.count <= count
    parts = list(ranges.split(table))
    assert [number for number, _ in parts] == sorted({number for number, _ in parts})
    assert all(number < ranges.count for number, _ in parts)
    together = [table.slice(0, 0), *(sort_by_keys(part, keys(part)) for _, part in parts)]
    # Rows that are equal in the order stay as they came, as in a sort of all of them.
    assert repr(pa.concat_tables(together).to_pylist()) == repr(sort_by_keys(table, keys(table)).to_pylist())


@settings(max_examples=10)
@given(st.lists(st.integers(0, 10_000), min_size=64, max_size=100, unique=True), st.integers(2, 8))
def test_a_sample_of_all_rows_gives_even_ranges(values: list[int], count: int) -> None:
    table = pa.table(
        {f"c{key}": pa.array(values if key == 1 else [None] * len(values), kind[1]) for key, kind in COLUMNS.items()}
    )
    ranges = KeyRanges.of_sample(OrderKeys(SortOrder(SortField(1, tr.IdentityTransform())), SCHEMA), table, count)
    sizes = [part.num_rows for _, part in ranges.split(table)]
    assert len(sizes) == count
    assert max(sizes) - min(sizes) <= 1
