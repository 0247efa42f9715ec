"""How rows are grouped and ordered: transforms, partition specs, sort orders."""

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
    "HourTransform",
    "IdentityTransform",
    "MonthTransform",
    "NullOrder",
    "PartitionField",
    "PartitionSpec",
    "SortDirection",
    "SortField",
    "SortOrder",
    "TimeTransform",
    "Transform",
    "TruncateTransform",
    "UnknownTransform",
    "VoidTransform",
    "YearTransform",
    "parse_partition_spec",
    "parse_sort_order",
    "parse_transform",
    "partition_type",
    "unified_partition_type",
]
