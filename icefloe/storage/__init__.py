"""Bytes at a location."""
