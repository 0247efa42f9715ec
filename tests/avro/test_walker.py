"""Both walkers read every Avro row as the reference library does, and fail cleanly on any other bytes."""

import io
import struct
import time
import zlib
from contextlib import suppress
from typing import Any

import fastavro
import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from icefloe.avro import (
    Container,
    Take,
    TakeEach,
    TakeFields,
    TakeList,
    TakePairs,
    TakeRecords,
    TakeSpread,
    UnknownShape,
    compile_program,
    container as avro_codec,
    container_block,
    container_header,
    nodes as av,
    open_container,
    parse_avro_schema,
    zigzag,
)
from icefloe.avro.blocks import deflate
from icefloe.avro.decode import decode
from icefloe.avro.slow_decode import decode_slowly
from icefloe.avro.values import ValueReader
from icefloe.errors import CorruptFileError
from icefloe.manifests.reader import decode_rows
from icefloe.metadata import Limits
from tests.avro.kernel_choice import compiled_kernels, plain_kernels
from tests.avro.strategies import LEAVES, container, leaves, new_names, nullable, odd, pairs

WANTED_KEYS = (0, 2, 3, 9)


@st.composite
def files(draw: st.DrawFn) -> tuple[Any, list[Any], TakeFields]:
    """A schema of manifest shape with fields of every kind, rows for it, and a choice of some of the fields."""
    names = new_names()
    fields: list[Any] = []
    choices: list[Any] = []
    for field_id in range(1, draw(st.integers(2, 8)) + 1):
        kind = draw(st.sampled_from(("leaf", "list", "pairs", "spread", "each", "records", "skip", "skip")))
        typed, choice = _field(draw, kind, field_id, names)
        if typed[0] != "null" and not isinstance(typed[0], list) and draw(st.booleans()):
            typed = nullable(typed, draw(st.booleans()))
        fields.append((field_id, typed))
        if choice is not None and draw(st.integers(0, 4)):
            choices.append((field_id, f"f{field_id}", choice))
    schema = {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "always", "type": "int", "field-id": 0},
            *({"name": f"f{i}", "type": typed[0], "field-id": i} for i, typed in fields),
        ],
    }
    row = st.fixed_dictionaries({"always": LEAVES["int"], **{f"f{i}": typed[1] for i, typed in fields}})
    rows = draw(st.lists(row, max_size=12))
    return schema, rows, TakeFields(((0, "always", Take(("always", 0))), *choices))


def _field(draw: st.DrawFn, kind: str, field_id: int, names: Any) -> tuple[Any, Any]:
    role = f"f{field_id}"
    if kind == "leaf":
        return draw(leaves(names)), Take((role, 0))
    if kind == "list":
        number = draw(st.sampled_from(("int", "long", "string", "double")))
        return ({"type": "array", "items": number}, st.lists(LEAVES[number], max_size=4)), TakeList((role, 0))
    if kind in ("pairs", "spread"):
        value: Any = draw(st.sampled_from(("long", "bytes", "int", "string")))
        typed = (value, LEAVES[value])
        key = draw(st.sampled_from(("int", "long")))
        if draw(st.integers(0, 3)) == 0:  # such maps have no program; they can only be skipped
            return pairs(key, nullable(typed, draw(st.booleans())), f"k{next(names)}"), None
        choice = TakePairs((role, 0)) if kind == "pairs" else TakeSpread(role, WANTED_KEYS)
        return pairs(key, typed, f"k{next(names)}"), choice
    if kind in ("each", "records"):
        inner = [draw(leaves(names)) for _ in range(draw(st.integers(1, 3)))]
        inner = [nullable(each, draw(st.booleans())) if draw(st.booleans()) else each for each in inner]
        record = {
            "type": "record",
            "name": f"r{next(names)}",
            "fields": [{"name": f"c{i}", "type": each[0], "field-id": 100 + i} for i, each in enumerate(inner)],
        }
        values = st.fixed_dictionaries({f"c{i}": each[1] for i, each in enumerate(inner)})
        if kind == "each":
            return (record, values), TakeEach(role)
        picked = tuple((100 + i, f"c{i}", (f"c{i}", 0)) for i in range(len(inner)))
        return ({"type": "array", "items": record}, st.lists(values, max_size=3)), TakeRecords((role, 0), picked)
    return draw(odd(names)), None


