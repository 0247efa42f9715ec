"""Orders along curves: keys are those of their definitions, rows stay the same, and files have narrow bounds."""

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from icefloe import Table, load_catalog
from icefloe.errors import InvalidInputError, InvalidPropertyError, NoSuchColumnError
from icefloe.maintenance import ByteKeys, Curve, CurveColumn, GroupRewrite, RankKeys
from icefloe.maintenance.rewrite.curve_keys import hilbert_axes
from icefloe.maintenance.rewrite.run import run_rewrite
from icefloe.schema import NestedField, Schema, schema_to_arrow, types
from icefloe.verification import silent
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.maintenance.rewriting import Between
from tests.shared_rows import row_modes

KINDS: dict[str, types.IcebergType] = {
    "whole": types.IntegerType(),
    "long": types.LongType(),
    "day": types.DateType(),
    "ratio": types.DoubleType(),
    "flag": types.BooleanType(),
    "zoned": types.TimestamptzType(),
    "local": types.TimestampType(),
    "name": types.StringType(),
    "raw": types.BinaryType(),
}
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "whole": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "day": st.integers(-(2**31), 2**31 - 1),
    "ratio": st.floats(),
    "flag": st.booleans(),
    "zoned": st.integers(-(10**15), 10**15),
    "local": st.integers(-(10**15), 10**15),
    "name": st.text(max_size=12),
    "raw": st.binary(max_size=12),
}


def naive_bytes(value: Any, name: str, width: int) -> bytes:
    """The bytes of a value as Java's documentation and source have them, one value at a time."""
    if name in ("name", "raw"):
        data = b"" if value is None else value.encode() if isinstance(value, str) else value
        if isinstance(value, str):
            kept = ""
            for letter in value:
                if len((kept + letter).encode()) > width:
                    break
                kept += letter
            data = kept.encode()
        return data[:width].ljust(width, b"\0")
    if value is None:
        return bytes(8)
    if name == "flag":
        return b"\x81" + bytes(7) if value else bytes(8)
    if name == "ratio":
        (bits,) = struct.unpack(">Q", struct.pack(">d", math.nan if math.isnan(value) else value))
        return struct.pack(">Q", ~bits & (2**64 - 1) if bits >> 63 else bits | 1 << 63)
    number = value // 1_000_000 if name == "zoned" else value
    return struct.pack(">Q", number + 2**63)


def naive_zorder(parts: list[bytes], most: int) -> bytes:
    """Bit by bit: the first of each column, then the second; columns that end are left out."""
    texts = ["".join(f"{byte:08b}" for byte in part) for part in parts]
    bits = "".join(text[at] for at in range(max(map(len, texts))) for text in texts if at < len(text))
    return int(bits, 2).to_bytes(len(bits) // 8, "big")[:most]


@st.composite
def curve_rows(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Any]]]:
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    row = st.fixed_dictionaries({name: st.none() | VALUES[name] for name in names})
    return names, draw(st.lists(row, max_size=6))


def arrow_rows(names: list[str], rows: list[dict[str, Any]]) -> pa.Table:
    schema = schema_to_arrow(Schema(*(NestedField(at, name, KINDS[name]) for at, name in enumerate(names, 1))))
    plain = {"day": pa.int32(), "zoned": pa.int64(), "local": pa.int64()}
    arrays = [
        pa.array([row[name] for row in rows], plain.get(name, schema.field(name).type)).cast(schema.field(name).type)
        for name in names
    ]
    return pa.table(arrays, schema=schema)


def columns_of(names: list[str]) -> tuple[CurveColumn, ...]:
    return tuple(CurveColumn((name,), KINDS[name]) for name in names)


@settings(max_examples=60, deadline=None)
@given(drawn=curve_rows(), width=st.integers(1, 12), most=st.integers(1, 40))
def test_z_values_are_javas(drawn: tuple[list[str], list[dict[str, Any]]], width: int, most: int) -> None:
    names, rows = drawn
    made = ByteKeys(Curve.ZORDER, columns_of(names), width, most).of(arrow_rows(names, rows)).to_pylist()
    assert made == [naive_zorder([naive_bytes(row[name], name, width) for name in names], most) for row in rows]


@pytest.mark.parametrize(("dimensions", "bits"), [(2, 5), (3, 3), (4, 2)])
def test_hilberts_curve_goes_from_neighbour_to_neighbour(dimensions: int, bits: int) -> None:
    """Through all points of a grid, each of them once; from one to the next, one coordinate changes by one."""
    grid = np.stack(np.meshgrid(*[np.arange(2**bits)] * dimensions, indexing="ij")).reshape(dimensions, -1)
    axes = hilbert_axes(list(grid.astype(np.uint64)), bits)
    coordinates = [[f"{int(number):0{bits}b}" for number in axis] for axis in axes]
    numbers = np.array(
        [int("".join(map("".join, zip(*point, strict=True))), 2) for point in zip(*coordinates, strict=True)]
    )
    assert sorted(numbers) == list(range(grid.shape[1]))
    assert (np.abs(np.diff(grid[:, np.argsort(numbers)], axis=1)).sum(axis=0) == 1).all()


