"""Real tables to be damaged: made by our operations, then changed behind their back, one thing at a time."""

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

import icefloe
from icefloe.data import data_file_of
from icefloe.formats.parquet.writer import ParquetFileWriter
from icefloe.manifests import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    ManifestFormat,
    decode_manifest,
    encode_manifest_list,
    read_manifest_list,
    write_manifest,
)
from icefloe.metadata import Snapshot, TableMetadata, resolve_location
from icefloe.storage import Storage
from icefloe.table import Table
from icefloe.verification import Level, VerificationReport, silent, verify
from icefloe.versions import Feature, allows
from tests.shared_rows import row_modes

REGIONS = ("eu", "us")


def create(version: int, **properties: str) -> Table:
    """An empty table in memory, partitioned by region."""
    catalog = icefloe.load_catalog("lake", type="memory", warehouse=f"memory://verification/{uuid.uuid4()}")
    catalog.create_namespace("db")
    modes = row_modes("merge-on-read")
    return catalog.create_table(
        "db.t",
        "id long not null, region string, price double",
        partition_spec=["region"],
        properties={"format-version": str(version), **modes, **properties},
    )


def rows(*ids: int, region: str | None = None) -> Any:
    """Rows of both regions by turns, or of one."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "region": [region or REGIONS[each % 2] for each in ids],
            "price": [None if each % 5 == 0 else float("nan") if each % 5 == 1 else each / 2 for each in ids],
        }
    )


def filled(version: int) -> Table:
    """A table with four data files in two snapshots, and deletes of two of them where the version has deletes."""
    table = create(version)
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20)))
    if allows(version, Feature.DELETE_FILES):
        table.delete("id in (12, 13)")
    return table


@dataclass
class Damaged:
    """A table that is about to be damaged."""

    metadata: TableMetadata
    storage: Storage
    metadata_location: str | None

    @classmethod
    def of(cls, table: Table) -> "Damaged":
        return cls(table.metadata, table.storage, table.metadata_location)

    def verify(self, level: str = Level.DATA, **options: Any) -> VerificationReport:
        return verify(
            self.metadata, self.storage, self.metadata_location, level=level, progress=silent, workers=2, **options
        )

    @property
    def version(self) -> int:
        return self.metadata.format_version

    def snapshot(self) -> Snapshot:
        found = self.metadata.current_snapshot()
        assert found is not None
        return found

    def change_snapshot(self, snapshot_id: int, **changes: Any) -> None:
        """Another value in a snapshot of the metadata."""
        snapshots = tuple(
            replace(each, **changes) if each.snapshot_id == snapshot_id else each for each in self.metadata.snapshots
        )
        self.metadata = self.metadata.evolve(snapshots=snapshots)

    def forget_totals(self) -> None:
        """Summaries without counts."""
        for each in self.metadata.snapshots:
            assert each.summary is not None
            self.change_snapshot(each.snapshot_id, summary=replace(each.summary, properties={}))

    # -- manifests

    def _resolved(self, location: str) -> str:
        if allows(self.version, Feature.RELATIVE_PATHS):
            return resolve_location(self.metadata.location, location)
        return location

    def list_location(self) -> str:
        return self._resolved(str(self.snapshot().manifest_list))

    def manifests(self, content: ManifestContent | None = None) -> list[ManifestFile]:
        found = read_manifest_list(self.list_location(), self.storage.read, table_location=self.metadata.location)
        return [each for each in found if content in (None, each.content)]

    def change_list(self, change: Callable[[ManifestFile], ManifestFile]) -> None:
        """The manifest list of the current snapshot with something else in it, under the same name."""
        snapshot = self.snapshot()
        listed = encode_manifest_list(
            [change(each) for each in self.manifests()],
            self.version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=snapshot.first_row_id,
        )
        self.storage.write(self.list_location(), listed.data)

    def change_entries(
        self, wanted: ManifestFile, change: Callable[[list[ManifestEntry]], Iterable[ManifestEntry]]
    ) -> None:
        """A manifest with something else in its entries, under the same name; its list follows."""
        spec = self.metadata.spec(wanted.partition_spec_id)
        form = ManifestFormat(
            self.version,
            self.metadata.schema(),
            spec,
            wanted.added_snapshot_id,
            wanted.content,
            table_location=self.metadata.location,
        )
        stored = decode_manifest(
            self.storage.read(wanted.manifest_path),
            wanted.manifest_path,
            partition_type=form.partition_type,
            spec_id=spec.spec_id,
        )
        entries = list(stored.resolved(self.metadata.location).entries())
        made = write_manifest(list(change(entries)), form, wanted.manifest_path, self.storage.write)
        number = made.min_sequence_number if made.min_sequence_number >= 0 else wanted.min_sequence_number
        made = replace(
            made,
            sequence_number=wanted.sequence_number,
            min_sequence_number=number,
            first_row_id=wanted.first_row_id,
        )
        self.change_list(lambda each: made if each == wanted else each)

    def change_file(self, content: ManifestContent, change: Callable[[DataFile], DataFile], place: int = 0) -> None:
        """Something else about one file of the newest manifest of a kind."""

        def changed(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            entries[place] = replace(entries[place], data_file=change(entries[place].data_file))
            return entries

        self.change_entries(self.manifests(content)[0], changed)

    def data_file(self, place: int = 0) -> DataFile:
        return self.file(ManifestContent.DATA, place)

    def file(self, content: ManifestContent, place: int = 0) -> DataFile:
        """A file of the newest manifest of a kind."""
        found: list[DataFile] = []

        def keep(entries: list[ManifestEntry]) -> list[ManifestEntry]:
            found.extend(each.data_file for each in entries)
            return entries

        self.change_entries(self.manifests(content)[0], keep)
        return found[place]

    def write_rows(self, path: str, table: Any) -> DataFile:
        """A Parquet file with these rows, wherever it is, as an entry without metrics."""
        schema = self.metadata.schema()
        with self.storage.open_output(path) as sink:
            writer = ParquetFileWriter(sink, schema)
            writer.write(table)
            done = writer.close()
        made = data_file_of(done, path, "parquet", spec_id=self.metadata.default_spec_id)
        return replace(
            made,
            value_counts={},
            null_value_counts={},
            nan_value_counts={},
            lower_bounds={},
            upper_bounds={},
        )
