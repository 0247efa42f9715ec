"""Real files of tables, and ways to damage them: what the tests of hostile bytes start from."""

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from io import BytesIO
from typing import Any

import pyarrow as pa

from icefloe import load_catalog
from icefloe.avro import MAGIC, SYNC_SIZE, container_block, container_header, open_container
from icefloe.errors import IcefloeError
from icefloe.formats.deletion_vector_codec import decode_vector
from icefloe.formats.file_formats import reader_of
from icefloe.manifests import (
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    decode_manifest,
    decode_manifest_list,
    read_manifest_list,
)
from icefloe.metadata import decode_metadata_file, decode_view_file
from icefloe.schema import (
    Schema,
    create_name_mapping,
    format_name_mapping,
    parse_name_mapping,
    reserved,
    schema_to_arrow,
)
from icefloe.table import Table
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.manifests.test_parquet import parquet
from tests.puffin_files import decode_puffin

PLACE = "memory://hostile/file"
_ROWS = pa.table({"id": pa.array(range(9), pa.int64()), "name": [f"name {n % 4}" for n in range(9)]})


@dataclass(frozen=True)
class Sample:
    """Bytes of a real file, and what reads them."""

    name: str
    data: bytes
    decode: Callable[[bytes], object]


def _decode_rows(file_format: str, schema: Schema, data: bytes) -> int:
    rows = 0
    for columns in (schema, Schema(reserved.POS)):
        rows = sum(each.num_rows for each in reader_of(file_format)(BytesIO(data), PLACE, columns).batches())
    return rows


def _decode_puffin(data: bytes) -> object:
    footer, contents = decode_puffin(data, PLACE)
    return footer, [decode_vector(content, PLACE) for content in contents]


def _plain_blocks(data: bytes) -> bytes:
    """An Avro file with its blocks as they are, so that damage reaches the rows and not the compression alone."""
    container = open_container(data, PLACE)
    head = data[: int(container.blocks[0, 1])]
    # The header ends in the marker that ends each block, too.
    sync = data[int(container.blocks[0, 2]) : int(container.blocks[0, 2]) + SYNC_SIZE]
    head = data[: data.index(sync) + SYNC_SIZE]
    head = head.replace(b"\x0edeflate", b"\x08null")
    blocks = [
        container_block(int(rows), bytes(container.inflated(at)), sync)
        for at, rows in enumerate(container.blocks[:, 0])
    ]
    return head + b"".join(blocks)


@cache
def samples() -> tuple[Sample, ...]:
    """Files of every kind and version."""
    return tuple(_samples())


def _samples() -> Iterator[Sample]:
    catalog = load_catalog("hostile", type="memory")
    catalog.create_namespace("db")
    for version in ALL_VERSIONS:
        yield from _of_table(
            catalog.create_table(
                f"db.v{version}",
                "id BIGINT, name STRING",
                partition_spec=["bucket(4, id)", "name"],
                properties={"format-version": str(version), "write.delete.mode": "merge-on-read"},
            ),
            version,
        )
    view = catalog.create_view("db.view", "id BIGINT", "SELECT 1")
    text = catalog.storage.read(view.metadata_location)
    yield Sample("view", text, decode_view_file)
    yield from _of_rows(
        catalog.create_table("db.rows", "id BIGINT, name STRING, items ARRAY<STRUCT<a INT, m MAP<STRING, DOUBLE>>>")
    )


def _of_table(table: Table, version: int) -> Iterator[Sample]:
    table.append(_ROWS)
    if allows(version, Feature.DELETE_FILES):
        table.delete("id = 3 or id = 4")
    read = table.storage.read
    text = read(str(table.metadata_location))
    yield Sample(f"metadata v{version}", text, decode_metadata_file)
    yield Sample(f"metadata v{version} gzip", gzip.compress(text, mtime=0), decode_metadata_file)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    place = str(snapshot.manifest_list)
    place = place if ":" in place else f"{table.location()}/{place}"
    yield from _avro(f"list v{version}", read(place), partial(decode_manifest_list, location=PLACE))
    for manifest in read_manifest_list(place, read, table_location=table.location()):
        kind = "data" if manifest.content is ManifestContent.DATA else "delete"
        yield from _avro(
            f"{kind} manifest v{version}", read(manifest.manifest_path), partial(decode_manifest, location=PLACE)
        )
    for task in table.scan().plan_files():
        if task.deletion_vector is not None:
            yield Sample(f"vectors v{version}", read(task.deletion_vector.file_path), _decode_puffin)
            return


