"""Data and delete files on the wire: all of them come back as they were; other spellings are read, nonsense is refused."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import InvalidInputError, InvalidMetadataError
from icefloe.manifests import MAP_METRICS, DataFile, FileContent
from icefloe.metadata.wire_codec import read_wire
from icefloe.partitioning import PartitionSpec, partition_type
from icefloe.rest.content_files_codec import ContentFileWire, content_file_from_wire, content_file_to_json
from icefloe.schema import Schema, StructType, types
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.strategies import nullable_values_of, partition_specs, schemas

LONGS = st.integers(0, 2**63 - 1)
IDS = st.integers(1, 2**31 - 1)
PLAIN: dict[str, Any] = {
    "spec-id": 0,
    "content": "data",
    "file-path": "s3://bucket/a.parquet",
    "file-format": "parquet",
    "partition": [],
    "file-size-in-bytes": 100,
    "record-count": 10,
}


def counts() -> st.SearchStrategy[dict[int, int]]:
    return st.dictionaries(IDS, LONGS, max_size=3)


def bounds() -> st.SearchStrategy[dict[int, bytes]]:
    return st.dictionaries(IDS, st.binary(max_size=5), max_size=3)


def optional(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


@st.composite
def content_files(draw: st.DrawFn, version: int, struct: StructType, spec_id: int) -> DataFile:
    """Files of all kinds that a version has, with any of the facts that manifests hold."""
    kinds = ["data"]
    kinds += ["positions", "equality"] * allows(version, Feature.DELETE_FILES)
    kinds += ["vector"] * allows(version, Feature.DELETION_VECTORS)
    kind = draw(st.sampled_from(kinds))
    more: dict[str, Any] = {
        "key_metadata": draw(optional(st.binary(max_size=4))),
        "split_offsets": draw(optional(st.lists(LONGS, max_size=3).map(tuple))),
        "sort_order_id": draw(optional(st.integers(0, 9))),
        **{metric.value: draw(bounds() if metric.is_bound else counts()) for metric in MAP_METRICS},
    }
    if kind == "equality":
        more["equality_ids"] = draw(st.lists(IDS, min_size=1, max_size=3).map(tuple))
    elif kind == "positions":
        more["referenced_data_file"] = draw(optional(st.text(max_size=10)))
    elif kind == "vector":
        more |= {
            "referenced_data_file": "s3://bucket/d.parquet",
            "content_offset": 4,
            "content_size_in_bytes": draw(LONGS),
        }
    elif allows(version, Feature.ROW_LINEAGE):
        more["first_row_id"] = draw(optional(LONGS))
    content = {"data": FileContent.DATA, "equality": FileContent.EQUALITY_DELETES}.get(
        kind, FileContent.POSITION_DELETES
    )
    return DataFile(
        draw(st.text(min_size=1, max_size=20)),
        "puffin" if kind == "vector" else draw(st.sampled_from(["parquet", "orc", "avro"])),
        draw(LONGS),
        draw(LONGS),
        content,
        spec_id,
        tuple(draw(nullable_values_of(field.field_type)) for field in struct.fields),
        **more,
    )


def decoded(document: Any, spec_id: int = 0, struct: StructType | None = None) -> DataFile:
    wire = read_wire(msgspec.json.encode(document), ContentFileWire, "file")
    return content_file_from_wire(wire, {spec_id: struct or StructType()})


@pytest.mark.parametrize("version", ALL_VERSIONS)
@settings(max_examples=25)
@given(data=st.data())
def test_a_file_comes_back_as_it_was(version: int, data: st.DataObject) -> None:
    schema: Schema = data.draw(schemas(version))
    spec: PartitionSpec = data.draw(partition_specs(schema))
    struct = partition_type(spec, schema)
    file: DataFile = data.draw(content_files(version, struct, 3))
    document = content_file_to_json(file, {3: struct})
    assert repr(decoded(document, 3, struct)) == repr(file)
    by_id = {
        str(field.field_id): value
        for field, value in zip(struct.fields, document["partition"], strict=True)
        if value is not None
    }
    capitals = {"content": str(document["content"]).upper().replace("-", "_"), "file-format": file.file_format.upper()}
    assert repr(decoded({**document, **capitals, "partition": by_id}, 3, struct)) == repr(file)


@pytest.mark.parametrize(("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
@pytest.mark.parametrize("kind", [types.FloatType(), types.DoubleType()])
def test_numbers_that_json_lacks_are_texts_in_partitions(value: float, text: str, kind: types.IcebergType) -> None:
    struct = StructType(types.NestedField(1000, "p", kind))
    file = DataFile("a", "parquet", 1, 1, partition=(value,))
    document = content_file_to_json(file, {0: struct})
    assert document["partition"] == [text]
    assert repr(decoded(document, 0, struct)) == repr(file)


def test_the_form_is_that_of_java() -> None:
    file = DataFile(
        "s3://b/a.parquet",
        "parquet",
        5,
        500,
        partition=("eu", None),
        value_counts={1: 5},
        lower_bounds={1: b"\x0a\x0b"},
        key_metadata=b"\xff\x00",
        split_offsets=(4,),
    )
    struct = StructType(
        types.NestedField(1000, "region", types.StringType()), types.NestedField(1001, "day", types.DateType())
    )
    assert content_file_to_json(file, {0: struct}) == {
        "spec-id": 0,
        "content": "data",
        "file-path": "s3://b/a.parquet",
        "file-format": "parquet",
        "partition": ["eu", None],
        "file-size-in-bytes": 500,
        "record-count": 5,
        "value-counts": {"keys": [1], "values": [5]},
        "lower-bounds": {"keys": [1], "values": ["0A0B"]},
        "key-metadata": "FF00",
        "split-offsets": (4,),
    }


def test_bounds_that_are_not_bytes_are_unknown() -> None:
    document = {**PLAIN, "lower-bounds": {"keys": [1, 2, 3], "values": [7, "not hex", "0a"]}}
    assert decoded(document).lower_bounds == {3: b"\x0a"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"content": "rows"}, "`content` is 'rows'; it must be one of data, position-deletes, equality-deletes"),
        ({"content": "equality-deletes"}, "has no `equality-ids`"),
        ({"content": "equality-deletes", "equality-ids": []}, "has no `equality-ids`"),
        ({"spec-id": 7}, r"`spec-id` is 7, but the table has the specs \[0\]"),
        ({"partition": [1]}, "must be an array of 0 values"),
        ({"partition": {"1000": 1}}, "must be an array of 0 values"),
        ({"partition": "x"}, "`partition`"),
        ({"record-count": "many"}, "`record-count`"),
        ({"record-count": 2**63}, "`record-count`"),
        ({"file-path": None}, "`file-path`"),
        ({"value-counts": {"keys": [1], "values": []}}, "`value-counts` has 1 keys and 0 values"),
        ({"lower-bounds": {"keys": [1, 2], "values": ["00"]}}, "`lower-bounds` has 2 keys and 1 values"),
        ({"key-metadata": "xyz"}, "hexadecimal"),
        ({"split-offsets": [1.5]}, "`split-offsets"),
    ],
)
def test_nonsense_is_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        decoded({**PLAIN, **change})


@pytest.mark.parametrize("missing", PLAIN)
def test_what_every_file_has_must_be_there(missing: str) -> None:
    document = {key: value for key, value in PLAIN.items() if key != missing}
    if missing == "partition":
        # Java leaves it out for files without one.
        assert decoded(document).partition == ()
        return
    with pytest.raises(InvalidMetadataError, match=missing):
        decoded(document)
