"""From intention to (updates, requirements): one module per operation, conflict checks, the retry loop."""

from icefloe.commit.added import FilesInput, vector_mask
from icefloe.commit.append import Append
from icefloe.commit.change import Caches, Change, Prepared, PreparedChanges, Timing, Workbench, now_ms
from icefloe.commit.change_set import ChangeSet
from icefloe.commit.cherry_pick import CherryPick
from icefloe.commit.committer import (
    BeforeSwap,
    Committer,
    CurrentState,
    Surroundings,
    TableState,
    check_same_table,
    stale,
)
from icefloe.commit.conflicts import Isolation, Planned
from icefloe.commit.delete_replacement import (
    DeleteReplacement,
    DeleteSwap,
    FileSwap,
    NewVector,
    Replaced,
    ReplaceDeletes,
    Unneeded,
    nothing_unneeded,
)
from icefloe.commit.expire import CleanMetadata, DropSnapshots, Expire, check_collectable
from icefloe.commit.group import Part, commit_together
from icefloe.commit.manifest_groups import ManifestChoice, ManifestGroup, groups_to_rewrite, outdated_manifests
from icefloe.commit.matching import FilterInput, RowFilter
from icefloe.commit.named_files import NamedDeletes, NamedInput
from icefloe.commit.new_manifests import concat_entries
from icefloe.commit.outcome import Committed, Outcome, Rejected, Unknown, result_of
from icefloe.commit.overwrite import Overwrite
from icefloe.commit.ownership import Ownership, delete_own, delete_quietly, note_foreign
from icefloe.commit.parent import Parent
from icefloe.commit.partitions import PartitionSet
from icefloe.commit.producer import WAP_BRANCH, SnapshotChange, SnapshotOperation, Target, target_of
from icefloe.commit.refs import CreateBranch, Retention
from icefloe.commit.repair_entries import Fix, Fixed, RepairEntries, read_live
from icefloe.commit.replace_partitions import ReplacePartitions
from icefloe.commit.report import CommitCounts, CommitReport
from icefloe.commit.retry import CommitLoop
from icefloe.commit.rewrite_files import RewriteFiles
from icefloe.commit.rewrite_manifests import RewriteManifests
from icefloe.commit.row_delta import RowDelta
from icefloe.commit.statistics import WriteStatistics, check_partition_statistics_allowed
from icefloe.commit.structure import SendUpdates, SetLocation, StatisticsChange, check_relative_files
from icefloe.commit.vectors import vector_paths
from icefloe.commit.writable import check_writable