def as_lists(found: Any) -> dict[Any, list[Any]]:
    """Columns as Python values; list items without their names."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [list(item.values()) if isinstance(item, dict) else item for item in value]
        return value

    return {key: [plain(value) for value in column.to_pylist()] for key, column in found.columns.items()}


@given(files(), st.sampled_from(("null", "deflate", "zstandard")), st.sampled_from((16, 200, 16_000)))
@settings(max_examples=max(100, settings().max_examples))
def test_walker_reads_what_the_reference_reads(file: Any, codec: str, per_block: int) -> None:
    schema, rows, choice = file
    opened = open_container(container(schema, rows, codec=codec, per_block=per_block), "f")
    node = parse_avro_schema(opened.header.schema, "f")
    program = compile_program(node, choice)
    with compiled_kernels():
        found = decode(opened, program)
    with plain_kernels():
        assert decode(opened, program).columns == found.columns
    assert found.rows == len(rows)
    if not av.holds_empty_items(node):
        assert as_lists(found) == as_lists(decode_slowly(opened, node, choice))
        assert [row for block in range(len(opened.blocks)) for row in values_of(opened, block, node)] == rows
    assert found.columns["always", 0].to_pylist() == [row["always"] for row in rows]
    for field_id, name, chosen in choice.fields:
        if isinstance(chosen, Take) and (name, 0) in found.columns and field_id:
            assert found.columns[name, 0].to_pylist() == [row[name] for row in rows]


@pytest.mark.parametrize("choice", [TakePairs(("m", 0)), TakeSpread("m", (1, 2))])
def test_maps_with_null_values_are_read_value_by_value(choice: Any) -> None:
    typed, _ = pairs("int", (["null", "long"], st.none()), "k")
    schema = {"type": "record", "name": "row", "fields": [{"name": "m", "type": typed, "field-id": 1}]}
    opened = open_container(container(schema, [{"m": [{"key": 1, "value": None}, {"key": 2, "value": 5}]}]), "f")
    node = parse_avro_schema(opened.header.schema, "f")
    fields = TakeFields(((1, "m", choice),))
    with pytest.raises(UnknownShape, match="a map from int"):
        compile_program(node, fields)
    columns = as_lists(decode_slowly(opened, node, fields))
    assert columns in ({("m", 0): [[[1, None], [2, 5]]]}, {("m", 1): [None], ("m", 2): [5]})


def values_of(opened: Container, block: int, node: av.AvroNode) -> list[Any]:
    """The rows of a block as values, which the reference library wrote."""
    reader = ValueReader(opened.inflated(block))
    rows = [reader.value(node) for _ in range(int(opened.blocks[block, 0]))]
    assert reader.left == 0
    return rows


@pytest.fixture(scope="module")
def compiled() -> None:
    """Kernels that are compiled already, as that takes seconds in a new installation."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int", "field-id": 1}]}
    with compiled_kernels():
        outcome(
            open_container(container(schema, [{"a": 1}], codec="null"), "whole"),
            TakeFields(((1, "a", Take(("a", 0))),)),
        )


