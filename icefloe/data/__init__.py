"""From tasks to Arrow batches with deletes applied; from batches to data files."""

from icefloe.data.arranging import KeyMaker, OrderKeys, SortKey, group_rows, sort_by_keys
from icefloe.data.changes import (
    CHANGE_COLUMNS,
    by_ordinal,
    changes_to_arrow,
    changes_to_reader,
    compared_columns,
    read_change,
    several_rows,
    shown_columns,
)
from icefloe.data.external_sort import sorted_batches
from icefloe.data.file_rolling import data_file_of
from icefloe.data.foreign_files import ForeignFile, describe_files, find_files, foreign_file
from icefloe.data.foreign_tables import ForeignPartition, ForeignTable, check_folder, inferred_schema
from icefloe.data.in_order import in_pieces, read_in_order
from icefloe.data.incoming import RowsInput, incoming_tables, known_rows
from icefloe.data.layout import key_columns
from icefloe.data.locations import NewLocations, data_folder
from icefloe.data.new_files import NewFile
from icefloe.data.opening import partition_by_field, partition_constants
from icefloe.data.scanning import default_workers, read_pieces, rows_not_deleted_by_position
from icefloe.data.shaping import shape_table, write_default
from icefloe.data.task_deletes import DeleteLoader, new_delete_cache
from icefloe.data.task_reader import ReadContext, read_task
from icefloe.data.writing import AS_THE_TABLE_SAYS, FileForm, TableWriter, WriteRequest, write_data_files
