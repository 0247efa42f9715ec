"""Random lives of a table, made through its public interface, and what maintenance must not change of it: its rows."""

import datetime as dt
import math
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from hypothesis import strategies as st

from icefloe import Table, load_catalog
from icefloe.data import WriteRequest, write_data_files
from icefloe.schema import types
from icefloe.verification import silent
from icefloe.versions import Feature, allows
from tests.shared_rows import row_modes
from tests.spark.reading import delete_equal

LINEAGE = ("_row_id", "_last_updated_sequence_number")
SCHEMA = "k BIGINT, name STRING, price DOUBLE, day DATE, amount DECIMAL(9,2), part STRUCT<x: BIGINT, y: STRING>"
NAMES = (None, "", "a", "b", "ü", "long text that is longer than sixteen bytes")
PRICES = (None, 0.0, -0.0, 1.5, math.nan, -math.inf)
STEPS = (
    "append",
    "delete",
    "delete equal",
    "delete equal in a partition",
    "upsert",
    "overwrite",
    "partition",
    "unpartition",
    "order",
    "add column",
    "drop column",
    "promote",
    "branch",
    "tag",
    "stage",
    "mode",
    "upgrade",
)


@dataclass
class History:
    """A table and the steps of its life; a step that is not possible in its state does nothing."""

    table: Table
    steps: list[str] = field(default_factory=list)

    def step(self, name: str, number: int) -> None:
        """Let something happen, as chosen by a number."""
        self.steps.append(f"{name} {number}")
        _STEPS[name](self.table, number)


def new_table(folder: Path, version: int, mode: str = "merge-on-read") -> Table:
    """An empty table with columns of several types in a catalog of its own."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    properties = {"format-version": str(version), "commit.retry.num-retries": "20"} | row_modes(mode)
    return catalog.create_table(f"db.t{uuid.uuid4().hex}", SCHEMA, properties=properties)


def steps(*names: str, min_size: int = 2, max_size: int = 9) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Steps by name, with the numbers that choose what they do."""
    step = st.tuples(st.sampled_from(names or STEPS), st.integers(0, 20))
    return st.lists(step, min_size=min_size, max_size=max_size)


def rows_of_snapshots(table: Table) -> dict[str, Counter[str]]:
    """The rows of every snapshot, ref and head, with their ids and the numbers of their last updates."""
    columns = ("*", *(LINEAGE if allows(table.format_version, Feature.ROW_LINEAGE) else ()))
    scans = {
        f"snapshot {snapshot.snapshot_id}": table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=columns)
        for snapshot in table.snapshots()
    }
    # By their names, branches are read under the table's schema of now, whatever snapshot they have come to.
    scans |= {f"ref {name}": table.scan(ref=name, selected_fields=columns) for name in table.refs()}
    return {name: Counter(map(repr, scan.to_arrow().to_pylist())) for name, scan in scans.items()}


def check_same_rows(before: Mapping[str, Counter[str]], table: Table) -> None:
    """Every ref that is left, and every snapshot that is left, has the rows that it had."""
    after = rows_of_snapshots(table.refresh())
    for name in before.keys() & after.keys():
        assert _same_rows(before[name], after[name]), name
    for name in after.keys() - before.keys():
        assert name.startswith("snapshot"), name
    report = table.verify(level="data", progress=silent)
    assert report.ok, report


def _same_rows(before: Counter[str], after: Counter[str]) -> bool:
    """Whether rows are the same; those of before an upgrade have no ids until a commit gives them some."""
    without = Counter({row: count for row, count in before.items() if "'_row_id': None" in row})
    rest = after - (before - without)
    return after.total() == before.total() and _without_ids(rest) == _without_ids(without)


def _without_ids(rows: Counter[str]) -> Counter[str]:
    plain: Counter[str] = Counter()
    for row, count in rows.items():
        plain[row.partition(", '_row_id'")[0]] += count
    return plain


def some_rows(table: Table, first: int, count: int = 6) -> pa.Table:
    """Rows for the table's schema of now, whose keys begin at a number."""
    keys = range(first, first + count)
    columns: dict[str, pa.Array] = {}
    for column in table.schema().fields:
        match column.field_type:
            case types.LongType() if column.name == "k":
                columns["k"] = pa.array(keys, pa.int64())
            case types.LongType() | types.IntegerType():
                columns[column.name] = pa.array([None if key % 3 == 0 else key for key in keys], pa.int32())
            case types.StringType():
                columns[column.name] = pa.array([NAMES[key % len(NAMES)] for key in keys], pa.string())
            case types.DoubleType():
                columns[column.name] = pa.array([PRICES[key % len(PRICES)] for key in keys], pa.float64())
            case types.DateType():
                days = [None if key % 5 == 0 else dt.date(2026, 1, 1 + key % 28) for key in keys]
                columns[column.name] = pa.array(days, pa.date32())
            case types.DecimalType():
                columns[column.name] = pa.array([Decimal(key).scaleb(-2) for key in keys], pa.decimal128(9, 2))
            case types.StructType():
                values = [None if key % 4 == 0 else {"x": key, "y": NAMES[key % 3]} for key in keys]
                columns[column.name] = pa.array(values, pa.struct([("x", pa.int64()), ("y", pa.string())]))
    return pa.table(columns)


