"""Variants on Spark: written shredded by both engines and by us, read by all, and files skipped by what is in them."""

from datetime import UTC
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icefloe.errors import InvalidPropertyError
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.variant import Variant, decode
from tests.formats.test_variant_shredding import assert_same
from tests.formats.test_variant_splitting import plain
from tests.formats.variant_strategies import variant_values
from tests.spark.conftest import SPARK
from tests.spark.reading import ENGINES, new_catalog, planned

pytestmark = pytest.mark.skipif(SPARK < (4, 1), reason="Spark 4.0 cannot read shredded variants by field id")

ARROW_WRITES = {"write.object-storage.enabled": "true"}
"""Spark's own writer does not spread files over folders, so that Arrow writes."""
VALUES: list[Any] = [
    *({"a": i, "b": f"text {i}", "d": Decimal(i) / 4, "o": {"x": i * 1.5, "t": [i, "z", None]}} for i in range(12)),
    {"a": "none", "more": {"deep": [None, True]}, "long": "x" * 100},
    {"b": None, "a": 2**40},
    {},
    [1, {"a": 2}],
    5,
    None,
    ...,
]


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return connect(new_catalog(tmp_path_factory.mktemp("variants")), spark=spark)


def create(ice: Session, name: str, **properties: str) -> Table:
    own = {"format-version": "3", "write.parquet.shred-variants": "true", **properties}
    return ice.catalog.create_table(f"db.{name}", "id long, v variant", properties=own)


def is_shredded(table: Table) -> list[bool]:
    places = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    return ["typed_value" in {field.name for field in pq.read_schema(place).field("v").type} for place in places]


@pytest.mark.parametrize("writer", ENGINES)
def test_every_writer_and_reader(ice: Session, writer: str) -> None:
    source, target = (
        create(ice, f"from_{writer}"),
        create(ice, f"to_{writer}", **(ARROW_WRITES if writer == "arrow" else {})),
    )
    source.append(pa.table({"id": pa.array(range(len(VALUES)), pa.int64()), "v": plain(VALUES)}))
    assert is_shredded(source) == [True]
    for reader in ENGINES:
        frame = source.scan(options={"read.engine": reader}).to_spark(ice.spark)
        target.overwrite(frame.coalesce(1))
        # Spark shreds no file whose roots are of several types.
        assert is_shredded(target) == [writer == "arrow"]
        assert_same(target.scan().to_arrow().sort_by("id")["v"].combine_chunks(), VALUES)


SPARKS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-200, 200),
    st.floats(),
    st.builds(lambda digits, scale: Decimal(f"{digits}E-{scale}"), st.integers(1 - 10**38, 10**38 - 1), st.integers(0, 38)),
    st.text(max_size=70),
    st.binary(max_size=20),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
)  # fmt: skip
"""Values of the types that Spark's variants have: no times of day, UUIDs and nanoseconds."""
ROWS = st.lists(st.one_of(st.just(...), variant_values(SPARKS), st.fixed_dictionaries({"a": SPARKS, "b": SPARKS})), min_size=30, max_size=60)  # fmt: skip


