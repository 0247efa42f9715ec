"""Spark's own calls on our tables: `spark.table`, `df.write`, `df.writeTo`, `spark.catalog`."""