@settings(max_examples=30, deadline=None)
@given(drawn=curve_rows(), curve=st.sampled_from(Curve))
def test_ranks_of_one_column_are_in_its_order(drawn: tuple[list[str], list[dict[str, Any]]], curve: Curve) -> None:
    names, rows = drawn[0][:1], drawn[1]
    data = arrow_rows(names, rows)
    made = RankKeys.of_sample(curve, columns_of(names), data).of(data).to_pylist()
    ordered = sorted(range(len(rows)), key=lambda at: made[at])
    plain = [naive_bytes(rows[at][names[0]], names[0], 64) for at in ordered]
    assert plain == sorted(plain)


# -- rewrites


def new_table(folder: Path, version: int = 3) -> Table:
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "files"))
    catalog.create_namespace_if_not_exists("db")
    schema = "a BIGINT, b DOUBLE, part STRING, amount DECIMAL(9, 2), more STRUCT<c: INT>"
    table = catalog.create_table("db.t", schema, properties={"format-version": str(version)}, partition_spec=["part"])
    random = np.random.default_rng(1)
    for _ in range(4):
        a, b = random.permutation(500), random.random(500) * 1e9
        more = pa.array([{"c": int(number)} for number in a], pa.struct([("c", pa.int32())]))
        table.append(pa.table({"a": a, "b": b, "part": ["x"] * 500, "more": more}))
    return table


def files_read(table: Table) -> int:
    """How many files twenty filters on two columns read."""
    filters = [f"a >= {n * 25} and a < {n * 25 + 50} and b > {n * 4e7} and b < {n * 4e7 + 1e8}" for n in range(20)]
    return sum(1 for text in filters for _ in table.scan(text).plan_files())


def content(table: Table) -> list[str]:
    ids = ("_row_id",) if allows(table.format_version, Feature.ROW_LINEAGE) else ()
    return sorted(map(repr, table.scan(selected_fields=("*", *ids)).to_arrow().to_pylist()))


@pytest.mark.parametrize(
    ("version", "order"),
    [(2, "zorder(a, b)"), (3, "hilbert(b, a)"), (4, "zorder(a), zorder(`b`)"), (3, "zorder(A, more.c, amount, b)")],
)
def test_a_rewrite_along_a_curve(tmp_path: Path, version: int, order: str) -> None:
    assert version in ALL_VERSIONS
    table = new_table(tmp_path, version)
    before, read = content(table), files_read(table)
    done = table.maintenance.rewrite_data_files(
        sort_order=order, options={"rewrite-all": "true", "target-file-size-bytes": "3000"}
    )
    assert done.rewritten_data_files_count == 4
    assert content(table.refresh()) == before
    report = table.verify(level="data", progress=silent)
    assert report.ok, str(report)
    count = sum(1 for _ in table.scan().plan_files())
    assert count > 4
    assert files_read(table) / count < 0.6 * read / 4
    assert all(task.file.sort_order_id in (None, 0) for task in table.scan().plan_files())


def test_what_cannot_be_a_curve(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    rewrite = table.maintenance.rewrite_data_files
    with pytest.raises(InvalidInputError, match="mixes zorder with something else"):
        rewrite(sort_order="zorder(a, b), a")
    with pytest.raises(InvalidInputError, match="mixes hilbert, zorder"):
        rewrite(sort_order="zorder(a), hilbert(b)")
    with pytest.raises(NoSuchColumnError, match="nothing"):
        rewrite(sort_order="zorder(a, nothing)")
    with pytest.raises(InvalidInputError, match="'more' of type"):
        rewrite(sort_order="zorder(a, more)")
    with pytest.raises(InvalidInputError, match="'amount' of type decimal"):
        rewrite(sort_order="zorder(a, amount)", options={"zorder-key": "bytes"})
    with pytest.raises(InvalidPropertyError, match="zorder-key"):
        rewrite(sort_order="zorder(a)", options={"zorder-key": "other"})
    with pytest.raises(InvalidPropertyError, match="max-output-size"):
        rewrite(sort_order="hilbert(a, b)", options={"max-output-size": "8"})
    with pytest.warns(UserWarning, match="leaves out 'part'"), pytest.raises(InvalidInputError, match="identity"):
        rewrite(sort_order="zorder(part)")


@pytest.mark.parametrize("order", [None, "k DESC", "hilbert(k, x)"])
def test_rows_are_merged_while_files_are_rewritten(tmp_path: Path, order: str | None) -> None:
    """A MERGE, merge-on-read, commits before the rewrite does: both are in the table, whatever the strategy."""
    catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "files"))
    catalog.create_namespace("db")
    properties = {"format-version": "3"} | row_modes("merge-on-read")
    table = catalog.create_table("db.t", "k BIGINT, x DOUBLE", properties=properties)
    for first in (0, 20, 40):
        keys = list(range(first, first + 20))
        table.append(pa.table({"k": keys, "x": [key * 7.0 % 13 for key in keys]}))
    merged: list[list[str]] = []

    def merge(work: GroupRewrite) -> None:
        other = catalog.load_table("db.t")
        other.upsert(pa.table({"k": [3, 25, 100], "x": [0.5, 0.5, 0.5]}), ["k"])
        other.delete("k in (7, 41)")
        merged.append(content(other))

    plan = table.maintenance.rewrite_data_files(sort_order=order, options={"rewrite-all": "true"}, dry_run=True)
    done = run_rewrite(plan, Between(happen=merge))
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (3, 0)
    assert content(table.refresh()) == merged[0]
    report = table.verify(level="data", progress=silent)
    assert report.ok, str(report)
