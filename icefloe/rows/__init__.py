"""Changes of rows: which rows they concern, whether files are rewritten or rows marked as deleted, and what is committed."""

from icefloe.rows.branch import Branch
from icefloe.rows.change import DELETE, MERGE, UPDATE, RowChange, Statement
from icefloe.rows.engines import InstalledEngine, engine_for, engine_named
from icefloe.rows.matching import MatchedRows
from icefloe.rows.operations import RowOperations
