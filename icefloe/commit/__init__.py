"""From intention to (updates, requirements): one module per operation, conflict checks, the retry loop."""

from icefloe.commit.added import FilesInput
from icefloe.commit.append import Append
from icefloe.commit.change import Change, Prepared
from icefloe.commit.change_set import ChangeSet
from icefloe.commit.cherry_pick import CherryPick
from icefloe.commit.clean_metadata import CleanMetadata
from icefloe.commit.committer import BeforeSwap, Committer, TableState
from icefloe.commit.create_branch import CreateBranch
from icefloe.commit.delete import DeletePlan, delete_where, plan_delete
from icefloe.commit.expire import Expire
from icefloe.commit.history import Isolation, Planned
from icefloe.commit.matching import FilterInput
from icefloe.commit.named_files import NamedInput
from icefloe.commit.outcome import Committed, Outcome, Rejected, Unknown
from icefloe.commit.overwrite import Overwrite
from icefloe.commit.producer import SnapshotChange, SnapshotOperation, Target
from icefloe.commit.refs import Retention
from icefloe.commit.replace_partitions import ReplacePartitions
from icefloe.commit.report import CommitCounts, CommitReport
from icefloe.commit.retry import Timing
from icefloe.commit.rewrite_files import RewriteFiles
from icefloe.commit.rewrite_manifests import RewriteManifests
from icefloe.commit.row_delta import RowDelta
from icefloe.commit.statistics import StatisticsChange
from icefloe.commit.structure import (
    GiveNameMapping,
    SendUpdates,
    SetLocation,
    SetProperties,
    SetSchema,
    SetSortOrder,
    SetSpec,
    UpgradeFormatVersion,
    schema_update,
    sort_order_update,
    spec_update,
)
from icefloe.commit.swap import check_committed, check_same_table, next_state, stale, superseded_metadata_files
from icefloe.commit.wap import WAP_BRANCH, target_of
from icefloe.commit.workbench import Caches, Workbench, metadata_folder
