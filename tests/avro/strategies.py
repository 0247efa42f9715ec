"""Random Avro schemas of manifest shape, values for them, and containers around both."""

import io
import json
from itertools import count
from typing import Any

import fastavro
from hypothesis import strategies as st

from icefloe.avro import container_block, container_header, open_container
from icefloe.avro.blocks import deflate
from tests.strategies import texts

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-200, 200))
FLOAT = st.floats(width=32, allow_nan=False)
DOUBLE = st.floats(allow_nan=False)

LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": INT,
    "long": LONG,
    "float": FLOAT,
    "double": DOUBLE,
    "bytes": st.binary(max_size=20),
    "string": texts(12),
}

Typed = tuple[Any, st.SearchStrategy[Any]]


def nullable(typed: Typed, first: bool) -> Typed:
    """The type or null, null first or last."""
    schema, values = typed
    return (["null", schema] if first else [schema, "null"]), st.none() | values


@st.composite
def leaves(draw: st.DrawFn, names: Any) -> Typed:
    """A primitive or fixed type."""
    kind = draw(st.sampled_from((*LEAVES, "fixed")))
    if kind == "fixed":
        size = draw(st.integers(1, 9))
        return {"type": "fixed", "name": f"f{next(names)}", "size": size}, st.binary(min_size=size, max_size=size)
    return kind, LEAVES[kind]


def pairs(key: str, value: Typed, name: str) -> Typed:
    """A map from numbers, as an array of pairs; keys are few, so that wanted ones occur."""
    fields = [{"name": "key", "type": key, "field-id": 1}, {"name": "value", "type": value[0], "field-id": 2}]
    schema = {"type": "array", "logicalType": "map", "items": {"type": "record", "name": name, "fields": fields}}
    items = st.lists(st.tuples(st.integers(0, 6), value[1]), max_size=5, unique_by=lambda item: item[0])
    return schema, items.map(lambda found: [{"key": k, "value": v} for k, v in found])


@st.composite
def odd(draw: st.DrawFn, names: Any, depth: int = 2) -> Typed:
    """Any Avro type at all, for fields that nobody wants."""
    kinds = ["leaf", "null", "enum"] + (["record", "array", "map", "union"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "leaf":
        return draw(leaves(names))
    if kind == "null":
        return "null", st.none()
    if kind == "enum":
        symbols = ["A", "B", "C"]
        return {"type": "enum", "name": f"e{next(names)}", "symbols": symbols}, st.sampled_from(symbols)
    if kind == "record":
        fields = [draw(odd(names, depth - 1)) for _ in range(draw(st.integers(0, 3)))]
        schema = {
            "type": "record",
            "name": f"o{next(names)}",
            "fields": [{"name": f"x{i}", "type": each[0]} for i, each in enumerate(fields)],
        }
        return schema, st.fixed_dictionaries({f"x{i}": each[1] for i, each in enumerate(fields)})
    inner = draw(odd(names, depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner[0]}, st.lists(inner[1], max_size=3)
    if kind == "map":
        return {"type": "map", "values": inner[0]}, st.dictionaries(texts(4), inner[1], max_size=3)
    if inner[0] == "null" or isinstance(inner[0], list):
        return inner
    return nullable(inner, draw(st.booleans()))


def container(schema: Any, rows: list[Any], *, codec: str = "deflate", per_block: int = 16_000) -> bytes:
    """An Avro file as the reference library writes it; that one knows no zstandard, so those blocks are packed here."""
    out = io.BytesIO()
    plain = "null" if codec == "zstandard" else codec
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec=plain, sync_interval=per_block)
    if codec == plain:
        return out.getvalue()
    opened = open_container(out.getvalue(), "plain")
    sync = bytes(range(16))
    blocks = (
        container_block(int(count), deflate(codec, opened.inflated(i)), sync)
        for i, count in enumerate(opened.blocks[:, 0])
    )
    return b"".join((container_header(json.loads(opened.header.schema), {}, codec, sync), *blocks))


def new_names() -> Any:
    """Numbers for names of types, which must differ."""
    return count()
