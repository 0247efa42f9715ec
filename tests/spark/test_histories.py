"""Random histories of tables read the same by Spark's own reader, by Arrow on executors, and by plain Python."""

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icefloe.schema.types import DoubleType, LongType, StringType
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.spark.reading import ENGINES, delete_equal, new_catalog, plain_rows, spark_rows

VERSIONS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
STEPS = ("append", "delete", "delete equal", "rename", "add", "drop", "promote", "swap names", "partition", "compact")


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        yield session


class History:
    """A table and what happens to it."""

    def __init__(self, ice: Session, version: int) -> None:
        self.table: Table = ice.catalog.create_table(
            ("db", f"t{uuid.uuid4().hex}"),
            schema="k long, name string, n int, s struct<x: long, y: string>",
            properties={"format-version": str(version), "write.delete.mode": "merge-on-read"},
        )
        self.version = version
        self.count = 0
        self.partitioned = False

    def step(self, what: str, number: int) -> None:
        table = self.table
        names = [each.name for each in table.schema().fields]
        match what:
            case "append":
                self.append(number)
            case "delete":
                table.delete(f"k >= {number} and k < {number + 4}")
            case "delete equal" if "name" in names:
                self.partitioned = False
                if table.spec().fields:
                    with table.update_spec() as spec:
                        for field in table.spec().fields:
                            spec.remove_field(field.name)
                keys: dict[str, Any] = {"k": [number], "name": [None if number % 3 == 0 else f"v{number}"]}
                delete_equal(table, keys if number % 2 else {"k": [number, number + 1]})
            case "rename":
                with table.update_schema() as schema:
                    schema.rename_column(names[-1], f"r{self.count}")
            case "add":
                default = 7 if allows(self.version, Feature.COLUMN_DEFAULTS) and number % 2 else None
                with table.update_schema() as schema:
                    schema.add_column(f"a{self.count}", LongType(), default_value=default)
            case "drop" if len(names) > 3:
                with table.update_schema() as schema:
                    schema.delete_column(names[-1])
            case "promote" if "n" in names:
                with table.update_schema() as schema:
                    schema.update_column("n", LongType())
            case "swap names" if "n" in names and "name" in names:
                for old, new in (("n", "tmp"), ("name", "n"), ("tmp", "name")):
                    with table.update_schema() as schema:
                        schema.rename_column(old, new)
            case "partition" if not table.spec().fields:
                with table.update_spec() as spec:
                    spec.add_field("k", "bucket[3]" if number % 2 else "truncate[5]")
            case "compact":
                table.overwrite(table.scan("k < 10").to_arrow(), "k < 10")
            case _:
                pass
        self.count += 1

    def append(self, number: int) -> None:
        ids = list(range(number, number + 8))
        columns: dict[str, Any] = {}
        for field in self.table.schema().fields:
            match field.field_type:
                case StringType():
                    columns[field.name] = [None if each % 3 == 0 else f"v{each}" for each in ids]
                case DoubleType():
                    columns[field.name] = [float(each) for each in ids]
                case LongType() if field.name == "k":
                    columns[field.name] = pa.array(ids, pa.int64())
                case kind if str(kind) in ("int", "long"):
                    columns[field.name] = pa.array([None if each % 4 == 0 else each for each in ids], pa.int32())
                case _:
                    pass
        self.table.append(pa.table(columns))


@pytest.mark.timeout(900)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    version=st.sampled_from(VERSIONS),
    steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 20)), min_size=3, max_size=8),
)
def test_all_readers_agree(ice: Session, version: int, steps: list[tuple[str, int]]) -> None:
    history = History(ice, version)
    history.append(0)
    for what, number in steps:
        history.step(what, number)
    names = ("*", "_pos", "_row_id", "_last_updated_sequence_number")
    expected = plain_rows(history.table, names)
    for engine in ENGINES:
        assert spark_rows(ice, history.table, engine, names) == expected, engine
    text = "k >= 5 and k < 12"
    kept = plain_rows(history.table, row_filter=text)
    frame = ice.table(history.table.name())
    assert frame.filter(text).count() == len(kept)
