"""Large manifests decoded by several threads: the same columns, and the same errors, as by one."""

import pytest

from icefloe.avro import open_container
from icefloe.errors import CorruptFileError
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    ManifestColumns,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    read_manifest,
    write_manifest,
)
from icefloe.partitioning import parse_partition_spec
from icefloe.schema import NestedField, Schema
from icefloe.schema.types import LongType, StringType
from icefloe.versions import ALL_VERSIONS

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "region", StringType()))
SPEC = parse_partition_spec(["region"], SCHEMA)


def written(version: int, rows: int) -> tuple[ManifestFile, dict[str, bytes]]:
    """A manifest with lists, maps and nulls in some of its rows."""
    files: dict[str, bytes] = {}
    entries = [
        ManifestEntry(
            EntryStatus.ADDED,
            DataFile(
                f"s3://b/data/{number}.parquet",
                "parquet",
                number % 7,
                number,
                partition=("eu" if number % 3 else None,),
                value_counts={1: number % 5, 2: 3} if number % 2 else {},
                lower_bounds={1: number.to_bytes(8, "little")} if number % 4 else {},
                split_offsets=(4, number + 5) if number % 5 else None,
            ),
            7,
        )
        for number in range(rows)
    ]
    manifest = write_manifest(entries, ManifestFormat(version, SCHEMA, SPEC, 7), "s3://b/m.avro", files.__setitem__)
    return manifest, files


def shown(columns: ManifestColumns) -> list[ManifestEntry]:
    return list(columns.entries())


@pytest.mark.parametrize("threads", [2, 64])
@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_threads_change_nothing(version: int, threads: int) -> None:
    manifest, files = written(version, 4500)
    one, several = (read_manifest(manifest, files.__getitem__, threads=each) for each in (1, threads))
    assert shown(several) == shown(one)


def test_errors_name_the_block_of_the_file() -> None:
    manifest, files = written(2, 9000)
    (place,) = files
    blocks = open_container(files[place], place).blocks
    assert len(blocks) > 2
    spoiled = bytearray(files[place])
    spoiled[int(blocks[-1, 1])] = 0xFF
    files[place] = bytes(spoiled)
    for threads in (1, 3):
        with pytest.raises(CorruptFileError, match=f"block {len(blocks) - 1} at byte"):
            read_manifest(manifest, files.__getitem__, threads=threads)