def _append(table: Table, number: int) -> None:
    table.append(some_rows(table, number))


def _delete(table: Table, number: int) -> None:
    table.delete(f"k >= {number} and k < {number + 3}")


def _delete_equal(table: Table, number: int) -> None:
    if not allows(table.format_version, Feature.DELETE_FILES) or table.spec().fields or not _has(table, "name"):
        return
    by_two = number % 2 == 0
    keys = {"k": [number, number + 1]} | ({"name": [NAMES[number % len(NAMES)], None]} if by_two else {})
    delete_equal(table, keys)


def _delete_equal_in_a_partition(table: Table, number: int) -> None:
    if not allows(table.format_version, Feature.DELETE_FILES) or table.current_snapshot() is None:
        return
    files = [task.file for task in table.scan().plan_files() if table.specs()[task.file.spec_id].fields]
    if files:
        delete_equal(table, {"k": list(range(number, number + 3))}, of=files[number % len(files)])


def _upsert(table: Table, number: int) -> None:
    keys = table.scan(selected_fields=("k",)).to_arrow()["k"].to_pylist()
    if len(keys) == len(set(keys)):
        table.upsert(some_rows(table, number, 4), join_cols=["k"])


def _overwrite(table: Table, number: int) -> None:
    table.overwrite(some_rows(table, number, 3), f"k >= {number}")


def _partition(table: Table, number: int) -> None:
    if not table.spec().fields:
        column, transform = (("k", "bucket[3]"), ("k", "truncate[5]"), ("name", "identity"), ("day", "month"))[
            number % 4
        ]
        if _has(table, column):
            with table.update_spec() as spec:
                spec.add_field(column, transform)


def _unpartition(table: Table, number: int) -> None:
    if table.spec().fields:
        with table.update_spec() as spec:
            for partition in table.spec().fields:
                spec.remove_field(partition.name)


def _order(table: Table, number: int) -> None:
    if _has(table, "name"):
        with table.update_sort_order() as order:
            (order.asc if number % 2 else order.desc)("name")


def _add_column(table: Table, number: int) -> None:
    default = 7 if allows(table.format_version, Feature.COLUMN_DEFAULTS) and number % 2 else None
    with table.update_schema() as schema:
        schema.add_column(f"a{table.metadata.last_column_id}", types.IntegerType(), default_value=default)


def _drop_column(table: Table, number: int) -> None:
    used = {partition.source_id for spec in table.specs().values() for partition in spec.fields}
    used |= {key.source_id for order in table.sort_orders().values() for key in order.fields}
    names = [column.name for column in table.schema().fields if column.field_id not in used and column.name != "k"]
    if names:
        with table.update_schema() as schema:
            schema.delete_column(names[-1])


def _promote(table: Table, number: int) -> None:
    names = [column.name for column in table.schema().fields if isinstance(column.field_type, types.IntegerType)]
    if names:
        with table.update_schema() as schema:
            schema.update_column(names[0], types.LongType())


def _branch(table: Table, number: int) -> None:
    if table.current_snapshot() is not None:
        name = f"b{number % 2}"
        if name not in table.refs():
            table.manage_snapshots().create_branch(name).commit()
        table.append(some_rows(table, 100 + number, 2), branch=name)


def _tag(table: Table, number: int) -> None:
    if table.current_snapshot() is not None and f"t{number}" not in table.refs():
        table.manage_snapshots().create_tag(f"t{number}").commit()


def _stage(table: Table, number: int) -> None:
    files = write_data_files(some_rows(table, 200 + number, 2), WriteRequest(table.metadata, table.storage))
    table.update_snapshot(stage_only=True).fast_append(files)


def _mode(table: Table, number: int) -> None:
    table.set_properties(row_modes("copy-on-write" if number % 2 else "merge-on-read"))


def _upgrade(table: Table, number: int) -> None:
    if table.format_version < 3:
        table.upgrade_format_version(table.format_version + 1)


def _has(table: Table, name: str) -> bool:
    return any(column.name == name for column in table.schema().fields)


_STEPS: dict[str, Callable[[Table, int], None]] = {
    "append": _append,
    "delete": _delete,
    "delete equal": _delete_equal,
    "delete equal in a partition": _delete_equal_in_a_partition,
    "upsert": _upsert,
    "overwrite": _overwrite,
    "partition": _partition,
    "unpartition": _unpartition,
    "order": _order,
    "add column": _add_column,
    "drop column": _drop_column,
    "promote": _promote,
    "branch": _branch,
    "tag": _tag,
    "stage": _stage,
    "mode": _mode,
    "upgrade": _upgrade,
}
