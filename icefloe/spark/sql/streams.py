"""`STREAM t` in a query: a table as a stream, by the options behind the name."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from icefloe.catalog import show
from icefloe.errors import InvalidInputError
from icefloe.spark.sql.context import SqlContext
from icefloe.spark.sql.names import Source
from icefloe.spark.streaming.source import stream_of
from icefloe.streaming import BRANCH

UNDER_A_NAME = "NamedStreamingRelation"
"""What Spark 4.3 puts around a streaming relation: the name of the source in the checkpoint."""


def streamed(given: Mapping[str, str], source: Source, context: SqlContext) -> DataFrame:
    """The stream of a table or branch, by the options that are given behind its name."""
    if source.metadata_table is not None or source.snapshot_id is not None or source.as_of is not None:
        raise InvalidInputError(
            f"STREAM reads a table or a branch of it from now on, not one of its metadata tables or snapshots; name"
            f" {show(source.identifier)}"
        )
    options = dict(given)
    if source.ref is not None:
        options[BRANCH.key] = source.ref
    return stream_of(context.spark, source.load_table(), options)