@pytest.mark.usefixtures("compiled")
@given(files(), st.data())
@settings(max_examples=max(100, settings().max_examples))
def test_damaged_bytes_never_do_harm(file: Any, data: st.DataObject) -> None:
    schema, rows, choice = file
    whole = bytearray(container(schema, rows, codec="null"))
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole)))]
    for _ in range(data.draw(st.integers(0, 4))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    start = time.monotonic()
    with suppress(CorruptFileError):
        opened = open_container(bytes(whole), "damaged")
        with compiled_kernels():
            compiled = outcome(opened, choice)
        with plain_kernels():
            assert outcome(opened, choice) == compiled
    assert time.monotonic() - start < 10


def outcome(opened: Container, choice: TakeFields) -> Any:
    """What is read, or why not."""
    try:
        return decode_rows(opened, choice).columns
    except CorruptFileError as error:
        return str(error)


def hostile(schema: Any, rows: int, body: bytes, *, codec: str = "null") -> bytes:
    """A container with one block of these bytes."""
    sync = bytes(range(16))
    return container_header(schema, {}, codec, sync) + container_block(rows, body, sync)


def record(*fields: Any) -> Any:
    return {
        "type": "record",
        "name": "row",
        "fields": [{"name": f"f{i}", "type": kind, "field-id": i} for i, kind in enumerate(fields)],
    }


LONGS = pairs("int", ("long", st.none()), "k")[0]
BYTES = pairs("int", ("bytes", st.none()), "k")[0]
HUGE = zigzag(2**62)
ALL = TakeFields(((0, "f0", Take(("f0", 0))), (1, "f1", TakePairs(("f1", 0))), (2, "f2", TakeList(("f2", 0)))))
SPREAD = TakeFields(((0, "f0", Take(("f0", 0))), (1, "f1", TakeSpread("f1", (1, 2)))))
NONE = TakeFields(())


@pytest.mark.parametrize("choice", [ALL, SPREAD, NONE], ids=["all", "spread", "skipped"])
@pytest.mark.parametrize(
    ("schema", "rows", "body"),
    [
        (record("string", LONGS), 1, zigzag(-5) + zigzag(0)),
        (record("string", LONGS), 1, HUGE + zigzag(0)),
        (record("string", LONGS), 1, zigzag(3) + b"ab"),
        (record("long", LONGS), 1, b"\xff" * 11 + zigzag(0)),
        (record("long", LONGS), 1, b"\xff" * 9 + b"\x02" + zigzag(0)),
        (record("long", LONGS), 1, b"\x80"),
        (record("long", LONGS), 1, zigzag(1) + HUGE + zigzag(1)),
        (record("long", LONGS), 1, zigzag(1) + zigzag(-(2**63)) + zigzag(1)),
        (record("long", LONGS), 1, zigzag(1) + zigzag(-3) + zigzag(-1) + zigzag(0)),
        (record("long", LONGS), 1, zigzag(1) + zigzag(-3) + HUGE + zigzag(0)),
        (record("long", LONGS), 1, zigzag(1) + zigzag(1) + zigzag(1)),
        (record("long", BYTES), 1, zigzag(1) + zigzag(1) + zigzag(1) + zigzag(-1) + zigzag(0)),
        (record("long", BYTES), 1, zigzag(1) + zigzag(1) + zigzag(1) + HUGE + zigzag(0)),
        (record("long", ["null", LONGS]), 1, zigzag(1) + zigzag(2)),
        (record("long", ["null", LONGS]), 1, zigzag(1) + zigzag(-1)),
        (record("long", LONGS, {"type": "array", "items": "long"}), 1, zigzag(1) + zigzag(0) + HUGE),
        (record("long", LONGS), 2**40, zigzag(1) + zigzag(0)),
        (record("long", LONGS), 2**62, zigzag(1) + zigzag(0)),
        (record("long", LONGS), 0, zigzag(1) + zigzag(0)),
        (record("long", LONGS), 1, zigzag(1) + zigzag(0) + b"\x00"),
        (record("double", LONGS), 1, b"\x00" * 7),
        (record({"type": "fixed", "name": "f", "size": 9}, LONGS), 1, b"\x00" * 8),
    ],
)
def test_hostile_rows_are_refused_at_once(schema: Any, rows: int, body: bytes, choice: TakeFields) -> None:
    start = time.monotonic()
    for kernels in (compiled_kernels, plain_kernels):
        with kernels(), pytest.raises(CorruptFileError, match="hostile"):
            decode_rows(open_container(hostile(schema, rows, body), "hostile"), choice)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("kernels", [compiled_kernels, plain_kernels])
def test_a_boolean_that_is_neither_is_refused(kernels: Any) -> None:
    with kernels(), pytest.raises(CorruptFileError, match="boolean"):
        decode_rows(open_container(hostile(record("boolean"), 1, b"\x02"), "f"), ALL)


@pytest.mark.parametrize("kernels", [compiled_kernels, plain_kernels])
def test_items_without_bytes_are_skipped_without_counting_them(kernels: Any) -> None:
    schema = record("long", {"type": "array", "items": "null"})
    body = zigzag(7) + zigzag(2**60) + zigzag(-(2**60)) + zigzag(0) + zigzag(0)
    with kernels():
        found = decode_rows(open_container(hostile(schema, 1, body), "f"), TakeFields(((0, "f0", Take(("a", 0))),)))
    assert found.columns["a", 0].to_pylist() == [7]


def test_rows_without_bytes_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="take no bytes"):
        decode_rows(open_container(hostile(record("null"), 2**39, b""), "f"), NONE)


