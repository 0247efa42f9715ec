"""Reading a manifest into columns: the format by its first bytes, fields by id, across all format versions."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.avro import (
    MAGIC,
    Container,
    Decoded,
    Key,
    Program,
    TakeFields,
    UnknownShape,
    compile_program,
    nodes as av,
    open_container,
    parse_avro_schema,
)
from icefloe.avro.decode import decode
from icefloe.errors import CorruptFileError, InvalidValueError
from icefloe.manifests.columns import ManifestColumns, column_type
from icefloe.manifests.content_stats_codec import metrics_from_stats
from icefloe.manifests.entry_codec import PARTITION_ROLE, choose
from icefloe.manifests.inheritance import inherit
from icefloe.manifests.metrics import MetricColumns, map_type, value_type
from icefloe.manifests.partition_values import partition_columns
from icefloe.manifests.paths import resolve_paths
from icefloe.manifests.values import ManifestFile, Metric
from icefloe.manifests.wanted_columns import ALWAYS, EVERYTHING, Wanted
from icefloe.metadata import DEFAULT_LIMITS, Limits
from icefloe.schema import IcebergType, StructType, UnknownType

Read = Callable[[str], bytes]
"""Gives the bytes at a location."""

PARQUET_MAGICS = (b"PAR1", b"PARE")


def read_manifest(
    manifest: ManifestFile,
    read: Read,
    wanted: Wanted = EVERYTHING,
    *,
    partition_type: StructType | None = None,
    table_location: str | None = None,
    committed: bool = True,
    threads: int = 1,
    limits: Limits = DEFAULT_LIMITS,
) -> ManifestColumns:
    """The entries of a manifest, with all that they inherit.

    `partition_type` is the type of the manifest's spec; without it the types are those of the file. Relative paths become
    locations under `table_location`. `committed` is off for manifests of a commit under way, whose entries still wait for
    their numbers. Several threads may decode a large one.
    """
    columns = decode_manifest(
        read(manifest.manifest_path),
        manifest.manifest_path,
        wanted,
        partition_type=partition_type,
        spec_id=manifest.partition_spec_id,
        threads=threads,
        limits=limits,
    )
    return resolve_paths(inherit(columns, manifest, committed=committed), table_location)


def decode_manifest(
    data: bytes | memoryview,
    location: str,
    wanted: Wanted = EVERYTHING,
    *,
    partition_type: StructType | None = None,
    spec_id: int = 0,
    threads: int = 1,
    limits: Limits = DEFAULT_LIMITS,
) -> ManifestColumns:
    """The entries as the file holds them; nothing is inherited."""
    if bytes(memoryview(data)[:4]) in PARQUET_MAGICS:
        from icefloe.manifests.parquet_codec import decode_parquet_manifest

        return decode_parquet_manifest(data, location, wanted, partition_type, spec_id, limits)
    if bytes(memoryview(data)[: len(MAGIC)]) != MAGIC:
        raise CorruptFileError(location, "it starts neither as an Avro nor as a Parquet manifest")
    container = open_container(data, location, limits)
    choice = choose(
        wanted.columns | ALWAYS, partition=wanted.partition, metrics=wanted.metrics, field_ids=wanted.field_ids
    )
    decoded = decode_rows(container, choice, threads)
    kinds = {key: av.plain_meaning(node) for key, node in decoded.nodes.items()}
    try:
        return assemble(decoded.columns, kinds, decoded, wanted, container, partition_type, spec_id)
    except (InvalidValueError, pa.ArrowException) as error:
        raise CorruptFileError(location, f"a column does not hold what its field says: {error}") from error


def decode_rows(container: Container, choice: TakeFields, threads: int = 1) -> Decoded:
    """The chosen fields of an Avro file as columns: by the walker, or value by value if it has no program."""
    try:
        schema, program = _compiled(container.header.schema, choice)
    except CorruptFileError as error:
        raise CorruptFileError(container.location, error.problem) from None
    try:
        return _decoded(container, schema, program, choice, threads)
    except MemoryError:
        problem = f"its {container.rows} rows take more memory than there is"
        raise CorruptFileError(container.location, problem) from None


def _decoded(
    container: Container, schema: av.AvroNode, program: Program | None, choice: TakeFields, threads: int
) -> Decoded:
    if program is None:
        from icefloe.avro.slow_decode import decode_slowly

        return decode_slowly(container, schema, choice)
    return decode(container, program, threads)


@lru_cache(maxsize=64)
def _compiled(schema_text: bytes, choice: TakeFields) -> tuple[av.AvroNode, Program | None]:
    """The program for rows of a schema; the manifests of a table mostly share a few schemas."""
    schema = parse_avro_schema(schema_text, "")
    try:
        return schema, compile_program(schema, choice)
    except UnknownShape:
        return schema, None


def assemble(
    columns: dict[Key, Any],
    kinds: dict[Key, IcebergType | None],
    decoded: Decoded,
    wanted: Wanted,
    container: Container,
    partition_type: StructType | None,
    spec_id: int,
) -> ManifestColumns:
    """Columns by name, of the types that manifests have in memory."""
    found = {name: scalar_column(name, columns[name, 0]) for name in wanted.columns | ALWAYS if (name, 0) in columns}
    found.setdefault("content", zeros(decoded.rows))
    check_columns(found, container.location)
    stored = {
        key[1]: (column, kinds[key] or UnknownType()) for key, column in columns.items() if key[0] == PARTITION_ROLE
    }
    struct, partition = partition_columns(stored, partition_type, container.metadata)
    metrics = _metrics(columns, decoded.nodes, decoded.rows)
    return ManifestColumns(
        decoded.rows, found, struct, partition, metrics, spec_id, container.location, container.metadata
    )


def check_columns(columns: dict[str, Any], location: str) -> None:
    """Fail unless the columns that every manifest has are there, with values that exist."""
    for name in ("status", "record_count"):
        if name not in columns or columns[name].null_count:
            raise CorruptFileError(location, f"it is not a manifest: an entry has no {name}")
    if "file_path" in columns and columns["file_path"].null_count:
        raise CorruptFileError(location, "an entry has no file_path")
    for name in ("status", "content"):
        smallest, largest = pc.min_max(columns[name]).values()
        if len(columns[name]) and not 0 <= smallest.as_py() <= largest.as_py() <= 2:
            raise CorruptFileError(location, f"an entry has an unknown {name}, below 0 or above 2")


def zeros(length: int) -> Any:
    """A column of the number 0."""
    return pa.array(np.zeros(length, np.int32))


def scalar_column(name: str, column: Any) -> Any:
    """A column in the type that manifests have in memory: ints become longs where a wider one is due."""
    target = column_type(name)
    if name == "content" and column.null_count:
        column = pc.fill_null(column, 0)
    return column if column.type == target else column.cast(target)


def _metrics(columns: dict[Key, Any], nodes: dict[Key, av.AvroNode], rows: int) -> MetricColumns:
    maps: dict[Metric, Any] = {}
    spread: dict[tuple[Metric, int], Any] = metrics_from_stats(columns, nodes)
    names = {metric.value: metric for metric in Metric}
    for (role, field_id), column in columns.items():
        metric = names.get(role)
        if metric is None:
            continue
        if field_id == 0 and pa.types.is_list(column.type):
            maps[metric] = as_map(metric, column)
        else:
            known = spread.get((metric, field_id))
            mapped = column.cast(value_type(metric))
            spread[metric, field_id] = mapped if known is None else pc.coalesce(known, mapped)
    return MetricColumns(rows, maps, spread)


def as_map(metric: Metric, column: Any) -> Any:
    """A list of pairs as a map of the metric's type, sharing its memory."""
    kind = map_type(metric)
    keys, items = (column.values.field(place) for place in (0, 1))
    pairs = pa.StructArray.from_arrays(
        [keys.cast(kind.key_type), items.cast(kind.item_type)], fields=[kind.key_field, kind.item_field]
    )
    bitmap, offsets = column.buffers()[:2]
    return pa.Array.from_buffers(kind, len(column), [bitmap, offsets], children=[pairs])
