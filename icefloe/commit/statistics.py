"""Statistics files that are written by the commit that names them: deleted with it if it certainly did not happen.

Those of an encrypted table are encrypted: the sketches of columns, whose key the table's metadata has among its own, sealed. Files
of counts by partition are refused there, as the format gives them no place for a key.
"""

from dataclasses import dataclass, replace

from icefloe import errors, manifests as mf, metadata as md
from icefloe.commit.change import Change, Prepared, Workbench
from icefloe.commit.list_keys import key_entries
from icefloe.commit.structure import StatisticsChange
from icefloe.encryption import key_length_of, statistics_key_id
from icefloe.metadata import updates as up


def check_partition_statistics_allowed(metadata: md.TableMetadata) -> None:
    """Fail if the table is encrypted: the file has values of partitions, which must not be stored in plain text."""
    if key_length_of(metadata) is not None:
        raise errors.EncryptionError(
            "the table is encrypted; partition statistics contain values, and the format has no place for the key of their"
            " file, so none are written"
        )


@dataclass(frozen=True)
class WriteStatistics(Change):
    """One statistics file, of a table or of its partitions: its plain bytes, its location, and the entry that names it."""

    location: str
    data: bytes
    file: md.StatisticsFile | md.PartitionStatisticsFile

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """Write the file once, encrypted if the table is, and name it."""
        match self.file:
            case md.StatisticsFile() as file:
                return self._of_columns(file, metadata, bench)
            case md.PartitionStatisticsFile() as file:
                check_partition_statistics_allowed(metadata)
                return self._written(StatisticsChange(set_partition_files=(file,)), self.data, metadata, bench)

    def _of_columns(self, file: md.StatisticsFile, metadata: md.TableMetadata, bench: Workbench) -> Prepared:
        length = key_length_of(metadata)
        stored, key = bench.remember(("statistics", self.location), lambda: mf.sealed(self.data, length))
        if key is None:
            return self._written(StatisticsChange((file,)), stored, metadata, bench)
        key_id, keys = key_entries(metadata, bench, key)
        sealed = replace(file, file_size_in_bytes=len(stored), key_metadata=key_id.encode())
        named = self._written(StatisticsChange((sealed,)), stored, metadata, bench)
        before = (each for each in metadata.statistics if each.snapshot_id == file.snapshot_id)
        replaced = [known for each in before if (known := statistics_key_id(metadata, each)) is not None]
        added, removed = map(up.AddEncryptionKeyUpdate, keys), map(up.RemoveEncryptionKeyUpdate, replaced)
        return replace(named, updates=(*added, *named.updates, *removed))

    def _written(
        self, change: StatisticsChange, stored: bytes, metadata: md.TableMetadata, bench: Workbench
    ) -> Prepared:
        prepared = change.prepare(metadata, bench)
        bench.remember(self.location, lambda: bench.write(self.location, stored))
        return prepared
