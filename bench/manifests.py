"""Decoding and encoding manifests with ten columns of statistics, against PyIceberg, one thread each, on the same entries."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile as PeerDataFile,
    DataFileContent,
    FileFormat,
    ManifestContent as PeerContent,
    ManifestEntry as PeerEntry,
    ManifestEntryStatus,
    ManifestFile as PeerManifest,
    write_manifest as peer_write_manifest,
)
from pyiceberg.partitioning import PartitionField as PeerPartitionField, PartitionSpec as PeerSpec
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.transforms import IdentityTransform as PeerIdentity
from pyiceberg.typedef import Record
from pyiceberg.types import DateType as PeerDate, LongType as PeerLong, NestedField as PeerField

from bench.report import Row, interleave
from icefloe.manifests import (
    EVERYTHING,
    MAP_METRICS,
    EntryStatus,
    ManifestColumns,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    Metric,
    MetricColumns,
    read_manifest,
    wanted,
    write_manifest,
)
from icefloe.manifests.metrics import map_type
from icefloe.partitioning import parse_partition_spec, partition_type
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import DateType, LongType

COLUMNS = 10
IDS = range(1, COLUMNS + 1)
SCHEMA = Schema(*(NestedField(i, f"c{i}", LongType()) for i in IDS), NestedField(COLUMNS + 1, "day", DateType()))
SPEC = parse_partition_spec("day", SCHEMA)
FORMAT = ManifestFormat(2, SCHEMA, SPEC, 7)
PEER_SCHEMA = PeerSchema(*(PeerField(i, f"c{i}", PeerLong()) for i in IDS), PeerField(COLUMNS + 1, "day", PeerDate()))
PEER_SPEC = PeerSpec(PeerPartitionField(COLUMNS + 1, 1000, PeerIdentity(), "day"))
ENTRIES = {"small": (5_000, 500), "medium": (100_000, 10_000), "full": (300_000, 30_000)}
"""Entries that are decoded, and entries that are encoded, which the peer takes much longer for."""
GOAL = 0.1


def path_of(i: int) -> str:
    """A path as writers make them."""
    return f"s3://bucket/db/table/data/day=2026-01-01/00000-{i}-abcdef01-2345-6789-abcd-ef0123456789.parquet"


def entries(count: int) -> ManifestColumns:
    """Entries in columns; bounds and counts differ from file to file."""
    rows = np.arange(count)
    ones = np.ones(count, np.int64)
    maps = {
        Metric.COLUMN_SIZES: _map(Metric.COLUMN_SIZES, rows[:, None] % 5000 + 1000 * np.arange(COLUMNS)),
        Metric.VALUE_COUNTS: _map(Metric.VALUE_COUNTS, np.repeat(1000 + rows, COLUMNS)),
        Metric.NULL_VALUE_COUNTS: _map(Metric.NULL_VALUE_COUNTS, np.zeros(count * COLUMNS, np.int64)),
        Metric.LOWER_BOUNDS: _map(Metric.LOWER_BOUNDS, rows[:, None] * 1009 + np.arange(COLUMNS)),
        Metric.UPPER_BOUNDS: _map(Metric.UPPER_BOUNDS, rows[:, None] * 1009 + np.arange(COLUMNS) + 100_003),
    }
    columns = {
        "status": pa.array(ones, pa.int32()),
        "content": pa.array(ones - 1, pa.int32()),
        "file_path": pa.array([path_of(i) for i in range(count)]),
        "file_format": pa.array(["parquet"] * count),
        "record_count": pa.array(1000 + rows),
        "file_size_in_bytes": pa.array(123_456 + rows * 7 % 1000),
        "sort_order_id": pa.array(ones - 1, pa.int32()),
        "split_offsets": pa.array([[4]] * count, pa.list_(pa.int64())),
    }
    partition = {1000: pa.array((20_000 + rows // 1000).astype(np.int32)).view(pa.date32())}
    kind = partition_type(SPEC, SCHEMA)
    return ManifestColumns(count, columns, kind, partition, MetricColumns(count, maps))


def _map(metric: Metric, values: Any) -> Any:
    flat = np.ascontiguousarray(values).reshape(-1).astype(np.int64)
    count = len(flat) // COLUMNS
    kind = map_type(metric)
    keys = pa.array(np.tile(np.arange(1, COLUMNS + 1, dtype=np.int32), count))
    items: Any = pa.array(flat)
    if metric.is_bound:
        places = np.arange(len(flat) + 1, dtype=np.int32) * 8
        items = pa.Array.from_buffers(pa.binary(), len(flat), [None, pa.py_buffer(places), pa.py_buffer(flat)])
    offsets = np.arange(count + 1, dtype=np.int32) * COLUMNS
    pairs = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets)], children=[pairs])


def peer_entries(source: ManifestColumns) -> list[PeerEntry]:
    """The same entries as PyIceberg's objects."""
    return [
        PeerEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=7,
            data_file=PeerDataFile.from_args(
                content=DataFileContent.DATA,
                file_path=file.file_path,
                file_format=FileFormat.PARQUET,
                partition=Record(*file.partition),
                record_count=file.record_count,
                file_size_in_bytes=file.file_size_in_bytes,
                **{metric.value: dict(getattr(file, metric.value)) for metric in MAP_METRICS},
                key_metadata=None,
                split_offsets=list(file.split_offsets or ()),
                equality_ids=None,
                sort_order_id=0,
            ),
        )
        for file in source.files()
    ]


