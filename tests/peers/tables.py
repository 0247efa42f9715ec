"""Whole tables on the local disk, put together from the rooms of the files floor, for peers to read."""

import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.manifests import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    encode_manifest_list,
    read_manifest_list,
    write_manifest,
)
from icefloe.metadata import (
    MAIN_BRANCH,
    Snapshot,
    TableMetadata,
    apply_all,
    branch,
    encode_metadata_file,
    new_table_metadata,
    updates as up,
)
from icefloe.metadata.snapshot import Summary
from icefloe.partitioning import UNPARTITIONED, PartitionSpec
from icefloe.schema import Schema
from icefloe.storage import Storage
from icefloe.versions import Feature, allows


class HandmadeTable:
    """A table whose snapshots are made step by step, without a catalog: what a commit does, spelled out."""

    def __init__(
        self,
        folder: Path,
        schema: Schema,
        version: int,
        spec: PartitionSpec = UNPARTITIONED,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.storage = Storage()
        self.location = folder.as_uri()
        self.metadata = new_table_metadata(
            schema,
            spec,
            location=self.location,
            properties=properties,
            format_version=version,
            uuid=uuid.uuid4(),
            timestamp_ms=_now(),
        )
        self.manifests: tuple[ManifestFile, ...] = ()
        self._versions = 0

    @property
    def schema(self) -> Schema:
        return self.metadata.schema()

    def write_data(self, rows: Any, partition: tuple[Any, ...] = ()) -> DataFile:
        """A Parquet data file of the table's columns."""
        path = f"{self.location}/data/{uuid.uuid4()}.parquet"
        with self.storage.open_output(path) as sink:
            writer = ParquetFileWriter(sink, self.schema, self.metadata.properties)
            writer.write(rows)
            done = writer.close()
        return data_file(path, "parquet", done, partition=partition, spec_id=self.metadata.default_spec_id)

    def commit(self, added: Iterable[DataFile], operation: str = "append") -> TableMetadata:
        """A snapshot with the files added to what is there; one manifest for data, one for deletes."""
        version, snapshot_id = self.metadata.format_version, uuid.uuid4().int >> 66
        files = list(added)
        for content in ManifestContent:
            is_delete = content is ManifestContent.DELETES
            chosen = [file for file in files if (file.content is not FileContent.DATA) == is_delete]
            if chosen:
                form = ManifestFormat(version, self.schema, self.metadata.spec(), snapshot_id, content)
                entries = [ManifestEntry(EntryStatus.ADDED, file, snapshot_id) for file in chosen]
                place = f"{self.location}/metadata/{uuid.uuid4()}-m0.avro"
                self.manifests = (*self.manifests, write_manifest(entries, form, place, self.storage.write))
        snapshot = self._snapshot(snapshot_id, operation)
        ref = up.SetSnapshotRefUpdate(MAIN_BRANCH, branch(snapshot_id))
        self.metadata = apply_all(self.metadata, [up.AddSnapshotUpdate(snapshot), ref], _now())
        return self.metadata

    def _snapshot(self, snapshot_id: int, operation: str) -> Snapshot:
        version, parent = self.metadata.format_version, self.metadata.current_snapshot_id
        sequence_number = self.metadata.last_sequence_number + 1 if allows(version, Feature.SEQUENCE_NUMBERS) else 0
        place = f"{self.location}/metadata/snap-{snapshot_id}-1-{uuid.uuid4()}.avro"
        first_row_id = self.metadata.next_row_id if allows(version, Feature.ROW_LINEAGE) else None
        listed = encode_manifest_list(
            self.manifests,
            version,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent,
            sequence_number=sequence_number,
            first_row_id=first_row_id,
        )
        self.storage.write(place, listed.data)
        self.manifests = read_manifest_list(place, self.storage.read)
        return Snapshot(
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent,
            sequence_number=sequence_number,
            timestamp_ms=_now(),
            manifest_list=place,
            summary=Summary(operation),
            schema_id=self.metadata.current_schema_id,
            first_row_id=first_row_id,
            added_rows=listed.added_rows,
        )

    def save(self) -> str:
        """Write the metadata file and say where."""
        self._versions += 1
        place = f"{self.location}/metadata/{self._versions:05d}-{uuid.uuid4()}.metadata.json"
        self.storage.write(place, encode_metadata_file(self.metadata))
        return place


def data_file(path: str, file_format: str, done: Any, **fields: Any) -> DataFile:
    """The entry of a file that was just written."""
    metrics = done.metrics
    return DataFile(
        path,
        file_format,
        metrics.record_count,
        done.file_size_in_bytes,
        column_sizes=metrics.column_sizes,
        value_counts=metrics.value_counts,
        null_value_counts=metrics.null_value_counts,
        nan_value_counts=metrics.nan_value_counts,
        lower_bounds=metrics.lower_bounds,
        upper_bounds=metrics.upper_bounds,
        split_offsets=done.split_offsets,
        **fields,
    )


def as_delete(file: DataFile, content: FileContent, **fields: Any) -> DataFile:
    """The same file as a delete file."""
    return replace(file, content=content, **fields)


def _now() -> int:
    return time.time_ns() // 1_000_000
