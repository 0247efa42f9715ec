"""By which columns the files of a scan are partitioned, told to Spark's planner (icefloe/spark/jvm/partition_groups.java).

Rows that are alike in a column are in files that are alike in every partition field of that column, so tasks that read all files of
a value need no exchange. Only fields count that every file has: a table may have been partitioned otherwise before.
"""

from collections.abc import Iterator, Mapping, Sequence

from icefloe.metadata import TableMetadata
from icefloe.partitioning import PartitionField, transforms as tr
from icefloe.planning import FileScanTask
from icefloe.schema import NestedField, types
from icefloe.spark.directories import hadoop_location
from icefloe.spark.metadata_answers import is_alike

_NOT_COUNTED = (tr.VoidTransform, tr.UnknownTransform)
_ORDERED_ALIKE = (
    types.IntegerType,
    types.LongType,
    types.DecimalType,
    types.DateType,
    types.TimestampType,
    types.TimestamptzType,
    types.StringType,
)
"""Spark sorts these as the spec has it."""
_WITHOUT_ORDER = (types.FloatType, types.DoubleType)
"""Spark joins zeros of both signs, which are different partitions."""


def groups_of(tasks: Sequence[FileScanTask], metadata: TableMetadata, columns: Mapping[str, NestedField]) -> str | None:
    """How many fields there are, column and transform of each; by how many columns each file is sorted, each with its direction and
    where nulls are; and for each file its location, its size and its values.

    Args:
        tasks: the files.
        metadata: the table that they are of.
        columns: those of the scan, under the names that it has for them.
    """
    names = {field.field_id: name for name, field in columns.items() if _is_usable(field, metadata)}
    places = _places(tasks, metadata, names)
    if not places:
        return None
    texts = [str(len(places))]
    for field in places:
        source = names[field.source_id]
        texts += source, f"{field.transform} of {columns[source].field_type}"
    order = list(_order(tasks, metadata, {field_id: columns[name] for field_id, name in names.items()}))
    texts += str(len(order)), *(text for column in order for text in column)
    for task in tasks:
        values = (task.partition[of_spec[task.spec_id]] for of_spec in places.values())
        texts += hadoop_location(task.file.file_path), str(task.file.file_size_in_bytes), *map(repr, values)
    return "\0".join(texts)


def _is_usable(field: NestedField, metadata: TableMetadata) -> bool:
    """Whether equal values of a column are in equal partitions, whenever they were written."""
    if not isinstance(field.field_type, types.PrimitiveType) or isinstance(field.field_type, _WITHOUT_ORDER):
        return False
    written = (schema.fields_by_id.get(field.field_id) for schema in metadata.schemas)
    return all(before is None or is_alike(before.field_type, field.field_type) for before in written)


def _places(
    tasks: Sequence[FileScanTask], metadata: TableMetadata, names: Mapping[int, str]
) -> dict[PartitionField, dict[int, int]]:
    """The fields that all files have, and where in the partitions of each spec."""
    specs = [metadata.specs_by_id[spec_id] for spec_id in sorted({task.spec_id for task in tasks})]
    found: dict[PartitionField, dict[int, int]] = {}
    for field in _counted(specs[-1].fields, names) if specs else ():
        of_specs = {
            spec.spec_id: place for spec in specs for place, other in enumerate(spec.fields) if other.same_values(field)
        }
        if len(of_specs) == len(specs):
            found[field] = of_specs
    return found


def _counted(fields: Sequence[PartitionField], names: Mapping[int, str]) -> Iterator[PartitionField]:
    for field in fields:
        if len(field.source_ids) == 1 and field.source_id in names and not isinstance(field.transform, _NOT_COUNTED):
            yield field


def _order(
    tasks: Sequence[FileScanTask], metadata: TableMetadata, columns: Mapping[int, NestedField]
) -> Iterator[tuple[str, str, str]]:
    """By which columns each file is sorted, as its writer said, as far as Spark has the same order."""
    ids = {task.file.sort_order_id for task in tasks}
    order = metadata.sort_orders_by_id.get(ids.pop() or 0) if len(ids) == 1 else None
    for field in () if order is None else order.fields:
        column = columns.get(field.source_id)
        is_plain = isinstance(field.transform, tr.IdentityTransform) and len(field.source_ids) == 1
        if column is None or not is_plain or not isinstance(column.field_type, _ORDERED_ALIKE):
            return
        yield column.name, field.direction.value, field.null_order.value
