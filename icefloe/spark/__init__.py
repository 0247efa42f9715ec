"""Scans, writes and row-level operations of tables on Spark: it translates, and holds no table rules of its own."""