def test_rows_that_would_take_much_room_are_refused_before_it_is_taken() -> None:
    rows = [{"f0": 2**60 + i} for i in range(500)]
    data = container(record("long"), rows, codec="null")
    assert decode_rows(open_container(data, "f", Limits(metadata_bytes=5000)), ALL).rows == 500
    with pytest.raises(CorruptFileError, match=r"would take more than 4000 .*read\.limits\.metadata-bytes"):
        decode_rows(open_container(data, "f", Limits(metadata_bytes=4000)), ALL)


@pytest.mark.parametrize("codec", ["deflate", "zstandard"])
def test_a_file_that_inflates_to_much_is_refused(codec: str) -> None:
    bomb = hostile(record("string"), 1, deflate(codec, zigzag(70 << 20) + bytes(70 << 20), 9), codec=codec)
    assert len(bomb) < 1 << 17
    with pytest.raises(CorruptFileError, match="more than"):
        decode_rows(open_container(bomb, "f"), ALL)
    with pytest.raises(CorruptFileError, match="more than"):
        decode_rows(open_container(bomb, "f", Limits(metadata_bytes=1 << 20)), NONE)


@pytest.mark.parametrize("items", [1, 3, 400])
def test_items_of_which_nothing_is_taken_are_counted_and_end(items: int) -> None:
    kind = {
        "type": "array",
        "items": {"type": "record", "name": "r", "fields": [{"name": "x", "type": "boolean", "field-id": 9}]},
    }
    data = hostile(record(kind), 2, (zigzag(items) + b"\1" * items + zigzag(0)) * 2)
    choice = TakeFields(((0, "f0", TakeRecords(("f0", 0), ((5, "known", ("known", 0)),))),))
    for kernels in (plain_kernels, compiled_kernels):
        with kernels():
            found = decode_rows(open_container(data, "f"), choice)
            assert [len(each) for each in found.columns["f0", 0].to_pylist()] == [items, items]


def test_a_list_of_nulls_alone_is_refused() -> None:
    data = hostile(record({"type": "array", "items": ["null"]}), 1, zigzag(1) + zigzag(0) + zigzag(0))
    with pytest.raises(CorruptFileError, match="items of no type"):
        decode_rows(open_container(data, "f"), TakeFields(((0, "f0", TakeList(("f0", 0))),)))


def test_rows_that_take_next_to_nothing_are_refused_at_once() -> None:
    rows = 30_000_000
    bomb = hostile(record("long", "long"), rows, deflate("deflate", bytes(2 * rows), 1), codec="deflate")
    started = time.process_time()
    with pytest.raises(CorruptFileError, match="would take more than"):
        decode_rows(open_container(bomb, "f"), ALL)
    assert time.process_time() - started < 1


def test_a_schema_that_multiplies_is_refused_at_once() -> None:
    kind: Any = {"type": "record", "name": "t0", "fields": []}
    fields = [{"name": "a", "type": kind}]
    for i in range(1, 60):
        inner = [{"name": "a", "type": f"t{i - 1}"}, {"name": "b", "type": f"t{i - 1}"}]
        fields.append({"name": f"b{i}", "type": {"type": "record", "name": f"t{i}", "fields": inner}})
    schema = {"type": "record", "name": "row", "fields": fields}
    with pytest.raises(CorruptFileError, match="more than"):
        decode_rows(open_container(hostile(schema, 1, b""), "f"), NONE)


