"""Fields inside of columns are what their ids say, whatever names they and others had: in projections, filters and deletes."""

import uuid
from collections.abc import Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from pyspark.sql import (
    DataFrame,
    functions as F,  # noqa: N812 - its usual name
)

from icefloe.schema import schema_to_arrow, types
from icefloe.spark.connect import connect
from icefloe.spark.session import Session
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS
from tests.spark.reading import new_catalog

PLACES = {"s": ("s",), "l": ("l", "element"), "m": ("m", "value")}
"""The structs: a column, the elements of a list, the values of a map."""
NAMES = ("a", "b", "c")
TYPES: tuple[types.IcebergType, ...] = (types.IntegerType(), types.StringType(), types.DoubleType())


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("tables")), spark=spark) as session:
        yield session


class History:
    """A table whose nested fields are renamed, dropped and added, and what its rows must be: values by field id."""

    def __init__(self, ice: Session, version: int = 2) -> None:
        inner = "struct<a: int, b: string, c: double>"
        self.table: Table = ice.catalog.create_table(
            ("db", f"t{uuid.uuid4().hex}"),
            schema=f"k long, s {inner}, l list<{inner}>, m map<string, {inner}>",
            properties={"format-version": str(version)},
        )
        self.places = dict(PLACES)
        self.rows: list[dict[int, Any]] = []

    def append(self) -> None:
        """Two rows, one of them with null structs."""
        key = len(self.rows)
        for whole in (True, False):
            self.rows.append(self._row(key + (not whole), whole))
        shown = [_shown(self.table.schema().as_struct, each) for each in self.rows[-2:]]
        self.table.append(pa.Table.from_pylist(shown, schema_to_arrow(self.table.schema())))

    def _row(self, key: int, is_whole: bool) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for field in self.table.schema().fields:
            match field.field_type:
                case types.StructType() as kind:
                    found[field.field_id] = _values(kind, key) if is_whole else None
                case types.ListType(element_type=types.StructType() as kind):
                    found[field.field_id] = [_values(kind, key)] if is_whole else [None]
                case types.MapType(value_type=types.StructType() as kind):
                    found[field.field_id] = {"x": _values(kind, key) if is_whole else None}
                case _:
                    found[field.field_id] = key if field.name == "k" else None
        return found

    def step(self, what: str, place: str, one: str, other: str, kind: types.IcebergType) -> None:
        """Change the schema, if that can be done to it now; some changes are several schemas, and some are one."""
        path = self.places[place]
        names = [each.name for each in self.struct(place)]
        match what:
            case "replace" if one in names and len(names) > 1:
                with self.table.update_schema() as update:
                    update.delete_column((*path, one))
                with self.table.update_schema() as update:
                    update.add_column((*path, one), kind)
            case "drop" if one in names and len(names) > 1:
                with self.table.update_schema() as update:
                    update.delete_column((*path, one))
            case "add" if one not in names:
                with self.table.update_schema() as update:
                    update.add_column((*path, one), kind)
            case "rename" if one in names and other not in names:
                with self.table.update_schema() as update:
                    update.rename_column((*path, one), other)
            case "swap" if one in names and other in names and one != other:
                for old, new in ((one, "tmp"), (other, one), ("tmp", other)):
                    with self.table.update_schema() as update:
                        update.rename_column((*path, old), new)
            case "rename column":
                new = f"{place}{len(self.table.metadata.schemas)}"
                with self.table.update_schema() as update:
                    update.rename_column(path[0], new)
                if place not in self.table.schema().ids_by_name:
                    with self.table.update_schema() as update:
                        update.add_column(place, types.IntegerType())
                self.places[place] = (new, *path[1:])
            case _:
                pass

    def struct(self, place: str) -> types.StructType:
        """The struct as it is now."""
        found = self.table.schema().find_type(".".join(self.places[place]))
        assert isinstance(found, types.StructType)
        return found

    def leaves(self) -> Iterator[tuple[str, Any, Any]]:
        """Each field in a struct: what it is called, the column that it is in a frame, and its value by the row."""
        for place, (column, *_) in self.places.items():
            top = self.table.schema().find_field(column).field_id
            for field in self.struct(place):
                match place:
                    case "s":
                        yield f"{column}.{field.name}", F.col(column)[field.name], _inside(top, field.field_id)
                    case "l":
                        picked = F.col(f"{column}.{field.name}")[0]
                        yield f"{column}[].{field.name}", picked, _inside(top, field.field_id, 0)
                    case _:
                        picked = F.col(column)["x"][field.name]
                        yield f"{column}{{}}.{field.name}", picked, _inside(top, field.field_id, "x")


