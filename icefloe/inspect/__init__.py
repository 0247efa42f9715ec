"""The metadata tables: `table.inspect`."""

from icefloe.inspect.entries import partition_column
from icefloe.inspect.partitions import NEVER, PartitionTotals, join_totals, merge_totals, partition_rows
from icefloe.inspect.parts import MetadataPart
from icefloe.inspect.request import MetadataRequest
from icefloe.inspect.schemas import TABLE_NAMES, metadata_table_schema
from icefloe.inspect.statistics import distinct_count
from icefloe.inspect.tables import Inspect, MetadataScan
