"""What is inside of variants, selected and filtered by: the answers of whole variants, from the columns that are needed alone."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

import icefloe
from icefloe import expressions as ex
from icefloe.errors import IcefloeError, InvalidInputError
from icefloe.formats.parquet.metrics import row_group_filter
from icefloe.formats.parquet.reader import ParquetFileReader
from icefloe.formats.variant.extraction import Extraction
from icefloe.formats.variant.splitting import shred
from icefloe.schema import Schema, types
from icefloe.schema.types import NestedField
from icefloe.variant import Path, encode, value_at, values_at
from icefloe.variant.reading import decode
from icefloe.variant.values import Variant
from tests.expressions.test_extract import EXPRESSIONS, NUMBERS, SCHEMA, TYPES, documents, naive
from tests.formats.test_variant_shredding import SHREDDINGS, assert_same
from tests.formats.test_variant_splitting import DOCUMENTS, form_of, inferred, plain
from tests.formats.variant_strategies import NATURAL, TYPED, variant_values

WANTED = Schema(NestedField(2, "doc", types.VariantType()))
INSIDE = Schema(NestedField(1, "s", types.StructType(*WANTED.fields)))
ANY_VALUES = st.lists(
    st.one_of(st.just(...), DOCUMENTS, variant_values(st.one_of(NATURAL, TYPED, NUMBERS))), min_size=1, max_size=6
)
PATHS: tuple[Path, ...] = ((), ("a",), ("a", "b"), ("id",), ("deep", "x"), ("deep",), ("tags",), ("price",))


def parquet(column: Any, row_group_size: int = 2, *, is_inside: bool = False) -> bytes:
    field = pa.field("doc", column.type, metadata={b"PARQUET:field_id": b"2"})
    if is_inside:
        column = pa.StructArray.from_arrays([column], fields=[field])
        field = pa.field("s", column.type, metadata={b"PARQUET:field_id": b"1"})
    file = io.BytesIO()
    pq.write_table(pa.table([column], pa.schema([field])), file, row_group_size=row_group_size)
    return file.getvalue()


def extracted(file: bytes, extraction: Extraction, only: bool, wanted: Schema = WANTED) -> Any:
    reader = ParquetFileReader(
        io.BytesIO(file), "f", wanted, extractions=[extraction], extracted_only={2} if only else ()
    )
    return pa.concat_arrays([batch.column(1) for batch in reader.batches()])


def check(values: list[Any], column: Any, path: Path, only: bool, *, is_inside: bool = False) -> None:
    file, wanted = parquet(column, is_inside=is_inside), INSIDE if is_inside else WANTED
    for kind in TYPES:
        answer = extracted(file, Extraction(2, path, kind), only, wanted)
        answer.validate(full=True)
        expected = values_at(plain(values), path, kind)
        assert answer.type == expected.type
        np.testing.assert_equal(answer.to_pylist(), expected.to_pylist())
    shown = extracted(file, Extraction(2, path, None), only, wanted)
    assert_same(shown, [value if value is ... else at_path(value, path) for value in values])


def at_path(value: Any, path: Path) -> Any:
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return ...
        value = value[step]
    return value


@settings(max_examples=30)
@given(values=ANY_VALUES, path=st.sampled_from(PATHS), only=st.booleans(), is_inside=st.booleans())
def test_columns_of_shredded_files_answer_as_whole_variants(
    values: list[Any], path: Path, only: bool, is_inside: bool
) -> None:
    column = plain(values)
    check(values, shred(column, inferred(column)), path, only, is_inside=is_inside)


@pytest.mark.parametrize("shredding", SHREDDINGS, ids=str)
@settings(max_examples=3)
@given(values=ANY_VALUES, path=st.sampled_from(PATHS))
def test_whatever_form_the_file_has(shredding: Any, values: list[Any], path: Path) -> None:
    check(values, shred(plain(values), form_of(shredding)), path, True)


@settings(max_examples=30)
@given(values=documents(), expression=EXPRESSIONS, shreds=st.booleans(), file_format=st.sampled_from(["parquet", "parquet", "avro"]))  # fmt: skip
def test_filters_give_the_rows_that_match(
    values: list[Any], expression: ex.Expression, shreds: bool, file_format: str
) -> None:
    table = new_table({"write.parquet.shred-variants": str(shreds).lower(), "write.format.default": file_format})
    table.append(pa.table({"id": range(len(values)), "doc": plain(values)}))
    bound = ex.bind(expression, SCHEMA)
    expected = [index for index, is_kept in enumerate(naive(bound, values)) if is_kept]
    for selected in (("id",), ("id", "doc"), ("id", "doc:a::string")):
        assert table.scan(expression, selected).to_arrow()["id"].to_pylist() == expected


def new_table(properties: dict[str, str] | None = None, columns: str = "id long, doc variant") -> Any:
    catalog = icefloe.load_catalog("lake", type="memory", warehouse="memory://extracts")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", columns, properties={"format-version": "3", **(properties or {})})


SHREDDED = {"write.parquet.shred-variants": "true"}
ROWS = [{"n": i, "s": f"t{i}", "o": {"p": i / 2}, "t": [i]} for i in range(50)] + [{"n": "x"}, 7, ...]


@pytest.mark.parametrize("properties", [SHREDDED, {}, {"write.format.default": "avro"}, {"write.format.default": "orc"}], ids=str)  # fmt: skip
def test_values_inside_of_variants_are_selected(properties: dict[str, str]) -> None:
    table = new_table(properties)
    table.append(pa.table({"id": range(len(ROWS)), "doc": plain(ROWS)}))
    rows = table.scan(
        "id in (1, 50, 52)", ("doc:n::long", "id", "doc:o", "variant_get(doc, '$.s', 'string')")
    ).to_arrow()
    assert rows.column_names == ["id", "doc:n::long", "doc:o", "variant_get(doc, '$.s', 'string')"]
    assert rows["doc:n::long"].to_pylist() == [1, None, None]
    assert rows["variant_get(doc, '$.s', 'string')"].to_pylist() == ["t1", None, None]
    assert [each and decode(Variant(**each)) for each in rows["doc:o"].to_pylist()] == [{"p": 0.5}, None, None]
    only = table.scan("doc:o.p >= 24", ("doc:n::int",)).to_arrow()
    assert only.to_pylist() == [{"doc:n::int": 48}, {"doc:n::int": 49}]
    assert table.scan("", ("doc:n::long", "*")).to_arrow().column_names == ["id", "doc", "doc:n::long"]
    assert table.scan("doc:n < 5").count() == 5


def test_variants_in_structs_are_looked_into() -> None:
    table = new_table(SHREDDED, "id long, s struct<doc variant>")
    inner = pa.StructArray.from_arrays([plain(ROWS)], ["doc"])
    table.append(pa.table({"id": range(len(ROWS)), "s": inner}))
    rows = table.scan("s.doc:n < 2", ("s.doc:n::int",)).to_arrow()
    assert rows["s.doc:n::int"].to_pylist() == [0, 1]


def test_of_variants_in_structs_only_the_needed_columns_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(SHREDDED, "id long, s struct<a int, o struct<doc variant, b string>>, other variant")
    inner = pa.StructArray.from_arrays([plain(ROWS[:50]), pa.array([f"b{i}" for i in range(50)])], ["doc", "b"])
    inner = pa.StructArray.from_arrays(inner.flatten(), ["doc", "b"], mask=pa.array([i % 5 == 4 for i in range(50)]))
    outer = pa.StructArray.from_arrays(
        [pa.array(range(50), pa.int32()), inner], ["a", "o"], mask=pa.array([i % 7 == 6 for i in range(50)])
    )
    table.append(pa.table({"id": range(50), "s": outer, "other": plain(ROWS[:50])}))
    left = [i for i in range(10, 50) if i % 5 != 4 and i % 7 != 6]
    seen = read_columns(monkeypatch)
    rows = table.scan("s.o.doc:n >= 10 and s.a < 60", ("id", "s.o.doc:n::long", "s.o.doc:o.p::double")).to_arrow()
    assert rows.to_pylist() == [{"id": i, "s.o.doc:n::long": i, "s.o.doc:o.p::double": i / 2} for i in left]
    typed = "s.o.doc.typed_value"
    assert seen.pop() == {"id", "s.a", f"{typed}.n.typed_value", f"{typed}.o.typed_value.p.typed_value"}
    # Nulls of structs around it, and what is beside it, stay as they are.
    beside = table.scan("s.o.doc:n >= 10 and s.o is not null", ("s.o.b", "s.a")).to_arrow()["s"].to_pylist()
    assert beside == [{"a": i, "o": {"b": f"b{i}"}} for i in left]
    assert table.scan("s.o is null and s.o.doc:n is null", ("id",)).to_arrow()["id"].to_pylist() == [
        i for i in range(50) if i % 5 == 4 or i % 7 == 6
    ]
    whole = table.scan("s.o.doc:n = 11", ("s.o.doc", "s.o.doc:n::int")).to_arrow()
    assert [decode(Variant(**row["s"]["o"]["doc"])) for row in whole.to_pylist()] == [ROWS[11]]


def test_columns_that_older_files_lack_or_that_have_other_names() -> None:
    table = new_table(SHREDDED, "id long")
    table.append(pa.table({"id": [1]}))
    with table.update_schema() as change:
        change.add_column("doc", "variant")
    table.append(pa.table({"id": [2], "doc": plain([{"n": 5}])}))
    with table.update_schema() as change:
        change.rename_column("doc", "later")
    rows = table.scan("", ("id", "later:n::long")).to_arrow().sort_by("id")
    assert rows["later:n::long"].to_pylist() == [None, 5]
    assert table.scan("later:n is null", ("id",)).to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("form", [{}, {"icefloe.v4.compat": "java-1.12", "write.manifest.format": "parquet"}], ids=str)
def test_files_are_skipped_by_bounds_inside_of_variants(version: int, form: dict[str, str]) -> None:
    table = new_table({**SHREDDED, **(form if version > 3 else {}), "format-version": str(version)})
    for start in (0, 10, 20):
        table.append(pa.table({"id": range(10), "doc": plain([{"a": {"n": start + i}, "s": f"t{start}"} for i in range(10)])}))  # fmt: skip
    for _ in range(2):
        assert len(list(table.scan("doc:a.n > 22").plan_files())) == 1
        assert len(list(table.scan("doc:s in ('t0', 't10')").plan_files())) == 2
        assert table.scan("doc:a.n > 27", ("id",)).to_arrow()["id"].to_pylist() == [8, 9]
        table.maintenance.rewrite_manifests()


@pytest.mark.parametrize(("text", "kept"), [("doc:n between 25 and 31", [2, 3]), ("doc:n is null", list(range(10)))])
def test_row_groups_are_left_out_by_bounds_inside_of_variants(text: str, kept: list[int]) -> None:
    column = plain([{"n": number, "s": "t"} for number in range(100)])
    footer = pq.read_metadata(io.BytesIO(parquet(shred(column, inferred(column)), 10)))
    chosen = row_group_filter(ex.bind(ex.parse_expression(text), WANTED), WANTED)
    assert np.flatnonzero(chosen(footer, WANTED)).tolist() == kept


@pytest.mark.parametrize(
    ("selected", "columns"),
    [
        ("doc:n::long", {"id", "doc.value", "doc.metadata", "doc.typed_value.n.value", "doc.typed_value.n.typed_value"}),
        ("doc:o.p::double", {"id", "doc.value", "doc.metadata", "doc.typed_value.o.typed_value.p.typed_value"}),
    ],
)  # fmt: skip
def test_only_the_needed_columns_are_read(selected: str, columns: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(SHREDDED)
    table.append(pa.table({"id": range(len(ROWS)), "doc": plain(ROWS)}))
    uniform = new_table(SHREDDED)
    uniform.append(pa.table({"id": range(50), "doc": plain(ROWS[:50])}))
    seen = read_columns(monkeypatch)
    table.scan(f"{selected} >= 1", ("id",)).to_arrow()
    assert seen.pop() == columns
    table.scan("", ("id", selected)).to_arrow()
    assert seen.pop() == columns
    # Where all values are in their columns, neither the names nor other values are needed.
    uniform.scan(f"{selected} >= 1", ("id",)).to_arrow()
    path = selected.partition("::")[0][4:].split(".")
    assert seen.pop() == {"id", "doc" + "".join(f".typed_value.{step}" for step in path) + ".typed_value"}


def read_columns(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The columns of files that are read from now on, a set for each file."""
    seen: list[set[str]] = []
    batches = ParquetFileReader.batches

    def watched(self: Any, *arguments: Any) -> Any:
        seen.append({self.footer.schema.column(i).path for i in self._columns})
        return batches(self, *arguments)

    monkeypatch.setattr(ParquetFileReader, "batches", watched)
    return seen


def test_what_is_refused() -> None:
    table = new_table()
    for selected in ("id:a", "doc:", "doc:[0]", "doc:a::list", "nothing:a"):
        with pytest.raises(IcefloeError):
            table.scan("", (selected,)).to_arrow()
    with pytest.raises(InvalidInputError, match="variant_get in the query"):
        table.scan("", ("doc:a",)).projection()


def test_an_empty_name_is_a_field_like_others() -> None:
    table = new_table(SHREDDED)
    table.append(pa.table({"id": [1, 2], "doc": plain([{"": 5}, {"": 6}])}))
    assert_same(table.scan("doc:[''] = 5", ("doc",)).to_arrow()["doc"].combine_chunks(), [{"": 5}])


def test_value_at_agrees() -> None:
    # The oracle above is of columns; this ties it to single values.
    values: list[Any] = [{"a": 5}, {"a": "x"}, ...]
    column = plain(values)
    answer = extracted(parquet(shred(column, inferred(column))), Extraction(2, ("a",), types.LongType()), True)
    assert answer.to_pylist() == [
        None if value is ... else value_at(encode(value), ("a",), types.LongType()) for value in values
    ]