def _of_rows(table: Table) -> Iterator[Sample]:
    items = pa.array(
        [[{"a": n, "m": [("k", n / 2)]}] * n for n in range(9)], schema_to_arrow(table.schema()).field("items").type
    )
    table.append(_ROWS.append_column("items", items))
    for file_format in ("parquet", "avro"):
        table.set_properties({"write.format.default": file_format})
        table.overwrite(_ROWS.append_column("items", items))
        file = next(iter(table.scan().plan_files())).file
        data = table.storage.read(file.file_path)
        decode = partial(_decode_rows, file_format, table.schema())
        yield Sample(f"rows in {file_format}", data, decode)
    yield Sample("name mapping", format_name_mapping(create_name_mapping(table.schema())).encode(), _decode_mapping)
    # Manifests in Parquet are written by others only.
    entries = [ManifestEntry(EntryStatus.ADDED, file, 7, 1, 1), ManifestEntry(EntryStatus.EXISTING, file, 7, 1, 1)]
    data = parquet(entries, table.schema(), table.spec())
    yield Sample("manifest in parquet", data, partial(decode_manifest, location=PLACE))


def _decode_mapping(data: bytes) -> object:
    return parse_name_mapping(data.decode("utf-8", "replace"))


def _avro(name: str, data: bytes, decode: Callable[[bytes], object]) -> Iterator[Sample]:
    yield Sample(name, data, decode)
    yield Sample(f"{name} uncompressed", _plain_blocks(data), decode)


_ODD = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with some of them changed, cut off, repeated or put in."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(found) + 1)
        length = chance.choice((1, 1, 2, 4, 8, 16))
        match chance.randrange(7):
            case 0:
                found[at : at + 1] = bytes(each ^ 1 << chance.randrange(8) for each in found[at : at + 1])
            case 1:
                found[at : at + length] = bytes([chance.choice(_ODD)]) * length
            case 2:
                found[at : at + length] = chance.randbytes(length)
            case 3:
                found[at:at] = bytes([chance.choice(_ODD)]) * length
            case 4:
                del found[at : at + length]
            case 5:
                del found[max(at, 1) :]
            case _:
                found[at:at] = found[at : at + 64 * length]
    return bytes(found)


_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    10**30,
    1e308,
    "",
    "x",
    "-1",
    [],
    {},
    [[]],
    [None],
    "null",
    "int",
)
_AVRO_TYPES: tuple[Any, ...] = (
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    ["null"],
    ["null", "long"],
    ["long", "string", "null"],
    [],
    {"type": "fixed", "name": "f", "size": 0},
    {"type": "fixed", "name": "f", "size": 2**40},
    {"type": "array", "items": "null"},
    {"type": "array", "items": ["null"]},
    {"type": "array", "items": {"type": "record", "name": "r", "fields": []}},
    {"type": "map", "values": "long"},
    {"type": "enum", "name": "e", "symbols": []},
    "unknown",
)


def reshaped(data: bytes, chance: random.Random) -> bytes:
    """The bytes with another value in the JSON that they are, or another type in the Avro schema that they begin with."""
    if data[: len(MAGIC)] != MAGIC:
        return json.dumps(_changed(json.loads(data), chance, _VALUES)).encode()
    container = open_container(data, PLACE)
    end = int(container.blocks[-1, 2]) + SYNC_SIZE
    sync = data[end - SYNC_SIZE : end]
    schema = _changed(json.loads(container.header.schema), chance, _AVRO_TYPES)
    body = data[data.index(sync) + SYNC_SIZE :]
    return container_header(schema, container.metadata, container.header.codec, sync) + body


def _changed(document: Any, chance: random.Random, values: Sequence[Any]) -> Any:
    """The document with a part of it, anywhere inside, replaced or left out."""
    places = list(_places(document))
    for _ in range(chance.choice((1, 1, 2))):
        holder, key = chance.choice(places)
        if chance.random() < 0.15:
            with suppress(KeyError, IndexError):
                del holder[key]
            continue
        with suppress(IndexError):
            holder[key] = chance.choice(values)
    return document


def _places(document: Any) -> Iterator[tuple[Any, Any]]:
    keys = document.keys() if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in list(keys):
        yield document, key
        yield from _places(document[key])


def outcome(decode: Callable[[bytes], object], data: bytes) -> str:
    """What came of it: `read`, or the name of one of our errors; any other error is raised."""
    try:
        decode(data)
    except IcefloeError as error:
        return type(error).__name__
    return "read"
