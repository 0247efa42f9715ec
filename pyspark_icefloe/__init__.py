"""The format `icefloe` in every session of Spark, without a call: Spark looks for modules of such names, and takes `DefaultSource`."""

from icefloe.spark.data_source import TableSource

__all__ = ["DefaultSource"]


class DefaultSource(TableSource):
    """Tables of the catalogs that options or the configuration of icefloe name."""