def peer_write(rows: list[PeerEntry], location: str) -> None:
    """Write a manifest with PyIceberg."""
    output = PyArrowFileIO().new_output(location)
    with peer_write_manifest(2, PEER_SPEC, PEER_SCHEMA, output, 7, "deflate") as writer:
        for row in rows:
            writer.add_entry(row)


WITHOUT_PANDAS = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, Hidden())
"""
"""pyarrow imports pandas with its first scalar where that is installed, for more than a second; neither side needs it."""


def fresh_process(work: str, cache: str) -> float:
    """Seconds of a piece of work in a new process, imports included, with kernels compiled into or taken from a folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": f"{cache}/bytecode"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", WITHOUT_PANDAS + work], check=True, env=environment)
    return time.perf_counter() - start


def run(size: str) -> Iterator[Row]:
    """All cases at that size."""
    to_decode, to_encode = ENTRIES[size]
    with tempfile.TemporaryDirectory() as folder:
        location = str(Path(folder) / "ours.avro")
        source = entries(to_decode)
        manifest = write_manifest(source, FORMAT, location, lambda path, data: Path(path).write_bytes(data))
        yield from _decoding(manifest, to_decode)
        yield from _encoding(entries(to_encode), folder, to_encode)
        yield from _first_use(folder)


def _decoding(manifest: ManifestFile, count: int) -> Iterator[Row]:
    location = manifest.manifest_path
    peer = PeerManifest.from_args(
        manifest_path=location,
        manifest_length=manifest.manifest_length,
        partition_spec_id=0,
        content=PeerContent.DATA,
        sequence_number=3,
        min_sequence_number=3,
        added_snapshot_id=7,
    )
    kind = partition_type(SPEC, SCHEMA)
    planned = wanted("file_path", "file_format", "file_size_in_bytes", "split_offsets", field_ids=IDS)
    one = wanted("file_path", "file_format", "file_size_in_bytes", field_ids=[3])

    def ours(choice: Any) -> Callable[[], object]:
        def work() -> object:
            return read_manifest(manifest, lambda path: Path(path).read_bytes(), choice, partition_type=kind)

        return work

    def theirs() -> object:
        return peer.fetch_manifest_entry(PyArrowFileIO())

    for case, choice in (
        ("decode-ten-columns", planned),
        ("decode-everything", EVERYTHING),
        ("decode-one-column", one),
    ):
        ours(choice)()
        our_time, their_time = interleave(ours(choice), theirs)
        yield Row(case, our_time, their_time, GOAL, _rates(count, our_time, their_time))


def _encoding(source: ManifestColumns, folder: str, count: int) -> Iterator[Row]:
    rows = peer_entries(source)
    values = [ManifestEntry(EntryStatus.ADDED, file) for file in source.files()]
    location = str(Path(folder) / "encoded.avro")

    def ours(what: ManifestColumns | list[ManifestEntry]) -> Callable[[], object]:
        return lambda: write_manifest(what, FORMAT, location, lambda path, data: Path(path).write_bytes(data))

    for case, what, goal in (("encode-columns", source, GOAL), ("encode-values", values, GOAL)):
        ours(what)()
        our_time, their_time = interleave(ours(what), lambda: peer_write(rows, location))
        yield Row(case, our_time, their_time, goal, _rates(count, our_time, their_time))


def _first_use(folder: str) -> list[Row]:
    """A first small read in a new process, with compiled kernels on disk; the limit is one second, not a peer."""
    small = str(Path(folder) / "small.avro")
    write_manifest(entries(100), FORMAT, small, lambda path, data: Path(path).write_bytes(data))
    ours = (
        "from pathlib import Path; from icefloe.manifests import decode_manifest; "
        f"decode_manifest(Path({small!r}).read_bytes(), 'm')"
    )
    theirs = (
        "from pyiceberg.io.pyarrow import PyArrowFileIO; from pyiceberg.manifest import ManifestFile; "
        f"ManifestFile.from_args(manifest_path={small!r}, partition_spec_id=0, sequence_number=3, added_snapshot_id=7)"
        ".fetch_manifest_entry(PyArrowFileIO())"
    )
    with tempfile.TemporaryDirectory() as cache:
        cold = fresh_process(ours, cache)
        fresh_process(theirs, cache)
        warm, peer = interleave(lambda: fresh_process(ours, cache), lambda: fresh_process(theirs, cache))
    note = f"a new process, imports included, against one second; cold, with all compiling: {cold:.3g} s; PyIceberg: {peer:.3g} s"
    return [Row("first-use", warm, 1.0, 1.0, note)]


def _rates(count: int, ours: float, theirs: float) -> str:
    return f"{count / ours:,.0f} entries/s against {count / theirs:,.0f}"
