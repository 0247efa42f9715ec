"""Manifests in Parquet, as the Java library writes them for v4, give the same columns as those in Avro."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st

from icefloe.errors import CorruptFileError, InvalidPropertyError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFormat,
    StatsForm,
    decode_manifest,
    wanted,
    write_manifest,
    write_manifests,
)
from icefloe.manifests.entry_codec import Stored, entry_type
from icefloe.partitioning import UNPARTITIONED, PartitionSpec
from icefloe.schema import NestedField, Schema, StructType, schema_to_arrow
from tests.manifests.entry_strategies import SNAPSHOT, data_files, entries, schema_for, spec_for
from tests.manifests.test_manifests import kept, normal, write


def parquet(rows: list[ManifestEntry], schema: Schema, spec: PartitionSpec) -> bytes:
    """The entries as a Parquet file, with the partition left out when there is none, as Java does."""
    form = ManifestFormat(4, schema, spec, SNAPSHOT, stats=StatsForm.MAPS)
    struct = entry_type(4, form.partition_type, Stored(True))
    if not form.partition_type.fields:
        struct = _without_partition(struct)
    names = [field.name for field in form.partition_type.fields]
    found = []
    for row in rows:
        file: dict[str, Any] = {
            field.name: getattr(row.data_file, field.name)
            for field in _file(struct).fields
            if field.name not in ("partition", "content_stats")
        }
        for name, value in file.items():
            if isinstance(value, dict):
                file[name] = list(value.items()) or None
        file["partition"] = dict(zip(names, map(_plain, row.data_file.partition), strict=True))
        found.append(
            {
                "status": int(row.status),
                "snapshot_id": row.snapshot_id,
                "sequence_number": row.sequence_number,
                "file_sequence_number": row.file_sequence_number,
                "data_file": file | {"content": int(row.data_file.content)},
            }
        )
    arrow = schema_to_arrow(Schema(*struct.fields))
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(found, schema=arrow), out)
    return bytes(out.getvalue())


def _plain(value: Any) -> Any:
    return getattr(value, "bytes", value)


def _file(struct: StructType) -> StructType:
    kind = struct.fields[-1].field_type
    assert isinstance(kind, StructType)
    return kind


def _without_partition(struct: StructType) -> StructType:
    last = struct.fields[-1]
    inner = StructType(*(field for field in _file(struct).fields if field.name != "partition"))
    return StructType(*struct.fields[:-1], NestedField(last.field_id, last.name, inner, True))


@given(st.lists(data_files(4, ManifestContent.DATA, False), min_size=1, max_size=3))
@settings(max_examples=30)
def test_parquet_manifests_are_read_as_avro_ones(files: list[DataFile]) -> None:
    rows = [ManifestEntry(EntryStatus.ADDED, file, SNAPSHOT) for file in files]
    columns = decode_manifest(parquet(rows, schema_for(4), UNPARTITIONED), "m")
    maps = ManifestFormat(4, schema_for(4), UNPARTITIONED, SNAPSHOT, stats=StatsForm.MAPS)
    assert [normal(entry) for entry in columns.entries()] == [normal(kept(entry, maps)) for entry in rows]
    few = decode_manifest(parquet(rows, schema_for(4), UNPARTITIONED), "m", wanted("file_path"))
    assert few.column("file_path").to_pylist() == [file.file_path for file in files]
    assert not few.metrics.maps


@st.composite
def manifests(draw: st.DrawFn) -> tuple[ManifestFormat, list[ManifestEntry]]:
    content, partitioned = draw(st.sampled_from(ManifestContent)), draw(st.booleans())
    spec = spec_for(schema_for(4)) if partitioned else UNPARTITIONED
    stats = draw(st.sampled_from(StatsForm))
    form = ManifestFormat(4, schema_for(4), spec, SNAPSHOT, content, stats=stats, container="parquet")
    return form, draw(st.lists(entries(4, content, partitioned), min_size=1, max_size=4))


@given(manifests())
@settings(max_examples=40)
def test_what_is_written_as_parquet_is_read(case: tuple[ManifestFormat, list[ManifestEntry]]) -> None:
    form, rows = case
    spec = form.spec
    manifest, stored = write(rows, form)
    assert stored[:4] == b"PAR1"
    columns = decode_manifest(stored, "m", partition_type=form.partition_type, spec_id=spec.spec_id)
    assert [normal(entry) for entry in columns.entries()] == [normal(kept(entry, form)) for entry in rows]
    assert manifest.manifest_length == len(stored)


def test_large_parquet_manifests_are_split() -> None:
    rows = [
        ManifestEntry(EntryStatus.ADDED, DataFile(f"s3://b/{hash(i)}-{i * 7919}", "parquet", i, i)) for i in range(400)
    ]
    form = ManifestFormat(4, schema_for(4), UNPARTITIONED, SNAPSHOT, container="parquet")
    files: dict[str, bytes] = {}
    names = iter(f"m{number}" for number in range(100))
    whole = len(write(rows, form)[1])
    made = write_manifests(rows, form, names, files.__setitem__, target_size=whole // 3)
    assert len(made) >= 3
    found = [entry for each in made for entry in decode_manifest(files[each.manifest_path], "m").entries()]
    assert [entry.data_file for entry in found] == [row.data_file for row in rows]
    with pytest.raises(InvalidPropertyError, match="codec"):
        write(rows, replace(form, codec="deflate"))


def test_partition_values_in_parquet() -> None:
    from datetime import date

    schema = schema_for(4)
    spec = PartitionSpec(*(field for field in spec_for(schema).fields if field.name in ("c3", "c8", "c12")))
    file = DataFile("s3://b/f", "parquet", 1, 1, partition=(5, date(2026, 1, 2), "é"))
    data = parquet([ManifestEntry(EntryStatus.ADDED, file, SNAPSHOT)], schema, spec)
    kind = ManifestFormat(4, schema, spec, SNAPSHOT).partition_type
    for found in (decode_manifest(data, "m", partition_type=kind), decode_manifest(data, "m")):
        assert found.file_at(0).partition == (5, 20455, "é")


def test_damaged_parquet_is_an_error_of_ours(tmp_path: Path) -> None:
    file = DataFile("s3://b/f", "parquet", 1, 1)
    data = parquet([ManifestEntry(EntryStatus.ADDED, file, SNAPSHOT)], schema_for(4), UNPARTITIONED)
    for bad in (data[:-5], b"PAR1", b"PAR1" + data[100:], data[:4] + bytes(50) + data[54:]):
        with pytest.raises(CorruptFileError):
            decode_manifest(bad, "m")
    out = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": [1]}), out)
    with pytest.raises(CorruptFileError, match="status"):
        decode_manifest(bytes(out.getvalue()), "m")
    avro = tmp_path / "m.avro"
    form = ManifestFormat(4, schema_for(4), UNPARTITIONED, SNAPSHOT)
    write_manifest([ManifestEntry(EntryStatus.ADDED, file)], form, str(avro), lambda p, d: Path(p).write_bytes(d))
    assert decode_manifest(avro.read_bytes(), "m").file_at(0) == file
