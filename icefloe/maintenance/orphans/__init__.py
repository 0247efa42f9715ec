"""Orphan files: files under a table's location that the table does not reference."""