def _inside(top: int, field_id: int, key: Any = None) -> Any:
    """From a row of the model to the value of a field in one of its structs; None where the struct, or the row, lacks it."""

    def value(row: dict[int, Any]) -> Any:
        around = row.get(top)
        if key is not None and around is not None:
            around = around[key]
        return None if around is None else around.get(field_id)

    return value


def _values(kind: types.StructType, key: int) -> dict[int, Any]:
    """Values that differ by field and row, so that no field can pass for another."""
    found: dict[int, Any] = {}
    for field in kind:
        number = key * 100 + field.field_id
        match field.field_type:
            case types.IntegerType():
                found[field.field_id] = number
            case types.StringType():
                found[field.field_id] = f"v{number}"
            case _:
                found[field.field_id] = number + 0.5
    return found


def _shown(kind: Any, value: Any) -> Any:
    """A value of the model under the names of a type."""
    if value is None:
        return None
    match kind:
        case types.StructType():
            return {field.name: _shown(field.field_type, value.get(field.field_id)) for field in kind}
        case types.ListType():
            return [_shown(kind.element_type, each) for each in value]
        case types.MapType():
            return {key: _shown(kind.value_type, each) for key, each in value.items()}
        case _:
            return value


def _together(frames: list[DataFrame]) -> list[str]:
    """The rows of several queries as texts, by one job."""
    return sorted(str(tuple(row)) for row in reduce(DataFrame.union, frames).collect())


def check(ice: Session, history: History) -> None:
    """Every field alone, all together, and as a filter, against the model."""
    name, leaves = history.table.name(), list(history.leaves())
    shown = [_shown(history.table.schema().as_struct, row) for row in history.rows]
    assert sorted((row.asDict(recursive=True) for row in ice.table(name).collect()), key=lambda row: row["k"]) == shown
    alone = [ice.table(name).select("k", F.lit(label), column.cast("string")) for label, column, _ in leaves]
    keys = range(len(history.rows))
    expected = [
        (key, label, None if (found := value(history.rows[key])) is None else str(found))
        for label, _, value in leaves
        for key in keys
    ]
    assert _together(alone) == sorted(map(str, expected))
    filters, kept = [], []
    for label, column, value in leaves:
        values = [value(row) for row in history.rows]
        wanted = next((each for each in values if each is not None), 0)
        for what, condition, is_kept in (
            ("null", column.isNull(), [each is None for each in values]),
            ("equal", column == wanted, [each == wanted for each in values]),
        ):
            filters.append(ice.table(name).filter(condition).select("k", F.lit(f"{label} {what}")))
            kept += [(key, f"{label} {what}") for key in keys if is_kept[key]]
    assert _together(filters) == sorted(map(str, kept))


CHANGES = st.tuples(
    st.sampled_from(("replace", "drop", "add", "rename", "swap", "rename column", "append", "append")),
    st.sampled_from(sorted(PLACES)),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.sampled_from(TYPES),
)


@pytest.mark.timeout(900)
@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),  # each try to shrink a history takes seconds of Spark
)
@given(
    version=st.sampled_from(ALL_VERSIONS), steps=st.lists(CHANGES, min_size=4, max_size=10), in_batches=st.booleans()
)
def test_fields_are_found_by_id_in_any_history(ice: Session, version: int, steps: list[Any], in_batches: bool) -> None:
    history = History(ice, version)
    history.append()
    for what, *more in steps:
        history.append() if what == "append" else history.step(what, *more)
    history.append()
    ice.spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(in_batches).lower())
    try:
        check(ice, history)
    finally:
        ice.spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    label, column, value = next(history.leaves())
    ice.delete(history.table.name(), column.isNull())
    left = sorted(row.k for row in ice.table(history.table.name()).collect())
    assert left == [key for key, row in enumerate(history.rows) if value(row) is not None], label
