"""Changes of which statistics files a table names; at most one of each kind for a snapshot."""

from dataclasses import dataclass

from icefloe.commit.change import Prepared
from icefloe.commit.workbench import Workbench
from icefloe.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata, updates as up


@dataclass(frozen=True)
class StatisticsChange:
    """Statistics files set and removed; a file can only be set for a snapshot that the table has."""

    set_files: tuple[StatisticsFile, ...] = ()
    set_partition_files: tuple[PartitionStatisticsFile, ...] = ()
    remove_for: tuple[int, ...] = ()
    remove_partition_for: tuple[int, ...] = ()

    @property
    def snapshot_ids(self) -> tuple[int, ...]:
        """None."""
        return ()

    def prepare(self, metadata: TableMetadata, _: Workbench, /) -> Prepared:
        """What is not so already."""
        updates: list[up.TableUpdate] = []
        for file in self.set_files:
            metadata.snapshot(file.snapshot_id)
            if file not in metadata.statistics:
                updates.append(up.SetStatisticsUpdate(file))
        for partition_file in self.set_partition_files:
            metadata.snapshot(partition_file.snapshot_id)
            if partition_file not in metadata.partition_statistics:
                updates.append(up.SetPartitionStatisticsUpdate(partition_file))
        held = {each.snapshot_id for each in metadata.statistics}
        updates += [up.RemoveStatisticsUpdate(each) for each in self.remove_for if each in held]
        held = {each.snapshot_id for each in metadata.partition_statistics}
        updates += [up.RemovePartitionStatisticsUpdate(each) for each in self.remove_partition_for if each in held]
        return Prepared(tuple(updates))
