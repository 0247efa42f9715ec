"""Engines in processes of their own, so that Java Iceberg and icefloe do the same work on the same Spark, in turn."""
