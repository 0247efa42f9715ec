"""Rows that are not deleted, by Spark, against numpy: whatever row groups and pages are skipped, files are split, and by which reader.

Each case is asked twice: with the reader that leaves deleted rows out, and with the test of each row that stands in for it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812  # its usual name

from icefloe.commit import Planned
from icefloe.spark import asked_files
from icefloe.spark.asked_files import AskedFiles
from icefloe.spark.connect import connect
from icefloe.spark.jvm import door
from icefloe.spark.session import Session
from icefloe.table import Table
from tests.spark.reading import new_catalog
from tests.spark.sessions import settings

MODES: Mapping[str, Mapping[str, str]] = {
    "batches": {},
    "splits": {"spark.sql.files.maxPartitionBytes": "9000", "spark.sql.files.openCostInBytes": "0"},
    "small batches": {"spark.sql.parquet.columnarReaderBatchSize": "100"},
    "off the heap": {"spark.sql.columnVector.offheap.enabled": "true"},
    "rows of vectors": {"spark.sql.codegen.maxFields": "1"},
    "no generated code": {"spark.sql.codegen.wholeStage": "false"},
    "records": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "filtered records": {
        "spark.sql.parquet.enableVectorizedReader": "false",
        "spark.sql.parquet.recordLevelFilter.enabled": "true",
    },
}
READERS = {"reader": "true", "test of each row": "false"}
Numbers = npt.NDArray[np.int64]


@pytest.fixture(scope="module")
def ice(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """A session on tables of its own."""
    with connect(new_catalog(tmp_path_factory.mktemp("live")), spark=spark) as session:
        yield session


@dataclass(frozen=True)
class Model:
    """A table as numpy has it: for each row its number, its position, a number in no order, and whether it is deleted."""

    table: Table
    k: Numbers
    pos: Numbers
    v: Numbers
    deleted: npt.NDArray[np.bool_]

    def rows(self, which: npt.NDArray[np.bool_]) -> list[tuple[int, int, int, int]]:
        """The live rows of a filter, as `asked` gives them."""
        kept = which & ~self.deleted
        columns = (self.k, self.pos, self.v, self.k * 2)
        return list(zip(*(column[kept].tolist() for column in columns), strict=True))


def made_model(ice: Session, seed: int, version: int) -> Model:
    """One to three files of several row groups and pages, of which rows are deleted here and there, in runs, or not at all."""
    random = np.random.default_rng(seed)
    properties = {
        "format-version": str(version),
        "write.delete.mode": "merge-on-read",
        "write.parquet.row-group-size-bytes": str(random.choice([4_000, 15_000, 1 << 20])),
        "write.parquet.page-row-limit": str(random.choice([50, 400, 20_000])),
    }
    name = f"t_{seed}_{version}"
    schema = "k long, v long, t string, n struct<a: long, l: list<long>>"
    table = ice.catalog.create_table(("db", name), schema, properties=properties)
    sizes = random.integers(1, 4_000, random.integers(1, 4))
    start, parts, gone = 0, [], {}
    known: set[str] = set()
    for size in sizes.tolist():
        k = np.arange(start, start + size)
        v = random.integers(0, 20, size)
        nested = [{"a": each * 2, "l": [each]} if each % 3 else {"a": each * 2, "l": None} for each in k.tolist()]
        table.append(pa.table({"k": k, "v": v, "t": [f"t{each}" for each in v.tolist()], "n": nested}))
        deleted = random.random(size) < random.choice([0, 0.01, 0.3])
        if random.random() < 0.5:
            first = random.integers(0, size)
            deleted[first : first + random.integers(0, size)] = True
        [path] = {task.file.file_path for task in table.scan().plan_files()} - known
        known.add(path)
        gone[path] = np.flatnonzero(deleted)
        parts.append((k, np.arange(size), v, deleted))
        start += size
    model = Model(table, *(np.concatenate(column) for column in zip(*parts, strict=True)))
    if version == 2:
        table.delete(f"k in ({', '.join(map(str, [-1, *model.k[model.deleted].tolist()]))})")
    else:
        vectors = {path: positions for path, positions in gone.items() if len(positions)}
        table.update_snapshot().row_delta(Planned.on(table.metadata), vectors=vectors)
    return model


def a_filter(model: Model, random: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    """What to ask: as SQL and for numpy."""
    k, v = model.k, model.v
    low, high = sorted(random.integers(-10, len(k) + 10, 2).tolist())
    number = int(random.integers(0, 20))
    choices = [
        ("true", np.ones(len(k), bool)),
        (f"k between {low} and {high}", (k >= low) & (k <= high)),
        (f"k < {low} or k > {high}", (k < low) | (k > high)),
        (f"k = {low}", k == low),
        (f"v = {number} and k >= {low}", (v == number) & (k >= low)),
        (f"t = 't{number}' or n.a = {2 * low}", (v == number) | (k == low)),
        (f"_pos >= {low} and v < {number}", (model.pos >= low) & (v < number)),
    ]
    text, mask = choices[int(random.integers(len(choices)))]
    return text, mask


def asked(ice: Session, model: Model, text: str) -> list[tuple[Any, ...]]:
    frame = ice.table(model.table.name(), selected_fields=("*", "_pos"), options={"read.engine": "native"})
    return sorted(map(tuple, frame.filter(text).select("k", "_pos", "v", "n.a").collect()))


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5, 80))])
def test_live_rows_are_those_of_numpy(ice: Session, seed: int) -> None:
    mode = [*MODES][seed % len(MODES)]
    model = made_model(ice, seed, (2, 3, 4)[seed % 3])
    text, mask = a_filter(model, np.random.default_rng(seed))
    kept = ~model.deleted if "_pos" in text else mask & ~model.deleted
    for reader, enabled in READERS.items():
        with settings(ice.spark, {**MODES[mode], door.ENABLED: enabled}):
            assert asked(ice, model, text) == model.rows(mask), (reader, mode, text)
            whole = ice.table(model.table.name())
            assert whole.count() == (~model.deleted).sum(), (reader, mode)
            some = whole if "_pos" in text else whole.filter(text)
            (total,) = some.agg(F.sum("v")).collect()[0]
            assert (total or 0) == model.v[kept].sum(), (reader, mode, text)


def test_a_long_answer_comes_in_pieces(ice: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    model = made_model(ice, 1_000, 3)
    expected = model.rows(np.ones(len(model.k), bool))
    pieces = []

    def noted(self: AskedFiles, number: int) -> bytes:
        pieces.append(piece := rest(self, number))
        return piece

    rest = AskedFiles._rest
    monkeypatch.setattr(AskedFiles, "_rest", noted)
    for most in (1, 100, 64 << 20):
        monkeypatch.setattr(asked_files, "MOST_BYTES_KEPT", most)
        pieces.clear()
        frame = ice.table(model.table.name(), selected_fields=("*", "_pos"))
        rows = frame.select("k", "_pos", "v", "n.a")
        assert sorted(map(tuple, rows.collect())) == expected
        # Asked again, since nothing that came in pieces is kept.
        assert sorted(map(tuple, rows.filter("k >= 0").collect())) == expected
        assert bool(pieces) == (most < 64 << 20)


SIMPLE: Mapping[str, Callable[[int], Any]] = {
    "boolean": lambda n: n % 3 == 0,
    "int": lambda n: n - 7,
    "long": lambda n: n * 10**12,
    "float": lambda n: n / 4,
    "double": lambda n: n / 8,
    "decimal(5, 2)": lambda n: Decimal(n % 99_999).scaleb(-2),
    "decimal(15, 3)": lambda n: Decimal(n * 10**9).scaleb(-3),
    "decimal(30, 5)": lambda n: Decimal(n * 10**20).scaleb(-5),
    "date": lambda n: date(2020, 1, 1) + timedelta(n),
    "timestamp": lambda n: datetime(2020, 1, 1) + timedelta(minutes=n),
    "timestamptz": lambda n: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=n),
    "string": lambda n: "x" * (n % 20) + str(n),
    "binary": lambda n: bytes([n % 256]) * (n % 5) + str(n).encode(),
    "fixed[4]": lambda n: n.to_bytes(4),
    "uuid": lambda n: UUID(int=n).bytes,
    "struct<a: int, b: struct<c: string>>": lambda n: {"a": n, "b": {"c": str(n)} if n % 4 else None},
    "list<long>": lambda n: list(range(n % 4)),
    "map<string, int>": lambda n: [(f"k{each}", n) for each in range(n % 3)],
}
"""A value of each type for a number."""
ROWS = 6_000


def all_types(random: np.random.Generator) -> tuple[dict[str, str], dict[str, list[Any]]]:
    """Columns with a dictionary and without, with nulls and without: their types, and their values."""
    columns = {"k": "long"}
    values: dict[str, list[Any]] = {"k": list(range(ROWS))}
    for index, (column_type, made) in enumerate(SIMPLE.items()):
        few, many, same = random.integers(0, 9, ROWS), random.permutation(ROWS), np.full(ROWS, 5)
        for kind, numbers in {"few": few, "many": many, "same": same}.items():
            is_null = random.random(ROWS) < (0.3 if kind != "same" else 0)
            columns[f"{kind}_{index}"] = column_type
            values[f"{kind}_{index}"] = [
                None if null else made(n) for n, null in zip(numbers.tolist(), is_null.tolist(), strict=True)
            ]
    return columns, values


def shown(rows: pa.Table, columns: Mapping[str, str]) -> pa.Table:
    """Rows as Spark shows them, which has no type for a UUID."""
    for index, name in enumerate(rows.schema.names):
        if columns.get(name) == "uuid":
            texts = [None if each is None else str(each) for each in rows[name].to_pylist()]
            rows = rows.set_column(index, name, pa.array(texts))
    return rows


@pytest.mark.parametrize("mode", ["batches", "small batches", "off the heap", "rows of vectors", "no generated code"])
def test_all_types_keep_their_values_and_nulls(ice: Session, mode: str) -> None:
    """The same of columns that the file lacks, of which one has a default."""
    random = np.random.default_rng(sum(map(ord, mode)))
    columns, values = all_types(random)
    schema = ", ".join(f"{column} {column_type}" for column, column_type in columns.items())
    name = f"all_types_{'_'.join(mode.split())}"
    table = ice.catalog.create_table(("db", name), schema, properties={"format-version": "3"})
    whole = pa.table(values, table.scan().to_arrow().schema)
    table.append(whole)
    with table.update_schema() as change:
        change.add_column("missing", "int")
        change.add_column("later", "string", default_value="so be it")
    [path] = [task.file.file_path for task in table.scan().plan_files()]
    deleted = np.flatnonzero(random.random(ROWS) < 0.1)
    table.update_snapshot().row_delta(Planned.on(table.metadata), vectors={path: deleted})
    expected = shown(whole.take(np.setdiff1d(np.arange(ROWS), deleted)), columns)
    expected = expected.append_column("missing", pa.nulls(len(expected), pa.int32()))
    expected = expected.append_column("later", pa.array(["so be it"] * len(expected)))
    for reader, enabled in READERS.items():
        with settings(ice.spark, {**MODES[mode], door.ENABLED: enabled}):
            frame = ice.table(table.name(), options={"read.engine": "native"})
            for names in (
                expected.schema.names,
                ["k", "few_11", "many_1"],
                ["many_15", "k"],
                ["missing", "later", "k"],
            ):
                rows = frame.select(*names).toArrow().sort_by("k")
                wanted = expected.select(names)
                assert rows.cast(wanted.schema).equals(wanted), (reader, mode, names)