def test_a_type_inside_itself_is_read_value_by_value() -> None:
    link = {"type": "record", "name": "link", "fields": [{"name": "next", "type": ["null", "link"]}]}
    schema = record("long", link)
    rows = [{"f0": i, "f1": {"next": {"next": None}}} for i in range(5)]
    choice = TakeFields(((0, "f0", Take(("a", 0))),))
    found = decode_rows(open_container(container(schema, rows), "f"), choice)
    assert found.columns["a", 0].to_pylist() == [0, 1, 2, 3, 4]
    opened = open_container(container(schema, rows), "f")
    assert values_of(opened, 0, parse_avro_schema(opened.header.schema, "f")) == rows


def test_fields_are_found_by_id_and_by_name_only_without_ids() -> None:
    schema = {"type": "record", "name": "row", "fields": [{"name": "old", "type": "int", "field-id": 5}]}
    choice = TakeFields(((5, "new", Take(("a", 0))),))
    found = decode_rows(open_container(container(schema, [{"old": 1}]), "f"), choice)
    assert found.columns["a", 0].to_pylist() == [1]
    without = {"type": "record", "name": "row", "fields": [{"name": "new", "type": "int"}]}
    found = decode_rows(open_container(container(without, [{"new": 2}]), "f"), choice)
    assert found.columns["a", 0].to_pylist() == [2]
    other = {"type": "record", "name": "row", "fields": [{"name": "new", "type": "int", "field-id": 6}]}
    assert not decode_rows(open_container(container(other, [{"new": 3}]), "f"), choice).columns


@pytest.mark.parametrize("sizes", [False, True], ids=["plain", "with sizes"])
def test_maps_in_several_counted_parts(sizes: bool) -> None:
    part = zigzag(4) + zigzag(40)
    count = zigzag(-1) + zigzag(len(part)) if sizes else zigzag(1)
    body = zigzag(1) + count + part + count + zigzag(2) + zigzag(20) + zigzag(0)
    opened = open_container(hostile(record("long", LONGS), 1, body), "f")
    with plain_kernels():
        assert as_lists(decode_rows(opened, TakeFields(((1, "f1", TakePairs(("m", 0))),)))) == {
            ("m", 0): [[[4, 40], [2, 20]]]
        }
    spread = decode_rows(opened, TakeFields(((1, "f1", TakeSpread("m", (2, 3, 4))),)))
    assert {key: column.to_pylist() for key, column in spread.columns.items()} == {
        ("m", 2): [20],
        ("m", 3): [None],
        ("m", 4): [40],
    }
    whole = decode_rows(opened, TakeFields(((1, "f1", TakePairs(("m", 0))),)))
    assert as_lists(whole) == {("m", 0): [[[4, 40], [2, 20]]]}


def test_text_that_is_not_utf8_is_refused() -> None:
    schema = record("string")
    with pytest.raises(CorruptFileError, match="UTF-8"):
        decode_rows(open_container(hostile(schema, 1, zigzag(2) + b"\xff\xfe"), "f"), ALL)


def test_an_int_of_more_than_32_bits_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="32 bits"):
        decode_rows(open_container(hostile(record("int"), 1, zigzag(2**40)), "f"), ALL)


