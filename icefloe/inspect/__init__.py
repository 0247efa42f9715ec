"""The metadata tables: `table.inspect`."""

from icefloe.inspect.tables import Inspect, MetadataScan

__all__ = ["Inspect", "MetadataScan"]
