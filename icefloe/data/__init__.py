"""From tasks to Arrow batches with deletes applied; from batches to data files."""

from icefloe.data.engines import WriteRequest, engine_for, engine_named
from icefloe.data.file_rolling import data_file_of
from icefloe.data.foreign_files import ForeignFile, describe_files, find_files, foreign_file
from icefloe.data.grouping import group_rows
from icefloe.data.incoming import incoming_tables
from icefloe.data.locations import data_folder
from icefloe.data.matching import MatchedRows, find_matching_rows, matched_rows
from icefloe.data.opening import open_file, partition_by_field, partition_constants
from icefloe.data.row_changes import RowChanges, rewrite_without, write_deletes
from icefloe.data.scanning import default_workers
from icefloe.data.shaping import shape_table, write_default
from icefloe.data.task_deletes import DeleteLoader
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.data.upserting import IncomingRows, find_key_matches, plan_upsert
from icefloe.data.writing import TableWriter, write_data_files
