"""From intention to (updates, requirements): one module per operation, conflict checks, the retry loop."""

from icefloe.commit.added import FilesInput
from icefloe.commit.append import Append
from icefloe.commit.change import Change, Prepared
from icefloe.commit.change_set import ChangeSet
from icefloe.commit.cherry_pick import CherryPick
from icefloe.commit.committer import Committer, TableState
from icefloe.commit.delete import DeletePlan, delete_where, plan_delete
from icefloe.commit.expire import Expire
from icefloe.commit.history import Isolation, Planned
from icefloe.commit.outcome import Committed, Outcome, Rejected, Unknown
from icefloe.commit.overwrite import Overwrite
from icefloe.commit.producer import SnapshotChange, Target
from icefloe.commit.refs import Retention
from icefloe.commit.replace_partitions import ReplacePartitions
from icefloe.commit.report import CommitCounts, CommitReport
from icefloe.commit.retry import Timing
from icefloe.commit.rewrite_files import RewriteFiles
from icefloe.commit.rewrite_manifests import RewriteManifests
from icefloe.commit.row_delta import RowDelta
from icefloe.commit.statistics import StatisticsChange
from icefloe.commit.structure import (
    SendUpdates,
    SetLocation,
    SetProperties,
    SetSchema,
    SetSortOrder,
    SetSpec,
    UpgradeFormatVersion,
)
from icefloe.commit.swap import check_committed, check_same_table, next_state, superseded_metadata_files
from icefloe.commit.workbench import Caches, Workbench

__all__ = [
    "Append",
    "Caches",
    "Change",
    "ChangeSet",
    "CherryPick",
    "CommitCounts",
    "CommitReport",
    "Committed",
    "Committer",
    "DeletePlan",
    "Expire",
    "FilesInput",
    "Isolation",
    "Outcome",
    "Overwrite",
    "Planned",
    "Prepared",
    "Rejected",
    "ReplacePartitions",
    "Retention",
    "RewriteFiles",
    "RewriteManifests",
    "RowDelta",
    "SendUpdates",
    "SetLocation",
    "SetProperties",
    "SetSchema",
    "SetSortOrder",
    "SetSpec",
    "SnapshotChange",
    "StatisticsChange",
    "TableState",
    "Target",
    "Timing",
    "Unknown",
    "UpgradeFormatVersion",
    "Workbench",
    "check_committed",
    "check_same_table",
    "delete_where",
    "next_state",
    "plan_delete",
    "superseded_metadata_files",
]
