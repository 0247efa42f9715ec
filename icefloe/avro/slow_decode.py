"""Odd Avro files, read value by value: the same columns as the walker's, many times slower."""

from collections.abc import Iterator
from typing import Any, TypeVar

import pyarrow as pa

from icefloe.avro import choices as ch, nodes as av
from icefloe.avro.choices import Choice, Key, Take, TakeEach, TakeFields
from icefloe.avro.container import Container
from icefloe.avro.decode import Decoded
from icefloe.avro.program import field_of
from icefloe.avro.values import ValueReader
from icefloe.errors import CorruptFileError

Shape = TypeVar("Shape")

_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}

_ROW_BYTES = 512
_OBJECT_BYTES = 16
"""About what a row, and a byte of it, take as values of Python."""


def decode_slowly(container: Container, schema: av.AvroNode, choice: TakeFields) -> Decoded:
    """The chosen fields of every row, as `decode` gives them."""
    if av.holds_empty_items(schema):
        raise CorruptFileError(container.location, "its schema has lists whose items take no bytes")
    container.check_room(container.rows * _ROW_BYTES)
    rows = list(_rows(container, schema))
    decoded = Decoded(len(rows), {}, {})
    try:
        _take(rows, schema, choice, decoded)
    except (pa.ArrowException, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise CorruptFileError(container.location, f"its rows do not fit their schema: {error!r}") from error
    return decoded


def _rows(container: Container, schema: av.AvroNode) -> Iterator[Any]:
    inflated, smallest = 0, av.smallest_size(schema)
    for block, count in enumerate(container.blocks[:, 0].tolist()):
        data = container.inflated(block)
        inflated += len(data)
        container.check_room(inflated * _OBJECT_BYTES)
        if not 0 < smallest * count <= len(data) and count:
            raise CorruptFileError(container.location, f"block {block} announces {count} rows")
        reader = ValueReader(data)
        try:
            for _ in range(count):
                yield reader.value(schema)
        except (ValueError, RecursionError) as error:
            raise CorruptFileError(container.location, f"its rows cannot be read: {error!r}") from error
        if reader.left:
            raise CorruptFileError(container.location, f"block {block} ends after its last row")


def _take(values: list[Any], node: av.AvroNode, choice: Choice, decoded: Decoded) -> None:
    node = av.without_null(node)
    match choice:
        case TakeFields():
            record = _shaped(node, av.AvroRecord)
            for field_id, name, inner in choice.fields:
                if (field := field_of(record, field_id, name)) is not None:
                    _take([value and value[field.name] for value in values], field.node, inner, decoded)
        case TakeEach():
            _take_each(values, node, choice, decoded)
        case Take():
            if (kind := _kind(node)) is not None:
                decoded.columns[choice.key] = pa.array(values, kind)
                decoded.nodes[choice.key] = node
        case ch.TakeList():
            items = av.without_null(_shaped(node, av.AvroArray).items)
            decoded.columns[choice.key] = pa.array(values, pa.list_(_kind(items)))
        case ch.TakePairs():
            key, value = _pair(node)
            kind = pa.list_(pa.struct([("1", _kind(key)), ("2", _kind(value))]))
            pairs = [
                None if row is None else [dict(zip("12", item.values(), strict=True)) for item in row] for row in values
            ]
            decoded.columns[choice.key] = pa.array(pairs, kind)
        case ch.TakeSpread():
            value = _pair(node)[1]
            maps = [dict(tuple(item.values()) for item in row or ()) for row in values]
            for number in choice.keys:
                decoded.columns[choice.role, number] = pa.array([pairs.get(number) for pairs in maps], _kind(value))
                decoded.nodes[choice.role, number] = value
        case ch.TakeRecords():
            _take_records(values, node, choice, decoded)


def _take_each(values: list[Any], node: av.AvroNode, choice: TakeEach, decoded: Decoded) -> None:
    for i, field in enumerate(_shaped(node, av.AvroRecord).fields):
        number: int = field.field_id if field.field_id is not None else -1 - i
        inner = av.without_null(field.node)
        if choice.only is not None and number not in choice.only:
            continue
        child = [value and value[field.name] for value in values]
        taken: Choice = Take((choice.role, number))
        if isinstance(inner, av.AvroRecord):
            taken = ch.parts_of_variant(choice.role, number) if inner.is_variant else TakeEach(choice.role)
        _take(child, inner, taken, decoded)


def _take_records(values: list[Any], node: av.AvroNode, choice: ch.TakeRecords, decoded: Decoded) -> None:
    record = _shaped(av.without_null(_shaped(node, av.AvroArray).items), av.AvroRecord)
    fields: list[tuple[str, Key, Any]] = []
    for field_id, name, key in choice.fields:
        if (field := field_of(record, field_id, name)) is not None:
            fields.append((field.name, key, _kind(av.without_null(field.node))))
    kind = pa.list_(pa.struct([(f"{key[0]}:{key[1]}", arrow) for _, key, arrow in fields]))
    rows = [
        None if row is None else [{f"{key[0]}:{key[1]}": item[name] for name, key, _ in fields} for item in row]
        for row in values
    ]
    decoded.columns[choice.key] = pa.array(rows, kind)


def _shaped(node: av.AvroNode, kind: type[Shape]) -> Shape:
    if not isinstance(node, kind):
        raise ValueError(f"{kind.__name__} was expected, not {node}")
    return node


def _pair(node: av.AvroNode) -> tuple[av.AvroNode, av.AvroNode]:
    key, value = _shaped(_shaped(node, av.AvroArray).items, av.AvroRecord).fields
    return av.without_null(key.node), av.without_null(value.node)


def _kind(node: av.AvroNode) -> Any:
    match node:
        case av.AvroPrimitive("null"):
            return None
        case av.AvroPrimitive(kind):
            return _ARROW[kind]
        case av.AvroFixed(size):
            return pa.binary(size)
        case av.AvroUnion(branches):
            kinds = {_kind(branch) for branch in branches} - {None}
            return pa.int64() if kinds == {pa.int32(), pa.int64()} else kinds.pop() if len(kinds) == 1 else pa.binary()
        case _:
            raise ValueError(f"{type(node).__name__} is no primitive")
