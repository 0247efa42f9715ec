"""Keeping a table healthy: what may be deleted, and what should be rewritten; decided here, run by any engine."""
