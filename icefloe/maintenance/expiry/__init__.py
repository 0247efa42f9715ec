"""Snapshots that leave a table, and the files that only they needed."""
