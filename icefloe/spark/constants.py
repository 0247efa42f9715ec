"""Facts about a file that reach executors with it, as columns that are constant in the file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as spark_types

from icefloe.planning import FileScanTask
from icefloe.schema import StructType
from icefloe.spark.types import TypeMapping, file_type

PREFIX = "__icefloe_"


@dataclass(frozen=True, slots=True)
class Constant:
    """A column of facts about files: its name, its Spark type, and how to get its value, a plain Python value or None, from a task."""

    name: str
    kind: Any
    of: Callable[[FileScanTask], Any]
    is_always: bool = False
    """Whether every file has a value."""


def schema_of(constants: Sequence[Constant]) -> Any:
    """The constants as a Spark schema."""
    return spark_types.StructType(
        [spark_types.StructField(constant.name, constant.kind, not constant.is_always) for constant in constants]
    )


FILE = Constant(f"{PREFIX}file", spark_types.StringType(), lambda task: task.file.file_path, True)
SPEC_ID = Constant(f"{PREFIX}spec_id", spark_types.IntegerType(), lambda task: task.spec_id, True)
FIRST_ROW_ID = Constant(f"{PREFIX}first_row_id", spark_types.LongType(), lambda task: task.first_row_id)
SEQUENCE_NUMBER = Constant(f"{PREFIX}sequence_number", spark_types.LongType(), lambda task: task.sequence_number)


def partition_constants(
    partition_type: StructType, task_partition: Callable[[FileScanTask], dict[int, Any]], mapping: TypeMapping
) -> list[Constant]:
    """One constant for each field of the partitions of all specs."""
    return [
        Constant(
            f"{PREFIX}partition_{index}",
            file_type(field.field_type, mapping),
            lambda task, field=field: task_partition(task).get(field.field_id),  # type: ignore[misc]
        )
        for index, field in enumerate(partition_type.fields)
    ]
