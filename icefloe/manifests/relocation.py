"""Manifests and manifest lists written again with other paths, and with nothing else changed: headers, unset numbers, order."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefloe import avro, errors, metadata as md
from icefloe.manifests import entry_codec as ec
from icefloe.manifests.columns import ManifestColumns
from icefloe.manifests.content_stats_codec import content_stats_type
from icefloe.manifests.list_codec import LIST_NAME, decode_manifest_list, list_columns, list_schema
from icefloe.manifests.metrics import MetricColumns, list_offsets, map_type
from icefloe.manifests.reader import PARQUET_MAGICS, decode_manifest
from icefloe.manifests.values import ManifestFile, Metric
from icefloe.manifests.writer import entry_lookup
from icefloe.schema import Schema, schema_to_json

ChangePaths = Callable[[pa.Array], pa.Array]
"""Paths as they are to be, for paths as they are; null stays null."""

_NO_BOUND = pa.scalar(None, pa.binary())


def relocated_manifest(
    data: bytes,
    location: str,
    schema: Schema,
    change: Callable[[ManifestColumns], ManifestColumns],
    limits: md.Limits = md.DEFAULT_LIMITS,
) -> bytes:
    """A manifest whose entries were changed by a function that sees them as the file has them; nothing is inherited."""
    if data[:4] in PARQUET_MAGICS:
        raise errors.StateError(
            f"{location} is a Parquet manifest with absolute paths; such a manifest cannot be written again yet"
        )
    columns = change(decode_manifest(data, location, limits=limits))
    container = avro.open_container(data, location, limits)
    version, stored = _version(container), _stored(columns, container, schema)
    struct = ec.entry_type(version, columns.partition_type, stored)
    lookup = entry_lookup(columns, stored, schema)
    return _encoded(container, Schema(*struct.fields), lookup, len(columns), ec.ENTRY_NAME)


def relocated_list(
    data: bytes, location: str, change: Callable[[ManifestFile], ManifestFile], limits: md.Limits = md.DEFAULT_LIMITS
) -> bytes:
    """A manifest list whose manifests were changed by a function that sees them as the file has them."""
    container = avro.open_container(data, location, limits)
    manifests = [change(manifest) for manifest in decode_manifest_list(data, location, limits=limits)]
    schema = list_schema(_version(container))
    columns = list_columns(manifests, schema.as_struct, [manifest.manifest_path for manifest in manifests])
    return _encoded(container, schema, columns, len(manifests), LIST_NAME)


def with_paths(columns: ManifestColumns, change: ChangePaths) -> ManifestColumns:
    """The entries with other paths of files, and of the data files that deletes are about."""
    names = columns.columns.keys() & {"file_path", "referenced_data_file"}
    return columns.with_columns(**{name: change(columns.columns[name]) for name in names})


def with_text_bounds(columns: ManifestColumns, field_id: int, change: ChangePaths) -> ManifestColumns:
    """The entries with other bounds of a column of texts; where `change` gives null for one, both bounds are left out."""
    bounds = {}
    for metric in ec.BOUNDS:
        texts = columns.metrics.column(metric, field_id).cast(pa.string())
        bounds[metric] = change(texts)
    is_known = np.logical_and.reduce([np.asarray(column.is_valid()) for column in bounds.values()])
    metrics = columns.metrics
    for metric, column in bounds.items():
        metrics = _with_metric(
            metrics, metric, field_id, pc.if_else(pa.array(is_known), column.cast(pa.binary()), _NO_BOUND)
        )
    return replace(columns, metrics=metrics)


def _with_metric(metrics: MetricColumns, metric: Metric, field_id: int, values: pa.Array) -> MetricColumns:
    """The metrics with other values of one field, in the form that they have; null is left out."""
    maps, spread = dict(metrics.maps), dict(metrics.spread)
    if (metric, field_id) in spread:
        spread[metric, field_id] = values
    if metric in maps:
        maps[metric] = _with_item(maps[metric], metric, field_id, values)
    return MetricColumns(metrics.length, maps, spread)


def _with_item(column: pa.MapArray, metric: Metric, field_id: int, values: pa.Array) -> pa.MapArray:
    whole = column.take(pa.array(np.arange(len(column))))
    offsets = list_offsets(whole)
    keys = whole.keys.to_numpy(zero_copy_only=False)[: offsets[-1]]
    owners = np.repeat(np.arange(len(whole)), np.diff(offsets))
    new = values.take(pa.array(owners))
    is_own = keys == field_id
    items = pc.if_else(pa.array(is_own), new, whole.items.slice(0, offsets[-1]))
    stays = ~is_own | np.asarray(new.is_valid())
    starts = np.concatenate(([0], np.cumsum(np.bincount(owners[stays], minlength=len(whole))))).astype(np.int32)
    target = map_type(metric)
    pairs = pa.StructArray.from_arrays(
        [pa.array(keys[stays], target.key_type), items.filter(pa.array(stays)).cast(target.item_type)],
        fields=[target.key_field, target.item_field],
    )
    validity = whole.buffers()[0]
    return pa.Array.from_buffers(target, len(whole), [validity, pa.py_buffer(starts)], children=[pairs])


def _stored(columns: ManifestColumns, container: avro.Container, schema: Schema) -> ec.Stored:
    """The forms of metrics that the file has."""
    text = container.header.schema
    has_maps = f'"{Metric.LOWER_BOUNDS.value}"'.encode() in text
    if f'"{ec.CONTENT_STATS_ROLE}"'.encode() not in text:
        return ec.Stored(True)
    stats = content_stats_type(schema, columns.metrics)
    return ec.Stored(has_maps, stats if stats.fields else None)


def _version(container: avro.Container) -> int:
    text = container.metadata.get("format-version")
    if text is None:
        # Writers from before v2 do not say.
        return 2 if b'"sequence_number"' in container.header.schema else 1
    if not text.isdigit():
        raise errors.CorruptFileError(container.location, f"its format-version is {text!r}; it must be a number")
    return int(text)


def _encoded(container: avro.Container, schema: Schema, columns: Mapping[int, pa.Array], rows: int, name: str) -> bytes:
    """A file with the header, the codec and the marks between blocks of another one, so that it comes out the same every time."""
    header, texts = container.header, dict(container.metadata)
    if "iceberg.schema" in texts:
        texts["iceberg.schema"] = json.dumps(schema_to_json(schema), separators=(",", ":"))
    parts = [avro.container_header(avro.avro_record(schema.fields, name), texts, header.codec, header.sync)]
    for count, block in avro.encode_rows(schema.as_struct, columns, rows):
        parts.append(avro.container_block(count, avro.deflate(header.codec, block), header.sync))
    return b"".join(parts)
