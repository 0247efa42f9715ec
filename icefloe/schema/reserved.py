"""The metadata columns: fields with reserved ids that are not part of any table schema (spec: Reserved Field IDs)."""

from icefloe.schema import types
from icefloe.schema.schema import MAX_COLUMN_ID

FILE = types.NestedField(2147483646, "_file", types.StringType(), True, "Path of the file that holds the row")
POS = types.NestedField(2147483645, "_pos", types.LongType(), True, "Ordinal position of the row in its file, from 0")
DELETED = types.NestedField(2147483644, "_deleted", types.BooleanType(), True, "Whether the row is deleted")
SPEC_ID = types.NestedField(
    2147483643, "_spec_id", types.IntegerType(), True, "Partition spec of the file that holds the row"
)
PARTITION_ID = 2147483642
PARTITION_NAME = "_partition"

DELETE_FILE_PATH = types.NestedField(
    2147483546, "file_path", types.StringType(), True, "Path of the file with the deleted row"
)
DELETE_FILE_POS = types.NestedField(
    2147483545, "pos", types.LongType(), True, "Ordinal position of the deleted row in its file"
)
DELETE_FILE_ROW_ID = 2147483544
DELETE_FILE_ROW_NAME = "row"

CHANGE_TYPE = types.NestedField(
    2147483543, "_change_type", types.StringType(), True, "INSERT, DELETE, UPDATE_BEFORE or UPDATE_AFTER"
)
CHANGE_ORDINAL = types.NestedField(2147483542, "_change_ordinal", types.IntegerType(), False, "Order of the change")
COMMIT_SNAPSHOT_ID = types.NestedField(
    2147483541, "_commit_snapshot_id", types.LongType(), False, "Snapshot of the change"
)
ROW_ID = types.NestedField(
    2147483540, "_row_id", types.LongType(), False, "Id of the row that lasts for its whole life"
)
LAST_UPDATED_SEQUENCE_NUMBER = types.NestedField(
    2147483539,
    "_last_updated_sequence_number",
    types.LongType(),
    False,
    "Sequence number of the commit that last wrote the row",
)

ROW_LINEAGE_COLUMNS = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
"""The columns of row lineage, which data files may hold."""

_SELECTABLE = {
    field.name: field
    for field in (FILE, POS, DELETED, SPEC_ID, CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID, *ROW_LINEAGE_COLUMNS)
}

METADATA_COLUMN_NAMES = (*_SELECTABLE, PARTITION_NAME)
"""What a scan may select beside the columns of the table."""


def metadata_column(name: str, partition_type: types.StructType | None = None) -> types.NestedField | None:
    """The metadata column of that name that a scan may select; `_partition` is of the type given."""
    if name == PARTITION_NAME:
        return partition_column(partition_type or types.StructType())
    return _SELECTABLE.get(name)


def partition_column(partition_type: types.StructType) -> types.NestedField:
    """`_partition`, the partition of a row: the union of the partition types of all specs of its table."""
    return types.NestedField(PARTITION_ID, PARTITION_NAME, partition_type, False, "Partition of the row")


def deleted_row_column(row_type: types.StructType) -> types.NestedField:
    """`row`, the deleted row itself, which a position delete file may hold."""
    return types.NestedField(DELETE_FILE_ROW_ID, DELETE_FILE_ROW_NAME, row_type, False, "The deleted row")


def is_reserved_id(field_id: int) -> bool:
    """Whether the id is above those that columns of tables may have."""
    return field_id > MAX_COLUMN_ID
