"""What the metadata columns hold for the rows of a file (spec: Reserved Field IDs, Row Lineage)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefloe.data.opening import partition_by_field
from icefloe.errors import InvalidInputError
from icefloe.formats.projection import constant_array
from icefloe.metadata import TableMetadata
from icefloe.planning import FileScanTask
from icefloe.schema import NestedField, StructType, reserved, type_to_arrow


@dataclass(frozen=True, slots=True, eq=False)
class RowFacts:
    """What is known of rows beside their columns: their task, and what of positions, lineage and deletes was asked for."""

    task: FileScanTask
    rows: int
    positions: Any
    row_ids: Any
    sequence_numbers: Any
    deleted: npt.NDArray[np.bool_] | None


def metadata_array(field: NestedField, facts: RowFacts, metadata: TableMetadata) -> Any:
    """A metadata column of these rows."""
    task, rows = facts.task, facts.rows
    match field.field_id:
        case reserved.FILE.field_id:
            return constant_array(task.file.file_path, field.field_type, pa.string(), rows)
        case reserved.POS.field_id:
            return facts.positions
        case reserved.DELETED.field_id:
            return pa.array(np.zeros(rows, np.bool_) if facts.deleted is None else facts.deleted)
        case reserved.SPEC_ID.field_id:
            return constant_array(task.spec_id, field.field_type, pa.int32(), rows)
        case _ if field.field_id == reserved.PARTITION_ID and isinstance(field.field_type, StructType):
            return _partition(field.field_type, facts, metadata)
        case reserved.ROW_ID.field_id:
            return _row_ids(facts)
        case reserved.LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            return _sequence_numbers(facts)
        case _:
            raise InvalidInputError(f"the metadata column {field.name!r} is not known to a scan of files")


def _partition(kind: StructType, facts: RowFacts, metadata: TableMetadata) -> Any:
    """The partition as a struct of the fields of all specs; those that the file's spec lacks are null."""
    values = partition_by_field(facts.task.file, metadata.specs_by_id, kind.fields)
    return constant_array(tuple(values.items()), kind, type_to_arrow(kind), facts.rows)


def _row_ids(facts: RowFacts) -> Any:
    first = facts.task.first_row_id
    if first is None:
        return pa.nulls(facts.rows, pa.int64())
    return pc.coalesce(facts.row_ids, pc.add(facts.positions, first))


def _sequence_numbers(facts: RowFacts) -> Any:
    if facts.task.first_row_id is None:
        return pa.nulls(facts.rows, pa.int64())
    return pc.fill_null(facts.sequence_numbers, facts.task.sequence_number)
