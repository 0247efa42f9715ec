"""Statistics files that are written by the commit that names them: deleted with it if it certainly did not happen."""

from dataclasses import dataclass

from icefloe import errors, metadata as md, properties as props
from icefloe.commit.change import Change, Prepared, Workbench
from icefloe.commit.structure import StatisticsChange


def check_statistics_allowed(metadata: md.TableMetadata) -> None:
    """Fail if the table is encrypted: statistics hold values, which must not be stored in plain text."""
    if props.ENCRYPTION_KEY_ID.of(metadata.properties) is not None:
        raise errors.EncryptionError(
            "the table is encrypted; statistics files hold values, and the format has no safe place for their keys, so that none"
            " are written"
        )


@dataclass(frozen=True)
class WriteStatistics(Change):
    """One statistics file, of a table or of its partitions: its bytes at a location, and the entry that names it."""

    location: str
    data: bytes
    file: md.StatisticsFile | md.PartitionStatisticsFile

    def prepare(self, metadata: md.TableMetadata, bench: Workbench, /) -> Prepared:
        """Write the file once, and name it."""
        check_statistics_allowed(metadata)
        match self.file:
            case md.StatisticsFile() as file:
                change = StatisticsChange((file,))
            case md.PartitionStatisticsFile() as file:
                change = StatisticsChange(set_partition_files=(file,))
        prepared = change.prepare(metadata, bench)
        bench.remember(self.location, lambda: bench.write(self.location, self.data))
        return prepared
