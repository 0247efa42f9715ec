"""Expiry of snapshots and of the files that only they reference."""