def test_snappy_blocks_are_read_and_their_checksums_held() -> None:
    import pyarrow as pa

    body = zigzag(12345)
    packed = pa.compress(body, codec="snappy", asbytes=True)
    good = packed + zlib.crc32(body).to_bytes(4, "big")
    found = decode_rows(open_container(hostile(record("long"), 1, good, codec="snappy"), "f"), ALL)
    assert found.columns["f0", 0].to_pylist() == [12345]
    bad = packed + struct.pack(">I", 1)
    with pytest.raises(CorruptFileError, match="checksum"):
        decode_rows(open_container(hostile(record("long"), 1, bad, codec="snappy"), "f"), ALL)


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy"])
def test_blocks_that_inflate_without_end_are_refused(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(avro_codec, "MAX_BLOCK_BYTES", 1 << 16)
    bomb = b"\x00" * (1 << 20)
    packed: dict[str, bytes] = {
        "deflate": zlib.compress(bomb)[2:-4],
        "zstandard": zstandard.ZstdCompressor(write_content_size=False).compress(bomb),
        "snappy": pa.compress(bomb, codec="snappy", asbytes=True) + b"\x00" * 4,
    }
    with pytest.raises(CorruptFileError, match="more than"):
        decode_rows(open_container(hostile(record("long"), 1, packed[codec], codec=codec), "f"), ALL)


@pytest.mark.parametrize("codec", ["deflate", "zstandard", "snappy"])
def test_blocks_that_do_not_inflate_are_refused(codec: str) -> None:
    for body in (b"", b"\x00", b"garbage garbage"):
        with pytest.raises(CorruptFileError, match="inflate"):
            decode_rows(open_container(hostile(record("long"), 1, body, codec=codec), "f"), ALL)


@pytest.mark.parametrize(
    "data",
    [b"", b"Obj", b"Obj\x01", b"Obj\x01\x02", b"PAR1", b"Obj\x01" + zigzag(2**60), b"Obj\x01" + zigzag(1) + zigzag(-4)],
)
def test_headers_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        open_container(data, "f")


@pytest.mark.parametrize(
    "schema",
    [None, 5, "nothing", {"type": "nothing"}, {"type": "record"}, {"type": "record", "name": "a", "fields": [1]}],
)
def test_schemas_that_are_none_are_refused(schema: Any) -> None:
    with pytest.raises(CorruptFileError, match="schema"):
        decode_rows(open_container(container_header(schema, {}, "null", bytes(16)), "f"), ALL)


def test_deeply_nested_schemas_are_refused() -> None:
    schema: Any = "long"
    for _ in range(500):
        schema = {"type": "array", "items": schema}
    with pytest.raises(CorruptFileError, match="nested"):
        decode_rows(open_container(container_header(record(schema), {}, "null", bytes(16)), "f"), NONE)


def test_an_unknown_codec_is_named() -> None:
    with pytest.raises(CorruptFileError, match="bzip2"):
        open_container(container_header(record("long"), {}, "bzip2", bytes(16)), "f")


def test_many_small_blocks_and_rows_beyond_the_bytes_of_the_file() -> None:
    schema = record("long")
    rows = [{"f0": 0}] * 100_000
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec="deflate", sync_interval=1 << 30)
    assert len(out.getvalue()) < 1000
    found = decode_rows(open_container(out.getvalue(), "f"), ALL)
    assert found.columns["f0", 0].to_pylist() == [0] * 100_000
    small = container(schema, [{"f0": i} for i in range(9000)], per_block=1)
    opened = open_container(small, "f")
    assert len(opened.blocks) == 9000
    assert decode_rows(opened, ALL).columns["f0", 0].to_pylist() == list(range(9000))


@given(
    st.lists(
        st.dictionaries(st.integers(-3, 5), st.integers(-(2**40), 2**40), max_size=6).map(
            lambda pairs: list(pairs.items())
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 6),
)
def test_items_that_say_their_size_are_what_they_are_without(rows: list[list[tuple[int, int]]], per_block: int) -> None:
    """Keys in any order, in blocks of any size: what is not wanted of a map is gone past, what is wanted is found."""

    def body(sized: bool) -> bytes:
        found = b""
        for number, row in enumerate(rows):
            found += zigzag(1) + str(number).encode()
            for start in range(0, len(row), per_block):
                block = row[start : start + per_block]
                items = b"".join(zigzag(key) + zigzag(value) for key, value in block)
                found += zigzag(-len(block)) + zigzag(len(items)) + items if sized else zigzag(len(block)) + items
            found += zigzag(0)
        return found

    schema = record("string", LONGS)
    files = [open_container(hostile(schema, len(rows), body(sized)), "f") for sized in (True, False)]
    for choice in (ALL, SPREAD, NONE):
        found = []
        for kernels in (compiled_kernels, plain_kernels):
            with kernels():
                found += [decode_rows(file, choice).columns for file in files]
        assert all(each == found[0] for each in found), choice
    assert found[0].keys() == set()
