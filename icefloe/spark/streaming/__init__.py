"""Streams on Spark: tables as sources of micro-batches, and as sinks in which each batch is once."""