def check_random(ice: Session, values: list[Any]) -> None:
    name = f"random_{uuid4().hex}"
    source = create(ice, name)
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": plain(values)})
    source.append(rows.slice(0, len(values) // 2))
    source.append(rows.slice(len(values) // 2))
    for writer in ENGINES:
        target = create(ice, f"{name}_{writer}", **(ARROW_WRITES if writer == "arrow" else {}))
        for reader in ENGINES:
            target.overwrite(source.scan(options={"read.engine": reader}).to_spark(ice.spark))
            assert_same(target.scan().to_arrow().sort_by("id")["v"].combine_chunks(), values)
            # And once more from what that writer wrote.
            again = target.scan(options={"read.engine": reader}).to_spark(ice.spark)
            target.overwrite(again)
            assert_same(target.scan().to_arrow().sort_by("id")["v"].combine_chunks(), values)


@settings(max_examples=1, suppress_health_check=list(HealthCheck))
@given(values=ROWS)
def test_random_variants_through_every_writer_and_reader(ice: Session, values: list[Any]) -> None:
    check_random(ice, values)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(values=ROWS)
def test_many_random_variants_through_every_writer_and_reader(ice: Session, values: list[Any]) -> None:
    check_random(ice, values)


def test_options_come_before_the_session_and_the_table(ice: Session) -> None:
    table = create(ice, "settings", **{"write.parquet.shred-variants": "false", **ARROW_WRITES})
    frame = ice.spark.range(4, numPartitions=1).selectExpr("id", """parse_json(concat('{"a": ', id, '}')) v""")

    def shredded(**options: Any) -> bool:
        ice.write(frame).to("db.settings").options(
            **{key.replace("_", "-"): value for key, value in options.items()}
        ).overwrite()
        return is_shredded(table.refresh()) == [True]

    assert not shredded()
    assert shredded(shred_variants=True)
    ice.spark.conf.set("spark.sql.iceberg.shred-variants", "true")
    try:
        assert shredded()
        assert not shredded(shred_variants="false")
        ice.sql("INSERT OVERWRITE lake.db.settings SELECT id, v FROM lake.db.settings")
        assert all(is_shredded(table.refresh()))
    finally:
        ice.spark.conf.unset("spark.sql.iceberg.shred-variants")
    with pytest.raises(InvalidPropertyError, match="shred-variants"):
        shredded(shred_variants="maybe")


@pytest.fixture(scope="module")
def numbered(ice: Session) -> Table:
    """Ten files of ten rows each: half of them ours, half Spark's."""
    table = create(ice, "numbered")
    for start in range(0, 100, 10):
        if start % 20:
            values = [
                {"a": {"n": i}, "t": f"t{i:03}", "d": Decimal(i) / 4, "x": i / 2} for i in range(start, start + 10)
            ]
            table.append(pa.table({"id": pa.array(range(start, start + 10), pa.int64()), "v": plain(values)}))
        else:
            text = "concat('{\"a\": {\"n\": ', id, '}, \"t\": \"t', lpad(id, 3, '0'), '\", \"d\": ', id / 4, ', \"x\": ', id / 2, 'e0}')"
            table.append(ice.spark.range(start, start + 10, numPartitions=1).selectExpr("id", f"parse_json({text}) v"))
    assert all(is_shredded(table))
    return table


FILTERS: tuple[tuple[str, list[int], int], ...] = (
    ("variant_get(v, '$.a.n', 'int') = 42", [42], 1),
    ("v:a.n::int >= 85", list(range(85, 100)), 2),
    ("try_variant_get(v, '$.t', 'string') LIKE 't01%'", list(range(10, 20)), 1),
    ("v:t::string IN ('t003', 't097')", [3, 97], 2),
    ("v:d::decimal(9, 2) < 1", [0, 1, 2, 3], 1),
    ("v:d::double > 24", [97, 98, 99], 1),
    # Spark casts, and may find what bounds do not tell.
    ("v:a.n::string = '42'", [42], 10),
    ("v:t::string != 't042' AND id = 43", [43], 1),
)
"""Filters, the rows that they want, and how many files may be read for them."""


@pytest.mark.parametrize(("pushes", "filters"), [("true", FILTERS), ("false", FILTERS[:2])], ids=["pushed", "whole"])
def test_filters_of_spark_skip_files(ice: Session, numbered: Table, pushes: str, filters: Any) -> None:
    assert numbered.current_snapshot() is not None
    ice.spark.conf.set("spark.sql.variant.pushVariantIntoScan", pushes)
    try:
        for text, expected, most in filters:
            frame = ice.sql(f"SELECT id FROM lake.db.numbered WHERE {text}")
            assert planned(ice, frame).result_data_files <= most, text
            assert sorted(row.id for row in frame.collect()) == expected, text
    finally:
        ice.spark.conf.unset("spark.sql.variant.pushVariantIntoScan")


def test_our_filters_skip_files_on_spark(ice: Session, numbered: Table) -> None:
    frame = numbered.scan("v:a.n = 42", ("id", "v")).to_spark(ice.spark)
    assert [row.id for row in frame.collect()] == [42]
    found = numbered.scan("v:a.n = 42").to_arrow()["v"].to_pylist()
    assert [decode(Variant(**row))["t"] for row in found] == ["t042"]


def test_rows_are_changed_by_what_is_in_variants(ice: Session) -> None:
    table = create(ice, "changed")
    table.append(pa.table({"id": pa.array(range(len(VALUES)), pa.int64()), "v": plain(VALUES)}))
    # A text that Spark casts to a number is one for Spark.
    table.append(pa.table({"id": pa.array([100], pa.int64()), "v": plain([{"a": "3"}])}))
    ice.sql("DELETE FROM lake.db.changed WHERE try_variant_get(v, '$.a', 'int') = 3")
    ids = table.refresh().scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == [index for index in range(len(VALUES)) if index != 3]
