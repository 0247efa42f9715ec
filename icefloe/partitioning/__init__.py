"""How rows are grouped and ordered: transforms, partition specs, sort orders."""

from icefloe.partitioning.arrays import transform_array
from icefloe.partitioning.codec import (
    fields_from_json,
    fields_to_json,
    order_from_json,
    order_to_json,
    spec_from_json,
    spec_to_json,
)
from icefloe.partitioning.evolution import PartitionSpecUpdate, SortOrderUpdate
from icefloe.partitioning.hashing import minimal_big_endian, unscaled
from icefloe.partitioning.human import human_value
from icefloe.partitioning.paths import HIVE_NULL, partition_path, partition_values, split_hive_path
from icefloe.partitioning.shown import column_name, shown_order, shown_spec
from icefloe.partitioning.sorting import (
    FIRST_ORDER_ID,
    UNSORTED,
    UNSORTED_ORDER_ID,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
    check_order,
    parse_sort_order,
    rebind_order,
)
from icefloe.partitioning.spec import (
    FIRST_PARTITION_FIELD_ID,
    NO_PARTITION_FIELD_ID,
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    check_spec,
    check_writable,
    parse_partition_spec,
    partition_type,
    rebind_spec,
    unified_partition_type,
)
from icefloe.partitioning.terms import parse_term
