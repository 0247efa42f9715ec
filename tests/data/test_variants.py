"""Tables with shredded variants: what is written, and that it reads back."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefloe
from icefloe.errors import InvalidPropertyError
from icefloe.table import Table
from icefloe.variant import Variant, VariantKind, VariantPrimitive, decode
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.formats.test_variant_shredding import assert_same
from tests.formats.test_variant_splitting import plain

VERSIONS = [version for version in ALL_VERSIONS if allows(version, Feature.VARIANT)]
SHRED = {"write.parquet.shred-variants": "true"}
VALUES: list[Any] = [
    *({"a": number, "b": f"t{number}", "d": Decimal(number) / 10, "o": {"x": number * 1.5}} for number in range(20)),
    {"a": "text", "extra": [1, {"y": None}]},
    None,
    ...,
    [1, 2],
    5,
    {},
]


def made(folder: Path, version: int, **properties: str) -> Table:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=str(folder))
    catalog.create_namespace("db")
    own = {"format-version": str(version), **properties}
    return catalog.create_table("db.t", "id long, v variant, s struct<n: int, v: variant>", properties=own)


def rows(values: list[Any]) -> Any:
    inner = pa.StructArray.from_arrays(
        [pa.array(range(len(values)), pa.int32()), plain(values)], ["n", "v"], mask=pa.array([i == 2 for i in range(len(values))])
    )  # fmt: skip
    return pa.table({"id": pa.array(range(len(values)), pa.int64()), "v": plain(values), "s": inner})


def file_of(table: Table) -> pq.ParquetFile:
    (task,) = table.scan().plan_files()
    return pq.ParquetFile(task.file.file_path.removeprefix("file://"))


def paths(file: pq.ParquetFile) -> set[str]:
    return {file.schema.column(index).path for index in range(len(file.schema.names))}


@pytest.mark.parametrize("version", VERSIONS)
def test_variants_are_shredded_where_the_table_says_so(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, **SHRED)
    table.append(rows(VALUES))
    file = file_of(table)
    assert {"v.typed_value.a.typed_value", "s.v.typed_value.o.typed_value.x.typed_value"} <= paths(file)
    assert str(file.schema).count("Variant(1)") == 2
    found = table.scan().to_arrow()
    assert_same(found["v"].combine_chunks(), VALUES)
    shown = [... if index == 2 else value for index, value in enumerate(VALUES)]
    assert_same(found["s"].combine_chunks().flatten()[1], shown)
    assert_same(table.scan("id >= 20", ("v",)).to_arrow()["v"].combine_chunks(), VALUES[20:])


def test_variants_are_not_shredded_otherwise(tmp_path: Path) -> None:
    table = made(tmp_path, 3)
    table.append(rows(VALUES))
    assert paths(file_of(table)) == {"id", "v.metadata", "v.value", "s.n", "s.v.metadata", "s.v.value"}


def test_the_first_rows_decide(tmp_path: Path) -> None:
    table = made(tmp_path, 3, **SHRED, **{"write.parquet.variant-inference-buffer-size": "3"})
    values = [*({"a": 1} for _ in range(3)), *({"b": 2} for _ in range(50))]
    table.append(rows(values))
    assert "v.typed_value.a.typed_value" in paths(file_of(table))
    assert not any(".b." in path for path in paths(file_of(table)))
    assert_same(table.scan().to_arrow()["v"].combine_chunks(), values)


@pytest.mark.parametrize("values", [[...], [None], [..., {}]])
def test_files_with_nothing_to_shred(tmp_path: Path, values: list[Any]) -> None:
    table = made(tmp_path, 3, **SHRED)
    table.append(rows(values))
    found = table.scan().to_arrow()["v"]
    assert_same(found.combine_chunks(), values)


def test_rows_of_several_row_groups_have_one_form(tmp_path: Path) -> None:
    table = made(tmp_path, 3, **SHRED, **{"write.parquet.row-group-size-bytes": "20000"})
    values = [{"a": number} if number < 2000 else f"text {number}" for number in range(4000)]
    table.append(rows(values))
    assert file_of(table).num_row_groups > 1
    assert_same(table.scan().to_arrow()["v"].combine_chunks(), values)


def test_a_sample_of_no_rows_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path, 3, **SHRED, **{"write.parquet.variant-inference-buffer-size": "0"})
    with pytest.raises(InvalidPropertyError, match="variant-inference-buffer-size"):
        table.append(rows(VALUES))


@pytest.mark.parametrize("version", VERSIONS)
def test_files_are_skipped_by_what_is_in_variants(tmp_path: Path, version: int) -> None:
    table = made(tmp_path, version, **SHRED)
    for start in range(0, 100, 10):
        table.append(rows([{"a": {"b": number}, "t": f"t{number:03}"} for number in range(start, start + 10)]))
    for text, expected, files in (
        ("v:a.b = 42", [42], 1),
        ("v:a.b::int >= 85", list(range(85, 100)), 2),
        ("variant_get(v, '$.t', 'string') like 't01%'", list(range(10, 20)), 1),
        ("s.v:t in ('t003', 't097')", [3, 97], 2),
        ("v:a.b != 42 and v:a.b < 3", [0, 1, 2], 1),
        ("v:missing = 1", [], 10),
        ("v:a.b is null", [], 10),
    ):
        scan = table.scan(text, ("v",))
        found = [decode(Variant(**row)) for row in scan.to_arrow()["v"].to_pylist()]
        assert sorted(value["a"]["b"] for value in found) == expected
        assert len(list(scan.plan_files())) == files
    by_python = icefloe.col("v").extract("$.a.b", "int").between(10, 12)
    assert table.scan(by_python).to_arrow().num_rows == 3
    table.delete("v:a.b < 5")
    table.delete("v:t = 't099'")
    assert table.scan().to_arrow().num_rows == 94
    assert table.verify(level="data").clean


@pytest.mark.parametrize("properties", [SHRED, {}, {"write.format.default": "avro"}], ids=["shredded", "plain", "avro"])
def test_times_beyond_a_day_are_kept_and_are_no_times_of_filters(tmp_path: Path, properties: dict[str, str]) -> None:
    values = [{"t": VariantPrimitive(VariantKind.TIME, micros)} for micros in (5, 10**12, -5, 86_400_000_000)]
    table = made(tmp_path, 3, **properties)
    table.append(rows(values))
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    assert_same(table.scan().to_arrow()["v"].combine_chunks(), values)
    assert table.scan("v:t::time >= '00:00:00'", ("id",)).to_arrow()["id"].to_pylist() == [0]
    assert table.scan("v:t is not null").to_arrow().num_rows == 4
