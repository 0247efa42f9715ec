"""How rows are grouped and ordered: transforms, partition specs, sort orders."""

from icefloe.partitioning.arrays import transform_array
from icefloe.partitioning.evolution import EvolvedSpec, PartitionSpecUpdate, SortOrderUpdate
from icefloe.partitioning.paths import parse_hive_path, parse_partition_path, partition_path, partition_text
from icefloe.partitioning.sorting import UNSORTED, NullOrder, SortDirection, SortField, SortOrder, parse_sort_order
from icefloe.partitioning.spec import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    parse_partition_spec,
    partition_type,
    unified_partition_type,
)
from icefloe.partitioning.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
    parse_transform,
)

__all__ = [
    "UNPARTITIONED",
    "UNSORTED",
    "BucketTransform",
    "DayTransform",
    "EvolvedSpec",
    "HourTransform",
    "IdentityTransform",
    "MonthTransform",
    "NullOrder",
    "PartitionField",
    "PartitionSpec",
    "PartitionSpecUpdate",
    "SortDirection",
    "SortField",
    "SortOrder",
    "SortOrderUpdate",
    "TimeTransform",
    "Transform",
    "TruncateTransform",
    "UnknownTransform",
    "VoidTransform",
    "YearTransform",
    "parse_hive_path",
    "parse_partition_path",
    "parse_partition_spec",
    "parse_sort_order",
    "parse_transform",
    "partition_path",
    "partition_text",
    "partition_type",
    "transform_array",
    "unified_partition_type",
]
