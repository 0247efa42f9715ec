"""Scans, writes and row-level operations of tables on Spark: a door that translates and holds no rule of a table."""
