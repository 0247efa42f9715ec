"""The metadata tables: `table.inspect`."""

from icefloe.inspect.schemas import TABLE_NAMES, metadata_table_schema
from icefloe.inspect.tables import Inspect, MetadataScan
