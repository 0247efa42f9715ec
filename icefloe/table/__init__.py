"""The table handle, with its scans and transactions."""

from icefloe.table.diff import ColumnChange, TableDiff
from icefloe.table.handle import Table
from icefloe.table.manage_snapshots import ManageSnapshots
from icefloe.table.scan import ChangesScan, DataScan
from icefloe.table.transaction import Transaction
