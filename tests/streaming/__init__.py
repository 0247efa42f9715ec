"""Streams over tables, without an engine."""
