"""The metadata columns of the spec."""

import pytest

from icefloe.schema import MAX_COLUMN_ID, NestedField, StructType, reserved
from icefloe.schema.types import LongType

# spec: Reserved Field IDs
TABLE = """2147483646 _file string
2147483645 _pos long
2147483644 _deleted boolean
2147483643 _spec_id int
2147483546 file_path string
2147483545 pos long
2147483543 _change_type string
2147483542 _change_ordinal int
2147483541 _commit_snapshot_id long
2147483540 _row_id long
2147483539 _last_updated_sequence_number long"""


def test_ids_names_and_types() -> None:
    fields = [value for value in vars(reserved).values() if isinstance(value, NestedField)]
    assert "\n".join(f"{field.field_id} {field.name} {field.field_type}" for field in fields) == TABLE
    assert all(reserved.is_reserved_id(field.field_id) for field in fields)


def test_structs_depend_on_the_table() -> None:
    kind = StructType(NestedField(1000, "p", LongType()))
    assert reserved.partition_column(kind) == NestedField(2147483642, "_partition", kind, False, "Partition of the row")
    assert reserved.deleted_row_column(kind).field_id == 2147483544
    assert reserved.deleted_row_column(kind).name == "row"


@pytest.mark.parametrize("name", reserved.METADATA_COLUMN_NAMES)
def test_lookup(name: str) -> None:
    field = reserved.metadata_column(name)
    assert field is not None
    assert field.name == name


def test_lookup_of_others() -> None:
    kind = StructType(NestedField(1000, "p", LongType()))
    assert reserved.metadata_column("_partition", kind) == reserved.partition_column(kind)
    for name in ("file_path", "pos", "row", "id", "_FILE"):
        assert reserved.metadata_column(name) is None


def test_where_reserved_ids_begin() -> None:
    assert not reserved.is_reserved_id(MAX_COLUMN_ID)
    assert reserved.is_reserved_id(MAX_COLUMN_ID + 1)
