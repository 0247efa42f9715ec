"""Shredded variant columns put together again: every way to shred, DuckDB's files, and columns that cannot be."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from icefloe.errors import CorruptFileError
from icefloe.formats.variant.shredding import unshred
from icefloe.schema import VARIANT_STORAGE
from icefloe.variant.reading import decode, walk
from icefloe.variant.values import EMPTY_METADATA, Variant, VariantKind
from icefloe.variant.writing import encode, encode_array, encode_dictionary, encode_object, encode_primitive
from tests.formats.variant_json import same_meaning, to_json
from tests.formats.variant_strategies import NATURAL, variant_values

TYPED_COLUMNS: dict[str, tuple[Any, Any, VariantKind]] = {
    # Arrow type of the typed column, a value of it, and the type that the variant must have.
    "boolean": (pa.bool_(), True, VariantKind.TRUE),
    "int8": (pa.int8(), -5, VariantKind.INT8),
    "int16": (pa.int16(), 5, VariantKind.INT16),
    "int32": (pa.int32(), 5, VariantKind.INT32),
    "int64": (pa.int64(), 5, VariantKind.INT64),
    "float": (pa.float32(), 1.5, VariantKind.FLOAT),
    "double": (pa.float64(), 1.5, VariantKind.DOUBLE),
    "decimal4": (pa.decimal128(9, 2), Decimal("1.50"), VariantKind.DECIMAL4),
    "decimal8": (pa.decimal128(18, 2), Decimal("1.50"), VariantKind.DECIMAL8),
    "decimal16": (pa.decimal128(38, 2), Decimal("1.50"), VariantKind.DECIMAL16),
    "decimal32": (pa.decimal32(9, 2), Decimal("1.50"), VariantKind.DECIMAL4),
    "date": (pa.date32(), 19_000, VariantKind.DATE),
    "time": (pa.time64("us"), 5, VariantKind.TIME),
    "timestamp": (pa.timestamp("us"), 5, VariantKind.TIMESTAMP),
    "timestamp far": (pa.timestamp("us"), 2**62, VariantKind.TIMESTAMP),
    "timestamptz": (pa.timestamp("us", "UTC"), 5, VariantKind.TIMESTAMPTZ),
    "timestamp nanos": (pa.timestamp("ns"), 5, VariantKind.TIMESTAMP_NANOS),
    "timestamptz nanos": (pa.timestamp("ns", "UTC"), 5, VariantKind.TIMESTAMPTZ_NANOS),
    "string": (pa.string(), "x", VariantKind.STRING),
    "large string": (pa.large_string(), "x", VariantKind.STRING),
    "string view": (pa.string_view(), "x", VariantKind.STRING),
    "binary": (pa.binary(), b"x", VariantKind.BINARY),
    "large binary": (pa.large_binary(), b"x", VariantKind.BINARY),
    "uuid": (pa.binary(16), UUID(int=7).bytes, VariantKind.UUID),
}
INTS, TEXTS = pa.int64(), pa.string()
SHREDDINGS = (
    None,
    INTS,
    TEXTS,
    [INTS],
    [None],
    [[TEXTS]],
    {"a": INTS},
    {"a": TEXTS, "b": None, "id": INTS},
    {"a": {"b": INTS, "a": [TEXTS]}, "c": [{"a": INTS}], "é": None},
    [{"a": INTS, "b": [INTS]}],
)
"""Ways to shred a column: a typed column, an array, or an object of them; None leaves a field as it is."""


def shredded_type(shredding: Any) -> Any:
    """The Arrow type of a field shredded that way."""
    fields = [pa.field("value", pa.binary())]
    if isinstance(shredding, dict):
        inner = [pa.field(name, shredded_type(part), False) for name, part in shredding.items()]
        fields.append(pa.field("typed_value", pa.struct(inner)))
    elif isinstance(shredding, list):
        fields.append(pa.field("typed_value", pa.list_(pa.field("element", shredded_type(shredding[0]), False))))
    elif shredding is not None:
        fields.append(pa.field("typed_value", shredding))
    return pa.struct(fields)


def shred(value: Any, shredding: Any, ids: dict[str, int]) -> dict[str, Any]:
    """A value split by the letter of the shredding document."""
    if isinstance(shredding, dict) and isinstance(value, dict):
        missing = {"value": None, "typed_value": None}
        typed: Any = {
            name: shred(value[name], part, ids) if name in value else missing for name, part in shredding.items()
        }
        rest = {name: inner for name, inner in value.items() if name not in shredding}
        return {"value": encode_with(rest, ids) if rest else None, "typed_value": typed}
    if isinstance(shredding, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shred(element, shredding[0], ids) for element in value]}
    is_int = shredding is INTS and type(value) is int and -(2**63) <= value < 2**63
    if is_int or (shredding is TEXTS and isinstance(value, str)):
        return {"value": None, "typed_value": value}
    return {"value": encode_with(value, ids), "typed_value": None}


def encode_with(value: Any, ids: dict[str, int]) -> bytes:
    if isinstance(value, dict):
        return encode_object({name: encode_with(inner, ids) for name, inner in value.items()}, ids)
    if isinstance(value, list):
        return encode_array([encode_with(element, ids) for element in value])
    return encode_primitive(value)


def names_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(names_in, value.values()))
    return set().union(*map(names_in, value)) if isinstance(value, list) else set()


def shredded_column(values: list[Any], shredding: Any) -> Any:
    """A column of the values, with SQL null where a value is `...`."""
    kind = shredded_type(shredding)
    kind = pa.struct([pa.field("metadata", pa.binary(), False), *kind])
    rows = []
    for value in values:
        metadata, ids = encode_dictionary(names_in(value) | {"spare"})
        rows.append(None if value is ... else {"metadata": metadata, **shred(value, shredding, ids)})
    return pa.array(rows, kind)


def variants(column: Any) -> list[Variant | None]:
    assert column.type == VARIANT_STORAGE
    column.validate(full=True)
    return [None if row is None else Variant(row["metadata"], row["value"]) for row in column.to_pylist()]


def assert_same(found: Any, values: list[Any]) -> None:
    for variant, value in zip(variants(found), values, strict=True):
        if value is ...:
            assert variant is None
        else:
            assert variant is not None
            assert same_meaning(variant, encode(value)), (decode(variant), value)


@pytest.mark.parametrize("shredding", SHREDDINGS, ids=str)
@given(values=st.lists(st.one_of(st.just(...), variant_values(NATURAL)), max_size=6))
def test_every_way_to_shred_means_the_same(shredding: Any, values: list[Any]) -> None:
    column = shredded_column(values, shredding)
    assert_same(unshred(column, "file"), values)
    assert_same(unshred(column.slice(1, 3), "file"), values[1:4])
    chunked = pa.chunked_array([column.slice(2), column.slice(0, 2)], column.type)
    assert_same(unshred(chunked, "file"), values[2:] + values[:2])


VALUES = [
    {"a": 1, "b": "x", "c": [{"a": 2}, {"a": "no"}, None], "id": None},
    {"a": "text", "extra": {"deep": [1, 2, {"a": 3}]}},
    {"a": {"b": 5, "a": ["x", 1], "more": True}},
    {},
    [],
    [1, "x", None, [2], {"a": 1, "b": [3, "y"]}],
    ...,
    None,
    5,
    "x",
]


@pytest.mark.parametrize("shredding", SHREDDINGS, ids=str)
def test_files_that_shred_differently_read_the_same(tmp_path: Path, shredding: Any) -> None:
    path = tmp_path / "file.parquet"
    pq.write_table(pa.table({"v": shredded_column(VALUES * 3, shredding)}), path, row_group_size=7)
    assert_same(unshred(pq.read_table(path)["v"], "file"), VALUES * 3)


def test_many_rows_are_put_together() -> None:
    values = [{"a": index, "b": str(index)} if index % 3 else [index] for index in range(9000)]
    assert_same(unshred(shredded_column(values, {"a": INTS}), "file"), values)


@pytest.mark.parametrize("name", TYPED_COLUMNS)
def test_typed_columns_keep_their_type(name: str) -> None:
    kind, value, expected = TYPED_COLUMNS[name]
    typed = pa.array([value, None], kind)
    column = pa.StructArray.from_arrays(
        [pa.array([EMPTY_METADATA] * 2), pa.array([None, b"\x0c\x07"]), typed], ["metadata", "value", "typed_value"]
    )
    first, second = variants(unshred(column, "file"))
    assert first is not None
    found = walk(first, lambda primitive: primitive)
    assert found.kind is expected
    assert found.value == (UUID(bytes=value) if expected is VariantKind.UUID else value)
    assert second is not None
    assert decode(second) == 7


def test_extension_types_are_seen_through() -> None:
    typed = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([UUID(int=9).bytes], pa.binary(16)))
    column = pa.StructArray.from_arrays([pa.array([EMPTY_METADATA]), typed], ["metadata", "typed_value"])
    (found,) = variants(unshred(column, "file"))
    assert found is not None
    assert decode(found) == UUID(int=9)


def test_columns_that_are_not_shredded_are_not_copied() -> None:
    plain = shredded_column([value for value in VALUES if value is not ...], None)
    for column in (plain, shredded_with_empty_typed(plain)):
        found = unshred(column, "file")
        for part in ("metadata", "value"):
            before, after = column.field(part).buffers(), found.field(part).buffers()
            assert [buffer.address for buffer in before[1:]] == [buffer.address for buffer in after[1:]]


def shredded_with_empty_typed(plain: Any) -> Any:
    parts = [plain.field("metadata"), plain.field("value"), pa.nulls(len(plain), pa.int64())]
    return pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_a_variant_without_any_value_is_a_variant_null(kind: Any) -> None:
    metadata = pa.array([EMPTY_METADATA, EMPTY_METADATA, b"\x01\x00"], kind)
    value, typed = pa.array([None, b"\x0c\x01", None], kind), pa.array([None, None, 3], pa.int64())
    for columns, expected in (
        ({"metadata": metadata, "value": value}, [None, 1, None]),
        ({"metadata": metadata, "value": value, "typed_value": typed}, [None, 1, 3]),
        ({"metadata": metadata, "typed_value": typed}, [None, None, 3]),
        ({"metadata": metadata, "typed_value": pa.nulls(3, pa.int64())}, [None, None, None]),
    ):
        found = variants(unshred(pa.StructArray.from_arrays(list(columns.values()), list(columns)), "file"))
        assert [decode(variant) for variant in found if variant is not None] == expected


def test_empty_columns_stay_empty() -> None:
    for shredding in SHREDDINGS:
        assert len(unshred(shredded_column([], shredding), "file")) == 0
    assert unshred(pa.chunked_array([], shredded_column([], INTS).type), "file").type == VARIANT_STORAGE


def group(kind: Any, rows: list[Any]) -> Any:
    return pa.array(rows, kind)


A_METADATA, A_IDS = encode_dictionary(["a"])
A_INT = pa.struct([("a", pa.struct([("value", pa.binary()), ("typed_value", pa.int64())]))])


def object_column(metadata: bytes | None, value: bytes | None, a: dict[str, Any] | None) -> Any:
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", A_INT)])
    return pa.array([{"metadata": metadata, "value": value, "typed_value": {"a": a}}], kind)


def test_a_shredded_field_wins_over_the_same_field_in_the_value() -> None:
    rest = encode_object({"a": encode_primitive("old")}, A_IDS)
    (found,) = variants(unshred(object_column(A_METADATA, rest, {"value": None, "typed_value": 1}), "file"))
    assert found is not None
    assert decode(found) == {"a": 1}


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array([1]), "not a group"),
        (pa.array([{"value": b"\0"}]), "fields"),
        (pa.array([{"metadata": EMPTY_METADATA}]), "fields"),
        (pa.array([{"metadata": EMPTY_METADATA, "value": b"\0", "other": 1}]), "fields"),
        (
            pa.array(
                [{"metadata": None, "value": b"\0"}], pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
            ),
            "no metadata",
        ),
        (object_column(None, None, {"value": None, "typed_value": 1}), "no metadata"),
        (object_column(EMPTY_METADATA, None, {"value": None, "typed_value": 1}), "not in the metadata"),
        (object_column(b"\x07", None, {"value": None, "typed_value": 1}), "version"),
        (object_column(A_METADATA, b"\x0c\x01", {"value": None, "typed_value": 1}), "its value is none"),
        (object_column(A_METADATA, b"", {"value": None, "typed_value": 1}), "empty"),
        (object_column(A_METADATA, None, {"value": b"\x0c\x01", "typed_value": 1}), "both value and typed_value"),
        (
            object_column(A_METADATA, encode_object({"a": b"\0"}, A_IDS), {"value": None, "typed_value": None}),
            "missing where it is shredded",
        ),
        (pa.array([{"metadata": A_METADATA, "typed_value": {"a": 1}}]), "not a group of value"),
        (pa.array([{"metadata": A_METADATA, "typed_value": {"a": {"other": 1}}}]), "not a group of value"),
        (pa.array([{"metadata": A_METADATA, "typed_value": [1]}]), "not a group of value"),
        (pa.array([{"metadata": A_METADATA, "value": b"\0", "typed_value": 1}]), "both value and typed_value"),
        (
            pa.StructArray.from_arrays(
                [pa.array([A_METADATA]), pa.array([1], pa.uint8())], ["metadata", "typed_value"]
            ),
            "uint8",
        ),
        (
            pa.StructArray.from_arrays(
                [pa.array([A_METADATA]), pa.array([1], pa.timestamp("ms"))], ["metadata", "typed_value"]
            ),
            "timestamp",
        ),
    ],
)
def test_columns_that_cannot_be_put_together_are_refused(column: Any, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem) as caught:
        unshred(column, "there")
    assert caught.value.location == "there"


def test_groups_nested_without_end_are_refused() -> None:
    kind: Any = pa.struct([("value", pa.binary())])
    value: Any = {"value": b"\0"}
    for _ in range(250):
        kind = pa.struct([("value", pa.binary()), ("typed_value", pa.struct([("a", kind)]))])
        value = {"value": None, "typed_value": {"a": value}}
    column = pa.array([{"metadata": A_METADATA, **value}], pa.struct([("metadata", pa.binary()), *kind]))
    with pytest.raises(CorruptFileError, match="deeper"):
        unshred(column, "file")


DOCUMENTS = [
    '{"a":1,"b":"x","c":[1,2,3],"d":{"e":null,"f":1.5}}',
    '{"a":5,"b":"zz","c":[],"d":{"e":true}}',
    '{"a":"other","c":{"x":[{"y":1},{"y":"two"}]}}',
    "[1,2,3]",
    '"text"',
    "null",
    '{"a":9,"b":"q","c":[7],"d":{"e":null,"f":2.25},"z":12345678901234}',
]


@pytest.mark.parametrize("documents", [DOCUMENTS, DOCUMENTS[:2] * 50, ['{"k":[{"n":1,"m":"x"},{"n":2}]}'] * 30])
def test_files_that_duckdb_shreds_are_read(tmp_path: Path, documents: list[str]) -> None:
    path = tmp_path / "file.parquet"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (i INTEGER, v VARIANT)")
        for index, document in enumerate(documents):
            connection.execute("INSERT INTO t VALUES (?, ?::JSON::VARIANT)", [index, document])
        connection.execute("INSERT INTO t VALUES (-1, NULL)")
        connection.execute(f"COPY (SELECT v FROM t ORDER BY i) TO '{path}' (FORMAT parquet)")
    found = variants(unshred(pq.ParquetFile(path).read()["v"], "file"))
    # DuckDB stores an SQL null as a variant null, so all rows are there.
    assert [json.loads(to_json(variant)) for variant in found if variant is not None] == [
        json.loads(document) for document in ["null", *documents]
    ]


def test_types_that_duckdb_shreds_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    row = "{'t': TIMESTAMP '2025-04-16 12:34:56.78', 'z': TIMESTAMPTZ '2025-04-16 12:34:56+00', 'd': DATE '2025-04-16', 'n': 1.25::DECIMAL(9,2), 'u': '00000000-0000-0000-0000-000000000005'::UUID, 'b': 'ab'::BLOB, 'f': 0.5::DOUBLE}"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {row}::VARIANT AS v FROM range(3)) TO '{path}' (FORMAT parquet)")
    for variant in variants(unshred(pq.ParquetFile(path).read()["v"], "file")):
        assert variant is not None
        found = decode(variant)
        assert found["t"] == datetime(2025, 4, 16, 12, 34, 56, 780000)
        assert found["z"] == datetime(2025, 4, 16, 12, 34, 56, tzinfo=UTC)
        assert (found["d"].isoformat(), found["n"], found["u"], found["b"], found["f"]) == (
            "2025-04-16",
            Decimal("1.25"),
            UUID(int=5),
            b"ab",
            0.5,
        )
