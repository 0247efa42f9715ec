"""Reading a manifest into columns: the format by its first bytes, fields by id, across all format versions."""

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from icefloe import avro, errors, metadata as md
from icefloe.avro import nodes as av
from icefloe.avro.decode import decode
from icefloe.encryption import FileKey
from icefloe.manifests.arrow_values import partition_columns
from icefloe.manifests.columns import ManifestColumns, decoded_columns
from icefloe.manifests.content_stats_codec import metrics_from_stats
from icefloe.manifests.entry_codec import ALWAYS, EVERYTHING, PARTITION_ROLE, Wanted, choose
from icefloe.manifests.inheritance import inherit
from icefloe.manifests.metrics import MetricColumns, map_type, value_type
from icefloe.manifests.sealing import key_of_manifest, unsealed
from icefloe.manifests.values import ManifestFile, Metric
from icefloe.schema import StructType, types

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
    limits: md.Limits = md.DEFAULT_LIMITS,
) -> ManifestColumns:
    """The entries of a manifest, with all that they inherit.

    `partition_type` is the type of the manifest's spec; without it the types are those of the file. Relative paths become
    locations under `table_location`. `committed` is off for manifests of a commit under way, whose entries still wait for
    their numbers. Several threads may decode a large one.
    """
    data, key = opened_manifest(manifest, read(manifest.manifest_path))
    columns = decode_manifest(
        data,
        manifest.manifest_path,
        wanted,
        key=key,
        partition_type=partition_type,
        spec_id=manifest.partition_spec_id,
        threads=threads,
        limits=limits,
    )
    return inherit(columns, manifest, committed=committed).resolved(table_location)


def opened_manifest(manifest: ManifestFile, data: bytes) -> tuple[bytes, FileKey | None]:
    """The bytes of a manifest file as `decode_manifest` takes them, and the key if it is Parquet, which decrypts itself."""
    key = key_of_manifest(manifest)
    return (data, key) if data[:4] in PARQUET_MAGICS else (unsealed(data, key, manifest.manifest_path), None)


def decode_manifest(
    data: bytes | memoryview,
    location: str,
    wanted: Wanted = EVERYTHING,
    *,
    partition_type: StructType | None = None,
    spec_id: int = 0,
    threads: int = 1,
    limits: md.Limits = md.DEFAULT_LIMITS,
    key: FileKey | None = None,
) -> ManifestColumns:
    """The entries as the file holds them; nothing is inherited. `key` is that of a Parquet file, which decrypts itself."""
    if bytes(memoryview(data)[:4]) in PARQUET_MAGICS:
        # Few tables have such manifests, and the library takes a while to load.
        from icefloe.manifests.parquet_codec import decode_parquet_manifest

        return decode_parquet_manifest(data, location, wanted, partition_type, spec_id, limits, key)
    data = unsealed(bytes(data), None, location)
    if data[: len(avro.MAGIC)] != avro.MAGIC:
        raise errors.CorruptFileError(location, "it starts neither as an Avro nor as a Parquet manifest")
    container = avro.open_container(data, location, limits)
    decoded = decode_rows(container, choose(wanted), threads)
    try:
        return _assembled(decoded, wanted, container, partition_type, spec_id)
    except (errors.InvalidValueError, pa.ArrowException) as error:
        raise errors.CorruptFileError(location, f"a column does not hold what its field says: {error}") from error


def decode_rows(container: avro.Container, choice: avro.TakeFields, threads: int = 1) -> avro.Decoded:
    """The chosen fields of an Avro file as columns: by the walker, or value by value if it has no program."""
    try:
        schema, program = _compiled(container.header.schema, choice)
    except errors.CorruptFileError as error:
        raise errors.CorruptFileError(container.location, error.problem) from None
    try:
        if program is None:
            from icefloe.avro.slow_decode import decode_slowly

            return decode_slowly(container, schema, choice)
        return decode(container, program, threads)
    except MemoryError:
        problem = f"its {container.rows} rows take more memory than there is"
        raise errors.CorruptFileError(container.location, problem) from None


@lru_cache(maxsize=64)
def _compiled(schema_text: bytes, choice: avro.TakeFields) -> tuple[av.AvroNode, avro.Program | None]:
    """The program for rows of a schema; the manifests of a table mostly share a few schemas."""
    schema = avro.parse_avro_schema(schema_text, "")
    try:
        return schema, avro.compile_program(schema, choice)
    except avro.UnknownShape:
        return schema, None


def _assembled(
    decoded: avro.Decoded, wanted: Wanted, container: avro.Container, partition_type: StructType | None, spec_id: int
) -> ManifestColumns:
    """Columns by name, of the types that manifests have in memory."""
    columns, rows = decoded.columns, decoded.rows
    plain = {name: columns[name, 0] for name in wanted.columns | ALWAYS if (name, 0) in columns}
    meanings = {key: av.plain_meaning(node) or types.UnknownType() for key, node in decoded.nodes.items()}
    stored = {key[1]: (column, meanings[key]) for key, column in columns.items() if key[0] == PARTITION_ROLE}
    named = decoded_columns(plain, rows, container.location)
    struct, partition = partition_columns(stored, partition_type, container.metadata)
    metrics = _metrics(columns, decoded.nodes, rows)
    return ManifestColumns(rows, named, struct, partition, metrics, spec_id, container.location, container.metadata)


def _metrics(columns: dict[avro.Key, pa.Array], nodes: dict[avro.Key, av.AvroNode], rows: int) -> MetricColumns:
    maps: dict[Metric, pa.MapArray] = {}
    spread = metrics_from_stats(columns, nodes)
    names = {metric.value: metric for metric in Metric}
    for (role, field_id), column in columns.items():
        metric = names.get(role)
        if metric is None:
            continue
        if field_id == 0 and pa.types.is_list(column.type):
            maps[metric] = _as_map(metric, column)
        else:
            known = spread.get((metric, field_id))
            mapped = column.cast(value_type(metric))
            spread[metric, field_id] = mapped if known is None else pc.coalesce(known, mapped)
    return MetricColumns(rows, maps, spread)


def _as_map(metric: Metric, column: pa.ListArray) -> pa.MapArray:
    """A list of pairs as a map of the metric's type, sharing its memory."""
    target = map_type(metric)
    keys, items = column.values.field(0).cast(target.key_type), column.values.field(1).cast(target.item_type)
    pairs = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
    return pa.Array.from_buffers(target, len(column), column.buffers()[:2], children=[pairs])
