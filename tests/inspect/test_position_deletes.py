"""The table of position deletes has a row for each deleted row, from files of all formats and from deletion vectors."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from icefloe.errors import CorruptFileError, StorageError
from icefloe.formats.deletion_vector_codec import write_deletion_vectors
from icefloe.formats.deletion_vectors import DeletionVector
from icefloe.formats.file_formats import DATA_FORMATS, writer_of
from icefloe.formats.position_deletes import POSITION_DELETE_SCHEMA, write_position_deletes
from icefloe.inspect import Inspect, position_deletes
from icefloe.manifests import DataFile, FileContent
from icefloe.partitioning import parse_partition_spec
from icefloe.schema import NestedField, Schema, reserved, schema_to_arrow
from icefloe.schema.types import LongType, StringType
from icefloe.storage import Storage
from icefloe.versions import ALL_VERSIONS, Feature, allows
from tests.peers.tables import as_delete, data_file
from tests.planning.tables import SyntheticTable

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
BY_ID = parse_partition_spec("id", SCHEMA)
WITH_FILES = [version for version in ALL_VERSIONS if allows(version, Feature.DELETE_FILES)]
WITH_VECTORS = [version for version in ALL_VERSIONS if allows(version, Feature.DELETION_VECTORS)]


def inspect(table: SyntheticTable, storage: Storage | None = None) -> Inspect:
    return Inspect(table.metadata, storage or table.storage)


def made(version: int = 2) -> tuple[SyntheticTable, list[DataFile]]:
    """A table of three data files, of the version, or of one that is to be upgraded."""
    table = SyntheticTable(SCHEMA, version, BY_ID)
    files = [table.data([{1: number, 2: "x"}] * 5) for number in range(3)]
    table.add(*files)
    return table, files


def upgraded(table: SyntheticTable, version: int) -> None:
    """Newer versions keep the position delete files that they find, and take no new ones."""
    if version > table.metadata.format_version:
        table.upgrade(version)


def deletes(
    table: SyntheticTable, like: DataFile, hits: Mapping[str, list[int]], file_format: str = "parquet"
) -> DataFile:
    path = table.path(f"deletes.{file_format}")
    with table.storage.open_output(path) as sink:
        done = write_position_deletes(sink, hits, 2, file_format)
    made_file = data_file(path, file_format, done.file, partition=like.partition)
    return as_delete(made_file, FileContent.POSITION_DELETES, referenced_data_file=done.referenced_data_file)


def vectors(table: SyntheticTable, hits: Mapping[DataFile, list[int]]) -> list[DataFile]:
    path = table.path("puffin")
    by_path = {file.file_path: file for file in hits}
    content, stored = write_deletion_vectors(
        {file.file_path: DeletionVector.from_positions(found) for file, found in hits.items()}
    )
    table.storage.write(path, content)
    return [
        DataFile(
            path,
            "puffin",
            each.cardinality,
            len(content),
            FileContent.POSITION_DELETES,
            0,
            by_path[each.referenced_data_file].partition,
            referenced_data_file=each.referenced_data_file,
            content_offset=each.offset,
            content_size_in_bytes=each.length,
        )
        for each in stored
    ]


def _hits(found: Any) -> list[tuple[str, int, int, str]]:
    return sorted(
        (each["file_path"], each["pos"], each["partition"]["id"], each["delete_file_path"])
        for each in found.to_pylist()
    )


@pytest.mark.parametrize("file_format", DATA_FORMATS)
@pytest.mark.parametrize("version", WITH_FILES)
def test_files_of_every_format_are_read(version: int, file_format: str) -> None:
    table, files = made()
    first = deletes(table, files[0], {files[0].file_path: [4, 1]}, file_format)
    other = deletes(table, files[1], {files[1].file_path: [0], files[2].file_path: [2, 3]}, file_format)
    equality = table.equality((1,), [(1,)], 0, files[1].partition)
    table.add(first, other, equality)
    upgraded(table, version)
    found = inspect(table).position_deletes()
    assert _hits(found) == [
        (files[0].file_path, 1, 0, first.file_path),
        (files[0].file_path, 4, 0, first.file_path),
        (files[1].file_path, 0, 1, other.file_path),
        (files[2].file_path, 2, 1, other.file_path),
        (files[2].file_path, 3, 1, other.file_path),
    ]
    assert set(found.column("spec_id").to_pylist()) == {0}
    assert found.column("row").null_count == 5
    table.add(removed=[first])
    assert inspect(table).position_deletes().num_rows == 3
    assert inspect(table).position_deletes(table.metadata.snapshots[1].snapshot_id).num_rows == 5


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_vectors_are_read(version: int) -> None:
    table, files = made()
    table.add(old := deletes(table, files[2], {files[2].file_path: [3]}))
    upgraded(table, version)
    table.add(*vectors(table, {files[0]: [0, 4], files[1]: [2]}))
    [one, *_] = (each for each in table.live() if each.data_file.referenced_data_file == files[0].file_path)
    found = inspect(table).position_deletes()
    place = one.data_file.file_path
    assert _hits(found) == [
        (files[0].file_path, 0, 0, place),
        (files[0].file_path, 4, 0, place),
        (files[1].file_path, 2, 1, place),
        (files[2].file_path, 3, 2, old.file_path),
    ]
    rows = found.filter(pa.compute.equal(found.column("file_path"), files[0].file_path)).to_pylist()
    assert [(each["content_offset"], each["content_size_in_bytes"]) for each in rows] == [
        (one.data_file.content_offset, one.data_file.content_size_in_bytes)
    ] * 2


def test_deleted_rows_are_shown_where_files_hold_them() -> None:
    table, files = made()
    schema = Schema(*POSITION_DELETE_SCHEMA.fields, reserved.deleted_row_column(table.schema.as_struct))
    path = table.path("deletes.parquet")
    rows = [{"file_path": files[0].file_path, "pos": 1, "row": {"id": 0, "name": "x"}}]
    with table.storage.open_output(path) as sink:
        writer = writer_of("parquet")(sink, schema)
        writer.write(pa.Table.from_pylist(rows, schema_to_arrow(schema)))
        done = writer.close()
    held = as_delete(data_file(path, "parquet", done, partition=(0,)), FileContent.POSITION_DELETES)
    table.add(held, deletes(table, files[1], {files[1].file_path: [2]}))
    found = inspect(table).position_deletes(selected_fields=("pos", "row")).to_pylist()
    assert sorted(found, key=lambda each: each["pos"]) == [
        {"pos": 1, "row": {"id": 0, "name": "x"}},
        {"pos": 2, "row": None},
    ]
    assert inspect(table).position_deletes(row_filter="row.name = 'x'").num_rows == 1
    assert inspect(table).position_deletes(selected_fields=("row.name",)).to_pylist()[0] in (
        {"row": {"name": "x"}},
        {"row": None},
    )


@pytest.mark.parametrize("version", WITH_FILES)
def test_files_that_cannot_match_are_not_opened(version: int) -> None:
    table, files = made(version)
    if allows(version, Feature.DELETION_VECTORS):
        added = [vectors(table, {file: [place]})[0] for place, file in enumerate(files)]
    else:
        added = [deletes(table, file, {file.file_path: [place]}) for place, file in enumerate(files)]
    table.add(*added)
    table.storage.delete([added[1].file_path, added[2].file_path])
    shown = inspect(table)
    for text in (
        "partition.id = 0",
        f"delete_file_path = '{added[0].file_path}'",
        "partition.id < 1 and pos = 0",
        *([f"file_path = '{files[0].file_path}'"] if not allows(version, Feature.RELATIVE_PATHS) else []),
        *([f"content_offset = {added[0].content_offset} and partition.id = 0"] if added[0].content_offset else []),
    ):
        assert _hits(shown.position_deletes(row_filter=text)) == [(files[0].file_path, 0, 0, added[0].file_path)], text
    assert shown.position_deletes(row_filter="spec_id = 1").num_rows == 0
    with pytest.raises(StorageError, match=str(table.metadata.current_snapshot_id)):
        shown.position_deletes()


def test_large_files_are_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_deletes, "_SMALL_ROWS", 10)
    monkeypatch.setattr(position_deletes, "_BATCH_ROWS", 7)
    table, files = made()
    table.add(deletes(table, files[0], {files[0].file_path: list(range(100))}))
    stream = inspect(table).scan("position_deletes").to_arrow_batch_reader()
    batches = list(stream)
    assert len(batches) > 1
    assert [pos for batch in batches for pos in batch.column("pos").to_pylist()] == list(range(100))


def test_files_that_cannot_be_read_are_named() -> None:
    table, files = made(3)
    [vector] = vectors(table, {files[0]: [1]})
    lost = DataFile(
        vector.file_path,
        "puffin",
        1,
        vector.file_size_in_bytes,
        FileContent.POSITION_DELETES,
        0,
        files[0].partition,
        referenced_data_file=files[0].file_path,
        content_offset=vector.content_offset,
        content_size_in_bytes=7,
    )
    table.add(lost)
    with pytest.raises(CorruptFileError, match=str(table.metadata.current_snapshot_id)) as broken:
        inspect(table).position_deletes()
    assert broken.value.location == vector.file_path
    table, files = made()
    written = deletes(table, files[0], {files[0].file_path: [1]})
    table.add(as_delete(written, FileContent.POSITION_DELETES, key_metadata=b"k"))
    with pytest.raises(CorruptFileError, match="key metadata"):
        inspect(table).position_deletes()
